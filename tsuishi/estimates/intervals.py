"""Intervals of means over trials, and of sums and ratios of such means (docs/method.md, "From blocks to intervals").

Trials scatter in proportion to their value, so a ratio is computed from means of logarithms. The variance between the
trials of a case is moderated over the cases of a suite and environment: see variances.py.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

import pandas as pd
from scipy import special

from tsuishi.estimates.variances import Pool, moderated

CONFIDENCE = 0.95
# The fewest trials of a case for a verdict, or for a best side of several.
FEWEST_TRIALS = 3
# Variances between trials are moderated over all cases that agree in these columns.
_POOLED = ["suite", "protocol", "column", "quantity"]


class Region(NamedTuple):
    """An open interval of values; an end may be infinite."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, float | int) and self.low < value < self.high


class Term(NamedTuple):
    """A mean over `trials`, with the variance between them; None where it is unknown."""

    mean: float
    trials: int
    pool: Pool | None


class Contrast(NamedTuple):
    """A weighted sum of means: its value, standard error and degrees of freedom (Student's t).

    `error` is None where the scatter is unknown, as for published numbers and single trials. Then there is no interval,
    and the value alone decides whether the sum is in a region.
    """

    value: float
    error: float | None
    freedom: float

    def interval(self, confidence: float = CONFIDENCE) -> Region | None:
        """The interval of this confidence; None where the scatter is unknown."""
        if self.error is None:
            return None
        if math.isinf(self.error):
            return Region(-math.inf, math.inf)
        reach = student(self.freedom, confidence) * self.error if self.error else 0.0
        return Region(self.value - reach, self.value + reach)

    def p_inside(self, region: Region) -> float:
        """The smallest a whose 1 - a interval lies in the region: two one-sided tests, Schuirmann 1987."""
        return min(1.0, 2 * max(self._p_above(region.low), self._p_below(region.high)))

    def p_outside(self, region: Region) -> float:
        """The smallest a whose 1 - a interval has nothing in common with the region."""
        return min(1.0, 2 * min(self._p_below(region.low), self._p_above(region.high)))

    def _p_above(self, bound: float) -> float:
        """The one-sided p value for a true sum above the bound."""
        if not self.error or math.isinf(bound):
            return 0.0 if self.value > bound else 1.0
        if math.isinf(self.error):
            return 1.0
        return float(special.stdtr(self.freedom, (bound - self.value) / self.error))

    def _p_below(self, bound: float) -> float:
        return Contrast(-self.value, self.error, self.freedom)._p_above(-bound)


def student(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Half the length of an interval, in standard errors."""
    return float(special.stdtrit(freedom, (1 + confidence) / 2))


def contrast(weighted: Iterable[tuple[float, Term]]) -> Contrast:
    """The sum of weight times mean, for independent means. Its error is None where a term has no pool.

    Means of one pool have the pool's degrees of freedom exactly; for several pools they are Satterthwaite's (1946), and
    for the pools of a family no more than those of the family.
    """
    terms = list(weighted)
    value = math.fsum(weight * term.mean for weight, term in terms)
    # Two equal pools count as one, with fewer degrees of freedom: the interval does not become shorter.
    shares: dict[Pool, float] = {}
    for weight, term in terms:
        if term.pool is None:
            return Contrast(value, None, math.inf)
        shares[term.pool] = shares.get(term.pool, 0.0) + weight**2 / term.trials
    families: dict[Hashable, list[tuple[Pool, float]]] = {}
    for known, share in shares.items():
        families.setdefault(known if known.family is None else known.family, []).append((known, share))
    sums = []
    for members in families.values():
        variance, freedom = _summed((known.variance * share, known.freedom) for known, share in members)
        sums.append((variance, min(freedom, members[0][0].family_freedom)))
    total, freedom = _summed(sums)
    return Contrast(value, total if math.isinf(total) else math.sqrt(total), freedom)


def _summed(variances: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The sum of variances, each given with its degrees of freedom, and the degrees of freedom of the sum."""
    known = list(variances)
    total = math.fsum(variance for variance, _ in known)
    if math.isinf(total):
        return total, 1.0
    below = math.fsum(variance**2 / freedom for variance, freedom in known)
    return total, total**2 / below if below else math.inf


def ratio(above: Term, below: Term) -> Contrast:
    """The logarithm of `above` over `below`, from terms of logarithms."""
    return contrast([(1.0, above), (-1.0, below)])


# By (case id, column, quantity).
Terms = Mapping[tuple[str, str, str], Term]
# By (suite, protocol, column, quantity), as variances are moderated, and by case id: the values of the case's trials.
Values = Mapping[tuple[str, str, str, str], dict[str, list[float]]]


def trial_values(estimates: pd.DataFrame) -> Values:
    """The values of trials, from samples.trial_estimates."""
    pools: dict[tuple[str, str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    keys = zip(*(estimates[name].tolist() for name in _POOLED), strict=True)
    values = estimates["value"].astype("float64").tolist()
    for key, case_id, value in zip(keys, estimates["case_id"].tolist(), values, strict=True):
        pools[key][case_id].append(value)
    return pools


def case_terms(pools: Values, logarithmic: bool = True) -> dict[tuple[str, str, str], Term]:
    """The term of every case, by (case id, column, quantity): of logarithms, or of the values themselves.

    A case with a trial of 0 or less has no term of logarithms.
    """
    terms: dict[tuple[str, str, str], Term] = {}
    for (suite, protocol, column, quantity), values_of in pools.items():
        groups = _logarithms(values_of) if logarithmic else values_of
        scatter = moderated(groups, (suite, protocol, column, quantity, logarithmic))
        for case_id, values in groups.items():
            terms[case_id, column, quantity] = Term(math.fsum(values) / len(values), len(values), scatter[case_id])
    return terms


def _logarithms(groups: dict[str, list[float]]) -> dict[str, list[float]]:
    return {case: list(map(math.log, values)) for case, values in groups.items() if min(values) > 0}
