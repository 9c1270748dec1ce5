"""The section of a suite: for each protocol the same views in reading order, then the explanation."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tsuishi.base.language import in_language, in_words, mark, prose, t
from tsuishi.report.charts import figures
from tsuishi.report.charts.bars import energies, limit_fractions, step_parts
from tsuishi.report.charts.curves import curves
from tsuishi.report.parts.blocks import Block, Bullets, Heading, Section, Text, View
from tsuishi.report.parts.declarations import ENVIRONMENT, AxisColumns, Column, Tables
from tsuishi.report.parts.explanation import Guarded, OwnChart
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import (
    Cell,
    Table,
    capital,
    header,
    number_cell,
    protocol_words,
    text_cell,
    vocabulary_in_use,
)
from tsuishi.report.sections.fits import fitted_lines
from tsuishi.report.sections.memory import memory
from tsuishi.report.sections.quantity_tables import measured_view
from tsuishi.report.sections.side_by_side import machine_notes
from tsuishi.report.sections.speed_up import scaling_view
from tsuishi.specs.case import SUITE

TABLES: Tables = {
    "diagnosis": (
        *(AxisColumns((SUITE,)), ENVIRONMENT),
        Column("topic", "string", "the subject of the text"),
        Column("text", "string", "what the cases say"),
    )
}
_PROTOCOLS = {
    "literal": mark("With the pitfalls of the source's way (protocol literal)."),
    "steady": mark("The device is warm and synchronised before each timing, and each is repeated (protocol steady)."),
}
_TROUBLE = mark(
    "The explanation of this suite failed, so that parts of it are missing here: {why}. No number is missing. Mend the "
    "file, then make the report again."
)
# The views after the tables of a protocol, in reading order; each may be empty.
_AFTER_THE_TABLES: tuple[Callable[[SuiteCases], View], ...] = (
    step_parts,
    memory,
    fitted_lines,
    scaling_view,
    limit_fractions,
    energies,
)


def suite_section(explanation: Guarded, every_suite: Iterable[SuiteCases], caveats: tuple[str, ...] = ()) -> Section:
    """The section of a suite that ran, from its explanation, its cases under each protocol, and its caveats."""
    every = list(every_suite)
    views = [view for suite_cases in every for view in _protocol(explanation, suite_cases)]
    views.append(_explained(explanation))
    if explanation.trouble:
        caveats = (*caveats, t(_TROUBLE, why=explanation.trouble))
    if caveats:
        views.insert(0, View((Bullets(caveats, title=t("Before you read a number")),)))
    protocols = in_words(protocol_words(suite_cases.protocol) for suite_cases in every)
    about = t("cases: {count}; {protocols}", count=sum(len(each.case_ids) for each in every), protocols=protocols)
    if caveats:
        about = t("{about}; warnings: {count}", about=about, count=len(caveats))
    return Section(f"suite-{explanation.suite}", explanation.suite, (*views,), about)


def _protocol(explanation: Guarded, suite_cases: SuiteCases) -> Iterator[View]:
    yield opening(suite_cases)
    yield curves(suite_cases)
    yield from explanation.opening_views(suite_cases)
    yield measured_view(suite_cases, explanation)
    for view in _AFTER_THE_TABLES:
        yield view(suite_cases)
    for number, chart in enumerate(explanation.charts(suite_cases), start=1):
        yield _own_chart(suite_cases, chart, number)
    yield from explanation.closing_views(suite_cases)


def _own_chart(suite_cases: SuiteCases, chart: OwnChart, number: int) -> View:
    """A chart of an explanation, with the look and the notes of all others, and its rows as a table."""
    size = {"width": 2 * figures.PANEL_WIDTH, "height": figures.PANEL_HEIGHT} if "spec" not in chart.drawing else {}
    config = {"range": {"category": list(figures.PALETTE)}, **chart.drawing.get("config", {})}
    drawn = {**figures.data_of(chart.rows), **size, **chart.drawing, "config": config}
    name = f"{suite_cases.suite}-{suite_cases.protocol}-{chart.table}-{number}"
    caption = prose([chart.caption, *suite_cases.flags()])
    names = [
        name for name in dict.fromkeys(name for row in chart.rows for name in row) if name not in suite_cases.where
    ]
    cells = [[_cell(row.get(name)) for name in names] for row in chart.rows]
    table = Table([_header(name) for name in names], cells, folded=True)
    return View((figures.block(drawn, chart.title, name, caption), table), {chart.table: [*chart.rows]})


def _header(column: str) -> str:
    """The header of a column of an explanation's table: that of its quantity or axis, else its name in words."""
    known = vocabulary_in_use()
    if column in known.quantities:
        return header(column)
    return in_language(known.axes[column].label) if column in known.axes else t(column.replace("_", " "))


def _cell(value: Any) -> Cell:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number_cell(value) if is_number else text_cell(value)


def opening(suite_cases: SuiteCases) -> View:
    """The protocol, the axes that all cases share, and the machines."""
    heading = Heading(capital(protocol_words(suite_cases.protocol)))
    notes = [t("All cases: {axes}.", axes=suite_cases.common)] if suite_cases.common else []
    notes += machine_notes(suite_cases.evidence)
    return View((heading, Text(t(_PROTOCOLS[suite_cases.protocol])), *(Text(note, kind="note") for note in notes)))


def _explained(explanation: Guarded) -> View:
    """The explanation of all cases of a suite, by environment; empty for a workload without explanation."""
    paragraphs = explanation.paragraphs()
    if not paragraphs:
        return View()
    text = t(
        "Each environment's text follows from its own measurements above, and from nothing else. Below its first "
        "paragraph, “at least” and “about as fast” are by intervals of 95 %, each for itself alone: no certain "
        "findings."
    )
    blocks: list[Block] = [Heading(t("What explains it")), Text(text)]
    first, *others = paragraphs.values()
    shared = [each for each in first[1:] if others and all(each in several for several in others)]
    shown = {name: [each for each in several if each not in shared] for name, several in paragraphs.items()}
    for heading, several in (*shown.items(), (t("Each of these environments"), shared)):
        if several:
            texts = (Text(paragraph.text, topic=paragraph.topic) for paragraph in several)
            blocks += [Heading(heading, level=4), *texts]
    rows = [
        {"suite": explanation.suite, "environment": environment, **vars(paragraph)}
        for environment, several in paragraphs.items()
        for paragraph in several
    ]
    return View(tuple(blocks), {"diagnosis": rows})
