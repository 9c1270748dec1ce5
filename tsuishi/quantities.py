"""The closed list of quantities that are compared, in tables, charts and claims."""

from dataclasses import dataclass


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
}
