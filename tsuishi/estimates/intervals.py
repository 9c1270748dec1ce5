"""Intervals of means over trials, and of sums and ratios of such means (docs/method.md, "From blocks to intervals").

Trials scatter in proportion to their value, so a ratio is computed from means of logarithms. The variance between the
trials of a case is moderated over the cases of a suite and environment: see variances.py.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from scipy import special

from tsuishi.estimates.variances import Pool, pool

CONFIDENCE = 0.95
# The fewest trials of a case for a verdict, or for a best side of several.
FEWEST_TRIALS = 3
# Sessions count as trials where their error is above so much of that of trials. Three sessions say little of their own
# scatter: at 1, intervals of 95 % miss up to 8 % where environments differ between sessions; so they miss at most 5 %.
_SUSPECT = 0.7
# Sums of weights that are 0 but for rounding.
_NO_WEIGHT = 1e-9


class Region(NamedTuple):
    """An open interval of values; an end may be infinite."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, float | int) and self.low < value < self.high


# The logarithm of a ratio of 1.
NO_DIFFERENCE = Region(0.0, 0.0)


class InSession(NamedTuple):
    """The mean over the trials of a session."""

    mean: float
    trials: int


class Term(NamedTuple):
    """A mean over `trials`, with the variance between them; None where it is unknown.

    `sessions`: the mean over the trials of each session; empty where sessions are not known, as for published numbers.
    `rounds`: those of the trials. `in_rounds`: the variance between the trials without what the trials of a round have
    in common; None where rounds show nothing of the kind. `own`: the variance between these trials alone; None for a
    single trial. `prediction`: the variance of the errors of predictions, where the trials are too short to have
    measured their values; more trials do not make it less.
    """

    mean: float
    trials: int
    pool: Pool | None
    sessions: Mapping[str, InSession] = {}
    rounds: frozenset[Hashable] = frozenset()
    in_rounds: Pool | None = None
    own: Pool | None = None
    prediction: Pool | None = None


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
    for the pools of a family no more than those of the family. What rounds have in common is no error of a sum in which
    it cancels. Sessions count as trials where the means were measured apart, and where sessions scatter as much as
    trials would make them, or more.
    """
    terms = list(weighted)
    groups = _in_sessions(terms)
    of_sessions = _sum_over_sessions(groups)
    if sum(_is_left(weight for weight, _ in group) for group in groups) > 1:
        return of_sessions or _sum(terms)._replace(error=math.inf, freedom=1.0)
    compared = [_in_shared_sessions(group) for group in groups]
    if None in compared:
        return of_sessions or _sum(terms)._replace(error=math.inf, freedom=1.0)
    of_trials = _sum(
        [pair for group in compared for pair in group or ()] + [pair for pair in terms if not pair[1].sessions]
    )
    if of_sessions and of_trials.error is not None and (of_sessions.error or 0.0) > _SUSPECT * of_trials.error:
        return of_sessions
    return of_trials


def _in_sessions(terms: Iterable[tuple[float, Term]]) -> list[list[tuple[float, Term]]]:
    """The terms whose sessions are known, in groups that share no session."""
    groups: list[tuple[set[str], list[tuple[float, Term]]]] = []
    for weight, term in terms:
        if term.sessions:
            joined = [group for group in groups if not group[0].isdisjoint(term.sessions)]
            groups = [group for group in groups if group not in joined]
            sessions = {*term.sessions}.union(*(of_group for of_group, _ in joined))
            groups.append((sessions, [each for _, members in joined for each in members] + [(weight, term)]))
    return [members for _, members in groups]


def _is_left(weights: Iterable[float]) -> bool:
    return abs(math.fsum(weights)) > _NO_WEIGHT


def _in_shared_sessions(group: Sequence[tuple[float, Term]]) -> Sequence[tuple[float, Term]] | None:
    """The terms of a comparison by those sessions alone that all of them share; None where they share none.

    A day on which only some sides were measured cancels in no difference. Where each day has the same part in all
    sides, or where nothing is compared, the terms are as they were.
    """
    every = {session for _, term in group for session in term.sessions}
    left = (
        [
            weight * in_session.trials / term.trials
            for weight, term in group
            for in_session in [term.sessions.get(session)]
            if in_session
        ]
        for session in every
    )
    if _is_left(weight for weight, _ in group) or not any(map(_is_left, left)):
        return group
    shared = sorted(session for session in every if all(session in term.sessions for _, term in group))
    if not shared:
        return None
    counts = [min(term.sessions[session].trials for _, term in group) for session in shared]
    return [(weight, _limited(term, shared, counts)) for weight, term in group]


def _limited(term: Term, sessions: Sequence[str], counts: Sequence[int]) -> Term:
    """The term as a mean over sessions, each of which has the weight of its count."""
    parts = [term.sessions[session] for session in sessions]
    total = sum(counts)
    mean = math.fsum(count * part.mean for count, part in zip(counts, parts, strict=True)) / total
    # The variance of this mean, times the trials: it is a mean over fewer of them, with unequal weights.
    more = term.trials * math.fsum(count**2 / part.trials for count, part in zip(counts, parts, strict=True)) / total**2
    scatter = term.pool._replace(variance=term.pool.variance * more) if term.pool else None
    return term._replace(mean=mean, pool=scatter, sessions=dict(zip(sessions, parts, strict=True)), in_rounds=None)


def _sum_over_sessions(groups: Sequence[Sequence[tuple[float, Term]]]) -> Contrast | None:
    """The sum of means over sessions, each of which counts as a trial of the sum.

    All cases of an environment may share what differs between sessions, so the variance is that of the sum itself. None
    where a group has fewer than FEWEST_TRIALS sessions that all of its terms have.
    """
    value, variances = 0.0, []
    for group in groups:
        sessions = sorted(set.intersection(*({*term.sessions} for _, term in group)))
        if len(sessions) < FEWEST_TRIALS:
            return None
        sums = [math.fsum(weight * term.sessions[session].mean for weight, term in group) for session in sessions]
        scatter = pool([sums])
        assert scatter
        value += math.fsum(sums) / len(sums)
        variances.append((scatter.variance / len(sums), scatter.freedom))
        for weight, term in group:
            if term.prediction:
                variances.append((weight**2 * term.prediction.variance, term.prediction.freedom))
    total, freedom = _summed(variances)
    return Contrast(value, math.sqrt(total), freedom) if groups else None


def _sum(terms: Sequence[tuple[float, Term]]) -> Contrast:
    """The sum of weight times mean, with the scatter between trials."""
    means = [weight * term.mean for weight, term in terms]
    # Logarithms of 0 on both sides: their ratio is not a number, as math.fsum would say by an error.
    value = math.fsum(means) if all(map(math.isfinite, means)) else sum(means)
    within = _within_rounds(terms)
    # Two equal pools count as one, with fewer degrees of freedom: the interval does not become shorter.
    shares: dict[Pool, float] = {}
    for weight, term in terms:
        scatter = term.in_rounds if within else term.pool
        if scatter is None:
            return Contrast(value, None, math.inf)
        shares[scatter] = shares.get(scatter, 0.0) + weight**2 / term.trials
        if term.prediction:
            shares[term.prediction] = shares.get(term.prediction, 0.0) + weight**2
    families: dict[Hashable, list[tuple[Pool, float]]] = {}
    for known, share in shares.items():
        families.setdefault(known if known.family is None else known.family, []).append((known, share))
    sums = []
    for members in families.values():
        variance, freedom = _summed((known.variance * share, known.freedom) for known, share in members)
        sums.append((variance, min(freedom, members[0][0].family_freedom)))
    total, freedom = _summed(sums)
    return Contrast(value, total if math.isinf(total) else math.sqrt(total), freedom)


def _within_rounds(terms: Iterable[tuple[float, Term]]) -> bool:
    """Whether what rounds have in common cancels: the weights of the terms of the same rounds sum to 0."""
    weights: dict[frozenset[Hashable], float] = {}
    for weight, term in terms:
        if term.in_rounds is None:
            return False
        weights[term.rounds] = weights.get(term.rounds, 0.0) + weight
    return all(abs(weight) < _NO_WEIGHT for weight in weights.values())


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
