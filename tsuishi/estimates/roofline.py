"""What share of a device's limits a measurement reaches: the roofline model.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures",
Communications of the ACM 52(4), 2009: F floating-point operations and Q bytes between a device and its memory take at
least max(F / P, Q / B) seconds, P being the device's most operations and B its most bytes a second. Here P and B are
not a data sheet's but measured: the best of cases that run a single operation, in any environment, on the same
machine.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import pandas as pd

from tsuishi.results.frames import dict_rows

# The precision whose products a case is held against; without an axis it computes in FP32.
_PRODUCT_OF = {"amp_fp16": "fp16", "amp_bf16": "bf16", "": "fp32"}

# Of limits.csv.
COLUMNS = ["machine_record", "device", "quantity", "precision", "value"]

Bound = Literal["arithmetic", "memory"]


class Device(NamedTuple):
    """A kind of device of a machine: the machine's record, and `cpu` or the GPU's name."""

    machine: str
    name: str


class DeviceLimits(NamedTuple):
    """P of one device by precision, in FLOP/s; B of its memory in B/s (reads and writes), None where not measured."""

    flops_per_s: dict[str, float]
    bytes_per_s: float | None


class Fraction(NamedTuple):
    """A share of a limit (of 1), and which limit it is of: the nearer limit."""

    value: float
    bound: Bound


def measured_limits(rates: Iterable[Mapping[str, Any]]) -> dict[Device, DeviceLimits]:
    """The best rates by device, from rows of rates (see `with_axes`) of cases that run a single operation.

    P is the best flops_per_s of a matmul, B the best bytes_per_s of a memory_copy. Rates of other cases are no limits,
    however high: a rate above all limits is worth knowing.
    """
    by_device: dict[Device, DeviceLimits] = {}
    for row in rates:
        if row["operation"]:
            device = Device(row["machine_record"], row["device"])
            limits = by_device.setdefault(device, DeviceLimits({}, None))
            if row["operation"] == "matmul" and row["quantity"] == "flops_per_s":
                best = limits.flops_per_s.get(row["precision"], 0.0)
                limits.flops_per_s[row["precision"]] = max(best, row["value"])
            if row["operation"] == "memory_copy" and row["quantity"] == "bytes_per_s":
                by_device[device] = limits._replace(bytes_per_s=max(limits.bytes_per_s or 0.0, row["value"]))
    return by_device


def roofline(rates: Mapping[str, float], limits: DeviceLimits, precision: str, devices: int) -> Fraction | None:
    """max(F / P, Q / B) over the measured time, from the rates F and Q over that time (flops_per_s, bytes_per_s).

    P and B count `devices` times. None where there is no limit for a rate. A fraction is not clipped at 1: work that
    is done with fewer operations than counted (Winograd's algorithm), left out, or done in caches can be above it, and
    so can work on a device whose limit was not reached when it was measured.
    """
    most = {
        "flops_per_s": ("arithmetic", limits.flops_per_s.get(_PRODUCT_OF.get(precision, precision))),
        "bytes_per_s": ("memory", limits.bytes_per_s),
    }
    fractions = []
    for quantity, rate in rates.items():
        bound, limit = most[quantity]
        if limit is None:
            return None
        fractions.append(Fraction(rate / (limit * devices), bound))  # type: ignore[arg-type]
    return max(fractions, default=None)


def fractions(rates: Iterable[Mapping[str, Any]], limits: Mapping[Device, DeviceLimits]) -> list[dict[str, Any]]:
    """A row for every trial that has rates (see `with_axes`) and runs more than a single operation.

    It is a row of estimates (estimates.trial_estimates) of quantity fraction_of_limit, and `bound`. `value` is None
    where no limit was measured; `low` and `high` are what the blocks' spread of the nearer rate makes of it. Simulated
    devices are one device.
    """
    by_trial: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for row in rates:
        if not row["operation"]:
            by_trial.setdefault((row["run_id"], row["trial_id"]), {})[row["quantity"]] = row
    return [_fraction_row(of_trial, limits) for of_trial in by_trial.values()]


def with_axes(estimates: pd.DataFrame, trials: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of flops_per_s and bytes_per_s, each with its trial's machine, device and axes."""
    rates = dict_rows(estimates[estimates["quantity"].isin(["flops_per_s", "bytes_per_s"])])
    keys = zip(trials["run_id"].tolist(), trials["trial_id"].tolist(), strict=True)
    columns = ["machine_record", "device", "operation", "precision", "devices"]
    of_trial = dict(zip(keys, dict_rows(trials[columns]), strict=True))
    return [row | of_trial[row["run_id"], row["trial_id"]] for row in rates]


def _fraction_row(
    by_quantity: Mapping[str, Mapping[str, Any]], limits: Mapping[Device, DeviceLimits]
) -> dict[str, Any]:
    """The row of one trial, from its rows of rates by quantity."""
    some = next(iter(by_quantity.values()))
    devices = 1 if pd.isna(some["devices"]) or some["simulated"] is True else int(some["devices"])
    of_device = limits.get(Device(some["machine_record"], some["device"]), DeviceLimits({}, None))
    values = {quantity: row["value"] for quantity, row in by_quantity.items()}
    fraction = roofline(values, of_device, some["precision"], devices)
    row = {**some, "quantity": "fraction_of_limit", "unit": "1", "derived": True}
    if fraction is None:
        return {**row, "value": None, "low": None, "high": None, "bound": ""}
    nearer = by_quantity["flops_per_s" if fraction.bound == "arithmetic" else "bytes_per_s"]
    share = fraction.value / nearer["value"]
    spread = {name: nearer[name] * share for name in ("value", "low", "high")}
    return {**row, **spread, "blocks": nearer["blocks"], "bound": fraction.bound}


def rows(limits: Mapping[Device, DeviceLimits]) -> list[dict[str, Any]]:
    """For limits.csv: a row per limit, with COLUMNS."""
    limit_rows: list[dict[str, Any]] = []
    for device, of_device in sorted(limits.items()):
        where = {"machine_record": device.machine, "device": device.name}
        values = [("flops_per_s", precision, value) for precision, value in of_device.flops_per_s.items()]
        values += [("bytes_per_s", "", of_device.bytes_per_s)] if of_device.bytes_per_s else []
        limit_rows += [{**where, **dict(zip(COLUMNS[2:], value, strict=True))} for value in values]
    return limit_rows
