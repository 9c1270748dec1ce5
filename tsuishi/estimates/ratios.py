"""Ratios of the same case on two sides, and the best of several sides, where the trials show which side it is.

A ratio is that of geometric means over trials, as terms are means of logarithms (see intervals.py).
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tsuishi.estimates.contrasts import contrast, ratio
from tsuishi.estimates.intervals import CONFIDENCE, FEWEST_TRIALS, NO_DIFFERENCE, Contrast, Region, Term

# The share of marks of rows that are wrong on the average. At such levels moderated variances are somewhat too small:
# of reports about nothing 1.25 % at most have a mark (benchmarks/truth.py).
MARKS = 0.01
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
    """The side of a row that is ahead of all others, and the p value of that: the worst of its comparisons'."""

    side: str
    p: float


def best(terms: Mapping[str, Term], largest: bool) -> Best | None:
    """The side that is ahead; None for one side alone, and where a side has too few trials or an unknown scatter.

    `largest`: whether more is better. That a side is ahead is one hypothesis: it beats every other side
    (intersection-union), by the larger of the two-sided p values, which allow for the choice of the side by its value
    (Gutmann and Maymin, Annals of Statistics 15, 1987, 456-461).
    """
    if len(terms) < 2 or any(term.pool is None or term.trials < FEWEST_TRIALS for term in terms.values()):
        return None
    ahead = (max if largest else min)(terms, key=lambda side: terms[side].mean)
    ratios = [ratio(terms[ahead], term) for side, term in terms.items() if side != ahead]
    return Best(ahead, max(logarithm.p_outside(NO_DIFFERENCE) for logarithm in ratios))


def marked(rows: Sequence[Best | None]) -> list[str | None]:
    """The side to mark in each row of all tables of a report, so that MARKS of the marks are wrong on the average.

    False discovery rate (Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995, 289-300): marks are no verdicts.
    """
    ps = sorted(row.p for row in rows if row)
    limit = max((p for place, p in enumerate(ps, start=1) if p <= MARKS * place / len(ps)), default=-1.0)
    return [row.side if row and row.p <= limit else None for row in rows]
