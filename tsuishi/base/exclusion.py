"""What only one tsuishi at a time may do: each kind ends with its holder, however that ends, and says who holds it.

Files are locked with flock(2): whoever shares the file is kept out, whatever its cache and user.

The machine is held by an abstract Unix socket (unix(7)): its name is taken once in a network namespace, by any user,
leaves no file, needs no permission and is free when its holder is dead; the kernel tells the holder's process and user
(SO_PEERCRED), which nobody can forge. A lock on a file or folder that all share, as /run, ends at a mount namespace:
every container, sandbox and job of a scheduler has such a namespace, and fewer have a network of their own. Not kept
apart are those with a network of their own: two containers with tsuishi in them, say, unless they use the host's.
"""

import errno
import fcntl
import os
import pwd
import re
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tsuishi.base.errors import UserError

_OPENING = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CREDENTIALS = struct.Struct("3i")  # pid, user, group
# Those who asked who it is stay in its queue; the kernel holds no more than net.core.somaxconn of them.
_ASKERS = 1 << 16
_PID_BYTES = 16


@contextmanager
def file(path: Path, doing: str) -> Iterator[None]:
    """Hold a file, made where there is none, while `doing` something. Raises UserError where another process does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, _OPENING, 0o644)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: make it a file you may write, for it keeps others out") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UserError(f"{path}: no regular file (a pipe, a device): remove it")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _held(_noted(descriptor), doing) from None
        except OSError as error:
            raise UserError(f"{path}: cannot be locked ({error.strerror}): use a file system that has locks") from error
        with suppress(OSError):  # a full disk; who it is is said for the reader's sake
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


@contextmanager
def machine(name: str) -> Iterator[None]:
    """Measure alone on the machine, or on the part of it that has this name. Raises UserError where another does."""
    address = f"\0tsuishi/measuring/{name}"
    with socket.socket(socket.AF_UNIX) as ours:
        try:
            ours.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise _held(_listener(address), f"measuring on {name}") from None
        ours.listen(_ASKERS)
        yield


def _held(who: str, doing: str) -> UserError:
    return UserError(f"another tsuishi{who and f' ({who})'} is {doing}; wait for it")


def _noted(descriptor: int) -> str:
    """Who a locked file says holds it; a file that came from elsewhere may say anything."""
    pid = os.pread(descriptor, _PID_BYTES, 0)
    return f"process {pid.decode()}" if re.fullmatch(rb"[0-9]+", pid) else ""


def _listener(address: str) -> str:
    """Who listens there; empty where nobody does any more, or not yet."""
    with socket.socket(socket.AF_UNIX) as ours:
        ours.setblocking(False)
        try:
            ours.connect(address)
        except OSError:
            return ""
        size = _CREDENTIALS.size
        pid, user, _ = _CREDENTIALS.unpack(ours.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = f"user {user}"
    # A process that cannot be seen from this pid namespace has the number 0.
    return f"process {pid} of {name}" if pid else f"a process of {name} in another container"
