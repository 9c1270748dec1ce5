"""Finds other processes that use a GPU. A run asks before it begins, and before each of its trials."""

import math
import time
from collections.abc import Callable, Collection

import psutil

from tsuishi.base.errors import UserError
from tsuishi.base.settings import BusyGpu
from tsuishi.machine.gpus import Gpu, Nvml, wsl

# A process that has just ended still counts for a moment: only a longer use counts as use by others.
_SETTLED_S = 3.0
_LOOK_EVERY_S = 0.5
# Limits where the driver names no process (in a virtual machine, in a container): of time, of memory, and of memory
# that a desktop uses too.
_BUSY_PERCENT = 25
_BUSY_MEMORY_SHARE, _BUSY_BESIDE_DESKTOP = 0.25, 0.5
# NVIDIA's server through which several programs share a GPU: its clients count, and it computes nothing itself.
_MPS = "nvidia-cuda-mps"


def await_idle(
    nvml: Nvml, gpus: Collection[Gpu], otherwise: BusyGpu, limit_s: float, say: Callable[[str], None]
) -> None:
    """Wait until no other process uses these GPUs. `otherwise` "use" does not wait; `say` gets the names of the users.

    Raises UserError where the GPUs stay in use: for three seconds where `otherwise` is "refuse", else for `limit_s`.
    """
    begun, announced = time.monotonic(), False
    while users := "; ".join(filter(None, (used_by_others(nvml, gpu) for gpu in gpus))):
        waited_s = time.monotonic() - begun
        if otherwise == "use":
            say(f"used all the same: {users}")
            return
        if waited_s > _SETTLED_S and otherwise == "refuse":
            raise UserError(f"{users}: free it, choose others with --gpus, or give --busy-gpu use")
        if waited_s > max(limit_s, _SETTLED_S):
            raise UserError(
                f"{users}, after {limit_s:.0f} s of waiting: free it, allow more (gpu_wait_s, --within), or give "
                "--busy-gpu use"
            )
        if waited_s > _SETTLED_S and not announced:
            say(f"waiting: {users}")
            announced = True
        time.sleep(_LOOK_EVERY_S)


def shared_with(nvml: Nvml) -> list[str]:
    """The permanent other uses of the GPUs here, as sentences: displays, and Windows around WSL2."""
    displays = [gpu["index"] for gpu in nvml.describe() if gpu["display_active"]]
    uses = [f"GPU {index} has a display attached, whose desktop takes memory and time of it" for index in displays]
    windows = "this is WSL2: Windows and its desktop use the GPUs too, and hide some values from telemetry"
    return [windows, *uses] if wsl() and len(nvml) else uses


def used_by_others(nvml: Nvml, gpu: Gpu) -> str:
    """The other users of a GPU, in words; empty where there are none."""
    running = nvml.processes(gpu.index)
    ours = _ours() if running else set()
    others = {pid: _named(pid, mib) for pid, mib in running.items() if pid not in ours}
    if named := [name for name in others.values() if not name.startswith(_MPS)]:
        return f"GPU {gpu.index} is in use by {', '.join(named)}"
    (sample,) = nvml.sample([gpu.index])
    (described,) = [each for each in nvml.describe() if each["index"] == gpu.index]
    usable_mib = (described["memory_mib"] or float("inf")) - (described["memory_reserved_mib"] or 0.0)
    percent, used_mib = sample["utilisation_percent"] or 0, sample["memory_used_mib"] or 0
    drawn_mib = math.fsum(mib or 0.0 for mib in nvml.processes(gpu.index, draws=True).values())
    share = _BUSY_BESIDE_DESKTOP if described["display_active"] or wsl() else _BUSY_MEMORY_SHARE
    if percent < _BUSY_PERCENT and used_mib - drawn_mib < share * usable_mib:
        return ""
    taken = f"{percent} % of its time and {used_mib:.0f} MiB taken"
    return f"GPU {gpu.index} is in use by somebody who cannot be seen from here ({taken})"


def _ours() -> set[int]:
    this = psutil.Process()
    return {this.pid, *(child.pid for child in this.children(recursive=True))}


def _named(pid: int, mib: float | None) -> str:
    """A process with the name of its program, which may be hidden: of another user, or outside this container."""
    try:
        name = psutil.Process(pid).name()
    except psutil.Error:
        name = "a program that cannot be seen from here"
    return f"{name} (process {pid}{'' if mib is None else f', {mib:.0f} MiB'})"
