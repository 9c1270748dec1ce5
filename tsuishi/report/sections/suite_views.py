"""The section of a suite: for each protocol the same views in reading order, then the explanation."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tsuishi.base.language import in_language, in_words, mark, prose, t
from tsuishi.report.charts import figures
from tsuishi.report.charts.bars import energies, limit_fractions, step_parts
from tsuishi.report.charts.curves import curves
from tsuishi.report.parts.blocks import Block, Bullets, Heading, Section, Text, View
from tsuishi.report.parts.comparison import Comparison
from tsuishi.report.parts.declarations import ENVIRONMENT, AxisColumns, Column, Tables
from tsuishi.report.parts.explanation import Guarded, OwnChart
from tsuishi.report.parts.wording import Cell, Table, header, number_cell, text_cell, vocabulary_in_use
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
    "literal": mark("As the source measured, with the pitfalls of its way."),
    "steady": mark("The device is warm and synchronised before each timing, and every measurement is repeated."),
}
_TROUBLE = mark(
    "The explanation of this suite failed, so that parts of it are missing here: {why}. No number is missing. Mend the "
    "file, then make the report again."
)
# The views after the tables of a protocol, in reading order; each may be empty.
_AFTER_THE_TABLES: tuple[Callable[[Comparison], View], ...] = (
    step_parts,
    memory,
    fitted_lines,
    scaling_view,
    limit_fractions,
    energies,
)


def suite_section(explanation: Guarded, comparisons: Iterable[Comparison], caveats: tuple[str, ...] = ()) -> Section:
    """The section of a suite that ran, from its explanation, its comparisons under each protocol, and its caveats."""
    every = list(comparisons)
    views = [view for comparison in every for view in _protocol(explanation, comparison)]
    views.append(_explained(explanation))
    if explanation.trouble:
        caveats = (*caveats, t(_TROUBLE, why=explanation.trouble))
    if caveats:
        views.insert(0, View((Bullets(caveats, title=t("Before you read a number")),)))
    protocols = in_words(comparison.protocol for comparison in every)
    about = t("cases: {count}; {protocols}", count=sum(len(each.case_ids) for each in every), protocols=protocols)
    if caveats:
        about = t("{about}; warnings: {count}", about=about, count=len(caveats))
    return Section(f"suite-{explanation.suite}", explanation.suite, (*views,), about)


def _protocol(explanation: Guarded, comparison: Comparison) -> Iterator[View]:
    yield opening(comparison)
    yield curves(comparison)
    yield from explanation.opening_views(comparison)
    yield measured_view(comparison, explanation)
    for view in _AFTER_THE_TABLES:
        yield view(comparison)
    for number, chart in enumerate(explanation.charts(comparison), start=1):
        yield _own_chart(comparison, chart, number)
    yield from explanation.closing_views(comparison)


def _own_chart(comparison: Comparison, chart: OwnChart, number: int) -> View:
    """A chart of an explanation, with the look and the notes of all others, and its rows as a table."""
    size = {"width": 2 * figures.PANEL_WIDTH, "height": figures.PANEL_HEIGHT} if "spec" not in chart.drawing else {}
    config = {"range": {"category": list(figures.PALETTE)}, **chart.drawing.get("config", {})}
    drawn = {**figures.data_of(chart.rows), **size, **chart.drawing, "config": config}
    name = f"{comparison.suite}-{comparison.protocol}-{chart.table}-{number}"
    caption = prose([chart.caption, *comparison.flags()])
    names = [name for name in dict.fromkeys(name for row in chart.rows for name in row) if name not in comparison.where]
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


def opening(comparison: Comparison) -> View:
    """The protocol, the axes that all cases share, and the machines."""
    heading = Heading(t("Protocol: {protocol}", protocol=comparison.protocol))
    notes = [t("All cases: {axes}.", axes=comparison.common)] if comparison.common else []
    notes += machine_notes(comparison.evidence)
    return View((heading, Text(t(_PROTOCOLS[comparison.protocol])), *(Text(note, kind="note") for note in notes)))


def _explained(explanation: Guarded) -> View:
    """The explanation of all cases of a suite, by environment; empty for a workload without explanation."""
    paragraphs = explanation.paragraphs()
    if not paragraphs:
        return View()
    text = t(
        "Each environment's text follows from its own measurements above, and from nothing else. Its “at least” and "
        "“about as fast” are by intervals of 95 %, each for itself alone: no certain findings."
    )
    blocks: list[Block] = [Heading(t("What explains it")), Text(text)]
    for environment, several in paragraphs.items():
        blocks += [
            Heading(environment, level=4),
            *(Text(paragraph.text, topic=paragraph.topic) for paragraph in several),
        ]
    rows = [
        {"suite": explanation.suite, "environment": environment, **vars(paragraph)}
        for environment, several in paragraphs.items()
        for paragraph in several
    ]
    return View(tuple(blocks), {"diagnosis": rows})
