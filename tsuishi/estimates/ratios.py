"""Matched cases: the same case on two sides, as ratios; which of several sides is best, where that is certain.

Everything rests on means of logarithms (see intervals.py), so ratios of geometric means over trials are compared.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tsuishi.estimates.intervals import (
    CONFIDENCE,
    FEWEST_TRIALS,
    Contrast,
    Region,
    Term,
    contrast,
    ratio,
)

# The logarithm of a ratio of 1.
_NO_DIFFERENCE = Region(0.0, 0.0)
# Ends of intervals of logarithms beyond which there is no telling: a factor of e^100.
_BOUNDED = Region(-100.0, 100.0)


class Ratio(NamedTuple):
    """A ratio and its 95 % interval; no ends where no scatter is known, or where it says nothing."""

    value: float
    low: float | None
    high: float | None


def as_ratio(found: Contrast) -> Ratio:
    """The ratio that a contrast of logarithms is the logarithm of."""
    interval = found.interval()
    if interval is None or not (interval.low in _BOUNDED and interval.high in _BOUNDED):
        return Ratio(math.exp(found.value), None, None)
    return Ratio(*map(math.exp, (found.value, interval.low, interval.high)))


def mean_ratio(pairs: Sequence[tuple[Term, Term]]) -> Contrast:
    """The logarithm of the geometric mean over cases of first over second, from one pair of logarithms or more."""
    share = 1 / len(pairs)
    return contrast([(sign * share, term) for pair in pairs for sign, term in zip((1.0, -1.0), pair, strict=True)])


def certain_best(terms: Mapping[str, Term], largest: bool) -> str | None:
    """The side whose ratio to every other one has an interval that excludes 1; None where no side is so.

    `largest`: whether more is better. Each side needs FEWEST_TRIALS and a known scatter. All comparisons have to be
    significant together, with Holm's correction (Scandinavian Journal of Statistics 6, 1979, 65-70) over them.
    """
    if len(terms) < 2 or any(term.pool is None or term.trials < FEWEST_TRIALS for term in terms.values()):
        return None
    best = (max if largest else min)(terms, key=lambda side: terms[side].mean)
    against = [ratio(terms[best], term) for side, term in terms.items() if side != best]
    ps = sorted(one.p_outside(_NO_DIFFERENCE) for one in against)
    return best if all(p <= (1 - CONFIDENCE) / (len(ps) - place) for place, p in enumerate(ps)) else None
