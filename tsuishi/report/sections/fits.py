"""Fits: the throughput model of every sweep over batch sizes, ours and published, as tables and as rows."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tsuishi.base.language import in_words, t
from tsuishi.estimates import throughput
from tsuishi.estimates.throughput import Fit, Interval, Line, Residual
from tsuishi.report.parts.blocks import Block, Section, Text, View
from tsuishi.report.parts.comparison import Comparison, Known, differing, published_cases
from tsuishi.report.parts.wording import (
    NOTHING,
    Cell,
    Table,
    case_text,
    digits,
    number_cell,
    status_cell,
    text_cell,
    words,
)
from tsuishi.specs.case import BATCH_SIZE, SUITE
from tsuishi.specs.source import hardware_by_key
from tsuishi.verdicts.evidence import Evidence

# A table with more points shows kinks only.
_MOST_POINTS = 100
_PRINTED = tuple(throughput.PRINTED.values())
_EPOCHS = ("median_epoch_s",)
_PARAMETERS = ("v0_images_per_s", "t_cost_s", "b_half_images")


def fitted_lines(comparison: Comparison) -> View:
    """The lines of a suite and protocol: ours, then published lines. Empty where no batch size varies."""
    ours = Fits(list(comparison.ours()), comparison.where)
    if not ours.points:
        return View()
    theirs = Fits(comparison.theirs(), comparison.where)
    title = t("Step time against batch size: the throughput model")
    return View(tuple(tables([ours, theirs], title)), {"throughput_model": ours.rows(), "residuals": ours.residuals()})


def published_section(evidence: Evidence) -> Section:
    """The lines of all published sweeps over batch sizes, also of suites that did not run."""
    hardware = hardware_by_key(evidence.sources)
    numbers = [number for source in evidence.sources for number in source.flat()]
    suites = list(dict.fromkeys(str(number.axes[SUITE]) for number in numbers))
    numbers_of = {suite: [number for number in numbers if number.axes[SUITE] == suite] for suite in suites}
    by_suite = [Fits(published_cases(numbers_of[suite], hardware), {SUITE: suite}, published=True) for suite in suites]
    title = t("The throughput model of every published table over batch sizes")
    lengths = sorted({number.epochs.images for number in numbers if number.epochs and number.quantity in _EPOCHS})
    text = t("Reckoned from the printed numbers alone.")
    if lengths:
        text = t(
            "Reckoned from the printed numbers alone: steps of an epoch are {images} over the batch size, rounded up.",
            images=in_words(f"{images:,}" for images in lengths),
        )
    rows = {
        "throughput_model": [row for fits in by_suite for row in fits.rows()],
        "residuals": [row for fits in by_suite for row in fits.residuals()],
    }
    blocks: tuple[Block, ...] = (Text(text), *tables(by_suite, title)) if rows["throughput_model"] else ()
    return Section("published-fits", t("Published numbers, fitted"), (View(blocks, rows),))


class Fits:
    """The lines through the points of several cases. where: their suite, and the protocol of measured cases."""

    def __init__(self, cases: Sequence[Known], where: Mapping[str, str], published: bool = False) -> None:
        self._where, self._published = where, published
        self._simulated = {throughput.line(case.series, case.axes) for case in cases if case.simulated}
        self.points = throughput.lines((case.series, case.axes, case.step_s) for case in cases)
        self._fits = {line: throughput.fit(of_line) for line, of_line in self.points.items()}
        # v0 and t_cost from sources that print no step times.
        self._printed = {
            throughput.line(case.series, case.axes): (case.values[_PRINTED[0]], case.values[_PRINTED[1]])
            for case in cases
            if {*_PRINTED} <= set(case.values)
        }

    @property
    def every_line(self) -> list[Line]:
        """The lines, fitted or printed."""
        return [*self.points, *self._printed]

    def rows(self) -> list[dict[str, Any]]:
        """The rows of throughput_model.csv; infinite and unknown ends of intervals are left out."""
        fitted = [
            {**self._identity(line), "simulated": line in self._simulated, **_parameters(fit)}
            for line, fit in self._fits.items()
            if fit
        ]
        printed = [
            {**self._identity(line), "simulated": False, "points": 0}
            | dict(zip(_PARAMETERS, (v0, t_cost, v0 * t_cost), strict=True))
            for line, (v0, t_cost) in self._printed.items()
        ]
        return [*fitted, *printed]

    def residuals(self) -> list[dict[str, Any]]:
        """The rows of residuals.csv; a line through two points has none."""
        return [
            {**self._identity(line), **point._asdict(), "residual_percent": point.percent, "kink": point.kink}
            for line, fit in self._fits.items()
            for point in _residuals(fit)
        ]

    def lines(self, axes: Iterable[str]) -> Iterator[list[Cell]]:
        """A row of cells for every line. axes: those that distinguish the lines."""
        for line, fit in self._fits.items():
            yield [*_name(line, axes), *self._summary(line, fit)]
        for line, (v0, t_cost) in self._printed.items():
            values = [Cell(digits(value), value, (t("as printed"),), "number") for value in (v0, t_cost)]
            b_half = Cell(digits(v0 * t_cost), v0 * t_cost, (t("from these"),), "number")
            yield [*_name(line, axes), status_cell(NOTHING), *values, b_half, status_cell(NOTHING)]

    def points_off(self, axes: Iterable[str], kinks_only: bool = False) -> Iterator[list[Cell]]:
        """A row of cells for every point, or every kink, of the lines through three points or more."""
        for line, fit in self._fits.items():
            for point in (point for point in _residuals(fit) if point.kink or not kinks_only):
                numbers = map(number_cell, (point.step_s, point.fitted_s, point.percent))
                kink = status_cell(t("kink")) if point.kink else text_cell("")
                yield [*_name(line, axes), text_cell(point.batch_size), *numbers, kink]

    def _identity(self, line: Line) -> dict[str, Any]:
        return {**self._where, "series": line.series, "published": self._published, **dict(line.axes)}

    def _summary(self, line: Line, fit: Fit | None) -> list[Cell]:
        points = len(self.points[line])
        count = t("{points}, simulated", points=points) if line in self._simulated else str(points)
        if fit is None:
            no_line = status_cell(t("no line: a step does not take longer with the batch"))
            return [text_cell(count), no_line, *[status_cell(NOTHING)] * 3]
        cells = []
        for value, interval in _values(fit):
            note = " – ".join(map(_end, interval)) if interval else t("2 points: no interval")
            if any(point.kink for point in fit.residuals):
                note = t("a kink: no interval")
            cells.append(Cell(digits(value), value, (note,), "number"))
        largest = _largest(fit)
        return [text_cell(count), *cells, status_cell(NOTHING) if largest is None else number_cell(largest)]


def tables(several: Sequence[Fits], title: str) -> Iterator[Table]:
    """A table with a row per line, and a folded table with a row per point."""
    axes = differing(dict(line.axes) for fits in several for line in fits.every_line)
    counts, largest = t("batch sizes"), t("largest residual, %")
    columns = ["", "", counts, "v0, images/s", "t_cost, s", t("b_half, images"), largest]
    lines = [row for fits in several for row in fits.lines(axes)]
    if lines:
        yield Table(columns, lines, title, notes=_notes())
    columns = ["", "", words().axis(BATCH_SIZE).called, t("step, s"), t("line, s"), t("residual, %"), ""]
    points = [row for fits in several for row in fits.points_off(axes)]
    notes = []
    if len(points) > _MOST_POINTS:
        points = [row for fits in several for row in fits.points_off(axes, kinks_only=True)]
        notes = [t("Kinks only, as there are many points; all of them are in residuals.csv.")]
    if points:
        yield Table(columns, points, t("Every step time against its line"), folded=True, notes=notes)


def _name(line: Line, axes: Iterable[str]) -> list[Cell]:
    return [text_cell(line.series), text_cell(case_text(dict(line.axes), set(axes)))]


def _notes() -> list[str]:
    return [
        t(
            "t(b) = b / v0 + t_cost, by least squares with relative weights; below each number its 95 % interval, if "
            "the model holds: from the scatter of the points about the line, and of no use beyond the batch sizes "
            "measured."
        ),
        t(
            "Kink: more than {percent:g} % off the line, as where another algorithm is chosen from some batch size on.",
            percent=throughput.KINK_PERCENT,
        ),
    ]


def _values(fit: Fit) -> list[tuple[float, Interval | None]]:
    """The parameters with their intervals, in the order of _PARAMETERS."""
    return [(fit.v0, fit.v0_interval), (fit.t_cost, fit.t_cost_interval), (fit.b_half, fit.b_half_interval)]


def _residuals(fit: Fit | None) -> tuple[Residual, ...]:
    """The residuals of a line; empty for a line with two points, as it goes through both."""
    return fit.residuals if fit and fit.v0_interval else ()


def _end(value: float) -> str:
    return digits(value) if math.isfinite(value) else "∞"


def _largest(fit: Fit) -> float | None:
    return max((point.percent for point in _residuals(fit)), key=abs, default=None)


def _parameters(fit: Fit) -> dict[str, Any]:
    row: dict[str, Any] = {"points": len(fit.residuals), "largest_residual_percent": _largest(fit)}
    for name, (value, interval) in zip(_PARAMETERS, _values(fit), strict=True):
        low, high = [end if math.isfinite(end) else None for end in interval or (math.inf, math.inf)]
        row |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return row
