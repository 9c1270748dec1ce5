"""Verdicts on claims, from the results of their checks (docs/method.md, "Claims and verdicts").

A verdict says no more than its intervals do. `inconclusive` means that runs scatter too much or are too few: it is
neither for nor against a claim.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tsuishi.estimates.intervals import CONFIDENCE, FEWEST_TRIALS
from tsuishi.specs.claims import Verdict
from tsuishi.verdicts.checks import CheckResult


class PValues(NamedTuple):
    """The smallest a at which intervals of confidence 1 - a show that a claim holds, or its direction, or neither."""

    p_hold: float
    p_direction: float
    p_against: float

    @property
    def p_either(self) -> float:
        """The smallest a at which there is any verdict but `inconclusive`."""
        return min(1.0, self.p_direction, self.p_against)


def together(results: Sequence[CheckResult]) -> PValues:
    """The p values of a claim. It holds if all its checks hold; one contradicted check refutes it (with Bonferroni)."""
    p_against = min(1.0, len(results) * min(result.p_against for result in results))
    return PValues(max(result.p_hold for result in results), max(result.p_direction for result in results), p_against)


def decide(family: Sequence[PValues]) -> list[Verdict]:
    """A verdict for each claim of a family. The chance of any wrong verdict among them is at most 5 %: Holm (1979).

    Claims are judged in the order of `p_either`, the k-th of m by intervals of confidence 1 - 0.05 / (m - k + 1). The
    first inconclusive claim makes all after it inconclusive.
    """
    verdicts: list[Verdict] = ["inconclusive"] * len(family)
    ordered = sorted(range(len(family)), key=lambda index: family[index].p_either)
    for left, index in zip(range(len(family), 0, -1), ordered, strict=True):
        verdict = _verdict(family[index], (1 - CONFIDENCE) / left)
        if verdict == "inconclusive":
            break
        verdicts[index] = verdict
    return verdicts


def _verdict(ps: PValues, level: float) -> Verdict:
    if ps.p_hold <= level:
        return "reproduced"
    if ps.p_direction <= level:
        return "direction only"
    return "contradicted" if ps.p_against <= level else "inconclusive"


def on_values(results: Sequence[CheckResult]) -> Verdict:
    """The verdict on numbers without scatter, as a source prints them: they lie in a region or not."""
    return _verdict(together(results), 1 - CONFIDENCE)


def too_few(results: Sequence[CheckResult]) -> int | None:
    """The trials of the case with the fewest, if too few for a verdict; else None. A status needs a single trial."""
    trials = [result.trials for result in results if result.check.kind != "presence"]
    return min(trials) if trials and min(trials) < FEWEST_TRIALS else None
