"""Errors of comparisons that their trials do not show: they are assumed, or learnt from other trials of the machine.

Each is a variance of the logarithm, and docs/certainty.md defends its size. Where nothing is compared, as in a time
beside a published number, they are 0: such an interval is of this session alone.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from tsuishi.estimates.intervals import Round, Term
from tsuishi.estimates.variances import pool
from tsuishi.specs.questions import LOOKS

Weighted = Sequence[tuple[float, Term]]

# The standard deviation, as a share, by which a machine changes from a round to the next: a random walk, assumed. Cells
# that were measured in the same rounds change alike; the means of a question and of the next one differ by 0.9 %.
OF_ROUND = 0.006
# By which an environment is slower or faster on a day than on others, all of its cases alike: assumed.
OF_DAY = 0.01
# A process may be slow or fast as a whole. Half of the trials in each of two modes 10 % apart scatter by 5 %: CPUs have
# them by the addresses that a process gets. GPUs differ less.
_OF_MODES = {"cpu": 0.05, "gpu": 0.01}
# Beside other programs such modes are farther apart: with another program at full load on each core, three trials of
# PyTorch 2.13 in a row took 1.6 s a step, and others of the same case 0.3 s. By the share of the cores that others took
# (there 0.5).
_OF_CROWD = 1.8
# So many trials show the modes of a case; and so many show how often each is taken, so that a case that scatters less
# than all others of its environment is believed.
_SHOW_MODES, _SHOW_SHARES = LOOKS[1:3]
# Sums of weights that are 0 but for rounding.
_NO_WEIGHT = 1e-9


def of_few_trials(term: Term, seen: float = 0.0, others: float = 0.0, device: str = "cpu") -> float:
    """The variance of a mean by modes of processes that its few trials may have missed.

    seen: the variance between trials, over all cases of the environment. others: the share of the cores that other
    programs took beside a trial. device: "cpu" or "gpu".
    """
    few = term.trials < _SHOW_MODES
    least = max(seen, _OF_MODES[device] ** 2) if few else seen if term.trials < _SHOW_SHARES else 0.0
    shown = min((known.variance for known in (term.pool, term.in_rounds) if known), default=0.0)
    beside = (_OF_CROWD * others) ** 2 if few else 0.0
    return (max(0.0, least - shown) + beside) / term.trials


def rarest_shown(trials: int) -> float:
    """The share of trials of a kind that so many trials hold one of in 95 of 100 cases: a rarer kind may be missing.

    >>> [round(rarest_shown(trials), 2) for trials in (3, 6, 12, 24)]
    [0.63, 0.39, 0.22, 0.12]
    """
    return float(1 - 0.05 ** (1 / trials))


def seen_scatter(
    values: Mapping[tuple[str, str, str, str], Mapping[str, Sequence[float]]],
) -> dict[tuple[str, str], float]:
    """The variance of logarithms between trials, over all cases of an environment, by environment and quantity.

    values: of trials, as terms.Values.
    """
    groups: dict[tuple[str, str], list[list[float]]] = {}
    for (_, _, environment, quantity), of_cases in values.items():
        logarithms = [list(map(math.log, of_case)) for of_case in of_cases.values() if min(of_case) > 0]
        groups.setdefault((environment, quantity), []).extend(logarithms)
    pools = {key: pool(of_key) for key, of_key in groups.items()}
    return {key: known.variance for key, known in pools.items() if known}


def unseen_variance(terms: Weighted) -> float:
    """The variance of a weighted sum of means by all errors that trials do not show; 0 where nothing is compared."""
    if is_left(weight for weight, _ in terms):
        return 0.0
    return by_modes(terms) + between_rounds(terms) + by_environments(terms)


def by_modes(terms: Weighted) -> float:
    """The variance by modes of processes, which few trials may have missed."""
    return math.fsum(weight**2 * term.unseen for weight, term in terms)


def between_rounds(terms: Weighted) -> float:
    """The variance by the rounds between the sides of a comparison; 0 where they share their rounds."""
    weights: dict[Round, float] = {}
    for weight, term in terms:
        for each, share in term.walk.items():
            weights[each] = weights.get(each, 0.0) + weight * share
    if is_left(weights.values()):
        return 0.0
    walked = before = 0.0
    for each, later in pairwise(sorted(weights)):
        before += weights[each]
        if each.session == later.session:
            walked += before**2 * (later.number - each.number)
    return walked * OF_ROUND**2


def by_environments(terms: Weighted) -> float:
    """The variance because an environment differs between days; 0 where it cancels, as between cases of one."""
    weights: dict[tuple[str, str], float] = {}
    for weight, term in terms:
        for each, share in term.walk.items():
            if term.environment:
                key = term.environment, each.day or each.session
                weights[key] = weights.get(key, 0.0) + weight * share
    return math.fsum(weight**2 for weight in weights.values() if is_left([weight])) * OF_DAY**2


def rounding_of(terms: Weighted) -> float:
    """The most by which rounded values make a weighted sum of means wrong."""
    return math.fsum(abs(weight) * term.rounding for weight, term in terms)


def is_left(weights: Iterable[float]) -> bool:
    """Whether a sum of weights is not 0, but for rounding."""
    return abs(math.fsum(weights)) > _NO_WEIGHT
