"""The bar of the device: the shortest possible time of the step on my device, over that on the printed device.

By the roofline model (tsuishi/estimates/roofline.py). The limits of a card are those of its data sheet, the limits of
another device are measured in the same run. The bar is computed, so it has no interval. The remainder is then the share
of its limit that the printed step reaches, over the share that mine reaches.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

from tsuishi.base.language import t
from tsuishi.base.toml import Record
from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.estimates.roofline import DeviceLimits, limits_of_case, product_of
from tsuishi.estimates.steadiness import STEP_TIMES
from tsuishi.extras.explain.design import Bar
from tsuishi.report.parts.wording import digits
from tsuishi.specs.data_sheets import DataSheet, fastest_of, sheets_of_printed

# The rates of a step that a device limits, with the unit that is printed, and its factor.
RATES = {"flops_per_s": ("TFLOP/s", 1e12), "bytes_per_s": ("GB/s", 1e9)}
# The quantities whose step the rates are of.
_SPEEDS = (*STEP_TIMES, "throughput_images_per_s", "throughput_tokens_per_s")


class Limits(Record):
    """The most FLOP/s and B/s of one device, by the names of RATES; `origin`: of these figures, in words."""

    most: dict[str, Annotated[float, Field(ge=1, le=1e30)]]
    origin: str


def limits_of_card(
    hardware: str, quantity: str, precision: str, sheets: Iterable[DataSheet]
) -> tuple[Limits | None, str]:
    """The limits of a printed card, or None and why there are none. precision: of the case; "": it has no such axis."""
    if quantity not in _SPEEDS:
        return None, f"{quantity} is not the speed of a step"
    found = sheets_of_printed(hardware, sheets)
    if not found:
        return None, f"images/compatibility.toml has no data sheet of '{hardware}'"
    fastest = fastest_of(found, product_of(precision))
    if fastest is None:
        return None, f"the data sheet of '{hardware}' has no {product_of(precision)}"
    sheet, peak = fastest
    most = {"flops_per_s": peak, "bytes_per_s": sheet.memory_gb_per_s * 1e9}
    which = f", a {sheet.names[0]} of {sheet.power_limit_w:g} W as the fastest of this name" if found[1:] else ""
    return Limits(most=most, origin=f"by its data sheet{which}"), ""


def measured_limits(found: DeviceLimits, precision: str) -> Limits:
    """The limits that were measured; a rate without a limit is left out."""
    return Limits(most=limits_of_case(found, precision), origin="as measured here")


def bar(rates: Mapping[str, Term], devices: int, theirs: Limits, mine: Limits, times_as_long: float) -> Bar | None:
    """The bar, as the logarithm of a time; None where a limit or the work of a step is not known.

    rates: of the step with their settings here, over all its devices; that of bytes may be missing. times_as_long: the
    step takes here, over the printed time. A step that is faster than a limit raises it, on both sides: it does fewer
    operations than are counted (Winograd's algorithm), or the limit was not reached when it was measured.
    """
    here = {name: math.exp(rates[name].mean) / devices for name in RATES if name in rates}
    there = {name: rate * times_as_long for name, rate in here.items()}
    if "flops_per_s" not in here or not all(limits.most.get(name) for limits in (theirs, mine) for name in here):
        return None
    (said_there, share_there), (said_here, share_here) = _reached(theirs, there), _reached(mine, here)
    size = math.log(times_as_long * share_here / share_there)
    words = t(
        "theirs {theirs}: the printed step reaches {share} % of the nearer limit; mine {mine}: this step reaches "
        "{my_share} %",
        theirs=said_there,
        share=f"{100 * share_there:.0f}",
        mine=said_here,
        my_share=f"{100 * share_here:.0f}",
    )
    return Bar(t("device"), words, Contrast(size, None, math.inf), "computed", 0.0)


def _reached(limits: Limits, rates: Mapping[str, float]) -> tuple[str, float]:
    """The limits in words, and the share of the nearer that these rates reach."""
    most = {name: max(limits.most[name], rate) for name, rate in rates.items()}
    units = {name: RATES[name] for name in rates}
    said = " and ".join(f"{digits(most[name] / factor)} {unit}" for name, (unit, factor) in units.items())
    return f"{limits.origin} ({said})", max(rate / most[name] for name, rate in rates.items())
