"""The throughput model: how the time of a step depends on the batch size (docs/method.md, "Throughput model").

t(b) = b / v0 + t_cost, in seconds for b images, so v(b) = b / t(b) images/s, which approaches v0 for large b.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tsuishi.estimates.intervals import student
from tsuishi.specs.case import BATCH_SIZE, PROTOCOL, SUITE
from tsuishi.specs.source import Epochs

# A step time so far off the line is no scatter: it shows another algorithm, or another kind of memory.
KINK_PERCENT = 5.0
# The quantities of a source that prints the parameters of a line and not its points.
PRINTED = {"v0": "ideal_speed_images_per_s", "t_cost": "cost_time_s"}

# A line runs over batch sizes, within one suite and protocol. Its cases share all other axes.
_NOT_OF_A_LINE = (SUITE, PROTOCOL, BATCH_SIZE)


class Line(NamedTuple):
    """A line of a series (an environment, or published hardware), and the axes that its cases share."""

    series: str
    axes: tuple[tuple[str, Any], ...]


class Interval(NamedTuple):
    """An interval; an end is infinite where the data do not bound it."""

    low: float
    high: float


_UNBOUNDED = Interval(-math.inf, math.inf)


class Residual(NamedTuple):
    """A point, and the value of its line there, both in seconds."""

    batch_size: int
    step_s: float
    fitted_s: float

    @property
    def percent(self) -> float:
        """The difference of the step to the line, in % of the line."""
        return 100 * (self.step_s / self.fitted_s - 1)

    @property
    def kink(self) -> bool:
        return abs(self.percent) > KINK_PERCENT


class Fit(NamedTuple):
    """v0 in images/s, t_cost in s, b_half in images; their 95 % intervals (None for a line through two points).

    The intervals hold if the model does and the points scatter independently about it: with a kink they are without
    bounds, as there is no one line. They say nothing about batch sizes outside those measured.
    """

    v0: float
    t_cost: float
    v0_interval: Interval | None
    t_cost_interval: Interval | None
    b_half_interval: Interval | None
    residuals: tuple[Residual, ...]

    @property
    def b_half(self) -> float:
        """The batch size at which half of v0 is reached: b / (b / v0 + t_cost) = v0 / 2 at b = v0 t_cost."""
        return self.v0 * self.t_cost

    def step_s(self, batch_size: float) -> float:
        """The time of a step in seconds, by the model."""
        return batch_size / self.v0 + self.t_cost


def fit(points: Iterable[tuple[int, float]]) -> Fit | None:
    """The weighted least squares fit of points (batch size, seconds), at most one point for a batch size.

    Weights are relative: the scatter is taken to be proportional to the time (a constant coefficient of variation), so
    sum ((t - slope b - t_cost) / t)^2 is minimal. Intervals are those of linear regression with unknown variance:
    Student's t with n - 2 degrees of freedom. That of v0 = 1 / slope has the inverse ends of the slope's; that of
    b_half = t_cost / slope is Fieller's (J. R. Stat. Soc. B 16, 1954, 175-185).

    None for fewer than two points, and where the time does not grow with the batch: then there is no v0.
    """
    ordered = sorted(points)
    if len(ordered) < 2:
        return None
    # Points divided by their time: ordinary least squares of 1 on (b / t, 1 / t).
    rows = [(batch_size / seconds, 1 / seconds) for batch_size, seconds in ordered]
    bb, bc, cc = (sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    b1, c1 = (sum(row[i] for row in rows) for i in (0, 1))
    determinant = bb * cc - bc * bc
    slope, t_cost = (cc * b1 - bc * c1) / determinant, (bb * c1 - bc * b1) / determinant
    if slope <= 0:
        return None
    residuals = tuple(Residual(b, seconds, slope * b + t_cost) for b, seconds in ordered)
    freedom = len(rows) - 2
    if not freedom:
        return Fit(1 / slope, t_cost, None, None, None, residuals)
    if any(residual.kink for residual in residuals):
        return Fit(1 / slope, t_cost, Interval(0.0, math.inf), _UNBOUNDED, _UNBOUNDED, residuals)
    variance = sum((1 - residual.fitted_s / residual.step_s) ** 2 for residual in residuals) / freedom
    slope_variance, cost_variance, covariance = (variance * value / determinant for value in (cc, bb, -bc))
    t = student(freedom)
    slope_reach, cost_reach = t * math.sqrt(slope_variance), t * math.sqrt(cost_variance)
    return Fit(
        1 / slope,
        t_cost,
        Interval(1 / (slope + slope_reach), 1 / (slope - slope_reach) if slope > slope_reach else math.inf),
        Interval(t_cost - cost_reach, t_cost + cost_reach),
        ratio_interval((t_cost, cost_variance), (slope, slope_variance), covariance, t),
        residuals,
    )


def ratio_interval(above: tuple[float, float], below: tuple[float, float], covariance: float, t: float) -> Interval:
    """Fieller's interval of above / below, each given as (value, variance); infinite where `below` may be 0."""
    (numerator, numerator_variance), (denominator, variance) = above, below
    ratio, g = numerator / denominator, t * t * variance / denominator**2
    if g >= 1:
        return _UNBOUNDED
    middle = ratio - (g * covariance / variance if variance else 0)
    inner = numerator_variance - 2 * ratio * covariance + ratio**2 * variance
    inner -= g * (numerator_variance - covariance**2 / variance) if variance else 0
    half = t / denominator * math.sqrt(max(0.0, inner))
    return Interval((middle - half) / (1 - g), (middle + half) / (1 - g))


def step_time(quantities: Mapping[str, float], axes: Mapping[str, Any], epochs: Epochs | None) -> float | None:
    """Seconds per step of a case: its step, or its epoch over the steps of an epoch; None where neither is known."""
    if BATCH_SIZE not in axes:
        return None
    if "step_s" in quantities:
        return quantities["step_s"]
    if "median_epoch_s" in quantities and epochs:
        return quantities["median_epoch_s"] / epochs.steps(int(axes[BATCH_SIZE]))
    return None


def line(series: str, axes: Mapping[str, Any]) -> Line:
    """The line on which a case with these axes lies."""
    return Line(series, tuple(sorted((axis, value) for axis, value in axes.items() if axis not in _NOT_OF_A_LINE)))


def lines(cases: Iterable[tuple[str, Mapping[str, Any], float | None]]) -> dict[Line, list[tuple[int, float]]]:
    """The points (batch size, seconds) of every line with two points or more. A case is (series, axes, seconds a step).

    A case that ran out of memory has no time, so it is no point.
    """
    points: dict[Line, list[tuple[int, float]]] = {}
    for series, axes, step_s in cases:
        if step_s:
            points.setdefault(line(series, axes), []).append((axes[BATCH_SIZE], step_s))
    return {key: of_line for key, of_line in points.items() if len(of_line) > 1}
