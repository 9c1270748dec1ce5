"""Whether an environment computes on the CPU or the GPUs of this machine, and why it cannot use these GPUs."""

from pathlib import Path

from tsuishi.machine import compatibility
from tsuishi.machine.gpus import Nvml
from tsuishi.specs.environment import Accelerator, Environment, known_environments, read_environment


def accelerator_for(environment: Environment, nvml: Nvml, asked: str) -> Accelerator:
    """The accelerator that an environment uses here: GPUs if it can use them and `asked` is not "cpu", else the CPU."""
    return "cpu" if asked == "cpu" or why_on_cpu(environment, nvml) else "cuda"


def why_on_cpu(environment: Environment, nvml: Nvml) -> str:
    """Why an environment computes on the CPU here; empty where it can use a GPU."""
    if "cuda" not in environment.accelerators:
        return "it is made for the CPU"
    return "" if len(nvml) else f"no GPU here ({nvml.why_not or 'none found'})"


def gpu_refusal(environment: Environment, nvml: Nvml, images: Path, asked: str, force: bool) -> str:
    """Why an environment cannot use the GPUs here as `asked` ("cpu", "cuda" or "auto"), with a remedy.

    Empty where it can, and where it may use the CPU. `force` allows GPUs that are newer than its code.
    """
    if asked == "cpu":
        return ""
    if on_cpu := why_on_cpu(environment, nvml):
        return on_cpu if asked == "cuda" else ""
    table = compatibility.read_table(images)
    # A generator: the files are read only if the message names other environments.
    known = (read_environment(path) for path in known_environments(images).values())
    return compatibility.refusal(environment, nvml.describe(), nvml.driver(), table, known, force)
