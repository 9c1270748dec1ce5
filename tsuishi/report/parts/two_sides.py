"""Two sides beside each other, and the words for their ratio: the larger side first, by the interval that decides.

Explanations compare times by intervals of 95 %, each for itself alone: no family has them.
"""

import math
from typing import NamedTuple

from tsuishi.base.language import t
from tsuishi.estimates.contrasts import ratio
from tsuishi.estimates.intervals import CONFIDENCE, FEWEST_TRIALS, Contrast, Region, Term
from tsuishi.estimates.ratios import Ratio, as_ratio
from tsuishi.report.parts.wording import digits, end_text, is_pace, is_rate, label

# Times whose ratio is at most this count as the same: trials on a busy machine scatter by a fifth.
SAME = 1.2
# An interval on both sides of 1 with ends so many times apart says nothing, and is not printed.
_SAYS_NOTHING = math.log(30.0)


class Timed(NamedTuple):
    """The estimate of a time, and its term; None where a trial is 0."""

    value: float
    term: Term | None

    def over(self, other: "Timed") -> Contrast:
        """The logarithm of this time over another; without an error where either has too few trials for words."""
        if self.term and other.term and min(self.term.trials, other.term.trials) >= FEWEST_TRIALS:
            return ratio(self.term, other.term)
        return Contrast(math.log(self.value / other.value), None, math.inf)


class TwoSides(NamedTuple):
    """The names of two sides, and the logarithm of the first over the second, by a quantity.

    level: the interval that decides has the confidence 1 - level; 0: 95 %, of a single look at a single comparison.
    """

    larger: str
    smaller: str
    logarithm: Contrast
    quantity: str
    level: float = 0.0

    @property
    def ratio(self) -> Ratio:
        return as_ratio(self.logarithm, self.level)

    @property
    def nearest(self) -> float:
        """The end of the interval that is nearest to 1; 1 without an interval."""
        return self.ratio.low or 1.0

    @property
    def scatters(self) -> bool:
        """Whether the trials scatter so much that their interval says nothing."""
        return scatters(self.logarithm.interval(1 - self.level if self.level else CONFIDENCE))

    @property
    def _fast_and_slow(self) -> tuple[str, str]:
        return (self.larger, self.smaller) if is_rate(self.quantity) else (self.smaller, self.larger)

    def headline(self) -> str:
        """Which side is faster or has more, by at least how much. The interval lies above 1."""
        least, (fast, slow) = at_least(self.nearest), self._fast_and_slow
        if is_pace(self.quantity) and not is_rate(self.quantity):
            return t("{fast} is at least {times} as fast as {slow}", fast=fast, slow=slow, times=least)
        return t(
            "{more} reaches at least {times} the {what} of {less}",
            what=label(self.quantity), more=self.larger, less=self.smaller, times=least,
        )  # fmt: skip

    def seen(self) -> str:
        """Which side was faster, and how many times as fast: an estimate."""
        fast, slow = self._fast_and_slow
        return t("{fast} was {times} as fast as {slow}", fast=fast, slow=slow, times=times(self.ratio.value))

    def words(self) -> str:
        """The ratio with its interval, if it says something."""
        value, low, high = self.ratio
        said = {"what": label(self.quantity), "of": self.larger, "to": self.smaller, "ratio": digits(value)}
        if low is None or high is None or self.scatters:
            return t("{what} of {of} is {ratio} times that of {to}", **said)
        return t(
            "{what} of {of} is {ratio} times that of {to}, interval {low} to {high}",
            **said, low=end_text(low), high=end_text(high),
        )  # fmt: skip


def two_sides(sides: tuple[str, str], logarithm: Contrast, quantity: str, level: float = 0.0) -> TwoSides:
    """The sides with the larger first. logarithm: that of the first over the second."""
    first, second = sides
    if logarithm.value < 0:
        first, second, logarithm = second, first, logarithm._replace(value=-logarithm.value)
    return TwoSides(first, second, logarithm, quantity, level)


