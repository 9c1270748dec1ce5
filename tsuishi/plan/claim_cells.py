"""The cells that a claim is judged on, before anything is measured. Pure functions.

The comparisons are those of verdicts/hypotheses.py and verdicts/fit_checks.py, of the axes of cases alone: a claim is
asked where each of its checks has as many comparisons as a verdict needs, and only for the cells that take part.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tsuishi.specs.case import BATCH_SIZE, PROTOCOL
from tsuishi.specs.claims import Check, Claim
from tsuishi.specs.questions import MatrixCell
from tsuishi.specs.selections import OF_ENVIRONMENTS, Selection

# The values of a case by axis, and the framework and the name of its environment.
CellAxes = Mapping[str, Any]


class _Point(NamedTuple):
    """A value that is compared: a case, or a line over batch sizes (without the batch size among its axes)."""

    axes: CellAxes
    cells: tuple[MatrixCell, ...]


def cells_of(claim: Claim, cells: Mapping[MatrixCell, CellAxes]) -> tuple[MatrixCell, ...]:
    """The cells that a claim's checks compare, of each protocol in which all of them can be judged; else none."""
    found: dict[MatrixCell, None] = {}
    for protocol in sorted({axes[PROTOCOL] for axes in cells.values()}):
        here = {cell: axes for cell, axes in cells.items() if axes[PROTOCOL] == protocol}
        of_checks = [_cells(check, here) for check in claim.checks]
        if all(of_checks):
            found |= dict.fromkeys(itertools.chain.from_iterable(of_checks))
    return tuple(found)


def _cells(check: Check, cells: Mapping[MatrixCell, CellAxes]) -> list[MatrixCell]:
    """The cells of a check; empty where there are fewer comparisons than a verdict needs."""
    of, to = (_side(check, side, cells) for side in (check.of, check.to))
    if check.kind == "presence":
        return _cells_in(of) if _has_every_value({**check.case, **check.of}, of) else []
    if check.every == "all" and check.fewest == 1:
        # A case that an environment cannot run is no case there; but an untried size may be the exception.
        sides = ((check.of, of), (check.to, to)) if check.to is not None else ((check.of, of),)
        if not all(_has_every_size(check, {**check.case, **side}, points) for side, points in sides):
            return []
    if check.kind == "fit":
        of, to = _lines(check, of), _lines(check, to)
    compared = of if check.to is None else _pairs(check, of, to)
    if check.at:
        compared = _of_two_ratios(check, compared)
    if check.along:
        compared = _along(check, compared)
    return _cells_in(compared) if len(compared) >= check.fewest else []


def _side(check: Check, side: Selection | None, cells: Mapping[MatrixCell, CellAxes]) -> list[_Point]:
    if side is None:
        return []
    selects = check.selector(side)
    return [_Point(check.completed(axes), (cell,)) for cell, axes in cells.items() if selects(axes)]


def _has_every_value(named: Selection, points: Iterable[_Point]) -> bool:
    """Whether every combination of the values of these axes is there."""
    axes = [axis for axis in named if axis not in OF_ENVIRONMENTS]
    there = {tuple(point.axes.get(axis) for axis in axes) for point in points}
    return {*itertools.product(*(named[axis] for axis in axes))} <= there


def _has_every_size(check: Check, named: Selection, points: Sequence[_Point]) -> bool:
    """Whether every size (of a batch, or of a number of devices) is there, where a check names several of an axis."""
    return all(
        {value for value in values if isinstance(value, int)} <= {point.axes.get(axis) for point in points}
        for axis, values in named.items()
        if len(values) > 1 and axis != check.along
    )


def _pairs(check: Check, of: Iterable[_Point], to: Iterable[_Point]) -> list[_Point]:
    """The comparisons of points that agree in the axes that no side names; each has these axes."""
    sides = {*check.of, *(check.to or {})}
    # Both sides are of one environment, unless a side names environments.
    named = sides if sides.isdisjoint(OF_ENVIRONMENTS) else {*sides, *OF_ENVIRONMENTS}
    bases = _grouped(to, named)
    return [
        _Point(dict(rest), (*point.cells, *base.cells))
        for rest, points in _grouped(of, named).items()
        for point in points
        for base in bases.get(rest, ())
        if point.cells != base.cells or check.compared[0] != check.compared[1]
    ]


def _of_two_ratios(check: Check, ratios: Sequence[_Point]) -> list[_Point]:
    """The pairs of ratios `at` and `against` that agree in the axes that neither names."""
    named = {*check.at, *check.against}
    at, against = (
        _grouped((ratio for ratio in ratios if check.selects_ratio(ratio.axes, side)), named)
        for side in (check.at, check.against)
    )
    return [
        _Point(dict(rest), (*first.cells, *second.cells))
        for rest, firsts in at.items()
        for first in firsts
        for second in against.get(rest, ())
    ]


def _along(check: Check, compared: Iterable[_Point]) -> list[_Point]:
    """The lines of comparisons along the axis of a check, of those that have enough values of it."""
    of_lines = _grouped((point for point in compared if check.along in point.axes), {check.along})
    return [
        _Point(dict(rest), tuple(_cells_in(points)))
        for rest, points in of_lines.items()
        if len({point.axes[check.along] for point in points}) >= check.points
    ]


def _lines(check: Check, points: Iterable[_Point]) -> list[_Point]:
    """The lines over batch sizes, in each environment, of those that a line can be fitted to."""
    lines: dict[Any, list[_Point]] = {}
    for point in points:
        rest = frozenset(item for item in point.axes.items() if item[0] != BATCH_SIZE)
        lines.setdefault((point.cells[0].environment, rest), []).append(point)
    return [
        _Point(dict(rest), tuple(_cells_in(of_line)))
        for (_, rest), of_line in lines.items()
        if len({point.axes.get(BATCH_SIZE) for point in of_line}) >= check.points
    ]


def _grouped(points: Iterable[_Point], without: set[str]) -> dict[frozenset[tuple[str, Any]], list[_Point]]:
    """Points by their axes without some of them."""
    groups: dict[frozenset[tuple[str, Any]], list[_Point]] = {}
    for point in points:
        groups.setdefault(frozenset(item for item in point.axes.items() if item[0] not in without), []).append(point)
    return groups


def _cells_in(points: Iterable[_Point]) -> list[MatrixCell]:
    return list(dict.fromkeys(cell for point in points for cell in point.cells))
