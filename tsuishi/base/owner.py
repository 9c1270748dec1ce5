"""Names of processes, by which another process of this machine can find out whether they are still alive.

Such a name, an owner, is `<boot id>:<pid namespace>:<pid>:<start>`. The kernel gives a pid to another process later;
the pid and the time of its start (in ticks since the boot) name one process of one boot.
"""

import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

# The variable of every process that a trial starts. Its value names the owner of the trial, its runner, and the trial.
MARK = "TSUISHI_TRIAL"
_OWNER = re.compile(r"([0-9a-f-]{36}):([0-9]+):([0-9]+):([0-9]+)")
# States of a process that has ended, and for which its parent has not waited yet (proc(5)).
_ENDED = ("Z", "X")


def me() -> str:
    """The name of this process."""
    return f"{_boot()}:{_namespace()}:{os.getpid()}:{_state_and_start(os.getpid())[1]}"


def is_alive(owner: str) -> bool:
    """Whether the process may still be alive; False only where it certainly has ended.

    A process of another pid namespace (tsuishi in another container) cannot be seen from here and counts as alive: what
    it leaves needs a deadline. So does a text that is no owner.
    """
    match = _OWNER.fullmatch(owner)
    if match is None:
        return True
    boot, namespace, pid, start = match.groups()
    if boot != _boot():
        return False
    if int(namespace) != _namespace():
        return True
    try:
        state, started = _state_and_start(int(pid))
    except OSError:
        return _is_hidden(int(pid))
    return state not in _ENDED and started == start


def is_elsewhere(owner: str) -> bool:
    """Whether the process is of another boot: of another machine, or of this machine before its last start."""
    match = _OWNER.fullmatch(owner)
    return match is not None and match[1] != _boot()


def _state_and_start(pid: int) -> tuple[str, str]:
    """Fields 3 and 22 of /proc/<pid>/stat. They come after the program's name, which may hold any character."""
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return fields[0], fields[19]


def _is_hidden(pid: int) -> bool:
    """Whether a process exists that /proc does not show, as its option hidepid hides those of other users."""
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino
