"""On which devices an experiment runs, and their names. Needs no framework."""

import platform

from common import cuda_devices
from common.events import Unsupported

AMPERE = (8, 0)  # the lowest compute capability of GPUs with TF32 and BF16


def placement(request, count):
    """The device of each of `count` towers or replicas: a list of GPU indices, or of None for the CPU.

    Where there are fewer GPUs than `count`, towers share them in turn. Raises Unsupported when the request asks for
    CUDA and there is no GPU.
    """
    if request.accelerator == "cpu":
        return [None] * count
    gpus = len(cuda_devices.names())
    if not gpus:
        raise Unsupported("accelerator 'cuda' asked for, but the driver lists no GPU; accelerator 'cpu' would run")
    return [index % gpus for index in range(count)]


def simulated(places):
    """Whether `places` are several devices that are not all distinct GPUs."""
    return len(places) > 1 and (None in places or len(set(places)) < len(places))


def check_tf32(wanted, places):
    """Raises Unsupported where TF32 is wanted and the device of the first place cannot do it."""
    if wanted and places[0] is None:
        raise Unsupported("precision 'tf32': a mode of NVIDIA GPUs since 2020, and this is a CPU; 'fp32' would run")
    if wanted and cuda_devices.compute_capability(places[0]) < AMPERE:
        raise Unsupported(
            "precision 'tf32': this GPU has none (compute capability 8.0 and newer have); 'fp32' would run"
        )


def described(accelerator):
    """`kind` and `name` of each device: the CPU, and with accelerator "cuda" the GPUs that the driver lists."""
    gpus = cuda_devices.names() if accelerator == "cuda" else []
    return [{"kind": "cpu", "name": _cpu_name()}] + [{"kind": "gpu", "name": name} for name in gpus]


def _cpu_name():
    with open("/proc/cpuinfo") as lines:
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
