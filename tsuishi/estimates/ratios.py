"""Ratios of the same case on two sides, and the best of several sides, where the trials show which it is.

A ratio is that of geometric means over trials, as terms are means of logarithms (see intervals.py).
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
# An interval of logarithms beyond these ends, a factor of e^100, says nothing.
_BOUNDED = Region(-100.0, 100.0)


class Ratio(NamedTuple):
    """A ratio and the ends of its 95 % interval; None where the scatter is unknown, or the interval says nothing."""

    value: float
    low: float | None
    high: float | None


def as_ratio(logarithm: Contrast) -> Ratio:
    """The ratio with this logarithm."""
    interval = logarithm.interval()
    if interval is None or not (interval.low in _BOUNDED and interval.high in _BOUNDED):
        return Ratio(math.exp(logarithm.value), None, None)
    return Ratio(*map(math.exp, (logarithm.value, interval.low, interval.high)))


def mean_ratio(pairs: Sequence[tuple[Term, Term]]) -> Contrast:
    """The logarithm of the geometric mean over cases of first over second. `pairs`: terms of logarithms, not empty."""
    share = 1 / len(pairs)
    return contrast([(sign * share, term) for pair in pairs for sign, term in zip((1.0, -1.0), pair, strict=True)])


def certain_best(terms: Mapping[str, Term], largest: bool) -> str | None:
    """The side whose ratios to all other sides have intervals that exclude 1; None where there is no such side.

    `largest`: whether more is better. Each side needs FEWEST_TRIALS and a known scatter. Holm's correction
    (Scandinavian Journal of Statistics 6, 1979, 65-70) makes all comparisons significant together.
    """
    if len(terms) < 2 or any(term.pool is None or term.trials < FEWEST_TRIALS for term in terms.values()):
        return None
    best = (max if largest else min)(terms, key=lambda side: terms[side].mean)
    ratios = [ratio(terms[best], term) for side, term in terms.items() if side != best]
    ps = sorted(logarithm.p_outside(_NO_DIFFERENCE) for logarithm in ratios)
    return best if all(p <= (1 - CONFIDENCE) / (len(ps) - place) for place, p in enumerate(ps)) else None
