"""Intervals of means over trials, and of sums and ratios of such means (docs/method.md, "From blocks to intervals").

Trials scatter in proportion to their value, so a ratio is computed from means of logarithms. The variance between the
trials of a case is moderated over the cases of a suite and environment: see variances.py.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import pandas as pd
from scipy import special

from tsuishi.estimates.variances import Pool, moderated

_Cell = TypeVar("_Cell")

CONFIDENCE = 0.95
# The fewest trials of a case for a verdict, or for a best side of several.
FEWEST_TRIALS = 3
# Sums of weights that are 0 but for rounding.
_NO_WEIGHT = 1e-9
# Variances between trials are moderated over all cases that agree in these columns.
_POOLED = ["suite", "protocol", "column", "quantity"]


class Region(NamedTuple):
    """An open interval of values; an end may be infinite."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, float | int) and self.low < value < self.high


# The logarithm of a ratio of 1.
NO_DIFFERENCE = Region(0.0, 0.0)


class Term(NamedTuple):
    """A mean over `trials`, with the variance between them; None where it is unknown.

    `sessions`: those in which the trials were measured; empty where they are not known, as for published numbers.
    `of_sessions`: the same as a mean over sessions, each of which counts as a single trial; None for fewer than
    FEWEST_TRIALS sessions.
    """

    mean: float
    trials: int
    pool: Pool | None
    sessions: frozenset[str] = frozenset()
    of_sessions: "Term | None" = None


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

    def detectable(self, level: float, power: float = 0.8) -> float:
        """How far the true sum must be from 0 for intervals of confidence 1 - level to exclude 0 so often (`power`).

        By the sum of two quantiles of Student's t: right to a few per cent of the distance. Infinite where the scatter
        is unknown.
        """
        if self.error is None or math.isinf(self.error):
            return math.inf
        return (student(self.freedom, 1 - level) + student(self.freedom, 2 * power - 1)) * self.error

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
    means = [weight * term.mean for weight, term in terms]
    # Logarithms of 0 on both sides: their ratio is not a number, as math.fsum would say by an error.
    value = math.fsum(means) if all(map(math.isfinite, means)) else sum(means)
    if _measured_apart(terms):
        of_sessions = [(weight, term.of_sessions) for weight, term in terms if term.of_sessions]
        return contrast(of_sessions) if len(of_sessions) == len(terms) else Contrast(value, math.inf, 1.0)
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


def _measured_apart(terms: Iterable[tuple[float, Term]]) -> bool:
    """Whether the weights of several groups of sessions, which share no session, are not 0 together."""
    groups: list[tuple[frozenset[str], float]] = []
    for weight, term in terms:
        if term.sessions:
            sessions = term.sessions
            joined = [group for group in groups if group[0] & sessions]
            groups = [group for group in groups if group not in joined]
            weight += sum(total for _, total in joined)
            groups.append((sessions.union(*(others for others, _ in joined)), weight))
    return sum(abs(weight) > _NO_WEIGHT for _, weight in groups) > 1


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
# Suite, protocol, column and quantity, as variances are moderated.
_Key = tuple[str, str, str, str]
# By such a key and by case id: the values of the case's trials.
Values = Mapping[_Key, dict[str, list[float]]]
# By the keys of Values: the sessions of the values.
Sessions = Mapping[_Key, dict[str, list[str]]]


def trial_values(estimates: pd.DataFrame) -> Values:
    """The values of trials, from samples.trial_estimates."""
    return _by_case(estimates, estimates["value"].astype("float64").tolist())


def trial_sessions(estimates: pd.DataFrame, sessions: Sequence[str]) -> Sessions:
    """The sessions of the values of `trial_values`. sessions: of each row."""
    return _by_case(estimates, sessions)


def _by_case(estimates: pd.DataFrame, cells: Sequence[_Cell]) -> dict[_Key, dict[str, list[_Cell]]]:
    pools: dict[_Key, dict[str, list[_Cell]]] = defaultdict(lambda: defaultdict(list))
    keys = zip(*(estimates[name].tolist() for name in _POOLED), strict=True)
    for key, case_id, cell in zip(keys, estimates["case_id"].tolist(), cells, strict=True):
        pools[key][case_id].append(cell)
    return pools


def case_terms(
    pools: Values, logarithmic: bool = True, sessions: Sessions | None = None
) -> dict[tuple[str, str, str], Term]:
    """The term of every case, by (case id, column, quantity): of logarithms, or of the values themselves.

    A case with a trial of 0 or less has no term of logarithms. sessions: of the values; None: they are not known.
    """
    terms: dict[tuple[str, str, str], Term] = {}
    for key, values_of in pools.items():
        groups = _logarithms(values_of) if logarithmic else values_of
        scatter = moderated(groups, (*key, logarithmic))
        known = {case_id: sessions[key][case_id][: len(groups[case_id])] for case_id in groups} if sessions else {}
        means = {
            case_id: _session_means(groups[case_id], of_case)
            for case_id, of_case in known.items()
            if len({*of_case}) >= FEWEST_TRIALS
        }
        between = moderated(means, (*key, logarithmic, "sessions"))
        of_sessions = {case_id: _term(of_case, between[case_id]) for case_id, of_case in means.items()}
        for case_id, values in groups.items():
            term = _term(values, scatter[case_id])
            measured_in = frozenset(known.get(case_id, ()))
            terms[case_id, *key[2:]] = term._replace(sessions=measured_in, of_sessions=of_sessions.get(case_id))
    return terms


def _term(values: Sequence[float], scatter: Pool | None) -> Term:
    return Term(math.fsum(values) / len(values), len(values), scatter)


def _session_means(values: Sequence[float], sessions: Sequence[str]) -> list[float]:
    """The mean of the values of each session."""
    by_session: dict[str, list[float]] = {}
    for value, session in zip(values, sessions, strict=True):
        by_session.setdefault(session, []).append(value)
    return [math.fsum(of_session) / len(of_session) for of_session in by_session.values()]


def _logarithms(groups: dict[str, list[float]]) -> dict[str, list[float]]:
    return {case: list(map(math.log, values)) for case, values in groups.items() if min(values) > 0}
