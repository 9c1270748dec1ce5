"""What share of a device's limits a measurement reaches: the roofline model.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures",
Communications of the ACM 52(4), 2009: F floating-point operations and Q bytes between a device and its memory take at
least max(F / P, Q / B) seconds, P being the device's most operations and B its most bytes a second. Here P and B are
not a data sheet's but measured: those of the best case that runs a single operation, in any environment, on the same
machine.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd

from tsuishi.estimates.contrasts import contrast
from tsuishi.estimates.intervals import CONFIDENCE, Region, Term
from tsuishi.estimates.variances import moderated
from tsuishi.results.frames import dict_rows

Bound = Literal["arithmetic", "memory"]

# The precision whose products a case is held against; without an axis it computes in FP32.
_PRODUCT_OF = {"amp_fp16": "fp16", "amp_bf16": "bf16", "": "fp32"}

# What a quantity is limited by.
_BOUNDS: Mapping[str, Bound] = {"flops_per_s": "arithmetic", "bytes_per_s": "memory"}
# The quantity that is a limit, by the operation that measures it.
_LIMITED_BY = {"matmul": "flops_per_s", "memory_copy": "bytes_per_s"}


class Device(NamedTuple):
    """A kind of device of a machine: the machine's record, and `cpu` or the GPU's name."""

    machine: str
    name: str


class Limit(NamedTuple):
    """The best rate of a device, with the ends of its 95 % interval; None where no case has several trials."""

    value: float
    low: float | None = None
    high: float | None = None


# By quantity and precision: P of one device, in FLOP/s; and B of its memory in B/s (reads and writes), of precision "".
DeviceLimits = Mapping[tuple[str, str], Limit]


class Fraction(NamedTuple):
    """A share of a limit (of 1), and which limit it is of: the nearer limit."""

    value: float
    bound: Bound


def product_of(precision: str) -> str:
    """The precision of the products whose limit a case of this precision is held against; "": it has no such axis."""
    return _PRODUCT_OF.get(precision, precision)


def measured_limits(rates: Iterable[Mapping[str, Any]]) -> dict[Device, DeviceLimits]:
    """The best rates by device, from rows of rates (see `with_axes`) of cases that run a single operation.

    P is that of the best case of matmul, B that of the best memory_copy. Rates of other cases are no limits, however
    high: a rate above all limits is worth knowing.
    """
    found: dict[Device, dict[tuple[str, str], dict[tuple[str, str], dict[str, float]]]] = {}
    for row in rates:
        if row["operation"] and _LIMITED_BY.get(row["operation"]) == row["quantity"] and row["value"] > 0:
            limits = found.setdefault(Device(row["machine_record"], row["device"]), {})
            precision = row["precision"] if row["quantity"] == "flops_per_s" else ""
            trials = limits.setdefault((row["quantity"], precision), {}).setdefault((row["case_id"], row["column"]), {})
            trials[f"{row['run_id']} {row['repetition']}"] = row["value"]
    return {
        device: {key: _limit([*cases.values()]) for key, cases in limits.items()} for device, limits in found.items()
    }


def _limit(cases: Sequence[Mapping[str, float]]) -> Limit:
    """The limit, from the values of each case, by trial."""
    several = [trials for trials in cases if len(trials) > 1]
    if several:
        return Limit(_best(several), *_interval(several))
    return Limit(max(value for trials in cases for value in trials.values()))


def _best(cases: Sequence[Mapping[str, float]]) -> float:
    """The mean over trials of each trial's value in the case that is best by all other trials.

    The largest of all values grows with the number of trials, and the largest mean with that of cases. The choice of
    the case by all other trials has neither fault.
    """
    values = []
    for trial in dict.fromkeys(trial for trials in cases for trial in trials):
        others = [
            ((sum(trials.values()) - trials[trial]) / (len(trials) - 1), trials) for trials in cases if trial in trials
        ]
        values.append(max(others, key=lambda other: other[0])[1][trial])
    return math.fsum(values) / len(values)


def _interval(cases: Sequence[Mapping[str, float]]) -> Region:
    """The 95 % interval of the best case's rate, whichever case it is: each case has 95 % of all (Bonferroni)."""
    logs = {str(place): [*map(math.log, trials.values())] for place, trials in enumerate(cases)}
    scatter = moderated(logs, "limit")
    each = 1 - (1 - CONFIDENCE) / len(cases)
    found = [
        contrast([(1.0, Term(math.fsum(values) / len(values), len(values), scatter[case]))]).interval(each)
        for case, values in logs.items()
    ]
    ends = [interval for interval in found if interval]
    return Region(*(math.exp(max(of_end)) for of_end in zip(*ends, strict=True)))


def limits_of_case(limits: DeviceLimits, precision: str) -> dict[str, float]:
    """P and B for a case of this precision ("": it has no such axis), by quantity, as far as they were measured."""
    keys = ("flops_per_s", product_of(precision)), ("bytes_per_s", "")
    return {key[0]: limits[key].value for key in keys if key in limits}


def roofline(rates: Mapping[str, float], limits: DeviceLimits, precision: str, devices: int) -> Fraction | None:
    """max(F / P, Q / B) over the measured time, from the rates F and Q over that time (flops_per_s, bytes_per_s).

    P and B count `devices` times. None where there is no limit for a rate. A fraction is not clipped at 1: work that
    is done with fewer operations than counted (Winograd's algorithm), left out, or done in caches can be above it, and
    so can work on a device whose limit was not reached when it was measured.
    """
    most = limits_of_case(limits, precision)
    if rates.keys() - most.keys():
        return None
    fractions = [Fraction(rate / (most[quantity] * devices), _BOUNDS[quantity]) for quantity, rate in rates.items()]
    return max(fractions, default=None)


def fractions(rates: Iterable[Mapping[str, Any]], limits: Mapping[Device, DeviceLimits]) -> list[dict[str, Any]]:
    """A row for every trial that has rates (see `with_axes`) and runs more than a single operation.

    It is a row of estimates (estimates.trial_estimates) of quantity fraction_of_limit, and `bound`. `value` is None
    where no limit was measured; `low` and `high` follow from the blocks' spread of the nearer rate. Simulated
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
    columns = ["machine_record", "device", "operation", "precision", "devices", "repetition"]
    of_trial = dict(zip(keys, dict_rows(trials[columns]), strict=True))
    return [row | of_trial[row["run_id"], row["trial_id"]] for row in rates]


def _fraction_row(
    by_quantity: Mapping[str, Mapping[str, Any]], limits: Mapping[Device, DeviceLimits]
) -> dict[str, Any]:
    """The row of one trial, from its rows of rates by quantity."""
    some = next(iter(by_quantity.values()))
    devices = 1 if pd.isna(some["devices"]) or some["simulated"] is True else int(some["devices"])
    of_device = limits.get(Device(some["machine_record"], some["device"]), {})
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
    """For limits.csv: a row per limit."""
    return [
        {"machine_record": device.machine, "device": device.name, "quantity": quantity, "precision": precision}
        | limit._asdict()
        for device, of_device in sorted(limits.items())
        for of_quantity in _BOUNDS
        for (quantity, precision), limit in of_device.items()
        if quantity == of_quantity
    ]
