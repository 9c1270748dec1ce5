"""Ratios of the same case on two sides, and the best of several sides, where the trials show which side it is.

A ratio is that of geometric means over trials, as terms are means of logarithms (see intervals.py).
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tsuishi.estimates.contrasts import contrast, ratio
from tsuishi.estimates.intervals import CONFIDENCE, FEWEST_TRIALS, NO_DIFFERENCE, Contrast, Region, Term
from tsuishi.specs.questions import share_of_look

# The chance that any mark of a row of a report is wrong.
MARKS = 0.0125
# An interval of logarithms beyond these ends, a factor of e^100, says nothing.
_BOUNDED = Region(-100.0, 100.0)


class Ratio(NamedTuple):
    """A ratio and the ends of its interval; None where the scatter is unknown, or the interval says nothing."""

    value: float
    low: float | None
    high: float | None


def as_ratio(logarithm: Contrast, level: float = 0.0) -> Ratio:
    """The ratio with this logarithm.

    level: the interval has the confidence 1 - level; 0: 95 %, of a single look at a single comparison.
    """
    interval = logarithm.interval(1 - level if level else CONFIDENCE)
    if interval is None or not (interval.low in _BOUNDED and interval.high in _BOUNDED):
        return Ratio(math.exp(logarithm.value), None, None)
    return Ratio(*map(math.exp, (logarithm.value, interval.low, interval.high)))


def mean_ratio(pairs: Sequence[tuple[Term, Term]]) -> Contrast:
    """The logarithm of the geometric mean over cases of first over second. `pairs`: terms of logarithms, not empty."""
    share = 1 / len(pairs)
    return contrast([(sign * share, term) for pair in pairs for sign, term in zip((1.0, -1.0), pair, strict=True)])


class Best(NamedTuple):
    """The side of a row that is ahead of all others, and the p value of that: the worst of its comparisons'.

    `share`: of the error of the row, which its look may spend.
    """

    side: str
    p: float
    share: float


def best(terms: Mapping[str, Term], largest: bool) -> Best | None:
    """The side that is ahead; None for one side alone, and where a side has too few trials or an unknown scatter.

    terms: by the trials of a look. `largest`: whether more is better. That a side is ahead is one hypothesis: it beats
    every other side (intersection-union), by the larger of the two-sided p values, which allow for the choice of the
    side by its value (Gutmann and Maymin, Annals of Statistics 15, 1987, 456-461).
    """
    if len(terms) < 2 or any(term.pool is None or term.trials < FEWEST_TRIALS for term in terms.values()):
        return None
    ahead = (max if largest else min)(terms, key=lambda side: terms[side].mean)
    ratios = [ratio(terms[ahead], term) for side, term in terms.items() if side != ahead]
    share = share_of_look(min(term.trials for term in terms.values()))
    return Best(ahead, max(logarithm.p_outside(NO_DIFFERENCE) for logarithm in ratios), share)


def marked(rows: Sequence[Best | None]) -> list[str | None]:
    """The side to mark in each row of all tables of a report: with a chance of MARKS at most, any is wrong (Holm)."""
    left = sorted((row.p / row.share if row.share else math.inf, place) for place, row in enumerate(rows) if row)
    marks: list[str | None] = [None] * len(rows)
    for earlier, (p, place) in enumerate(left):
        best = rows[place]
        if best is None or p > MARKS / (len(left) - earlier):
            break
        marks[place] = best.side
    return marks
