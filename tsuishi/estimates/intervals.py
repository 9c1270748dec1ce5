"""Means over trials and sums of such means, with their intervals (docs/method.md, "From blocks to intervals").

Trials scatter in proportion to their value, so a ratio is computed from means of logarithms. The variance between the
trials of a case is moderated over the cases of a suite and environment: see variances.py.
"""

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

from scipy import special

from tsuishi.estimates.variances import Pool

CONFIDENCE = 0.95
# The fewest trials of a case for a verdict, or for a best side of several.
FEWEST_TRIALS = 3


class Region(NamedTuple):
    """An open interval of values; an end may be infinite."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, float | int) and self.low < value < self.high


# The logarithm of a ratio of 1.
NO_DIFFERENCE = Region(0.0, 0.0)
# An interval that the data do not bound.
UNBOUNDED = Region(-math.inf, math.inf)
# No level is below this.
_LEAST_TAIL = 1e-12


class InSession(NamedTuple):
    """The mean over the trials of a session. `day`: see Round."""

    mean: float
    trials: int
    day: str = ""


class Round(NamedTuple):
    """The round in which a trial was measured: a session (a call that measures), and its number among all rounds.

    `day`: of the session, as sessions of a day have the machine's state in common; empty: the session has one alone.
    """

    session: str
    number: int
    day: str = ""


class Term(NamedTuple):
    """A mean over `trials`, with the variance between them; None where it is unknown.

    `sessions`: the mean over the trials of each session; empty where sessions are not known, as for published numbers.
    `rounds`: those of the trials. `in_rounds`: the variance between the trials without what the trials of a round have
    in common; None where rounds show nothing of the kind. `own`: the variance between these trials alone; None for a
    single trial. `prediction`: the variance of the errors of predictions, where the trials are too short to have
    measured their values; more trials do not make it less. `walk`: the weight of each round in a mean of logarithms,
    as a machine changes all steps of a round alike; empty for other means. `unseen`: the variance of the mean by modes
    of processes, which few trials do not show. `environment`: of a time, which an environment changes by day; empty
    for others. `rounding`: the most by which the mean is wrong because its values were rounded.
    """

    mean: float
    trials: int
    pool: Pool | None
    sessions: Mapping[str, InSession] = {}
    rounds: frozenset[Round] = frozenset()
    in_rounds: Pool | None = None
    own: Pool | None = None
    prediction: Pool | None = None
    walk: Mapping[Round, float] = {}
    unseen: float = 0.0
    environment: str = ""
    rounding: float = 0.0


def even_walk(rounds: Collection[Round]) -> dict[Round, float]:
    """The weights of a mean over trials of these rounds: each has the same."""
    return dict.fromkeys(rounds, 1 / len(rounds)) if rounds else {}


class Contrast(NamedTuple):
    """A weighted sum of means: its value, standard error and degrees of freedom (Student's t).

    `error` is None where the scatter is unknown, as for published numbers and single trials. Then there is no interval,
    and the value alone decides whether the sum is in a region. `unseen`: the standard deviation of errors that trials
    do not show (see unseen.py); `rounding`: the most by which rounded values make it wrong, in either direction.

    Half the length of an interval is the root of the sum of squares of both parts, each at the interval's confidence,
    and the rounding: no shorter than Cochran's approximation (Biometrics 20, 1964, 191), and than each part alone.
    """

    value: float
    error: float | None
    freedom: float
    unseen: float = 0.0
    rounding: float = 0.0

    def interval(self, confidence: float = CONFIDENCE) -> Region | None:
        """The interval of this confidence; None where the scatter is unknown."""
        if self.error is None:
            return None
        if math.isinf(self.error):
            return UNBOUNDED
        reach = self._reach((1 - confidence) / 2) + self.rounding
        return Region(self.value - reach, self.value + reach)

    def detectable(self, level: float, power: float = 0.8) -> float:
        """How far the true sum must be from 0 for intervals of confidence 1 - level to exclude 0 so often (`power`).

        By the sum of two quantiles of Student's t: right to a few per cent of the distance. Infinite where the scatter
        is unknown.
        """
        if self.error is None or math.isinf(self.error):
            return math.inf
        return self._reach(level / 2) + self._reach(1 - power) + self.rounding

    def p_inside(self, region: Region) -> float:
        """The smallest a whose 1 - a interval lies in the region: two one-sided tests, Schuirmann 1987."""
        return min(1.0, 2 * max(self._p_above(region.low), self._p_below(region.high)))

    def p_outside(self, region: Region) -> float:
        """The smallest a whose 1 - a interval has nothing in common with the region."""
        return min(1.0, 2 * min(self._p_below(region.low), self._p_above(region.high)))

    def _reach(self, tail: float) -> float:
        """Half the length of the interval that leaves so much at each side, without the rounding."""
        of_trials = -float(special.stdtrit(self.freedom, tail)) * self.error if self.error else 0.0
        return math.hypot(of_trials, float(special.ndtri(tail)) * self.unseen) if self.unseen else of_trials

    def _p_above(self, bound: float) -> float:
        """The one-sided p value for a true sum above the bound."""
        if not (self.error or self.unseen) or math.isinf(bound):
            return 0.0 if self.value - self.rounding > bound else 1.0
        distance = self.value - self.rounding - bound
        if self.error == math.inf or (distance <= 0 and (self.unseen or self.rounding)):
            return 1.0
        alone = float(special.stdtr(self.freedom, -distance / self.error)) if self.error else 0.0
        if not self.unseen:
            return alone
        least = max(alone, float(special.ndtr(-distance / self.unseen)), _LEAST_TAIL)
        if least >= 0.5 or self._reach(least) <= distance:
            return least
        from scipy import optimize  # a tenth of a second, and few commands need it

        return float(optimize.brentq(lambda tail: self._reach(tail) - distance, least, 0.5, xtol=1e-15, rtol=1e-9))

    def _p_below(self, bound: float) -> float:
        return self._replace(value=-self.value)._p_above(-bound)


def student(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Half the length of an interval, in standard errors."""
    return float(special.stdtrit(freedom, (1 + confidence) / 2))
