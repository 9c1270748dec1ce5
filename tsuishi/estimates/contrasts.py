"""Weighted sums of means over trials: what rounds share cancels, and days count where they have to."""

import math
from collections.abc import Hashable, Iterable, Sequence

from tsuishi.estimates.intervals import FEWEST_TRIALS, Contrast, Term, even_walk
from tsuishi.estimates.unseen import by_environments, by_modes, is_left, rounding_of, unseen_variance
from tsuishi.estimates.variances import Pool, pool

# Within an environment, days count as trials where their error is above this share of the trials' error. Three days say
# little of their own scatter: where cases differ between days, intervals of 95 % miss up to 8 % at 1, and at most 5 %
# at this value.
_SUSPECT = 0.7
# What is assumed of the days of an environment weighs as so many degrees of freedom.
_USUAL_DAYS = 4.0
# So much of the largest of its parts is a sum, or its error, that is 0 but for rounding.
_ROUNDING = 1e-12


def contrast(weighted: Iterable[tuple[float, Term]]) -> Contrast:
    """The sum of weight times mean, for independent means. Its error is None where a term has no pool.

    Means of one pool have the pool's degrees of freedom exactly; for several pools they are Satterthwaite's (1946), and
    for the pools of a family no more than those of the family. What rounds have in common is no error of a sum in which
    it cancels; between means of different rounds of a session, the machine may have changed. Days count as trials where
    the means were measured apart, between environments, and where days scatter as much as trials would make them, or
    more. A comparison of fewer days has the errors that its trials do not show (unseen.py).
    """
    terms = list(weighted)
    groups = _in_sessions(terms)
    # A sum with a term whose sessions are not known is no sum over days.
    of_days = _sum_over_days(groups) if terms and all(term.sessions for _, term in terms) else None
    compared = [_in_shared_sessions(group) for group in groups]
    if None in compared or sum(is_left(weight for weight, _ in group) for group in groups) > 1:
        return of_days or _sum(terms)._replace(error=math.inf, freedom=1.0)
    of_trials = _sum(
        [pair for group in compared for pair in group or ()] + [pair for pair in terms if not pair[1].sessions]
    )
    if of_days is None or of_trials.error is None:
        return of_trials
    of_environments = 0.0 if is_left(weight for weight, _ in terms) else by_environments(terms)
    if of_environments:
        return _with_usual_days(of_days, of_environments + of_trials.error**2)
    return of_days if (of_days.error or 0.0) > _SUSPECT * of_trials.error else of_trials


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


def _in_shared_sessions(group: Sequence[tuple[float, Term]]) -> Sequence[tuple[float, Term]] | None:
    """The terms of a comparison, by the sessions that all of them share; None where they share none.

    A day on which only some sides were measured cancels in no difference. Where each day has the same part in all
    sides, or where nothing is compared, the terms do not change.
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
    if is_left(weight for weight, _ in group) or not any(map(is_left, left)):
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
    rounds = frozenset(each for each in term.rounds if each.session in sessions)
    known = dict(zip(sessions, parts, strict=True))
    walk = even_walk(rounds) if term.walk else {}
    return term._replace(mean=mean, pool=scatter, sessions=known, rounds=rounds, in_rounds=None, walk=walk)


def days_of(term: Term) -> dict[str, list[str]]:
    """The sessions of each day of a term, in their order."""
    days: dict[str, list[str]] = {}
    for session, part in term.sessions.items():
        days.setdefault(part.day or session, []).append(session)
    return days


def first_days(term: Term, count: int) -> Term:
    """The term by no more than its first so many days."""
    sessions = [session for of_day in [*days_of(term).values()][:count] for session in of_day]
    return _limited(term, sessions, [term.sessions[session].trials for session in sessions])


def _sum_over_days(groups: Sequence[Sequence[tuple[float, Term]]]) -> Contrast | None:
    """The sum of means over days, each of which counts as a trial of the sum.

    All cases of an environment may share what differs between days, so the variance is that of the sum itself. None
    where a group has sessions that all of its terms have on fewer than FEWEST_TRIALS days.
    """
    value, variances = 0.0, []
    for group in groups:
        shared = set.intersection(*({*term.sessions} for _, term in group))
        days = [[each for each in of_day if each in shared] for of_day in days_of(group[0][1]).values()]
        sums = [
            math.fsum(weight * term.sessions[session].mean for weight, term in group for session in of_day)
            / len(of_day)
            for of_day in days
            if of_day
        ]
        if len(sums) < FEWEST_TRIALS:
            return None
        scatter = pool([sums])
        assert scatter
        value += math.fsum(sums) / len(sums)
        variances.append((scatter.variance / len(sums), scatter.freedom))
        for weight, term in group:
            if term.prediction:
                variances.append((weight**2 * term.prediction.variance, term.prediction.freedom))
    total, freedom = _summed(variances)
    terms = [pair for group in groups for pair in group]
    return Contrast(value, math.sqrt(total), freedom, math.sqrt(by_modes(terms)), rounding_of(terms))


def _with_usual_days(of_days: Contrast, usual: float) -> Contrast:
    """A comparison of environments by its days, whose variance is moderated by the usual variance of such days.

    Three days say little of their own scatter: alone, they would take away what a first day found.
    """
    error, freedom = of_days.error or 0.0, of_days.freedom
    variance = (_USUAL_DAYS * usual + freedom * error**2) / (_USUAL_DAYS + freedom)
    return of_days._replace(error=math.sqrt(variance), freedom=_USUAL_DAYS + freedom)


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
    least = _ROUNDING * max((abs(mean) for mean in means if math.isfinite(mean)), default=0.0)
    error = total if math.isinf(total) else math.sqrt(total)
    value, error = (0.0 if abs(part) <= least else part for part in (value, error))
    return Contrast(value, error, freedom, math.sqrt(unseen_variance(terms)), rounding_of(terms))


def _within_rounds(terms: Iterable[tuple[float, Term]]) -> bool:
    """Whether what rounds have in common cancels: the weights of the terms of the same rounds sum to 0."""
    weights: dict[frozenset[Hashable], float] = {}
    for weight, term in terms:
        if term.in_rounds is None:
            return False
        weights[term.rounds] = weights.get(term.rounds, 0.0) + weight
    return not any(is_left([weight]) for weight in weights.values())


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
