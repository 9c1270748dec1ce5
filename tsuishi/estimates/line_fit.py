"""The fit of the throughput model on trials, and how certain it is (docs/method.md, "Throughput model").

Trials scatter about the mean of their batch size (pure error), and the means of the batch sizes lie about the line
(lack of fit). The larger of both variances makes the intervals.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from tsuishi.estimates.contrasts import contrast
from tsuishi.estimates.intervals import UNBOUNDED, Contrast, Region, Term, student
from tsuishi.estimates.variances import Pool

# A step time so far off the line is no scatter: it shows another algorithm, or another kind of memory.
KINK_PERCENT = 5.0
# A line through fewer batch sizes has no residuals.
FEWEST_POINTS = 3


class Point(NamedTuple):
    """A batch size, and the seconds of its step. term: of their logarithm; None for a number without trials."""

    batch_size: int
    seconds: float
    term: Term | None = None

    @property
    def trials(self) -> int:
        """How often the point counts."""
        return max(1, self.term.trials) if self.term else 1


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


class Covariance(NamedTuple):
    """The variances of 1 / v0 and of t_cost, and their covariance, with their degrees of freedom.

    of_rounds: the relative variance that all batch sizes share, as rounds make all of their steps longer or shorter.
    """

    slope: float
    t_cost: float
    both: float
    freedom: float
    of_rounds: Pool | None

    def error(self, batch_size: float, offset: float, value: float) -> Contrast:
        """The error of a sum: of the slope times `batch_size`, and of t_cost times `offset`. value: that of the sum."""
        variance = batch_size**2 * self.slope + 2 * batch_size * offset * self.both + offset**2 * self.t_cost
        parts = [(1.0, Term(0.0, 1, Pool(max(0.0, variance), self.freedom)))]
        return contrast([*parts, (value, Term(0.0, 1, self.of_rounds))] if self.of_rounds else parts)


class Fit(NamedTuple):
    """v0 in images/s, t_cost in s, b_half in images; their 95 % intervals (None where no scatter is known).

    The intervals hold if the model does and trials scatter independently: with a kink they are without bounds, as there
    is no single line. They say nothing about batch sizes outside those measured.

    pure_error: the variance of the logarithm between trials of a batch size, over all batch sizes; None where it is
    unknown. about_line: the mean square of lack of fit, as a variance between trials; None for two batch sizes.
    """

    v0: float
    t_cost: float
    v0_interval: Region | None
    t_cost_interval: Region | None
    b_half_interval: Region | None
    residuals: tuple[Residual, ...]
    pure_error: Pool | None
    about_line: Pool | None
    covariance: Covariance | None

    @property
    def b_half(self) -> float:
        """The batch size at which half of v0 is reached: b / (b / v0 + t_cost) = v0 / 2 at b = v0 t_cost."""
        return self.v0 * self.t_cost

    @property
    def kinked(self) -> bool:
        return any(residual.kink for residual in self.residuals)

    @property
    def variance(self) -> Pool | None:
        """That of the intervals: the larger of pure error and lack of fit, with its own degrees of freedom."""
        return larger(self.pure_error, self.about_line)

    @property
    def lack_of_fit(self) -> tuple[float, float] | None:
        """F and p of the F test of lack of fit; None for two batch sizes, and where pure error is unknown.

        A small p: the means of the batch sizes are farther off the line than trials scatter.
        """
        if not (self.pure_error and self.about_line):
            return None
        f = self.about_line.variance / self.pure_error.variance
        return f, float(special.fdtrc(self.about_line.freedom, self.pure_error.freedom, f))

    def step_s(self, batch_size: float) -> float:
        """The time of a step in seconds, by the model."""
        return batch_size / self.v0 + self.t_cost

    def band(self, batch_size: float) -> Region | None:
        """The 95 % interval of `step_s`; None where the parameters have no interval."""
        if self.covariance is None:
            return None
        middle = self.step_s(batch_size)
        low, high = self.covariance.error(batch_size, 1, middle).interval() or UNBOUNDED
        return Region(middle + low, middle + high)


def fit(points: Iterable[Point]) -> Fit | None:
    """The weighted least squares fit of trials, given as points, at most one for a batch size.

    Weights are relative: the scatter is taken to be proportional to the time (a constant coefficient of variation), so
    the sum over trials of ((t - slope b - t_cost) / t)^2 is minimal, where the divisor is the batch size's mean.
    Intervals are those of linear regression: Student's t with the degrees of freedom of Fit.variance. That of
    v0 = 1 / slope has the inverse ends of the slope's; that of b_half = t_cost / slope is Fieller's (J. R. Stat. Soc. B
    16, 1954, 175-185).

    None for fewer than two batch sizes, and where the time does not grow with the batch: then there is no v0.
    """
    ordered = sorted(points, key=lambda point: point.batch_size)
    if len({point.batch_size for point in ordered}) < 2:
        return None
    (slope, t_cost), inverse = _line(ordered)
    if slope * ordered[-1].batch_size <= 1e-9 * t_cost:  # 0 but for rounding
        return None
    residuals = tuple(Residual(point.batch_size, point.seconds, slope * point.batch_size + t_cost) for point in ordered)
    (pure_error, of_rounds), about_line = _pure_error(ordered), _about_line(ordered, residuals)
    variance = larger(pure_error, about_line)
    known = Fit(1 / slope, t_cost, None, None, None, residuals, pure_error, about_line, None)
    if variance is None:
        return known
    if known.kinked:
        return known._replace(v0_interval=Region(0.0, math.inf), t_cost_interval=UNBOUNDED, b_half_interval=UNBOUNDED)
    (slope_variance, both), (_, cost_variance) = (variance.variance * inverse).tolist()
    covariance = Covariance(slope_variance, cost_variance, both, variance.freedom, of_rounds)
    low, high = covariance.error(1, 0, slope).interval() or UNBOUNDED
    ends = covariance.error(0, 1, t_cost).interval() or UNBOUNDED
    # What all batch sizes share cancels in b_half, as it is a ratio.
    above, below = (t_cost, cost_variance), (slope, slope_variance)
    return known._replace(
        v0_interval=Region(1 / (slope + high), 1 / (slope + low) if slope + low > 0 else math.inf),
        t_cost_interval=Region(*(t_cost + end for end in ends)),
        b_half_interval=_ratio_interval(above, below, both, student(variance.freedom)),
        covariance=covariance,
    )


def deciding(points: Sequence[Point], whole: Fit) -> int | None:
    """The batch size that decides the line; None where there is none, and for two batch sizes, of which each does.

    It decides where v0 or t_cost of the whole line is outside of its interval by the other batch sizes, or where v0 is
    more than KINK_PERCENT off theirs. The interval of the whole line would not show it: a bad point makes it wide. Of
    several such batch sizes, the result is the batch size that moves a parameter by the most standard errors.
    """
    if len(points) < FEWEST_POINTS:
        return None
    slope_variance, cost_variance = np.diag(_line(points)[1]).tolist()
    moved: dict[int, float] = {}
    for point in points:
        others = fit(other for other in points if other is not point)
        if others is None:
            return point.batch_size
        values = (whole.v0, others.v0_interval), (whole.t_cost, others.t_cost_interval)
        outside = any(interval and not interval.low <= value <= interval.high for value, interval in values)
        if outside or abs(others.v0 / whole.v0 - 1) > KINK_PERCENT / 100:
            of_slope = (1 / others.v0 - 1 / whole.v0) ** 2 / slope_variance
            moved[point.batch_size] = max(of_slope, (others.t_cost - whole.t_cost) ** 2 / cost_variance)
    return max(moved, key=moved.__getitem__, default=None)


def _line(points: Iterable[Point]) -> tuple[list[float], np.ndarray]:
    """The slope and the offset of the line; and their covariance for a variance of 1.

    A point counts as often as it has trials. There must be two different batch sizes.
    """
    rows, trials = zip(*(((p.batch_size / p.seconds, 1 / p.seconds), p.trials) for p in points), strict=True)
    design = np.array(rows)
    weighted = design.T * trials
    inverse: np.ndarray = np.linalg.inv(weighted @ design)
    return (inverse @ weighted.sum(axis=1)).tolist(), inverse


def _ratio_interval(above: tuple[float, float], below: tuple[float, float], covariance: float, t: float) -> Region:
    """Fieller's interval of above / below, each given as (value, variance); infinite where `below` may be 0."""
    (numerator, numerator_variance), (denominator, variance) = above, below
    ratio, g = numerator / denominator, t * t * variance / denominator**2
    if g >= 1:
        return UNBOUNDED
    middle = ratio - (g * covariance / variance if variance else 0)
    inner = numerator_variance - 2 * ratio * covariance + ratio**2 * variance
    inner -= g * (numerator_variance - covariance**2 / variance) if variance else 0
    half = t / denominator * math.sqrt(max(0.0, inner))
    return Region((middle - half) / (1 - g), (middle + half) / (1 - g))


