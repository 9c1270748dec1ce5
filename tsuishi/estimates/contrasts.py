"""Weighted sums of means over trials: what rounds share cancels, and sessions count where they have to."""

import math
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise

from tsuishi.estimates.intervals import FEWEST_TRIALS, Contrast, Round, Term, even_walk
from tsuishi.estimates.variances import Pool, pool
from tsuishi.specs.questions import LOOKS

# Sessions count as trials where their error is above this share of the trials' error. Three sessions say little of
# their own scatter: where environments differ between sessions, intervals of 95 % miss up to 8 % at 1, and at most 5 %
# at this value.
_SUSPECT = 0.7
# The standard deviation, as a share, by which a machine changes from a round to the next: a random walk, assumed. Cells
# that were measured in the same rounds change alike; the means of a question and of the next one differ by 0.9 %.
_OF_ROUND = 0.006
# Beside other programs a process may be slow or fast as a whole: with another program at full load on each core, three
# trials of PyTorch 2.13 in a row took 1.6 s a step, and others of the same case 0.3 s. The standard deviation of the
# logarithm, by the share of the cores that others took (there 0.5), for means over fewer trials than show such modes.
_OF_CROWD, _SHOW_MODES = 1.8, LOOKS[1]
# Sums of weights that are 0 but for rounding.
_NO_WEIGHT = 1e-9
# So much of the largest of its parts is a sum, or its error, that is 0 but for rounding.
_ROUNDING = 1e-12


def contrast(weighted: Iterable[tuple[float, Term]]) -> Contrast:
    """The sum of weight times mean, for independent means. Its error is None where a term has no pool.

    Means of one pool have the pool's degrees of freedom exactly; for several pools they are Satterthwaite's (1946), and
    for the pools of a family no more than those of the family. What rounds have in common is no error of a sum in which
    it cancels; between means of different rounds of a session, the machine may have changed. Sessions count as trials
    where the means were measured apart, and where sessions scatter as much as trials would make them, or more.
    """
    terms = list(weighted)
    groups = _in_sessions(terms)
    # A sum with a term whose sessions are not known is no sum over sessions.
    of_sessions = _sum_over_sessions(groups) if terms and all(term.sessions for _, term in terms) else None
    compared = [_in_shared_sessions(group) for group in groups]
    if None in compared or sum(_is_left(weight for weight, _ in group) for group in groups) > 1:
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


def _between_rounds(terms: Iterable[tuple[float, Term]]) -> float:
    """The variance of a comparison by the rounds between its sides; 0 where they are shared, or nothing is compared."""
    weights: dict[Round, float] = {}
    for weight, term in terms:
        for each, share in term.walk.items():
            weights[each] = weights.get(each, 0.0) + weight * share
    if _is_left(weights.values()):
        return 0.0
    walked = before = 0.0
    for each, later in pairwise(sorted(weights)):
        before += weights[each]
        if each.session == later.session:
            walked += before**2 * (later.number - each.number)
    return walked * _OF_ROUND**2


def crowded(term: Term, share: float) -> Term:
    """The term of logarithms of times, where other programs took this share of the cores beside a trial."""
    return term._replace(crowd=(_OF_CROWD * share) ** 2 / term.trials) if term.trials < _SHOW_MODES else term


def _by_crowds(terms: Iterable[tuple[float, Term]]) -> float:
    """The variance of a comparison by other programs; 0 where nothing is compared."""
    known = list(terms)
    if _is_left(weight for weight, _ in known):
        return 0.0
    return math.fsum(weight**2 * term.crowd for weight, term in known)


def _is_left(weights: Iterable[float]) -> bool:
    return abs(math.fsum(weights)) > _NO_WEIGHT


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
    rounds = frozenset(each for each in term.rounds if each.session in sessions)
    known = dict(zip(sessions, parts, strict=True))
    walk = even_walk(rounds) if term.walk else {}
    return term._replace(mean=mean, pool=scatter, sessions=known, rounds=rounds, in_rounds=None, walk=walk)


def first_sessions(term: Term, count: int) -> Term:
    """The term by no more than its first so many sessions."""
    sessions = [*term.sessions][:count]
    return _limited(term, sessions, [term.sessions[session].trials for session in sessions])


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
    return Contrast(value, math.sqrt(total), freedom)


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
    sums += [(more, math.inf) for more in (_between_rounds(terms), _by_crowds(terms)) if more]
    total, freedom = _summed(sums)
    least = _ROUNDING * max((abs(mean) for mean in means if math.isfinite(mean)), default=0.0)
    error = total if math.isinf(total) else math.sqrt(total)
    return Contrast(0.0 if abs(value) <= least else value, 0.0 if error <= least else error, freedom)


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
