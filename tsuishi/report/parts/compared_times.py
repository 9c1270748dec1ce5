"""Comparisons of times in the sentences of explanations, each by an interval for itself alone: no family has them."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from tsuishi.base.language import t
from tsuishi.estimates.contrasts import contrast, ratio
from tsuishi.estimates.intervals import CONFIDENCE, FEWEST_TRIALS, Contrast, Region, Term
from tsuishi.estimates.line_fit import Fit, fit, measured

# Medians whose ratio is at most this count as the same: trials on a busy machine scatter by a fifth.
SAME = 1.2
# The logarithm of the ends' ratio from which on an open interval is not printed.
_HUGE = math.log(1e3)


class Timed(NamedTuple):
    """The estimate of a time, and its term; None where a trial is 0."""

    value: float
    term: Term | None

    def over(self, other: "Timed") -> Contrast:
        """The logarithm of this time over another; without an error where either has too few trials for words."""
        if self.term and other.term and min(self.term.trials, other.term.trials) >= FEWEST_TRIALS:
            return ratio(self.term, other.term)
        return Contrast(math.log(self.value / other.value), None, math.inf)


def line_of(times_of: Mapping[int, Timed]) -> Fit | None:
    """The line through the times of so many steps each; see estimates/line_fit.py."""
    return fit(measured(count, timed.value, timed.term) for count, timed in times_of.items())


def times(ratio: float) -> str:
    """A ratio in words: "3.2 times". Callers give ratios of at least 1."""
    return t("{ratio} times", ratio=_two_digits(ratio, "#"))


def _two_digits(ratio: float, form: str = "") -> str:
    """A ratio with two digits, and with all of its digits from 100 on.

    >>> _two_digits(0.0022), _two_digits(3.14159), _two_digits(3.0), _two_digits(3.0, "#"), _two_digits(1234.5)
    ('0.0022', '3.1', '3', '3.0', '1,234')
    """
    return f"{ratio:,.0f}" if ratio >= 99.5 else f"{ratio:{form}.2g}".removesuffix(".")


def at_least(ratio: float) -> str:
    """A ratio, at least 1, that intervals show at least: rounded down, and with as many digits as tell it from 1.

    >>> at_least(1.0034), at_least(1.0189), at_least(2.96), at_least(119.6)
    ('1.003 times', '1.01 times', '2.9 times', '119 times')
    """
    if ratio >= 2:
        digits = max(0, 1 - math.floor(math.log10(ratio)))
    else:
        digits = max(2, -math.floor(math.log10(ratio - 1))) if ratio > 1 else 2
    down = math.floor(ratio * 10**digits + 1e-9) / 10**digits
    return t("{ratio} times", ratio=f"{down:,.{digits}f}")


def ratio_of_ratios(above: tuple[Timed, Timed], below: tuple[Timed, Timed]) -> Contrast:
    """The logarithm of a ratio of two times over another such ratio; without an error for too few trials."""
    first, second = (one.over(other) for one, other in (above, below))
    if first.error is None or second.error is None:
        return Contrast(first.value - second.value, None, math.inf)
    weights = zip((1.0, -1.0, -1.0, 1.0), (*above, *below), strict=True)
    return contrast([(weight, timed.term) for weight, timed in weights if timed.term])


def compared(ours: Timed, theirs: Timed, us: str, them: str) -> str:
    """Which of the two takes longer, and how many times as long, with the evidence of the trials. Both are above 0."""
    logarithm = ours.over(theirs)
    slower, faster = (us, them) if logarithm.value > 0 else (them, us)
    value = math.exp(abs(logarithm.value))
    interval = logarithm.interval(CONFIDENCE)
    words = {"slower": slower, "faster": faster, "times": times(value)}
    if interval is None and value <= SAME:
        return t("{one} and {other} are about as fast (seen, not tested)", one=us, other=them)
    if interval is None:
        return t("{slower} takes {times} as long as {faster} (seen, not tested)", **words)
    if interval.low >= -math.log(SAME) and interval.high <= math.log(SAME):
        return t("{one} and {other} are about as fast", one=us, other=them)
    if 0.0 in interval and interval.high - interval.low > _HUGE:
        return t("{slower} takes {times} as long as {faster}: open, as the trials scatter too much", **words)
    if 0.0 in interval:
        low, high = (_two_digits(math.exp(end)) for end in interval)
        return t("{one} takes {low} to {high} times as long as {other}: open", one=us, other=them, low=low, high=high)
    return t(
        "{slower} takes {times} as long as {faster} (at least {least})", **words, least=at_least(near_end(interval))
    )


def ratio_shown(ours: Timed, theirs: Timed, us: str, them: str) -> str:
    """As `compared`, for ratios near 1: how many times as long at least, by the near end of the interval."""
    logarithm = ours.over(theirs)
    interval = logarithm.interval(CONFIDENCE)
    if interval is None:
        shown = t("{ratio} times", ratio=f"{math.exp(logarithm.value):.2f}")
        return t("{slower} takes {times} as long as {faster} (seen, not tested)", slower=us, times=shown, faster=them)
    if 0.0 in interval:
        low, high = (f"{math.exp(end):.2f}" for end in interval)
        return t("{one} takes {low} to {high} times as long as {other}: open", one=us, other=them, low=low, high=high)
    slower, faster = (us, them) if logarithm.value > 0 else (them, us)
    least = at_least(near_end(interval))
    return t("{slower} takes at least {least} as long as {faster}", slower=slower, least=least, faster=faster)


def is_open(ours: Timed, theirs: Timed) -> bool:
    """Whether there is an interval, and it does not show which of the two takes longer."""
    interval = ours.over(theirs).interval(CONFIDENCE)
    return interval is not None and 0.0 in interval


def how_sure(slow: Timed | None, fast: Timed | None, confidence: float = CONFIDENCE) -> str:
    """What the trials show of the ratio of two times, in words; empty for too few trials."""
    interval = slow.over(fast).interval(confidence) if slow and fast else None
    if interval is None:
        return ""
    if 0.0 in interval:
        low, high = (_two_digits(math.exp(end)) for end in interval)
        return t("({low} to {high}: open)", low=low, high=high)
    return t("(at least {least})", least=at_least(near_end(interval)))


def near_end(interval: Region) -> float:
    """The ratio, at least 1, at the end of an interval of logarithms that is nearer to 0; the interval excludes 0."""
    return math.exp(min(abs(interval.low), abs(interval.high)))
