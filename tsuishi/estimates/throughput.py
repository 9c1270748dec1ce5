"""The throughput model: how the time of a step depends on the batch size (docs/method.md).

t(b) = b / v0 + t_cost, in seconds for b images; so v(b) = b / t(b) images/s, which nears v0 as b grows.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tsuishi.estimates.intervals import student
from tsuishi.estimates.samples import EPOCH_IMAGES

# A step time that far off the line is no scatter but another algorithm, or another memory.
KINK_PERCENT = 5.0
# A line's parameters, where a source prints them and not what they were fitted to.
PRINTED = {"v0": "ideal_speed_images_per_s", "t_cost": "cost_time_s"}

# Axes that tell one line from another; a line runs over batch sizes.
LINE_AXES = ("mode", "model", "layout", "strategy", "devices", "nodes", "precision", "execution", "pipeline")


class Line(NamedTuple):
    """Whose line it is (an environment, or published hardware), and the axes its cases share."""

    whose: str
    axes: tuple[tuple[str, Any], ...]


class Interval(NamedTuple):
    """From low to high; infinite where the data do not bound it."""

    low: float
    high: float


class Residual(NamedTuple):
    """A point against its line, both in seconds."""

    batch_size: int
    step_s: float
    fitted_s: float

    @property
    def percent(self) -> float:
        """How much longer the step took than the line says."""
        return 100 * (self.step_s / self.fitted_s - 1)

    @property
    def kink(self) -> bool:
        return abs(self.percent) > KINK_PERCENT


class Fit(NamedTuple):
    """v0 in images/s, t_cost in s, b_half in images; their 95 % intervals (None for a line through two points).

    The intervals hold if the model does and the points scatter independently about it. They say nothing about batch
    sizes outside those measured.
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
        """What the model says a step of so many images takes."""
        return batch_size / self.v0 + self.t_cost


def fit(points: Iterable[tuple[int, float]]) -> Fit | None:
    """Weighted least squares of (batch size, seconds) points, at most one for a batch size.

    Weights are relative: the scatter is taken to be in proportion to the time (a constant coefficient of variation), so
    sum ((t - slope b - t_cost) / t)^2 is made least. The intervals are those of linear regression with unknown
    variance, Student's t with n - 2 degrees of freedom; v0 = 1 / slope has the slope's, turned over; b_half =
    t_cost / slope has Fieller's (J. R. Stat. Soc. B 16, 1954, 175-185).

    None for fewer than two points, and where time does not grow with the batch, as then there is no v0.
    """
    ordered = sorted(points)
    if len(ordered) < 2:
        return None
    # Each point divided by its time: ordinary least squares of 1 on (b / t, 1 / t).
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
    variance = sum((1 - one.fitted_s / one.step_s) ** 2 for one in residuals) / freedom
    of_slope, of_cost, of_both = (variance * value / determinant for value in (cc, bb, -bc))
    t = student(freedom)
    spread_slope, spread_cost = t * math.sqrt(of_slope), t * math.sqrt(of_cost)
    return Fit(
        1 / slope,
        t_cost,
        Interval(1 / (slope + spread_slope), 1 / (slope - spread_slope) if slope > spread_slope else math.inf),
        Interval(t_cost - spread_cost, t_cost + spread_cost),
        _ratio_interval(t_cost, slope, of_cost, of_slope, of_both, t),
        residuals,
    )


def _ratio_interval(above: float, below: float, of_above: float, of_below: float, of_both: float, t: float) -> Interval:
    """Fieller's interval of above / below, from their variances and covariance; infinite where below may be 0."""
    ratio, g = above / below, t * t * of_below / below**2
    if g >= 1:
        return Interval(-math.inf, math.inf)
    middle = ratio - (g * of_both / of_below if of_below else 0)
    inner = of_above - 2 * ratio * of_both + ratio**2 * of_below
    inner -= g * (of_above - of_both**2 / of_below) if of_below else 0
    half = t / below * math.sqrt(max(0.0, inner))
    return Interval((middle - half) / (1 - g), (middle + half) / (1 - g))


def step_time(quantities: Mapping[str, float], batch_size: int) -> float | None:
    """Seconds per step from what is known of a case: its step, or its epoch over ceil(50,000 / batch) steps."""
    if "step_s" in quantities:
        return quantities["step_s"]
    if "median_epoch_s" in quantities:
        return quantities["median_epoch_s"] / math.ceil(EPOCH_IMAGES / batch_size)
    return None


def line(whose: str, axes: Mapping[str, Any]) -> Line:
    """The line a case of these axes lies on."""
    return Line(whose, tuple((axis, axes[axis]) for axis in LINE_AXES if axis in axes))


def lines(cases: Iterable[tuple[str, Mapping[str, Any], Mapping[str, float]]]) -> dict[Line, list[tuple[int, float]]]:
    """The points of every line, from cases given as (whose, axes, value by quantity); of two batch sizes or more.

    A case that ran out of memory has no quantities, and is no point.
    """
    found: dict[Line, list[tuple[int, float]]] = {}
    for whose, axes, quantities in cases:
        if "batch_size" in axes:
            seconds = step_time(quantities, axes["batch_size"])
            if seconds:
                found.setdefault(line(whose, axes), []).append((axes["batch_size"], seconds))
    return {one: points for one, points in found.items() if len(points) > 1}
