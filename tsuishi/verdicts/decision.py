"""Verdicts: what is said of a claim, from what its checks come to (docs/method.md).

A verdict is never written by hand, and never says more than its interval does: `inconclusive` is the answer where runs
scatter too much or are too few, and says nothing for or against a claim.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tsuishi.estimates.intervals import CONFIDENCE, FEWEST_TRIALS
from tsuishi.specs.claims import Verdict
from tsuishi.verdicts.checks import CheckResult


class PValues(NamedTuple):
    """The smallest a at which a claim holds, holds in its direction, and does not, with 1 - a intervals."""

    p_hold: float
    p_direction: float
    p_against: float

    @property
    def p_either(self) -> float:
        """At which anything at all is said: no two of the answers can be given at once."""
        return min(1.0, self.p_direction, self.p_against)


def together(outcomes: Sequence[CheckResult]) -> PValues:
    """A claim of several checks: all have to hold, one that does not refutes it (of so many, by Bonferroni)."""
    against = min(1.0, len(outcomes) * min(one.p_against for one in outcomes))
    return PValues(max(one.p_hold for one in outcomes), max(one.p_direction for one in outcomes), against)


def decide(family: Sequence[PValues]) -> list[Verdict]:
    """A verdict for each claim of a family, so that a wrong one among them is rare (5 % at most in all): Holm (1979).

    The claims are taken by how much their evidence says. The k-th of m is judged by intervals of confidence
    1 - 0.05 / (m - k + 1); after the first of which these say nothing, nothing is said of the rest.
    """
    verdicts: list[Verdict] = ["inconclusive"] * len(family)
    ordered = sorted(range(len(family)), key=lambda index: family[index].p_either)
    for left, index in zip(range(len(family), 0, -1), ordered, strict=True):
        verdict = _judged(family[index], (1 - CONFIDENCE) / left)
        if verdict == "inconclusive":
            break
        verdicts[index] = verdict
    return verdicts


def _judged(evidence: PValues, level: float) -> Verdict:
    if evidence.p_hold <= level:
        return "reproduced"
    if evidence.p_direction <= level:
        return "direction only"
    return "contradicted" if evidence.p_against <= level else "inconclusive"


def on_values(outcomes: Sequence[CheckResult]) -> Verdict:
    """What numbers without a scatter say of a claim, as a source's own do: inside a region or not."""
    return _judged(together(outcomes), 1 - CONFIDENCE)


def too_few(outcomes: Sequence[CheckResult]) -> int | None:
    """The number of trials of the case with the fewest, where no verdict can rest on them; statuses need no three."""
    trials = [one.trials for one in outcomes if one.check.kind != "presence"]
    return min(trials) if trials and min(trials) < FEWEST_TRIALS else None
