"""Who a process is, told so that another process of this machine can find out whether it is still there.

An owner is `<boot id>:<pid namespace>:<pid>:<start>`. A pid alone is given to another process later; with the time of
its start (in ticks since the boot) it names one process of one boot.
"""

import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

_OWNER = re.compile(r"([0-9a-f-]{36}):([0-9]+):([0-9]+):([0-9]+)")
# Of a process that has ended, and whose parent has not asked how (proc(5)).
_ENDED = ("Z", "X")


def me() -> str:
    """This process."""
    return f"{_boot()}:{_namespace()}:{os.getpid()}:{_state_and_start(os.getpid())[1]}"


def is_alive(owner: str) -> bool:
    """Whether that process may still be there; only what is known to have ended has ended.

    The processes of another pid namespace (tsuishi in another container) cannot be seen from here: they count as alive,
    and a deadline has to bound what they leave. So does a text that is no owner.
    """
    found = _OWNER.fullmatch(owner)
    if found is None:
        return True
    boot, namespace, pid, start = found.groups()
    if boot != _boot():
        return False
    if int(namespace) != _namespace():
        return True
    try:
        state, started = _state_and_start(int(pid))
    except OSError:
        return _is_hidden(int(pid))
    return state not in _ENDED and started == start


def _state_and_start(pid: int) -> tuple[str, str]:
    """Fields 3 and 22 of /proc/<pid>/stat, which come after the program's name: that may hold anything."""
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return fields[0], fields[19]


def _is_hidden(pid: int) -> bool:
    """Whether a process is there, though /proc shows those of other users to nobody (its option hidepid)."""
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
