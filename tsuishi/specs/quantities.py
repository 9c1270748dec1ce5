"""The closed list of quantities that are compared, in tables, charts and claims."""

from collections.abc import Sequence
from dataclasses import dataclass

# Phases in which the measured work is done; energy is counted over these.
MEASURED = ("measure", "compute", "epoch", "first_run", "later_runs")
# GPUs of one machine, of each of which load, power and memory have a quantity.
GPUS = range(8)


@dataclass(frozen=True)
class Quantity:
    """Something measured: how it is called in a table's header, and its unit (1: a pure number)."""

    label: str
    unit: str


# The closed list of quantities that are compared, in the order in which they are shown.
QUANTITIES = {
    "first_run_s": Quantity("first run", "s"),
    "later_run_s": Quantity("later runs, median", "s"),
    "host_to_device_s": Quantity("host to device", "s"),
    "compute_s": Quantity("compute", "s"),
    "device_to_host_s": Quantity("device to host", "s"),
    "step_s": Quantity("step, median", "s"),
    "throughput_images_per_s": Quantity("throughput", "images/s"),
    "distinct_images_per_s": Quantity("distinct images", "images/s"),
    "first_step_s": Quantity("first step", "s"),
    "second_step_s": Quantity("second step", "s"),
    "forward_s": Quantity("forward", "s"),
    "forward_backward_s": Quantity("forward backward", "s"),
    "first_epoch_s": Quantity("first epoch", "s"),
    "median_epoch_s": Quantity("later epochs, median", "s"),
    "total_s": Quantity("100 epochs", "s"),
    "accuracy": Quantity("accuracy on the test images", "1"),
    # Of a line over batch sizes: the time of a step is batch / ideal speed + cost time.
    "ideal_speed_images_per_s": Quantity("ideal speed", "images/s"),
    "cost_time_s": Quantity("cost time", "s"),
    "flops_per_s": Quantity("arithmetic", "FLOP/s"),
    "bytes_per_s": Quantity("memory traffic", "B/s"),
    "fraction_of_limit": Quantity("fraction of the limit", "1"),
    # Of the GPUs while the case was measured; of one of them, its unit tells load, power and memory apart.
    "gpu_utilisation_percent": Quantity("load, mean of the GPUs", "%"),
    "gpu_imbalance": Quantity("imbalance of the GPUs' load", "1"),
    "least_gpu_memory_share": Quantity("memory taken, least of the GPUs", "1"),
    "peak_gpu_memory_mib": Quantity("memory taken, peak of the GPUs", "MiB"),
    "energy_per_image_j": Quantity("energy per image", "J"),
    **{f"gpu{gpu}_utilisation_percent": Quantity(f"GPU {gpu}", "%") for gpu in GPUS},
    **{f"gpu{gpu}_power_w": Quantity(f"GPU {gpu}", "W") for gpu in GPUS},
    **{f"gpu{gpu}_memory_mib": Quantity(f"GPU {gpu}", "MiB") for gpu in GPUS},
}
# The quantities that are of one GPU of several.
OF_ONE_GPU = {f"gpu{gpu}_{what}" for gpu in GPUS for what in ("utilisation_percent", "power_w", "memory_mib")}


def imbalance(loads: Sequence[float]) -> float:
    """(largest - smallest) / mean of the GPUs' loads: 0 is even; 0 too where all of them are idle."""
    return (max(loads) - min(loads)) * len(loads) / sum(loads) if sum(loads) else 0.0
