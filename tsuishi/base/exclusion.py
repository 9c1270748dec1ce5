"""Locks: only one tsuishi at a time writes to a folder, or measures on a machine.

A lock ends when its process ends, for any reason. The message to a second process names the process that holds it.

A file is locked with flock(2), which works between all processes that see the file, of any user.

The machine is locked with an abstract Unix socket (unix(7)). Only one process in a network namespace can have its
name. Any user can take it, it leaves no file, and it is free when its process has ended. The kernel tells the holder's
process and user (SO_PEERCRED), which cannot be forged. A lock on a shared file, in /run say, would not work between
mount namespaces: every container, sandbox and job of a scheduler has its own. Fewer have a network namespace of their
own. Two containers that do not use the host's network are not kept apart.
"""

import errno
import fcntl
import os
import pwd
import re
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.base.screen import Say

_OPENING = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CREDENTIALS = struct.Struct("3i")  # pid, user, group
# A process that asks for the holder stays in the holder's queue; the kernel limits it to net.core.somaxconn.
_ASKERS = 1 << 16
_PID_BYTES = 16
_TICK_S = 0.2


class Held(UserError):
    """Another process holds a lock. `holder`: which process, and what it does."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"{holder}; wait for it (--wait)")
        self.holder = holder


@contextmanager
def file(path: Path, doing: str, waits: Say | None = None) -> Iterator[None]:
    """Hold the lock of a file, which is made if it does not exist. The message to others says what we are `doing`.

    waits: gets a line where another process holds the lock, which is then waited for. Raises Held without it, and
    UserError where the file cannot be made or locked.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, _OPENING, 0o644)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: make it a file you may write, for it keeps others out") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UserError(f"{path}: no regular file (a pipe, a device): remove it")

        def lock() -> None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _held(_noted(descriptor), doing) from None

        try:
            _take(lock, waits)
        except OSError as error:
            raise UserError(f"{path}: cannot be locked ({error.strerror}): use a file system that has locks") from error
        with suppress(OSError):  # a full disk: only the message to others loses the process's number
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def holder(path: Path) -> str:
    """Which other process holds the lock of a file, in words; empty where none does, or where that cannot be seen."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        noted = _noted(descriptor)
        return "" if noted == f"process {os.getpid()}" else noted or "another process"
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return ""


@contextmanager
def machine(name: str, waits: Say | None = None) -> Iterator[None]:
    """Hold the lock of the machine, or of the machine's part with this name, to measure alone.

    waits: as for `file`. Raises Held without it where another process holds the lock.
    """
    address = f"\0tsuishi/measuring/{name}"
    with socket.socket(socket.AF_UNIX) as server:

        def lock() -> None:
            try:
                server.bind(address)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise _held(_listener(address), f"measuring on {name}") from None

        _take(lock, waits)
        server.listen(_ASKERS)
        yield


def _take(lock: Callable[[], None], waits: Say | None) -> None:
    """Take a lock, at once or when its holder has ended."""
    said = False
    while True:
        try:
            return lock()
        except Held as held:
            if waits is None:
                raise
            if not said:
                waits(f"waiting: {held.holder}")
            said = True
            time.sleep(_TICK_S)


def _held(holder: str, doing: str) -> Held:
    return Held(f"another tsuishi{holder and f' ({holder})'} is {doing}")


def _noted(descriptor: int) -> str:
    """The process that a locked file names; empty for other text, as a file from elsewhere may hold anything."""
    pid = os.pread(descriptor, _PID_BYTES, 0)
    return f"process {pid.decode()}" if re.fullmatch(rb"[0-9]+", pid) else ""


def _listener(address: str) -> str:
    """The process and user that listen at an address; empty where no process listens any more, or not yet."""
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        try:
            client.connect(address)
        except OSError:
            return ""
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, user, _ = _CREDENTIALS.unpack(credentials)
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = f"user {user}"
    # The kernel gives the number 0 for a process outside this pid namespace.
    return f"process {pid} of {name}" if pid else f"a process of {name} in another container"
