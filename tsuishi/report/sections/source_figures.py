"""The sources' own pictures: their figures and tables again, with our points in the same frame."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tsuishi.base.language import in_language, in_words, prose, t
from tsuishi.report.charts import figures
from tsuishi.report.charts.originals import constants, original_chart, original_points, scale_of
from tsuishi.report.charts.sweeps import Points
from tsuishi.report.parts.blocks import Block, Code, Heading, Section, Text, View
from tsuishi.report.parts.standing import PublishedStanding, device_names, our_values, published_values
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import NOTHING, Cell, Table, header, status_cell, text_cell, vocabulary_in_use
from tsuishi.report.sections.beside_published import cards_view
from tsuishi.report.sections.descriptions import command_line
from tsuishi.specs.pictures import Picture
from tsuishi.specs.source import Source
from tsuishi.verdicts.evidence import Evidence


def figures_section(evidence: Evidence, every_suite: Sequence[SuiteCases]) -> Section:
    """The pictures of every source, also of those whose suites did not run."""
    pictured = [source for source in evidence.sources if source.figures]
    devices = device_names(evidence)
    views = []
    for source in pictured:
        values = [(published_values(source, each), our_values(every_suite, each, devices)) for each in source.figures]
        filled = [_Filled(source, each, *known) for each, known in zip(source.figures, values, strict=True)]
        views.append(_source(evidence, source, filled))
    about = in_words(source.name for source in pictured)
    every = (*views, cards_view(evidence)) if views else (View((Text(t("No source has figures.")),)),)
    return Section("sources", t("The sources' own pictures"), every, about)


class _Filled(NamedTuple):
    """A picture with the values that stand in it."""

    source: Source
    picture: Picture
    theirs: list[PublishedStanding]
    ours: list[PublishedStanding]

    @property
    def not_ours(self) -> list[str]:
        """The titles of the series without our values."""
        have = {each.place for each in self.ours if each.value is not None}
        return [title for place, title in enumerate(self.titles) if place not in have]

    @property
    def not_printed(self) -> list[str]:
        """The titles of the series without a number of the source."""
        return [in_language(series.title) for series in self.picture.series if not series.printed]

    @property
    def titles(self) -> list[str]:
        return [in_language(series.title) for series in self.picture.series]


def _source(evidence: Evidence, source: Source, filled: Sequence[_Filled]) -> View:
    hardware = [
        f"{each.title}: {in_language(each.description)}" if each.description else each.title for each in source.hardware
    ]
    about = t(
        "{source} ({date}). {hardware}.", source=source.name, date=source.date or "?", hardware="; ".join(hardware)
    )
    blocks: list[Block] = [Heading(source.title), Text(about, kind="note")]
    for each in filled:
        blocks += _picture(evidence, each)
    return View((*blocks, *_rerun(source, filled)))


def _picture(evidence: Evidence, filled: _Filled) -> Iterator[Block]:
    """A chart or a table; a sentence where there is nothing to draw."""
    picture = filled.picture
    title = in_language(picture.title)
    if not any(each.value is not None for each in (*filled.theirs, *filled.ours)):
        yield Text(prose([*_note(picture), _nothing(filled)]), topic=title)
    elif picture.kind == "figure":
        owners = evidence.environments, [each.title for each in filled.source.hardware]
        points = original_points(picture, filled.theirs, filled.ours)
        chart = original_chart(picture, points, owners)
        name = f"source-{filled.source.name}-{picture.id}"
        yield figures.block(chart, title, name, prose(_caption(filled, points)))
        yield from _as_notes([*_note(picture), *_not_printed(filled), *_ours_text(filled)])
    else:
        yield _table(filled, title)
        yield from _as_notes([*_note(picture), *_ours_text(filled)])


def _as_notes(sentences: Sequence[str]) -> Iterator[Block]:
    if sentences:
        yield Text(prose(sentences), kind="note")


def _nothing(filled: _Filled) -> str:
    return t(
        "The source draws these series without printing a number, and no run of this report measured them: {series}.",
        series=_listed(filled.titles),
    )


def _listed(titles: Sequence[str]) -> str:
    """Titles in a row. They have commas of their own."""
    return "; ".join(titles)


def _note(picture: Picture) -> list[str]:
    return [in_language(picture.note)] if picture.note else []


def _caption(filled: _Filled, points: Points) -> Iterator[str]:
    """What the marks of a figure mean."""
    picture = filled.picture
    if filled.theirs:
        yield t("Grey and dashed: published, on other hardware.")
    if picture.line:
        yield from _constants(filled)
    if any(point["low"] is not None and point["mark"] != "fit" for point in points):
        yield t("Bars: from the smallest to the largest trial; of a single trial, the quartiles of its blocks.")
    if any(point["mark"] == "fit" and not point["published"] for point in points):
        yield t("Coloured lines: the same formula, fitted to our points.")
    if scale_of(picture, points) != picture.scale:
        yield t("The scale is logarithmic here, as the values lie far apart.")


def _not_printed(filled: _Filled) -> Iterator[str]:
    if filled.not_printed:
        yield t(
            "The source draws these series without printing a number: {series}.", series=_listed(filled.not_printed)
        )


def _constants(filled: _Filled) -> Iterator[str]:
    """The constants of each printed line, as the source prints them."""
    line = filled.picture.line
    for first in (each for each in filled.theirs if line and each.quantity == line[0]):
        v0, t_cost = constants(filled.picture, filled.theirs, first)
        yield t(
            "{line}: v0 = {v0} images/s, t_cost = {t_cost} s.", line=first.label, v0=f"{v0:g}", t_cost=f"{t_cost:g}"
        )


def _ours_text(filled: _Filled) -> Iterator[str]:
    """What readers have to know of our values, and the series that have none."""
    ours = [each for each in filled.ours if each.value is not None]
    if any(each.derived for each in ours):
        yield t("Epochs derived from steps or shortened ones.")
    if any(each.simulated for each in ours):
        yield t("Some devices are simulated.")
    if any(each.synthetic for each in ours):
        yield t("Synthetic data.")
    if filled.not_ours and ours:
        yield t("Not measured here: {series}.", series=_listed(filled.not_ours))
    elif not ours:
        yield t("Published numbers only: no run of this report measured any of these cases.")


def _rerun(source: Source, filled: Sequence[_Filled]) -> Iterator[Block]:
    """The command that adds our values that no picture of the source has."""
    rerun = source.rerun
    lacking = [
        (each.picture, series)
        for each in filled
        for series in each.picture.series
        if in_language(series.title) in each.not_ours
    ]
    suites = tuple(dict.fromkeys(suite for picture, series in lacking for suite in picture.suites(series)))
    if not suites or rerun is None:
        return
    yield Text(t("To add the missing measurements, on a machine with {gpus} GPUs:", gpus=rerun.gpus))
    yield Code(command_line({"env": rerun.environments, "suite": suites, "profile": "quick"}))
    if rerun.on_cpu:
        yield Text(t("Without GPUs, this adds some of them, at other sizes or on simulated devices:"))
        yield Code(command_line({"env": rerun.on_cpu, "suite": suites, "profile": "quick"}))


class _Row(NamedTuple):
    """A row of a source's table: the texts that name it, and its cells by owner and quantity."""

    names: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]


