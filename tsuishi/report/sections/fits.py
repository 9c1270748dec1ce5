"""Fits: the throughput model of every sweep over batch sizes, ours and published, as tables and as rows."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tsuishi.base.language import in_words, t
from tsuishi.estimates import throughput
from tsuishi.estimates.intervals import Region
from tsuishi.estimates.line_fit import FEWEST_POINTS, KINK_PERCENT, Fit, Residual, deciding, fit
from tsuishi.estimates.throughput import Line
from tsuishi.estimates.variances import Pool
from tsuishi.report.parts import declarations
from tsuishi.report.parts.blocks import Block, Section, Text, View
from tsuishi.report.parts.declarations import AxisColumns, Column, Declared, Tables, interval, interval_cells
from tsuishi.report.parts.shown_units import PLAIN, Unit, readable
from tsuishi.report.parts.suite_cases import Known, SuiteCases, differing_axes, published_cases
from tsuishi.report.parts.wording import (
    NOTHING,
    Cell,
    Table,
    case_text,
    digits,
    number_cell,
    status_cell,
    text_cell,
    vocabulary_in_use,
)
from tsuishi.specs.case import BATCH_SIZE, SUITE
from tsuishi.specs.source import hardware_by_key
from tsuishi.verdicts.evidence import Evidence

_PUBLISHED = Column("published", "boolean", "not ours")
_LINE: Declared = (declarations.WHERE, declarations.SERIES, _PUBLISHED, AxisColumns(of_lines=True))
_PARAMETERS = {
    "v0_images_per_s": "ideal speed, of images or other items of the suite's batches",
    "t_cost_s": "cost time of a step",
    "b_half_images": "batch size at which half of v0 is reached",
}
TABLES: Tables = {
    "throughput_model": (
        *_LINE,
        declarations.SIMULATED,
        Column("points", "integer", "batch sizes it is fitted to; 0: parameters as printed"),
        Column("trials", "integer", "of all batch sizes; empty where their scatter is unknown"),
        Column("pure_error_percent", "number", "standard deviation between trials of a batch size"),
        Column(
            "lack_of_fit_p", "number", "of the F test: small where batch sizes are off the line by more than scatter"
        ),
        Column("decided_by", "integer", "batch size without which the line differs"),
        Column("largest_residual_percent", "number", "of the point farthest off the line"),
        *(column for name, description in _PARAMETERS.items() for column in interval(name, description)),
    ),
    "residuals": (
        *_LINE,
        AxisColumns((BATCH_SIZE,)),
        Column("step_s", "number", "mean step, or an epoch over its steps"),
        Column("fitted_s", "number", "what the line says"),
        Column("residual_percent", "number", "how much longer the step took"),
        Column("kink", "boolean", "too far off the line to be scatter"),
    ),
}
# A table with more points shows kinks only.
_MOST_POINTS = 100
_PRINTED = tuple(throughput.PRINTED.values())
_EPOCHS = ("median_epoch_s",)


def fitted_lines(suite_cases: SuiteCases) -> View:
    """The lines of a suite and protocol: ours, then published lines. Empty where no batch size varies."""
    ours = Fits(list(suite_cases.ours()), suite_cases.where)
    if not ours.points:
        return View()
    theirs = Fits(suite_cases.theirs, suite_cases.where)
    title = t("Step time against batch size: the throughput model")
    return View(
        tuple(fit_tables([ours, theirs], title)), {"throughput_model": ours.rows(), "residuals": ours.residuals()}
    )


def published_section(evidence: Evidence) -> Section:
    """The lines of the published sweeps over batch sizes that were read, also of suites that did not run."""
    hardware = hardware_by_key(evidence.sources)
    numbers = [number for source in evidence.sources for number in source.credible()]
    suites = list(dict.fromkeys(str(number.axes[SUITE]) for number in numbers))
    numbers_of = {suite: [number for number in numbers if number.axes[SUITE] == suite] for suite in suites}
    by_suite = [Fits(published_cases(numbers_of[suite], hardware), {SUITE: suite}, published=True) for suite in suites]
    title = t("The throughput model of every published table over batch sizes")
    lengths = sorted({number.epochs.images for number in numbers if number.epochs and number.quantity in _EPOCHS})
    text = t("Calculated from the printed numbers alone.")
    if lengths:
        text = t(
            "Calculated from the printed numbers alone. An epoch takes as many steps as {images} over the batch "
            "size, rounded up: a smaller last batch counts as a step of its own, with a whole batch of images.",
            images=in_words(f"{images:,}" for images in lengths),
        )
    rows = {
        "throughput_model": [row for fits in by_suite for row in fits.rows()],
        "residuals": [row for fits in by_suite for row in fits.residuals()],
    }
    blocks: tuple[Block, ...] = (Text(text), *fit_tables(by_suite, title)) if rows["throughput_model"] else ()
    return Section("published-fits", t("Published numbers, fitted"), (View(blocks, rows),), title)


class Fits:
    """The lines through the points of several cases. where: their suite, and the protocol of measured cases."""

    def __init__(self, cases: Sequence[Known], where: Mapping[str, str], published: bool = False) -> None:
        self._where, self._published = where, published
        self._simulated = {throughput.line_of_case(case.series, case.axes) for case in cases if case.simulated}
        self.points = throughput.lines_of_cases((case.series, case.axes, case.step_s, case.step_term) for case in cases)
        self._fits = {line: fit(of_line) for line, of_line in self.points.items()}
        self._decided = {line: deciding(self.points[line], found) for line, found in self._fits.items() if found}
        # v0 and t_cost from sources that print no step times.
        self._printed = {
            throughput.line_of_case(case.series, case.axes): (case.values[_PRINTED[0]], case.values[_PRINTED[1]])
            for case in cases
            if {*_PRINTED} <= set(case.values)
        }

    @property
    def batch_of(self) -> str:
        """What the batches are of."""
        return vocabulary_in_use().batch_of(self._where[SUITE])

    @property
    def every_line(self) -> list[Line]:
        """The lines, fitted or printed."""
        return [*self.points, *self._printed]

    def rows(self) -> list[dict[str, Any]]:
        """The rows of throughput_model.csv; infinite and unknown ends of intervals are left out."""
        fitted = [
            {**self._identity(line), "simulated": line in self._simulated, **self._fitted(line, found)}
            for line, found in self._fits.items()
            if found
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
            for line, found in self._fits.items()
            for point in _residuals(found)
        ]

    def seconds(self) -> Iterator[float]:
        """The times of all lines: of steps, and the cost times that are printed."""
        yield from (point.seconds for points in self.points.values() for point in points)
        yield from (t_cost for _, t_cost in self._printed.values())

    def lines(self, axes: Iterable[str], time: Unit) -> Iterator[list[Cell]]:
        """A row of cells for every line. axes: those that distinguish the lines. time: the unit of times."""
        for line, found in self._fits.items():
            yield [*_name(line, axes), *self._summary(line, found, time)]
        for line, (v0, t_cost) in self._printed.items():
            values = [
                Cell(digits(value, unit), value, (t("as printed"),), "number")
                for value, unit in ((v0, PLAIN), (t_cost, time))
            ]
            b_half = Cell(digits(v0 * t_cost), v0 * t_cost, (t("from these"),), "number")
            yield [*_name(line, axes), status_cell(NOTHING), *values, b_half, *[status_cell(NOTHING)] * 2]

    def points_off(self, axes: Iterable[str], time: Unit, kinks_only: bool = False) -> Iterator[list[Cell]]:
        """A row of cells for every point, or every kink, of the lines through three points or more."""
        for line, found in self._fits.items():
            for point in (point for point in _residuals(found) if point.kink or not kinks_only):
                times = [number_cell(value, time) for value in (point.step_s, point.fitted_s)]
                kink = status_cell(t("kink")) if point.kink else text_cell("")
                yield [*_name(line, axes), text_cell(point.batch_size), *times, number_cell(point.percent), kink]

    def _identity(self, line: Line) -> dict[str, Any]:
        return {**self._where, "series": line.series, "published": self._published, **dict(line.axes)}

    def _fitted(self, line: Line, found: Fit) -> dict[str, Any]:
        """The cells of a fitted line in throughput_model.csv."""
        scatter, tested = found.pure_error, found.lack_of_fit
        row: dict[str, Any] = {
            "points": len(found.residuals),
            "trials": sum(point.trials for point in self.points[line]) if scatter else None,
            "pure_error_percent": _percent(scatter) if scatter else None,
            "lack_of_fit_p": tested[1] if tested else None,
            "decided_by": self._decided[line],
            "largest_residual_percent": _largest(found),
        }
        for name, (value, found_interval) in zip(_PARAMETERS, _values(found), strict=True):
            ends = [end if math.isfinite(end) else None for end in found_interval or (math.inf, math.inf)]
            row |= interval_cells(name, (value, *ends))
        return row

    def _summary(self, line: Line, found: Fit | None, time: Unit) -> list[Cell]:
        points = len(self.points[line])
        count = t("{points}, simulated", points=points) if line in self._simulated else str(points)
        if found is None:
            no_line = status_cell(t("no line: a step does not take longer with the batch"))
            return [text_cell(count), no_line, *[status_cell(NOTHING)] * 4]
        decided = self._decided[line]
        notes = [] if decided is None else [t("batch {batch} decides", batch=decided)]
        if points == FEWEST_POINTS:
            notes.append(t("near a line, whatever they are"))
        cells = [Cell(count, notes=tuple(notes))]
        for (value, ends), unit in zip(_values(found), (PLAIN, time, PLAIN), strict=True):
            note = " – ".join(_end(end, unit) for end in ends) if ends else t("2 points: no interval")
            if found.kinked:
                note = t("a kink: no interval")
            cells.append(Cell(digits(value, unit), value, (note,), "number"))
        largest = _largest(found)
        return [*cells, status_cell(NOTHING) if largest is None else number_cell(largest), _lack_of_fit(found)]


def fit_tables(several: Sequence[Fits], title: str) -> Iterator[Table]:
    """A table with a row per line, and a folded table with a row per point."""
    axes = differing_axes(dict(line.axes) for fits in several for line in fits.every_line)
    counts, largest = t("batch sizes"), t("largest residual, %")
    time = readable("s", [value for fits in several for value in fits.seconds()])
    of = several[0].batch_of
    columns = ["", "", counts, f"v0, {of}/s", f"t_cost, {time.name}", f"b_half, {of}", largest]
    columns.append(t("lack of fit, p"))
    lines = [row for fits in several for row in fits.lines(axes, time)]
    if lines:
        yield Table(columns, lines, title=title, notes=_notes())
    times = [t("step, {unit}", unit=time.name), t("line, {unit}", unit=time.name)]
    columns = ["", "", vocabulary_in_use().axis(BATCH_SIZE).called, *times, t("residual, %"), ""]
    points = [row for fits in several for row in fits.points_off(axes, time)]
    notes = []
    if len(points) > _MOST_POINTS:
        points = [row for fits in several for row in fits.points_off(axes, time, kinks_only=True)]
        notes = [t("Kinks only, as there are many points; all of them are in residuals.csv.")]
    if points:
        yield Table(columns, points, title=t("Every step time against its line"), folded=True, notes=notes)


def _name(line: Line, axes: Iterable[str]) -> list[Cell]:
    return [text_cell(line.series), text_cell(case_text(dict(line.axes), set(axes)))]


def _notes() -> list[str]:
    return [
        t(
            "t(b) = b / v0 + t_cost, by least squares with relative weights; below each number its 95 % interval, if "
            "the model holds, and of no use beyond the batch sizes measured. Its error is the scatter of trials or the "
            "distance of the batch sizes from the line, whichever is larger."
        ),
        t(
            "Lack of fit: the F test of whether the batch sizes are farther off the line than trials scatter (small p: "
            "they are). Without several trials, and of two batch sizes, it cannot be seen."
        ),
        t(
            "A batch decides: without it, v0 or t_cost leaves the interval that all other batch sizes give, or v0"
            " differs from theirs by more than {percent:g} %.",
            percent=KINK_PERCENT,
        ),
        t(
            "Near a line, whatever they are: a line nearly always fits three batch sizes that rise, so the line is "
            "assumed and hardly tested. A test takes four."
        ),
        t(
            "Kink: more than {percent:g} % off the line, for instance where a library chooses another algorithm "
            "from some batch size on.",
            percent=KINK_PERCENT,
        ),
    ]


def _lack_of_fit(found: Fit) -> Cell:
    """The p value of the F test, with F and the scatter of trials; for two batch sizes the scatter alone."""
    if found.pure_error is None:
        return status_cell(NOTHING)
    scatter = t("trials scatter by {percent} %", percent=digits(_percent(found.pure_error)))
    if found.lack_of_fit is None or found.about_line is None:
        return Cell(t("not to be seen"), notes=(scatter,), kind="status")
    f, p = found.lack_of_fit
    freedom = f"F({found.about_line.freedom:g}, {found.pure_error.freedom:g}) = {digits(f)}"
    return Cell(digits(p), p, (freedom, scatter), "number")


def _percent(scatter: Pool) -> float:
    """The standard deviation between trials, in % of their value."""
    return 100 * math.sqrt(scatter.variance)


def _values(found: Fit) -> list[tuple[float, Region | None]]:
    """The parameters with their intervals, in the order of _PARAMETERS."""
    return [(found.v0, found.v0_interval), (found.t_cost, found.t_cost_interval), (found.b_half, found.b_half_interval)]


def _residuals(found: Fit | None) -> tuple[Residual, ...]:
    """The residuals of a line; empty for a line with two points, as it goes through both."""
    return found.residuals if found and len(found.residuals) >= FEWEST_POINTS else ()


def _end(value: float, unit: Unit) -> str:
    return digits(value, unit) if math.isfinite(value) else "∞"


def _largest(found: Fit) -> float | None:
    return max((point.percent for point in _residuals(found)), key=abs, default=None)
