"""Workload device_limits: environments are compared by the best rates that a device reaches."""

from tsuishi.report.parts.explanation import Explanation


class DeviceRates(Explanation):
    """Compares rates of work before times, since products and copies have any size."""

    compared_by = (("flops_per_s",), ("bytes_per_s",), ("step_s",))