def compared(ours: Timed, theirs: Timed, us: str, them: str, same: float = SAME) -> str:
    """Which of two times is longer, and how many times as long, with the evidence of the trials. Both are above 0.

    same: times whose ratio is at most this count as the same; 1: none do.
    """
    logarithm = ours.over(theirs)
    interval, value, alike = logarithm.interval(CONFIDENCE), math.exp(abs(logarithm.value)), math.log(same)
    if interval is None and value <= same:
        return t("{one} and {other} are about as fast (seen, not tested)", one=us, other=them)
    if interval and interval.low >= -alike and interval.high <= alike:
        return t("{one} and {other} are about as fast", one=us, other=them)
    if scatters(interval):
        return t("whether {one} or {other} takes longer is open: the trials scatter too much", one=us, other=them)
    if interval and 0.0 in interval:
        low, high = map(end_text, map(math.exp, interval))
        return t("{one} takes {low} to {high} times as long as {other}: open", one=us, other=them, low=low, high=high)
    slower, faster = (us, them) if logarithm.value > 0 else (them, us)
    evidence = t("(at least {least})", least=at_least(near_end(interval))) if interval else t("(seen, not tested)")
    return t(
        "{slower} takes {times} as long as {faster} {evidence}",
        slower=slower, faster=faster, times=times(value), evidence=evidence,
    )  # fmt: skip


def is_open(ours: Timed, theirs: Timed) -> bool:
    """Whether there is an interval, and it does not show which of two times is longer."""
    interval = ours.over(theirs).interval(CONFIDENCE)
    return interval is not None and 0.0 in interval


def how_sure(slow: Timed | None, fast: Timed | None, confidence: float = CONFIDENCE) -> str:
    """What the trials show of the ratio of two times, in words; empty for too few trials."""
    interval = slow.over(fast).interval(confidence) if slow and fast else None
    if interval is None:
        return ""
    if scatters(interval):
        return t("(open: its trials scatter too much)")
    if 0.0 in interval:
        low, high = map(end_text, map(math.exp, interval))
        return t("({low} to {high}: open)", low=low, high=high)
    return t("(at least {least})", least=at_least(near_end(interval)))


def scatters(interval: Region | None) -> bool:
    """Whether an interval of logarithms is so wide, on both sides of 0, that it says nothing."""
    return interval is not None and 0.0 in interval and interval.high - interval.low > _SAYS_NOTHING


def near_end(interval: Region) -> float:
    """The ratio, at least 1, at the end of an interval of logarithms that is nearer to 0; the interval excludes 0."""
    return math.exp(min(abs(interval.low), abs(interval.high)))


def times(ratio: float) -> str:
    """A ratio with two digits, and as many as tell it from 1; with all of its digits from 100 on.

    >>> times(0.0022), times(3.14159), times(3.0), times(1.004), times(1.08), times(1234.5)
    ('0.0022 times', '3.1 times', '3.0 times', '1.004 times', '1.08 times', '1,234 times')
    """
    apart = round(abs(ratio - 1), 9)
    text = f"{ratio:.{-math.floor(math.log10(apart))}f}" if 0 < apart < 0.1 else f"{ratio:#.2g}".removesuffix(".")
    return t("{ratio} times", ratio=f"{ratio:,.0f}" if ratio >= 99.5 else text)


def at_least(ratio: float) -> str:
    """A ratio, at least 1, that intervals show at least: rounded down, and with as many digits as tell it from 1.

    >>> at_least(1.0034), at_least(1.0189), at_least(2.96), at_least(119.6)
    ('1.003 times', '1.01 times', '2.9 times', '119 times')
    """
    if ratio >= 2:
        digits_behind = max(0, 1 - math.floor(math.log10(ratio)))
    else:
        digits_behind = max(2, -math.floor(math.log10(ratio - 1))) if ratio > 1 else 2
    down = math.floor(ratio * 10**digits_behind + 1e-9) / 10**digits_behind
    return t("{ratio} times", ratio=f"{down:,.{digits_behind}f}")
