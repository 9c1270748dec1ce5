"""The throughput model: how the time of a step depends on the batch size (docs/method.md, "Throughput model").

t(b) = b / v0 + t_cost, in seconds for b images, so v(b) = b / t(b) images/s, which approaches v0 for large b.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tsuishi.estimates.intervals import Term
from tsuishi.estimates.line_fit import Point
from tsuishi.specs.case import BATCH_SIZE, PROTOCOL, SUITE
from tsuishi.specs.source import Epochs

# The quantities of a source that prints the parameters of a line and not its points.
PRINTED = {"v0": "ideal_speed_images_per_s", "t_cost": "cost_time_s"}

# A line runs over batch sizes, within one suite and protocol. Its cases share all other axes.
_NOT_OF_A_LINE = (SUITE, PROTOCOL, BATCH_SIZE)


class Line(NamedTuple):
    """A line of a series (an environment, or published hardware), and the axes that its cases share."""

    series: str
    axes: tuple[tuple[str, Any], ...]


def timed_by(quantities: Iterable[str], axes: Mapping[str, Any], epochs: Epochs | None) -> str | None:
    """The quantity from which the time of a case's step follows; None where there is none.

    None for literal inference, too: where a source's package makes the images, the batch size is only a label.
    """
    if BATCH_SIZE not in axes or (axes.get(PROTOCOL), axes.get("mode")) == ("literal", "inference"):
        return None
    known = {*quantities}
    return "step_s" if "step_s" in known else "median_epoch_s" if "median_epoch_s" in known and epochs else None


def step_time(quantities: Mapping[str, float], axes: Mapping[str, Any], epochs: Epochs | None) -> float | None:
    """Seconds per step of a case: its step, or its epoch over the steps of an epoch; None where neither is known."""
    timed = timed_by(quantities, axes, epochs)
    if timed is None:
        return None
    steps = 1 if timed == "step_s" or epochs is None else epochs.steps(int(axes[BATCH_SIZE]))
    return quantities[timed] / steps


def line_of_case(series: str, axes: Mapping[str, Any]) -> Line:
    """The line on which a case with these axes lies."""
    return Line(series, tuple(sorted((axis, value) for axis, value in axes.items() if axis not in _NOT_OF_A_LINE)))


def lines_of_cases(
    cases: Iterable[tuple[str, Mapping[str, Any], float | None, Term | None]],
) -> dict[Line, list[Point]]:
    """The points of every line with two points or more.

    A case is (series, axes, seconds a step, the term of their logarithm). A case that ran out of memory has no time, so
    it is no point.
    """
    points: dict[Line, list[Point]] = {}
    for series, axes, step_s, term in cases:
        if step_s:
            points.setdefault(line_of_case(series, axes), []).append(Point(axes[BATCH_SIZE], step_s, term))
    return {key: of_line for key, of_line in points.items() if len(of_line) > 1}
