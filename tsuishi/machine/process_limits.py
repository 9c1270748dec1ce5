"""What limits this process: affinity, cgroups, ulimits, priority, and what a batch system or a user has set."""

import os
import re
import resource
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

_MIB = 1 << 20
# A larger number limits nothing: a cgroup of version 1 without a limit has one of nearly 2^63 bytes.
_NO_LIMIT = 1 << 53
# The limits that decide what starts, fits or is stopped; the others are of signals, locks and queues.
_ULIMITS = {
    "address space": resource.RLIMIT_AS,
    "data": resource.RLIMIT_DATA,
    "stack": resource.RLIMIT_STACK,
    "locked memory": resource.RLIMIT_MEMLOCK,
    "open files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "file size": resource.RLIMIT_FSIZE,
    "CPU time": resource.RLIMIT_CPU,
}
_POLICIES = {
    os.SCHED_OTHER: "other", os.SCHED_BATCH: "batch", os.SCHED_IDLE: "idle", os.SCHED_FIFO: "fifo", os.SCHED_RR: "rr"
}  # fmt: skip
# What frameworks and libraries take their number of threads from, and what a batch system says that it gave. Values are
# recorded where they are numbers and simple words: others may name a user or a host.
_VARIABLES = re.compile(
    r"(OMP|MKL|OPENBLAS|NUMEXPR|TF|BLIS|VECLIB|GOTO|KMP|GOMP)_[A-Z_]*(THREADS|DYNAMIC|BIND|PLACES|AFFINITY|BLOCKTIME)"
    r"|SLURM_(CPUS|MEM|NTASKS|GPUS)_?[A-Z_]*|PBS_N(CPUS|UM_PPN|P)|NCPUS|LSB_DJOB_NUMPROC|NSLOTS"
)
_SIMPLE = re.compile(r"[0-9a-zA-Z,.:{}()+-]{0,40}")


def limits_of_process() -> dict[str, Any]:
    """The content of a LimitsRecord, of this process."""
    usable, quota = os.sched_getaffinity(0), cpu_quota()
    policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    memory = lowest("memory", ("memory.max", "memory.high", "memory.limit_in_bytes"))
    return {
        "cores": min(len(usable), quota) if quota else len(usable),
        "affinity": ranges(sorted(usable)),
        "cpu_quota": quota,
        "memory_limit_mib": memory // _MIB if memory else None,
        "processes": lowest("pids", ("pids.max",)),
        "ulimits": {
            name: soft
            for name, which in _ULIMITS.items()
            for soft, _ in [resource.getrlimit(which)]
            if 0 <= soft < _NO_LIMIT  # RLIM_INFINITY is -1
        },
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "scheduling": _POLICIES.get(policy, str(policy)),
        "variables": {
            name: value
            for name, value in sorted(os.environ.items())
            if _VARIABLES.fullmatch(name) and _SIMPLE.fullmatch(value)
        },
    }


def cpu_quota(root: Path = Path("/")) -> float | None:
    """The cores' worth of time that the cgroups of this process allow; None without a limit."""
    found = []
    for folder in _cgroups("cpu", root):
        both = (first_line(folder / "cpu.max") or "").split() or [
            first_line(folder / f"cpu.cfs_{what}_us") or "" for what in ("quota", "period")
        ]
        if len(both) == 2 and all(part.isdigit() for part in both):  # else "max", -1, or nothing
            found.append(int(both[0]) / int(both[1]))
    return min(found, default=None)


def lowest(controller: str, names: Sequence[str], root: Path = Path("/")) -> int | None:
    """The lowest number in these files of the cgroups of this process; None without a limit."""
    texts = (first_line(folder / name) for folder in _cgroups(controller, root) for name in names)
    numbers = [int(text) for text in texts if text and text.isdigit()]
    return min((number for number in numbers if number < _NO_LIMIT), default=None)


def _cgroups(controller: str, root: Path) -> Iterator[Path]:
    """The folders of a controller for this process, of version 2 and of version 1: its cgroup and all above it."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0" or controller in controllers.split(","):
            top = root / "sys/fs/cgroup" / ("" if number == "0" else controller)
            # In a container the path may be the host's: then its own cgroup is the top.
            own = top / path.strip("/")
            yield own
            yield from (parent for parent in own.parents if parent.is_relative_to(top))


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers in short: 0-3,8."""
    begins = [numbers[0], *(after for before, after in pairwise(numbers) if after != before + 1)]
    ends = [*(before for before, after in pairwise(numbers) if after != before + 1), numbers[-1]]
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in zip(begins, ends, strict=True)
    )


def first_line(path: Path) -> str | None:
    """The text of a file of /proc or /sys; None where the system does not give it."""
    try:
        return path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError):
        return None
