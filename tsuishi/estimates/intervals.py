"""Intervals: how well means over trials are known, and what is reckoned from them (docs/method.md).

Trials scatter in proportion to what they measure, so ratios are reckoned from means of logarithms; the scatter between
trials is pooled over the cases of a suite, as three trials alone say little about theirs.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd
from scipy import special

CONFIDENCE = 0.95
# Trials of a case that a verdict, or a best one of several, can rest on.
FEWEST_TRIALS = 3
# Over the cases of which the scatter between trials is pooled.
_POOLED = ["suite", "protocol", "column", "quantity"]


class Region(NamedTuple):
    """An open interval of values; infinite where it has no end."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, float | int) and self.low < value < self.high


class Pool(NamedTuple):
    """The variance between trials of one case, from several cases together; its degrees of freedom."""

    variance: float
    freedom: int


class Term(NamedTuple):
    """A mean over so many trials; `pool` says how far they scatter. None: nothing is known of that."""

    mean: float
    trials: int
    pool: Pool | None


class Contrast(NamedTuple):
    """A weighted sum of means: its value, standard error and degrees of freedom (Student's t).

    `error` is None where no scatter is known, as for published numbers and single trials: then there is no interval,
    and being inside or outside a region is a matter of the value alone.
    """

    value: float
    error: float | None
    freedom: float

    def interval(self, confidence: float = CONFIDENCE) -> Region | None:
        """From low to high; None where no scatter is known."""
        if self.error is None:
            return None
        reach = student(self.freedom, confidence) * self.error if self.error else 0.0
        return Region(self.value - reach, self.value + reach)

    def p_inside(self, region: Region) -> float:
        """The smallest a for which the 1 - a interval lies in the region: two one-sided tests, Schuirmann 1987."""
        return min(1.0, 2 * max(self._p_above(region.low), self._p_below(region.high)))

    def p_outside(self, region: Region) -> float:
        """The smallest a for which the 1 - a interval and the region have nothing in common."""
        return min(1.0, 2 * min(self._p_below(region.low), self._p_above(region.high)))

    def _p_above(self, bound: float) -> float:
        """One-sided p that the truth is above the bound."""
        if not self.error or math.isinf(bound):
            return 0.0 if self.value > bound else 1.0
        return float(special.stdtr(self.freedom, (bound - self.value) / self.error))

    def _p_below(self, bound: float) -> float:
        return Contrast(-self.value, self.error, self.freedom)._p_above(-bound)


def student(freedom: float, confidence: float = CONFIDENCE) -> float:
    """How many standard errors an interval reaches to either side."""
    return float(special.stdtrit(freedom, (1 + confidence) / 2))


def pool(groups: Iterable[Sequence[float]]) -> Pool | None:
    """The pooled variance of groups, one per case: squares about each group's own mean. None for single values only."""
    squares, freedom = 0.0, 0
    for group in groups:
        middle = math.fsum(group) / len(group)
        squares += math.fsum((value - middle) ** 2 for value in group)
        freedom += len(group) - 1
    return Pool(squares / freedom, freedom) if freedom else None


def contrast(weighted: Iterable[tuple[float, Term]]) -> Contrast:
    """The sum of weight times mean, of independent means; freedom over several pools by Satterthwaite (1946).

    Means of one pool share its variance, so their contrast has exactly the pool's degrees of freedom.
    """
    terms = list(weighted)
    value = math.fsum(weight * term.mean for weight, term in terms)
    # Two pools that happen to be equal are taken for one, of fewer degrees of freedom: the interval is no shorter.
    shares: dict[Pool, float] = {}
    for weight, term in terms:
        if term.pool is None:
            return Contrast(value, None, math.inf)
        shares[term.pool] = shares.get(term.pool, 0.0) + weight**2 / term.trials
    variances = [(of.variance * share, of.freedom) for of, share in shares.items()]
    total = math.fsum(variance for variance, _ in variances)
    if math.isinf(total):
        return Contrast(value, total, 1.0)
    below = math.fsum(variance**2 / freedom for variance, freedom in variances)
    return Contrast(value, math.sqrt(total), total**2 / below if below else math.inf)


def ratio(above: Term, below: Term) -> Contrast:
    """The logarithm of above over below, from terms of logarithms."""
    return contrast([(1.0, above), (-1.0, below)])


Terms = Mapping[tuple[str, str, str], Term]


# By what is pooled (suite, protocol, column, quantity) and by case id: the values of its trials.
Values = Mapping[tuple[str, str, str, str], dict[str, list[float]]]


def trial_values(estimates: pd.DataFrame) -> Values:
    """The values that terms are made of, from estimates.trial_estimates."""
    found: dict[tuple[str, str, str, str], dict[str, list[float]]] = {}
    columns = [estimates[name].tolist() for name in (*_POOLED, "case_id", "value")]
    for suite, protocol, column, quantity, case_id, value in zip(*columns, strict=True):
        found.setdefault((suite, protocol, column, quantity), {}).setdefault(case_id, []).append(float(value))
    return found


def case_terms(pools: Values, logarithmic: bool = True) -> dict[tuple[str, str, str], Term]:
    """The term of every case, by (case id, column, quantity).

    Of logarithms, or of the values themselves. Of logarithms there is none for a case with a trial of 0 or less.
    """
    found: dict[tuple[str, str, str], Term] = {}
    for (_, _, column, quantity), values_of in pools.items():
        groups = _logarithms(values_of) if logarithmic else values_of
        shared = pool(groups.values())
        for case_id, values in groups.items():
            found[case_id, column, quantity] = Term(math.fsum(values) / len(values), len(values), shared)
    return found


def _logarithms(groups: dict[str, list[float]]) -> dict[str, list[float]]:
    return {case: [math.log(one) for one in values] for case, values in groups.items() if min(values) > 0}
