"""Fits: the throughput model of every sweep over batch sizes, as tables and as rows of fits.csv and residuals.csv."""

import math
from collections.abc import Iterator
from typing import Any

from tsuishi.analysis import throughput
from tsuishi.analysis.throughput import Fit, Interval, Line
from tsuishi.report.comparison import Comparison, differing
from tsuishi.report.tables import NOTHING, Cell, Table, case_text, digits, number_cell, status_cell, text_cell

_NOTES = [
    "t(b) = b / v0 + t_cost, by least squares with relative weights; below each number its 95 % interval, if the model "
    "holds: from the scatter of the points about the line, and of no use beyond the batch sizes measured.",
    f"Kink: more than {throughput.KINK_PERCENT:g} % off the line, as where another algorithm is chosen from some batch "
    "size on.",
]
_PARAMETERS = ("v0_images_per_s", "t_cost_s", "b_half_images")
_LINE = ["suite", "protocol", "series", *throughput.LINE_AXES]
_ENDS = [f"{name}{end}" for name in _PARAMETERS for end in ("", "_low", "_high")]
FIT_COLUMNS = [*_LINE, "simulated", "points", "largest_residual_percent", *_ENDS]
RESIDUAL_COLUMNS = [*_LINE, "batch_size", "step_s", "fitted_s", "residual_percent", "kink"]


class Fits:
    """The lines of one suite and protocol, ours first, then the published ones; none where no batch size turns."""

    def __init__(self, comparison: Comparison) -> None:
        self._where = comparison.where
        ours = list(comparison.ours())
        points = throughput.lines((one.series, one.axes, one.values) for one in ours)
        if points:
            points |= throughput.lines((one.series, one.axes, one.values) for one in comparison.theirs())
        self._points = points
        self._simulated = {throughput.line(one.series, one.axes) for one in ours if one.simulated}
        self._fits = {line: throughput.fit(of_line) for line, of_line in points.items()}
        self._telling = differing(dict(line.axes) for line in points)

    def tables(self) -> list[Table]:
        """A row per line; and folded away, a row per point."""
        if not self._points:
            return []
        columns = ["", "", "batch sizes", "v0, images/s", "t_cost, s", "b_half, images", "largest residual, %"]
        rows = [[*self._name(line), *self._summary(line, fit)] for line, fit in self._fits.items()]
        lines = Table(columns, rows, "Step time against batch size: the throughput model", notes=_NOTES)
        columns = ["", "", "batch size", "step, s", "line, s", "residual, %", ""]
        points = [[*self._name(line), *cells] for line, fit in self._fits.items() if fit for cells in _residuals(fit)]
        return [lines, Table(columns, points, "Every step time against its line", folded=True)]

    def fits(self) -> list[dict[str, Any]]:
        """Rows with FIT_COLUMNS; an end of an interval that is not bounded, or not known, is left out."""
        return [
            {**self._identity(line), "simulated": line in self._simulated, **_parameters(fit)}
            for line, fit in self._fits.items()
            if fit
        ]

    def residuals(self) -> list[dict[str, Any]]:
        """Rows with RESIDUAL_COLUMNS."""
        return [
            {**self._identity(line), **one._asdict(), "residual_percent": one.percent, "kink": one.kink}
            for line, fit in self._fits.items()
            for one in (fit.residuals if fit else ())
        ]

    def _identity(self, line: Line) -> dict[str, Any]:
        return {**self._where, "series": line.whose, **dict(line.axes)}

    def _name(self, line: Line) -> list[Cell]:
        return [text_cell(line.whose), text_cell(case_text(dict(line.axes), self._telling))]

    def _summary(self, line: Line, fit: Fit | None) -> list[Cell]:
        count = f"{len(self._points[line])}{', simulated' if line in self._simulated else ''}"
        if fit is None:
            none = status_cell("no line: a step does not take longer with the batch")
            return [text_cell(count), none, *[status_cell(NOTHING)] * 3]
        cells = []
        for value, interval in _values(fit):
            note = " – ".join(map(_end, interval)) if interval else "2 points: no interval"
            cells.append(Cell(digits(value), value, (note,), "number"))
        return [text_cell(count), *cells, number_cell(_largest(fit))]


def _values(fit: Fit) -> list[tuple[float, Interval | None]]:
    """In the order of _PARAMETERS."""
    return [(fit.v0, fit.v0_interval), (fit.t_cost, fit.t_cost_interval), (fit.b_half, fit.b_half_interval)]


def _residuals(fit: Fit) -> Iterator[list[Cell]]:
    for one in fit.residuals:
        numbers = map(number_cell, (one.step_s, one.fitted_s, one.percent))
        yield [text_cell(one.batch_size), *numbers, status_cell("kink") if one.kink else text_cell("")]


def _end(value: float) -> str:
    return digits(value) if math.isfinite(value) else "∞"


def _largest(fit: Fit) -> float:
    return max((one.percent for one in fit.residuals), key=abs)


def _parameters(fit: Fit) -> dict[str, Any]:
    row: dict[str, Any] = {"points": len(fit.residuals), "largest_residual_percent": _largest(fit)}
    for name, (value, interval) in zip(_PARAMETERS, _values(fit), strict=True):
        low, high = [end if math.isfinite(end) else None for end in interval or (math.inf, math.inf)]
        row |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return row