def _pure_error(points: Sequence[Point]) -> tuple[Pool | None, Pool | None]:
    """The pooled variance between trials, and the variance that all batch sizes share, of the mean over their rounds.

    None where it is unknown or 0, or where no session measured all batch sizes: trials of a day do not show by how much
    days differ. Where rounds have something in common, the first is without it.
    """
    terms = [point.term for point in points if point.term]
    sessions = [frozenset(term.sessions) for term in terms if term.sessions]
    if sessions and not frozenset.intersection(*sessions):
        return None, None
    known = [term.own for term in terms if term.own]
    freedom = math.fsum(scatter.freedom for scatter in known)
    squares = math.fsum(scatter.variance * scatter.freedom for scatter in known)
    if squares <= 0:
        return None, None
    within = [term.in_rounds for term in terms if term.in_rounds]
    if len(within) < len(points):
        return Pool(squares / freedom, freedom), None
    rest = math.fsum(each.variance for each in within) / len(within)
    rounds = min(point.trials for point in points)
    of_rounds = Pool(max(0.0, squares / freedom - rest) / rounds, rounds - 1)
    return Pool(rest, min(freedom, *(each.family_freedom for each in within))), of_rounds


def _about_line(points: Sequence[Point], residuals: Sequence[Residual]) -> Pool | None:
    freedom = len(points) - 2
    if not freedom:
        return None
    pairs = zip(points, residuals, strict=True)
    return Pool(sum(point.trials * (1 - each.fitted_s / each.step_s) ** 2 for point, each in pairs) / freedom, freedom)


def larger(pure_error: Pool | None, about_line: Pool | None) -> Pool | None:
    """The larger of the known variances; None where none is known."""
    return max(filter(None, (pure_error, about_line)), key=lambda each: each.variance, default=None)
