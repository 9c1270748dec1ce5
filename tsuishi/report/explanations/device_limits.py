"""Workload device_limits: the best rates that a device reaches, by which environments are compared."""

from tsuishi.report.parts.explanation import Explanation


class DeviceRates(Explanation):
    """Rates of work before times: a product or a copy is of any size."""

    compared_by = (("flops_per_s",), ("bytes_per_s",), ("step_s",))
