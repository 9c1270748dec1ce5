"""Verdicts on claims, from the results of their checks (docs/method.md, "Claims and verdicts").

A verdict says no more than its intervals do. `inconclusive` means that runs scatter too much or are too few: it is
neither for nor against a claim.
"""

from collections.abc import Sequence

from tsuishi.estimates.intervals import CONFIDENCE
from tsuishi.specs.claims import Verdict
from tsuishi.verdicts.checks import CheckResult
from tsuishi.verdicts.family import Decision, Hypothesis, PValues, decide


def together(results: Sequence[CheckResult]) -> PValues:
    """The p values of a claim. It holds if all its checks hold; one contradicted check refutes it (with Bonferroni)."""
    p_against = min(1.0, len(results) * min(result.p_against for result in results))
    return PValues(max(result.p_hold for result in results), max(result.p_direction for result in results), p_against)


def verdict_of(decision: Decision) -> Verdict:
    """The verdict on a claim, as its family decided."""
    if decision.holds:
        return "reproduced"
    if decision.direction:
        return "direction only"
    return "contradicted" if decision.against else "inconclusive"


def on_values(results: Sequence[CheckResult]) -> Verdict:
    """The verdict on numbers without scatter, as a source prints them: they lie in a region or not."""
    (decision,) = decide([Hypothesis(together(results), None)], 1 - CONFIDENCE)
    return verdict_of(decision)


def fewest_trials(results: Sequence[CheckResult]) -> int | None:
    """The trials of the case with the fewest; None where only statuses are checked, which need a single trial."""
    trials = [result.trials for result in results if result.check.kind != "presence"]
    return min(trials, default=None)
