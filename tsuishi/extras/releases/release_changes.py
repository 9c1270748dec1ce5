"""The results of searches for the release that changed a value, and how they compare releases by rounds.

In a round each wanted release has a trial, in turns, so that common effects of a round cancel. Rounds are judged
after 3, 6, 12 and 24 of them; look k of a decision spends 2^-k of its error.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tsuishi.estimates.intervals import NO_DIFFERENCE, Contrast, Region
from tsuishi.estimates.variances import pool
from tsuishi.verdicts.family import Hypothesis, p_values

# The logarithm of a release's value in a round; None where the release cannot run the case.
Round = Mapping[str, float | None]
SearchVerdict = Literal["changed", "alike", "undecided", "open"]


class ReleaseChange(NamedTuple):
    """The releases between which a value changed, and the logarithm of the ratio of the newer to the older.

    `level`: the interval of confidence 1 - level is that of the search. `between`: releases between both that do
    not narrow the search.
    """

    older: str
    newer: str
    size: Contrast
    level: float
    between: tuple[str, ...] = ()

    @property
    def interval(self) -> Region | None:
        """The interval of the logarithm; None where it is not known."""
        return self.size.interval(1 - self.level)

    @property
    def is_certain(self) -> bool:
        """Whether the interval excludes that nothing changed."""
        return self.size.p_outside(NO_DIFFERENCE) <= self.level

    @property
    def is_sharp(self) -> bool:
        """Whether it is certain, and the near end of its interval is at least half of the change, in logarithms.

        A first look often shows that something changed, but hardly how much.
        """
        near = min(map(abs, self.interval), default=0.0) if self.interval else 0.0
        return self.is_certain and near >= abs(self.size.value) / 2


@dataclass(frozen=True)
class SearchResult:
    """The result of a search so far; it goes on while its verdict is "open".

    unable: the releases that cannot run the case. undecided: the releases, or pairs of releases ("a, b"), that all
    rounds do not decide. narrowed: of an open search, the releases between which the change is known to lie.
    """

    verdict: SearchVerdict
    changes: tuple[ReleaseChange, ...] = ()
    unable: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    narrowed: tuple[str, str] | None = None


def weighted(rounds: Sequence[Round], weights: Mapping[str, float]) -> Contrast:
    """The mean over rounds of the sum of weight times logarithm, with the scatter between rounds (Student's t).

    The error is None for a single round.
    """
    sums = [
        math.fsum(weight * (of_round[release] or 0.0) for release, weight in weights.items()) for of_round in rounds
    ]
    mean, scatter = math.fsum(sums) / len(sums), pool([sums])
    return Contrast(mean, scatter and math.sqrt(scatter.variance / len(sums)), scatter.freedom if scatter else math.inf)


def difference(size: Contrast, rounds: int) -> Hypothesis:
    """The hypothesis on two releases: they differ, or they are alike."""
    return Hypothesis(p_values(size), rounds)
