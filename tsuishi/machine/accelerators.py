"""What an environment computes on here: the CPU, or the GPUs of this machine if they can run it."""

from pathlib import Path

from tsuishi.machine import compatibility
from tsuishi.machine.compatibility import Misfit
from tsuishi.machine.gpus import Nvml
from tsuishi.specs.environment import Accelerator, Environment, known_environments, read_environment


def accelerator_for(environment: Environment, nvml: Nvml, asked: str) -> Accelerator:
    """What an environment that is not refused computes on here: the GPU where it can use one, else the CPU."""
    return "cpu" if asked == "cpu" or why_on_cpu(environment, nvml) else "cuda"


def why_on_cpu(environment: Environment, nvml: Nvml) -> str:
    """Why an environment computes on the CPU here; empty where it has a GPU."""
    if "cuda" not in environment.accelerators:
        return "it is made for the CPU"
    return "" if len(nvml) else f"no GPU here ({nvml.why_not or 'none found'})"


def misfit(environment: Environment, nvml: Nvml, images: Path) -> Misfit | None:
    """What keeps the GPUs here from running an environment that would compute on them; None where nothing does."""
    if why_on_cpu(environment, nvml):
        return None
    return compatibility.misfit(environment, nvml.describe(), nvml.driver(), compatibility.read_table(images))


def gpu_refusal(environment: Environment, nvml: Nvml, images: Path, asked: str, force: bool) -> str:
    """Why an environment cannot be used on the GPUs here as asked for, and what to use instead; empty where it can."""
    if asked == "cpu":
        return ""
    if on_cpu := why_on_cpu(environment, nvml):
        return on_cpu if asked == "cuda" else ""
    table = compatibility.read_table(images)
    # Read only where another is to be named.
    known = (read_environment(path) for path in known_environments(images).values())
    return compatibility.refusal(environment, nvml.describe(), nvml.driver(), table, known, force)
