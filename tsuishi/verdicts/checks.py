"""Results of the checks of a claim on findings, which may be measured or published; and verdicts from these results.

Values are on the scale on which their scatter is symmetric: logarithms of ratios; differences and slopes unchanged.
A verdict says no more than its intervals do. `inconclusive` means that runs scatter too much or are too few: it is
neither for nor against a claim (docs/method.md, "Claims and verdicts").
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tsuishi.estimates.intervals import CONFIDENCE, Contrast, Region
from tsuishi.specs.case import BATCH_SIZE
from tsuishi.specs.claims import Bounds, Check, Verdict
from tsuishi.specs.selections import OF_ENVIRONMENTS, Selection
from tsuishi.specs.statuses import OK, STATUSES, UNSUPPORTED
from tsuishi.verdicts.family import Decision, Hypothesis, PValues, decide
from tsuishi.verdicts.findings import Finding, on_side
from tsuishi.verdicts.fit_checks import parameters, residuals
from tsuishi.verdicts.hypotheses import Element, Missing, averaged, comparisons, gaps, less_axes, slopes


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    Each p value is the smallest a at which its statement is true of intervals of confidence 1 - a. p_hold: the
    comparisons lie in the region `hold`. p_direction: they lie in `direction`. p_against: they lie outside `direction`.
    `summary`: the comparison (or the mean of several) that decides, the least favourable for "all", the most favourable
    for "some"; None for presence, which has `statuses` instead. `trials`: of the case with the fewest.
    `absent`: cases that belong to the check and have no number. Without them nothing can hold for "all", nor be refuted
    for "some", and a mean over them is another mean; those that are too large for the memory are only named. `counted`:
    for presence, the trials of all cases together.
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
    absent: tuple[Missing, ...] = ()
    counted: int = 0

    def shown(self, value: float) -> float:
        """A value for readers: the ratio instead of its logarithm."""
        return math.exp(value) if self.check.is_logarithmic else value


def evaluate(check: Check, findings: Sequence[Finding], complete: bool = False) -> CheckResult | Missing:
    """The result of a check on findings of one subject; Missing where there are fewer comparisons than it needs.

    complete: cases that are absent count; else the result is that of the cases that are there.
    """
    if check.kind == "presence":
        return _presence(check, findings)
    elements = _elements(check, findings)
    if isinstance(elements, Missing):
        return elements
    absent = tuple(_absent(check, findings)) if complete else ()
    hold, direction = _region(check, check.hold), _region(check, check.direction or check.hold)
    contrasts = [element.contrast for element in (averaged(check, elements) if check.over else elements)]
    # The sign of a gap is that of its estimate.
    signs = 2 if check.kind == "shrinks" else 1
    is_whole = all(each.is_too_large for each in absent)
    can_hold = is_whole or check.every == "some"
    can_fall = is_whole or (check.every == "all" and not check.over)
    return CheckResult(
        check,
        tuple(elements),
        _deciding(check, contrasts, hold),
        min(1.0, signs * _p_for(check, [each.p_inside(hold) for each in contrasts])) if can_hold else 1.0,
        min(1.0, signs * _p_for(check, [each.p_inside(direction) for each in contrasts])) if can_hold else 1.0,
        min(1.0, signs * _p_against(check, [each.p_outside(direction) for each in contrasts])) if can_fall else 1.0,
        absent=absent,
        cases=len({key[:2] for element in elements for key in element.weights}),
        trials=min(element.trials for element in elements),
    )


def _elements(check: Check, findings: Sequence[Finding]) -> list[Element] | Missing:
    """The comparisons of a check of any kind but presence."""
    if check.kind == "trend":
        return slopes(check, findings)
    if check.kind == "shrinks":
        return gaps(check, findings)
    if check.kind == "fit":
        return residuals(check, findings) if check.parameter == "residual" else parameters(check, findings)
    return comparisons(check, findings)


def _absent(check: Check, findings: Sequence[Finding]) -> Iterator[Missing]:
    """The cases of a check without a number: cases whose trials all failed, and untried sizes (batches, devices).

    A case that an environment does not support is no case there. A check that says how many comparisons it needs
    (`fewest`) does not need every size that it names.
    """
    for side, quantity in zip((check.of, check.to), check.compared, strict=True):
        if side is None:
            continue
        selected = on_side(findings, check, side)
        for finding in selected:
            if not {*finding.statuses} & {OK, UNSUPPORTED}:
                yield Missing("", finding.axes, finding.statuses)
            elif check.takes_logarithms and quantity in finding.without_ratio:
                yield Missing("", finding.axes, finding.statuses, (quantity, finding.without_ratio[quantity]))
        for axis, values in {**check.case, **side}.items():
            if check.every == "all" and check.fewest == 1 and len(values) > 1 and axis != check.along:
                there = {finding.axes.get(axis) for finding in selected}
                yield from (Missing("", {axis: size}) for size in values if isinstance(size, int) and size not in there)


def taking_part(check: Check, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that a check compares; none where it has no result, or lacks a case that could be the exception."""
    sides = [finding for side in (check.of, check.to) if side is not None for finding in on_side(findings, check, side)]
    if check.kind == "presence":
        return sides if isinstance(_presence(check, findings), CheckResult) else []
    elements = _elements(check, findings)
    if isinstance(elements, Missing) or any(_absent(check, findings)):
        return []
    compared = {key[:2] for element in elements for key in element.weights}
    # A line has all axes of its points but the batch size.
    less = {BATCH_SIZE} if check.kind == "fit" and check.parameter != "residual" else set[str]()
    return [finding for finding in sides if (finding.series, less_axes(finding.axes.items(), less)) in compared]


