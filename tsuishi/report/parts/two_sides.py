"""Two sides beside each other, by a quantity: all words on them run the way of their headline, the larger first."""

from typing import NamedTuple

from tsuishi.base.language import t
from tsuishi.estimates.intervals import Contrast
from tsuishi.estimates.ratios import Ratio, as_ratio
from tsuishi.report.parts.compared_times import at_least, times
from tsuishi.report.parts.wording import digits, end_text, label, unit_of

# An interval on both sides of 1 with ends so many times apart is not printed.
_SAYS_NOTHING = 30.0


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

    def headline(self) -> str:
        """Which side is faster or has more, by at least how much. The interval lies above 1."""
        least = at_least(self.nearest)
        if unit_of(self.quantity) == "s":
            return t("{fast} is at least {times} as fast as {slow}", fast=self.smaller, slow=self.larger, times=least)
        return t(
            "{more} reaches at least {times} the {what} of {less}",
            what=label(self.quantity), more=self.larger, less=self.smaller, times=least,
        )  # fmt: skip

    def seen(self, is_rate: bool) -> str:
        """Which side was faster, and how many times as fast: an estimate."""
        fast, slow = (self.larger, self.smaller) if is_rate else (self.smaller, self.larger)
        return t("{fast} was {times} as fast as {slow}", fast=fast, slow=slow, times=times(self.ratio.value))

    def words(self) -> str:
        """The ratio with its interval, if it says something."""
        value, low, high = self.ratio
        said = {"what": label(self.quantity), "of": self.larger, "to": self.smaller, "ratio": digits(value)}
        if low is None or high is None or (low < 1 and high / low > _SAYS_NOTHING):
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