def _table(filled: _Filled, title: str) -> Table:
    """The source's rows and columns in its order. Ours are columns beside a single quantity, else rows below each."""
    picture = filled.picture
    owners = list(dict.fromkeys(each.who for each in (*filled.theirs, *filled.ours)))
    rows = [row for row in _rows(filled) if row.cells]
    names = [*([""] if len(picture.series) > 1 else []), *_row_header(picture)]
    quantities = picture.quantities
    if len(quantities) == 1:
        columns = [*names, *owners]
        cells = [[*map(text_cell, row.names), *(_cell(row, owner, quantities[0]) for owner in owners)] for row in rows]
        return Table(columns, cells, title=f"{title}, {header(quantities[0])}")
    columns = [*names, "", *map(header, quantities)]
    cells = [
        [*map(text_cell, row.names), text_cell(owner), *(_cell(row, owner, quantity) for quantity in quantities)]
        for row in rows
        for owner in owners
        if any(known == owner and cell.kind != "absent" for (known, _), cell in row.cells.items())
    ]
    return Table(columns, cells, title=title)


def _cell(row: _Row, owner: str, quantity: str) -> Cell:
    return row.cells.get((owner, quantity)) or status_cell(NOTHING)


def _row_header(picture: Picture) -> list[str]:
    if picture.readings:
        return [t("reading")]
    return [vocabulary_in_use().axis(picture.x).called] if picture.x else []


def _rows(filled: _Filled) -> Iterator[_Row]:
    """The rows in the source's order: series by series; values of x, or readings and their median."""
    picture, every = filled.picture, [*filled.theirs, *filled.ours]
    for place, title in enumerate(filled.titles):
        series = [title] if len(filled.titles) > 1 else []
        of_series = [each for each in every if each.place == place]
        for number, reading in enumerate(picture.readings):
            cells = {
                (each.who, each.quantity): each.readings[number] for each in of_series if number < len(each.readings)
            }
            yield _Row((*series, in_language(reading)), cells)
        if picture.readings:
            yield _Row((*series, t("median")), _cells(of_series, None))
        elif picture.x:
            for value in picture.values:
                yield _Row((*series, str(value)), _cells(of_series, value))
        else:
            yield _Row((*series,), _cells(of_series, None))


def _cells(of_series: Sequence[PublishedStanding], x: Any) -> dict[tuple[str, str], Cell]:
    return {(each.who, each.quantity): each.cell for each in of_series if x is None or each.x == x}
