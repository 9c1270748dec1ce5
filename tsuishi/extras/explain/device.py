"""The bar of the device: the shortest possible time of the step on my device, over that on the printed device.

By the roofline model (tsuishi/estimates/roofline.py): my limits are measured in the same run, those of the printed card
are its data sheet's. It is computed and not measured: two data sheets of a name, clocks, and how near to its limit a
card comes are parts of the remainder.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import tomlkit

from tsuishi.base.errors import UserError
from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.estimates.roofline import DeviceLimits, product_of
from tsuishi.extras.explain.design import Bar
from tsuishi.machine.data_sheets import DataSheet
from tsuishi.report.parts.wording import digits
from tsuishi.specs.suite import known_suites

_PRODUCT, _COPY = "matmul", "memory_copy"
RATES = {"flops_per_s": "TFLOP/s", "bytes_per_s": "GB/s"}


def printed_sheet(hardware: str, sheets: Iterable[DataSheet]) -> DataSheet | None:
    """The data sheet of the card that a hardware's title names first, with its maker's line or without: the first."""
    name = hardware.partition(",")[0].strip()
    known = ((each, sheet) for sheet in sheets for each in sheet.names)
    return next((sheet for each, sheet in known if name and f" {each}".endswith(f" {name}")), None)


def suite_of_limits(suites: Path) -> str:
    """The suite that measures matrix products and copies. Raises UserError where there is none."""
    for name, path in known_suites(suites).items():
        document = tomlkit.parse(path.read_text(encoding="utf-8")).unwrap()
        axes = [document.get("axes", {}), *(group.get("axes", {}) for group in document.get("groups", ()))]
        if {_PRODUCT, _COPY} <= {operation for each in axes for operation in _values(each.get("operation"))}:
            return name
    raise UserError(f"{suites}: no suite measures {_PRODUCT} and {_COPY}, the limits of a device")


def narrow(path: Path, precision: str) -> None:
    """Leave nothing in the suite of limits but matrix products of a precision, and copies within the memory."""
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    document.pop("questions", None)
    usual, groups = document["axes"].unwrap(), tomlkit.aot()
    for group in document["groups"].unwrap():
        axes = {**usual, **group["axes"]}
        operations, precisions = (_values(axes.get(axis)) for axis in ("operation", "precision"))
        if _PRODUCT in operations and product_of(precision) in precisions:
            wanted = {"operation": _PRODUCT, "precision": product_of(precision)}
        elif _COPY in operations:
            wanted = {"operation": _COPY}
        else:
            continue
        groups.append(tomlkit.item({**group, "axes": {**group["axes"], **wanted}}))
    document["groups"] = groups
    path.write_text(tomlkit.dumps(document), encoding="utf-8")


def _values(value: object) -> list[object]:
    return [*value] if isinstance(value, list | tuple) else [value]


def bar(
    rates: Mapping[str, Term], mine: DeviceLimits | None, theirs: DataSheet, precision: str, times_as_long: float
) -> Bar | None:
    """The bar, as the logarithm of a time; None where a limit or the work of a step is not known.

    rates: of their settings here, FLOP/s and B/s of which at least the first is known: the time of the step cancels. A
    step that is above my measured limit is my limit: others in its environment were slower. times_as_long: the step
    takes here, over the printed time.
    """
    key = product_of(precision)
    measured = {"flops_per_s": mine and mine.flops_per_s.get(key), "bytes_per_s": mine and mine.bytes_per_s}
    sheet = {"flops_per_s": theirs.peak_tflops.get(key, 0.0) * 1e12, "bytes_per_s": theirs.memory_gb_per_s * 1e9}  # type: ignore[call-overload]
    known = {name: math.exp(rates[name].mean) for name in RATES if name in rates}
    if "flops_per_s" not in known or not all(measured[name] and sheet[name] for name in known):
        return None
    ours = {name: max(measured[name] or 0.0, rate) for name, rate in known.items()}
    here, there = (max(rate / limits[name] for name, rate in known.items()) for limits in (ours, sheet))
    said = [" and ".join(_text(name, limits[name]) for name in known) for limits in (sheet, ours)]
    words = (
        f"theirs by its data sheet ({said[0]}), of which the printed step has {100 * there * times_as_long:.0f} %; "
        f"mine as measured here ({said[1]}), of which this step has {100 * here:.0f} %"
    )
    return Bar("device", words, Contrast(math.log(here / there), None, math.inf), "computed", 0.0)


def _text(name: str, rate: float) -> str:
    return f"{digits(rate / (1e12 if name == 'flops_per_s' else 1e9))} {RATES[name]}"
