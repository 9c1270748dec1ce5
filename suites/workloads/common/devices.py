"""On which devices an experiment runs, and their names. Needs no framework."""

import platform

from common import cuda_devices
from common.events import Unsupported

AMPERE = (8, 0)  # the lowest compute capability of GPUs with TF32 and BF16


def placement(request, count, nodes=1):
    """The device of each of `count` towers or replicas: a list of GPU indices, or of None for the CPU.

    On several nodes, each has its equal part of the list, and counts its own GPUs. Where a node has fewer GPUs than its
    part, towers share them in turn. Raises GpusMissing where GPUs that the host gave are not there.
    """
    if request.accelerator == "cpu":
        return [None] * count
    gpus = cuda_devices.given(max(1, request.gpus))
    return [index % gpus for index in range(count // nodes)] * nodes


def simulated(places, nodes=1):
    """Whether `places` have several devices on a node that are not all distinct GPUs."""
    places = places[: len(places) // nodes]
    return len(places) > 1 and (None in places or len(set(places)) < len(places))


def check_tf32(wanted, places):
    """Raises Unsupported where TF32 is wanted and a device cannot do it."""
    if wanted and None in places:
        raise Unsupported("precision 'tf32': a mode of NVIDIA GPUs since 2020, and this is a CPU; 'fp32' would run")
    if wanted and _before_ampere(places):
        raise Unsupported(
            "precision 'tf32': this GPU has none (compute capability 8.0 and newer have); 'fp32' would run"
        )


def check_bf16(precision, places):
    """Raises Unsupported where a precision is of bfloat16 and a device is a GPU without it.

    Such a GPU computes in another type, or fails: its times would be none of bfloat16. What CPUs can do is left to the
    frameworks.
    """
    if "bf16" in precision and _before_ampere(places):
        raise Unsupported(
            "precision {!r}: this GPU has no bfloat16 (compute capability 8.0 and newer have); 'fp32' would run".format(
                precision
            )
        )


def _before_ampere(places):
    """Whether a GPU among `places` is older than those with TF32 and BF16."""
    return any(cuda_devices.compute_capability(place) < AMPERE for place in set(places) - {None})


def described(accelerator):
    """`kind` and `name` of each device: the CPU, and with accelerator "cuda" the GPUs that the driver lists."""
    gpus = cuda_devices.names() if accelerator == "cuda" else []
    return [{"kind": "cpu", "name": _cpu_name()}] + [{"kind": "gpu", "name": name} for name in gpus]


def _cpu_name():
    with open("/proc/cpuinfo") as lines:
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
