"""The comparisons that a check asks for, each a weighted sum of terms. For the kinds of checks see specs/claims.py."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tsuishi.estimates.contrasts import contrast
from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.specs.claims import Check
from tsuishi.specs.selections import OF_ENVIRONMENTS
from tsuishi.specs.statuses import OUT_OF_MEMORY
from tsuishi.verdicts.findings import Finding, on_side

# The series, axes and quantity of a term.
Key = tuple[str, frozenset[tuple[str, Any]], str]
# A finding, and the term that a comparison takes from it.
Side = tuple[Finding, Term]


@dataclass(frozen=True)
class Element:
    """A comparison: the weighted sum of the means of its terms, minus `shift`.

    `axes` distinguish it from the other comparisons of a check. `weights`: (weight, term) by the key of the term.
    """

    axes: Mapping[str, Any]
    weights: Mapping[Key, tuple[float, Term]]
    shift: float = 0.0

    @property
    def contrast(self) -> Contrast:
        """The value of the comparison, with its error."""
        total = contrast(self.weights.values())
        return total._replace(value=total.value - self.shift)

    @property
    def trials(self) -> int:
        """The trials of the case that has the fewest."""
        return min(term.trials for _, term in self.weights.values())


class Missing(NamedTuple):
    """Cases without a number that a comparison needs, and why they have none.

    `side`: "of" or "to" where no case of that side has a number, "both" where too few pairs match, "along" where there
    are too few points along the axis; empty for a case that is missing beside others of its side. `selection`: the
    axes of the cases, or some of them. `statuses`: of their trials; empty where nothing was tried. `without_ratio`:
    the quantity, and the value of 0 or less, which has no logarithm; None where trials that ended well have no value.
    """

    side: str
    selection: Mapping[str, Any]
    statuses: tuple[str, ...] = ()
    without_ratio: tuple[str, float | None] | None = None

    @property
    def is_too_large(self) -> bool:
        """Whether every trial ran out of memory: on this machine there is no such case, for claims about other things.

        All other cases without a number might be the exception to a claim.
        """
        return {*self.statuses} == {OUT_OF_MEMORY}


def averaged(check: Check, elements: Sequence[Element]) -> list[Element]:
    """The means of comparisons that differ only in the axes `over`. The weights of a term that they share add up."""
    return [_mean(of_group) for of_group in _grouped(elements, map(str, check.over))]


def _mean(elements: Sequence[Element]) -> Element:
    share = 1 / len(elements)
    shift = share * sum(element.shift for element in elements)
    return Element({}, _weighted(elements, [share] * len(elements)), shift)


def _grouped(elements: Iterable[Element], without: Iterable[str]) -> list[list[Element]]:
    """The comparisons whose cases agree in all axes but these."""
    axes, groups = {*without}, defaultdict[frozenset[Key], list[Element]](list)
    for element in elements:
        key = frozenset((series, less_axes(case, axes), name) for series, case, name in element.weights)
        groups[key].append(element)
    return [*groups.values()]


def less_axes(case: Iterable[tuple[str, Any]], axes: Collection[str]) -> frozenset[tuple[str, Any]]:
    """The axes of a case, as pairs of axis and value, without some of them."""
    return frozenset((axis, value) for axis, value in case if axis not in axes)


def comparisons(check: Check, findings: Sequence[Finding]) -> list[Element] | Missing:
    """All pairs of cases that differ only in the axes of `of` and `to`; without `to`, all cases against a number.

    Missing where there are fewer comparisons than the check needs.
    """
    quantity, other = check.compared
    of = _side(check, findings, "of", quantity)
    if isinstance(of, Missing):
        return of
    if check.to is None:
        than = check.than or 0.0
        shift = math.log(than) if check.is_logarithmic and than > 0 else than
        elements = [Element(case.axes, {_key(case, quantity): (1.0, term)}, shift) for case, term in of]
    else:
        to = _side(check, findings, "to", other)
        if isinstance(to, Missing):
            return to
        elements = pairs(check, of, to, check.compared)
    if check.at:
        elements = _of_two_ratios(check, elements)
    if len(elements) < check.fewest:
        return Missing("both", {**check.case, **(check.to or {}), **check.of})
    return elements


def slopes(check: Check, findings: Sequence[Finding]) -> list[Element] | Missing:
    """The slopes of a trend: least squares of the logarithm of values on the logarithm of an axis.

    A slope is a weighted sum of the points. Missing where there are fewer slopes than the check needs.
    """
    lines = _lines(check, findings)
    if isinstance(lines, Missing):
        return lines
    elements = []
    for line in lines:
        xs = [math.log(point.axes[check.along]) for point in line]
        middle = sum(xs) / len(xs)
        spread = sum((x - middle) ** 2 for x in xs)
        if len(set(xs)) >= check.points:
            elements.append(Element(_rest_of(check, line), _weighted(line, [(x - middle) / spread for x in xs])))
    if len(elements) < check.fewest:
        return Missing("along", {**check.case, **check.of})
    return elements


def gaps(check: Check, findings: Sequence[Finding]) -> list[Element] | Missing:
    """Two comparisons for each line along an axis; both are above 0 where the gap is smaller at its far end.

    With the logarithms n and f of the ratios at both ends, |f| < |n| is the same as n - f and n + f having the sign of
    n. The sign is that of the estimate, so the p values of these comparisons count twice. A slope of |log ratio| would
    fall where nothing does but the scatter. Missing where there are fewer lines than the check needs.
    """
    lines = _lines(check, findings)
    if isinstance(lines, Missing):
        return lines
    elements = []
    for line in lines:
        ordered = sorted(line, key=lambda point: point.axes[check.along])
        near, far = ordered[0], ordered[-1]
        if near is not far:
            sign = math.copysign(1.0, near.contrast.value)
            for other in (-sign, sign):
                shift = sign * near.shift + other * far.shift
                elements.append(Element(_rest_of(check, line), _weighted((near, far), (sign, other)), shift))
    if len(elements) < 2 * check.fewest:
        return Missing("along", {**check.case, **check.of})
    return elements


def _lines(check: Check, findings: Sequence[Finding]) -> list[list[Element]] | Missing:
    """The comparisons of every line along the axis of a check."""
    points = comparisons(check.model_copy(update={"fewest": 1}), findings)
    if isinstance(points, Missing):
        return points
    return _grouped((point for point in points if check.along in point.axes), [check.along])


def _rest_of(check: Check, line: Sequence[Element]) -> Mapping[str, Any]:
    """The axes that the comparisons of a line share."""
    return {axis: value for axis, value in line[0].axes.items() if axis != check.along}


def pairs(check: Check, of: Sequence[Side], to: Sequence[Side], quantities: tuple[str, str]) -> list[Element]:
    """A comparison for each pair of a finding of `of` and a finding of `to` that agree in the axes named by no side.

    Both are of the same series, unless a side names environments. A finding is not compared with itself.
    """
    sides = {*check.of, *(check.to or {})}
    across = not sides.isdisjoint(OF_ENVIRONMENTS)

    def place(finding: Finding) -> tuple[frozenset[tuple[str, Any]], str]:
        # A suite may give a usual value of which another suite says nothing.
        rest = less_axes(check.unusual(finding.axes).items(), sides)
        return rest, "" if across or finding.partial else finding.series

    bases: dict[tuple[frozenset[tuple[str, Any]], str], list[Side]] = {}
    for finding, base in to:
        bases.setdefault(place(finding), []).append((finding, base))
    return [
        Element(
            dict(less_axes(case.axes.items(), sides)),
            {_key(case, quantities[0]): (1.0, term), _key(other, quantities[1]): (-1.0, base)},
        )
        for case, term in of
        for here in [place(case)]
        for other, base in bases.get(here, ())
        if not (term == base and _key(case, "") == _key(other, "") and check.compared[0] == check.compared[1])
    ]


def _of_two_ratios(check: Check, ratios: Sequence[Element]) -> list[Element]:
    """A comparison for each pair of ratios `at` and `against` that agree in the axes that neither names."""
    named = {*check.at, *check.against}
    axes = [less_axes(check.unusual(ratio.axes).items(), named) for ratio in ratios]
    return [
        Element(dict(less_axes(first.axes.items(), named)), _weighted((first, second), (1.0, -1.0)))
        for first, shared in zip(ratios, axes, strict=True)
        for second, others in zip(ratios, axes, strict=True)
        if shared == others
        and first.weights != second.weights
        and check.selects_ratio(first.axes, check.at)
        and check.selects_ratio(second.axes, check.against)
    ]


def _side(check: Check, findings: Sequence[Finding], side: str, quantity: str) -> list[Side] | Missing:
    """The findings of a side that have the quantity."""
    selection = check.of if side == "of" else check.to or {}
    selected = on_side(findings, check, selection)
    cases = [(finding, terms[quantity]) for finding in selected if quantity in (terms := _terms(check, finding))]
    if not cases:
        statuses = sorted({status for finding in selected for status in finding.statuses})
        least = [finding.without_ratio[quantity] for finding in selected if quantity in finding.without_ratio]
        why = (quantity, min(least)) if least and check.takes_logarithms else None
        return Missing(side, {**check.case, **selection}, tuple(statuses), why)
    return cases


def _terms(check: Check, finding: Finding) -> Mapping[str, Term]:
    return finding.logs if check.takes_logarithms else finding.values


def _key(finding: Finding, quantity: str) -> Key:
    return finding.series, frozenset(finding.axes.items()), quantity


def _weighted(elements: Iterable[Element], factors: Iterable[float]) -> dict[Key, tuple[float, Term]]:
    """The weights of a sum of elements, each multiplied by its factor."""
    weights: dict[Key, tuple[float, Term]] = {}
    for element, factor in zip(elements, factors, strict=True):
        for key, (weight, term) in element.weights.items():
            weights[key] = (weights.get(key, (0.0, term))[0] + factor * weight, term)
    return weights
