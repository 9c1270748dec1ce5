"""Outcomes: what the checks of a claim come to on findings, be they measured or published.

Everything is on the scale on which it is symmetric: ratios as logarithms, differences and slopes as they are.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tsuishi.estimates.intervals import Contrast, Region
from tsuishi.specs.claims import Bounds, Check, Selection
from tsuishi.verdicts.findings import Finding
from tsuishi.verdicts.hypotheses import Element, Missing, elements, is_logarithmic, mean

# A case that is unsupported, was skipped or failed says nothing of its memory.
_SAYS_WHAT_FITS = {"ok", "out_of_memory"}


@dataclass(frozen=True)
class CheckResult:
    """What a check comes to: its summary, and the smallest a at which each answer holds with 1 - a intervals.

    p_hold, p_direction: everything asked for lies in the region. p_against: it has nothing in common with `direction`.
    `summary` is the mean, or the comparison that decides: the least favourable of all, the most favourable of some.
    """

    check: Check
    elements: tuple[Element, ...]
    summary: Contrast | None
    p_hold: float
    p_direction: float
    p_against: float
    cases: int = 0
    trials: int = 0
    statuses: tuple[str, ...] = ()

    def shown(self, value: float) -> float:
        """A value of the scale as people read it: the ratio itself."""
        return math.exp(value) if is_logarithmic(self.check) else value


def evaluate(check: Check, findings: Sequence[Finding]) -> CheckResult | Missing:
    """A check on findings of one subject. Missing where fewer comparisons can be made than it needs."""
    if check.kind == "presence":
        return _presence(check, findings)
    compared = elements(check, findings)
    if isinstance(compared, Missing):
        return compared
    hold, direction = _region(check, check.hold), _region(check, check.direction or check.hold)
    contrasts = [one.contrast for one in ([mean(compared)] if check.every == "mean" else compared)]
    return CheckResult(
        check,
        tuple(compared),
        _deciding(check, contrasts, hold),
        _together(check, [one.p_inside(hold) for one in contrasts]),
        _together(check, [one.p_inside(direction) for one in contrasts]),
        _against(check, [one.p_outside(direction) for one in contrasts]),
        cases=len({key[:2] for one in compared for key in one.weights}),
        trials=min(one.trials for one in compared),
    )


def _region(check: Check, bounds: Bounds | None) -> Region:
    """Bounds on the check's scale."""
    assert bounds is not None, "only presence has no regions"
    if not is_logarithmic(check):
        return Region(bounds.low, bounds.high)
    return Region(math.log(bounds.low) if bounds.low > 0 else -math.inf, math.log(bounds.high))


def _together(check: Check, ps: Sequence[float]) -> float:
    """All: each has to be shown (intersection-union, nothing to correct). Some: the best of so many (Bonferroni)."""
    return min(1.0, len(ps) * min(ps)) if check.every == "some" else max(ps)


def _against(check: Check, ps: Sequence[float]) -> float:
    """The other way round: one against it refutes "all"; only all of them refute "some"."""
    return max(ps) if check.every == "some" else min(1.0, len(ps) * min(ps))


def _deciding(check: Check, contrasts: Sequence[Contrast], hold: Region) -> Contrast:
    ordered = sorted(contrasts, key=lambda one: (one.p_inside(hold), _outside(one.value, hold)))
    return ordered[0] if check.every == "some" else ordered[-1]


def _outside(value: float, region: Region) -> float:
    """How far a value is from the inside of a region; negative within."""
    return max(region.low - value, value - region.high)


def _presence(check: Check, findings: Sequence[Finding]) -> CheckResult | Missing:
    """Statuses do not scatter about a mean: all are as claimed, or none is, or there is no verdict."""
    selection = {**check.case, **check.of}
    told = [one for one in findings if not _SAYS_WHAT_FITS.isdisjoint(one.statuses)]
    selected = [one for one in told if one.selected(selection)]
    wanted = {*_combinations(selection)}
    present = {_chosen(one, selection) for one in selected}
    if not selected or wanted - present:
        first = next(iter(sorted(wanted - present, key=str)), ())
        return Missing("of", dict(first) or selection)
    as_claimed = [set(one.statuses) == {check.status} for one in selected]
    against = [check.status not in one.statuses for one in selected]
    holds = 0.0 if (any if check.every == "some" else all)(as_claimed) else 1.0
    refuted = 0.0 if (all if check.every == "some" else any)(against) else 1.0
    statuses = tuple(sorted({status for one in selected for status in one.statuses}))
    trials = min(len(one.statuses) for one in selected)
    return CheckResult(check, (), None, holds, holds, refuted, len(selected), trials, statuses)


def _combinations(selection: Selection) -> Iterator[tuple[tuple[str, Any], ...]]:
    """Every combination of values that a selection names."""
    axes = sorted(set(selection) - {"framework"})
    yield from itertools.product(*[[(axis, value) for value in selection[axis]] for axis in axes])


def _chosen(finding: Finding, selection: Selection) -> tuple[tuple[str, Any], ...]:
    return tuple((axis, finding.axes.get(axis)) for axis in sorted(set(selection) - {"framework"}))
