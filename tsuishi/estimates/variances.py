"""The variance between the trials of a case, moderated over the cases of an environment (docs/certainty.md).

Three trials say little about their own scatter. Empirical Bayes (Smyth, Stat. Appl. Genet. Mol. Biol. 3(1), 2004) takes
the variances of all cases for draws from a scaled inverse chi-squared distribution, which it fits to them: the more
alike the variances are, the more each is drawn to their mean. A case that scatters more than its moderated variance
says keeps its own: else its interval would be too short, however many trials it has.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special


class Pool(NamedTuple):
    """A variance between the trials of a case, and its degrees of freedom.

    Variances of the same `family` rest on the same trials: sums of them have no more than `family_freedom` degrees of
    freedom. Without a family a variance rests on trials of its own.
    """

    variance: float
    freedom: float
    family: Hashable = None
    family_freedom: float = math.inf


def pool(groups: Iterable[Sequence[float]]) -> Pool | None:
    """The pooled variance of groups of values, each about its own mean. None where every group has one value."""
    squares, freedom = 0.0, 0
    for group in groups:
        squares += _squares(group)
        freedom += len(group) - 1
    return Pool(squares / freedom, freedom) if freedom else None


def moderated(
    groups: Mapping[str, Sequence[float]], family: Hashable, most_freedom: float = math.inf
) -> dict[str, Pool | None]:
    """The moderated variance of every group of values, by the group's name; None for a group of a single value.

    family: of the pools, with no more than `most_freedom` degrees of freedom.

    A group has the moderated variance, with its own degrees of freedom and the prior's (no more than all groups have
    together), or, where that is larger, its own variance with its own degrees of freedom.
    """
    several = [name for name, values in groups.items() if len(values) > 1]
    pools: dict[str, Pool | None] = dict.fromkeys(groups)
    if not several:
        return pools
    freedom = np.array([len(groups[name]) - 1 for name in several], dtype=float)
    own = np.array([_squares(groups[name]) for name in several]) / freedom
    total = min(float(freedom.sum()), most_freedom)
    prior, prior_freedom = _prior(own, freedom)
    if math.isinf(prior_freedom):
        drawn, drawn_freedom = np.full_like(own, prior), np.full_like(own, total)
    else:
        drawn = (prior_freedom * prior + freedom * own) / (prior_freedom + freedom)
        drawn_freedom = np.minimum(prior_freedom + freedom, total)
    keeps = own > drawn
    for place, name in enumerate(several):
        values = (own, freedom) if keeps[place] else (drawn, drawn_freedom)
        pools[name] = Pool(float(values[0][place]), float(values[1][place]), family, total)
    return pools


def _squares(values: Sequence[float]) -> float:
    """The sum of squares about the mean."""
    middle = math.fsum(values) / len(values)
    return math.fsum([(value - middle) ** 2 for value in values])


def _prior(variances: np.ndarray, freedom: np.ndarray) -> tuple[float, float]:
    """The variance and degrees of freedom of the prior, by the moments of the logarithms of the variances.

    The degrees of freedom are infinite where the variances differ no more than equal ones do, and 0 for a single
    variance, which does not show how variances differ.
    """
    if len(variances) < 2:
        return float(variances.mean()), 0.0
    # A variance of 0 has no logarithm: it counts as a variance far below the others.
    least = 1e-5 * float(np.median(variances))
    if not least:
        return float(variances.mean()), 0.0
    logs = np.log(np.maximum(variances, least)) - special.digamma(freedom / 2) + np.log(freedom / 2)
    excess = float(logs.var(ddof=1) - special.polygamma(1, freedom / 2).mean())
    if excess <= 0:
        return float((variances * freedom).sum() / freedom.sum()), math.inf
    half = _inverse_trigamma(excess)
    return math.exp(float(logs.mean()) + float(special.digamma(half)) - math.log(half)), 2 * half


def _inverse_trigamma(value: float) -> float:
    """The x whose trigamma is `value` > 0, by Newton's method on 1 / trigamma, which is nearly straight."""
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
        x += step
        if -step < 1e-8 * x:
            break
    return x