def _region(check: Check, bounds: Bounds | None) -> Region:
    """Bounds on the check's scale."""
    assert bounds is not None, "only presence has no regions"
    if not check.is_logarithmic:
        return Region(bounds.low, bounds.high)
    return Region(math.log(bounds.low) if bounds.low > 0 else -math.inf, math.log(bounds.high))


def _p_for(check: Check, ps: Sequence[float]) -> float:
    """The p value for a check. "all": the worst comparison's (intersection-union). "some": the best's (Bonferroni)."""
    return min(1.0, len(ps) * min(ps)) if check.every == "some" else max(ps)


def _p_against(check: Check, ps: Sequence[float]) -> float:
    """The p value against a check: one comparison refutes "all"; only all comparisons refute "some"."""
    return max(ps) if check.every == "some" else min(1.0, len(ps) * min(ps))


def _deciding(check: Check, contrasts: Sequence[Contrast], hold: Region) -> Contrast:
    ordered = sorted(contrasts, key=lambda contrast: (contrast.p_inside(hold), _distance(contrast.value, hold)))
    return ordered[0] if check.every == "some" else ordered[-1]


def _distance(value: float, region: Region) -> float:
    """The distance of a value to a region; negative inside."""
    return max(region.low - value, value - region.high)


def _presence(check: Check, findings: Sequence[Finding]) -> CheckResult | Missing:
    """The result of a check on statuses. They have no scatter, so each p value is 0 or 1."""
    selection = {**check.case, **check.of}
    # The status of an unsupported, skipped or failed case does not show whether it fits in memory.
    known = [finding for finding in findings if any(STATUSES[name].shows_memory for name in finding.statuses)]
    cases = on_side(known, check, check.of)
    missing = {*_combinations(selection)} - {_combination(case, selection) for case in cases}
    if not cases or missing:
        first = next(iter(sorted(missing, key=str)), ())
        return Missing("of", dict(first) or selection)
    agreeing = [set(case.statuses) == {check.status} for case in cases]
    contrary = [check.status not in case.statuses for case in cases]
    p_hold = 0.0 if (any if check.every == "some" else all)(agreeing) else 1.0
    p_against = 0.0 if (all if check.every == "some" else any)(contrary) else 1.0
    statuses = tuple(sorted({status for case in cases for status in case.statuses}))
    trials = min(len(case.statuses) for case in cases)
    counted = sum(len(case.statuses) for case in cases)
    return CheckResult(check, (), None, p_hold, p_hold, p_against, len(cases), trials, statuses, counted=counted)


def _combinations(selection: Selection) -> Iterator[tuple[tuple[str, Any], ...]]:
    """All combinations of the values in a selection, as pairs of axis and value."""
    axes = sorted(set(selection) - {*OF_ENVIRONMENTS})
    yield from itertools.product(*[[(axis, value) for value in selection[axis]] for axis in axes])


def _combination(finding: Finding, selection: Selection) -> tuple[tuple[str, Any], ...]:
    """The values of a finding on the axes of a selection, in the form of `_combinations`."""
    return tuple((axis, finding.axes.get(axis)) for axis in sorted(set(selection) - {*OF_ENVIRONMENTS}))


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
