"""Whether somebody else uses a GPU: looked at before a run, and before each of its trials."""

import time
from collections.abc import Callable, Collection

import psutil

from tsuishi.base.errors import UserError
from tsuishi.base.settings import BusyGpu
from tsuishi.machine.gpus import Gpu, Nvml, wsl

# What has just ended is still counted for a moment: only what is there after this is somebody's.
_SETTLED_S = 3.0
_LOOK_EVERY_S = 0.5
# Where no process is told (in a virtual machine, from within a container): above what a desktop takes.
_BUSY_PERCENT = 25
_BUSY_MEMORY_SHARE = 0.25


def await_idle(
    nvml: Nvml, gpus: Collection[Gpu], otherwise: BusyGpu, limit_s: float, say: Callable[[str], None]
) -> None:
    """Return once nobody else uses these GPUs, or at once where that is not to matter; `say` tells who it is.

    Raises UserError where they stay in use: for three seconds where that is to be refused, for `limit_s` where not.
    """
    begun, told = time.monotonic(), False
    while users := [line for gpu in gpus if (line := used_by_others(nvml, gpu))]:
        waited_s = time.monotonic() - begun
        said = "; ".join(users)
        if otherwise == "use":
            say(f"used all the same: {said}")
            return
        if waited_s > _SETTLED_S and otherwise == "refuse":
            raise UserError(f"{said}: free it, choose others with --gpus, or give --busy-gpu use")
        if waited_s > max(limit_s, _SETTLED_S):
            raise UserError(f"{said}, after {limit_s:g} s of waiting: free it, or allow more (gpu_wait_s)")
        if waited_s > _SETTLED_S and not told:
            say(f"waiting: {said}")
            told = True
        time.sleep(_LOOK_EVERY_S)


def shared_with(nvml: Nvml) -> list[str]:
    """What else the GPUs here serve all the time, in words."""
    displays = [one["index"] for one in nvml.describe() if one["display_active"]]
    told = [f"GPU {index} has a display attached, whose desktop takes memory and time of it" for index in displays]
    windows = "this is WSL2: Windows and its desktop use the GPUs too, and hide some of what telemetry asks for"
    return [windows, *told] if wsl() and len(nvml) else told


def used_by_others(nvml: Nvml, gpu: Gpu) -> str:
    """Who uses a GPU beside us, in words; empty where nobody does."""
    running = nvml.processes(gpu.index)
    ours = _ours() if running else set()
    others = {pid: mib for pid, mib in running.items() if pid not in ours}
    if others:
        named = [_named(pid, mib) for pid, mib in others.items()]
        return f"GPU {gpu.index} is in use by {', '.join(named)}"
    (sample,), (described,) = nvml.sample([gpu.index]), [one for one in nvml.describe() if one["index"] == gpu.index]
    percent, used_mib = sample["utilisation_percent"] or 0, sample["memory_used_mib"] or 0
    if percent < _BUSY_PERCENT and used_mib < _BUSY_MEMORY_SHARE * (described["memory_mib"] or float("inf")):
        return ""
    taken = f"{percent} % of its time and {used_mib:.0f} MiB taken"
    return f"GPU {gpu.index} is in use by somebody who cannot be seen from here ({taken})"


def _ours() -> set[int]:
    this = psutil.Process()
    return {this.pid, *(child.pid for child in this.children(recursive=True))}


def _named(pid: int, mib: float | None) -> str:
    """A process by its program's name; another user's, or one outside this container, may not be seen."""
    try:
        name = psutil.Process(pid).name()
    except psutil.Error:
        name = "a program that cannot be seen from here"
    return f"{name} (process {pid}{'' if mib is None else f', {mib:.0f} MiB'})"
