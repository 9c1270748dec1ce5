"""Memory: the largest batch that fitted and the smallest batch that did not, by network and devices."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from tsuishi.base.language import mark, t
from tsuishi.report.charts import figures
from tsuishi.report.parts.blocks import Block, Chart, View
from tsuishi.report.parts.declarations import SERIES, AxisColumns, Column, Tables, names_without_axes
from tsuishi.report.parts.suite_cases import SuiteCases, differing_axes, published_name
from tsuishi.report.parts.wording import (
    NOT_PLANNED,
    NOT_PUBLISHED,
    NOTHING,
    Cell,
    Table,
    case_text,
    status_cell,
    status_text,
    text_cell,
    vocabulary_in_use,
)
from tsuishi.specs.case import BATCH_SIZE, DEVICES, MODEL, Value
from tsuishi.specs.numbers_of_cases import numbers_by_network
from tsuishi.specs.source import Number
from tsuishi.specs.statuses import OK, OUT_OF_MEMORY

TABLES: Tables = {
    "memory": (
        *(AxisColumns(but=(BATCH_SIZE,)), SERIES),
        Column("largest_fitted", "integer", "batch size, in images"),
        Column("smallest_out_of_memory", "integer", "batch size, in images"),
        Column("not_in_table", "string", "batch sizes the source has for other cases, but not for this"),
    )
}
_FITTED, _OTHER = mark("fitted"), mark("neither: see its status")
# The colours of the map's cells.
_FATES = {_FITTED: figures.PALETTE[2], OUT_OF_MEMORY: figures.PALETTE[1], _OTHER: "#9A9A9A"}

_Axes = dict[str, Any]
# Case ids by batch size, of cases that differ in nothing else.
_Line = dict[int, str]


def memory(suite_cases: SuiteCases) -> View:
    """A table and a map of batch sizes; empty where no case ran out of memory, here or at a source."""
    lines = _lines(suite_cases)
    published = {
        key: [number for number in suite_cases.numbers if number.key == key and BATCH_SIZE in number.axes]
        for key in suite_cases.hardware
    }
    by_network = {key: numbers_by_network(numbers) for key, numbers in published.items()}
    ran = {key: {int(number.axes[BATCH_SIZE]) for number in numbers} for key, numbers in published.items()}
    rows = [row for axes, line in lines for row in _rows(suite_cases, axes, line, by_network, ran)]
    if not any(row["smallest_out_of_memory"] or row["not_in_table"] for row in rows):
        return View()
    blocks: tuple[Block, ...] = (_table(suite_cases, lines, rows), *_chart(suite_cases, lines))
    return View(blocks, {"memory": [{**row, "not_in_table": _listed(row["not_in_table"])} for row in rows]})


def _lines(suite_cases: SuiteCases) -> list[tuple[_Axes, _Line]]:
    """Every line of two batch sizes or more, with the axes that its cases share."""
    by_axes: dict[str, tuple[_Axes, _Line]] = {}
    for case_id in suite_cases.case_ids:
        axes = suite_cases.axes[case_id]
        if BATCH_SIZE in axes:
            rest = {axis: value for axis, value in axes.items() if axis != BATCH_SIZE}
            by_axes.setdefault(str(rest), (rest, {}))[1][axes[BATCH_SIZE]] = case_id
    return [(axes, line) for axes, line in by_axes.values() if len(line) > 1]


def _rows(
    suite_cases: SuiteCases,
    axes: _Axes,
    line: _Line,
    by_network: Mapping[str, Mapping[Value | None, Sequence[Number]]],
    ran: Mapping[str, Set[int]],
) -> Iterator[dict[str, Any]]:
    """The rows of memory.csv for a line; `not_in_table` is still a list.

    by_network: the published numbers with a batch size, by hardware and network. ran: their batch sizes, by hardware.
    """
    for environment in suite_cases.environments:
        statuses = {batch_size: suite_cases.status(case_id, environment) for batch_size, case_id in line.items()}
        fitted = [batch_size for batch_size, status in statuses.items() if OK in status.split(", ")]
        too_large = [batch_size for batch_size, status in statuses.items() if OUT_OF_MEMORY in status]
        sizes = {"largest_fitted": max(fitted, default=None), "smallest_out_of_memory": min(too_large, default=None)}
        yield {**axes, "series": environment, **sizes, "not_in_table": []}
    for key, hardware in suite_cases.hardware.items():
        numbers = by_network[key].get(axes.get(MODEL), by_network[key][None])
        of_line = (number for number in numbers if number.matches({**axes, BATCH_SIZE: number.axes[BATCH_SIZE]}))
        published = {int(number.axes[BATCH_SIZE]) for number in of_line}
        if published:
            sizes = {"largest_fitted": max(published), "smallest_out_of_memory": None}
            series = published_name(hardware.title)
            yield {**axes, "series": series, **sizes, "not_in_table": sorted(ran[key] - published)}


def _table(suite_cases: SuiteCases, lines: list[tuple[_Axes, _Line]], rows: list[dict[str, Any]]) -> Table:
    """The largest batch size that fitted and the smallest that did not: a row per line, two columns per series."""
    shown_axes = {*differing_axes(axes for axes, _ in lines), MODEL, DEVICES} - {BATCH_SIZE}
    series = list(dict.fromkeys(row["series"] for row in rows))
    by_line = {(_key(row), row["series"]): row for row in rows}
    table = []
    for axes, _ in lines:
        cells = [text_cell(case_text(axes, shown_axes))]
        for name in series:
            row = by_line.get((_key(axes), name))
            missing = NOT_PLANNED if name in suite_cases.environments else NOT_PUBLISHED
            cells += _cells(row) if row else [status_cell(missing), status_cell(NOTHING)]
        table.append(cells)
    columns = [t("case"), *[t("largest that fitted"), t("smallest that did not")] * len(series)]
    notes = [
        t(
            "Batch sizes, in images. “Not in its table”: the source ran this size for other cases and has no row of it "
            "here."
        )
    ]
    return Table(
        columns, table, title=t("What fits in memory"), groups=[("", 1), *((name, 2) for name in series)], notes=notes
    )


def _key(row: _Axes) -> frozenset[tuple[str, Any]]:
    return frozenset((axis, value) for axis, value in row.items() if axis not in names_without_axes(TABLES["memory"]))


def _cells(row: dict[str, Any]) -> list[Cell]:
    fitted, too_large, not_in_table = row["largest_fitted"], row["smallest_out_of_memory"], row["not_in_table"]
    largest = _count(fitted) if fitted else status_cell(t("none"))
    if too_large:
        return [largest, _count(too_large)]
    return [
        largest,
        status_cell(t("not in its table: {sizes}", sizes=_listed(not_in_table)) if not_in_table else NOTHING),
    ]


def _count(batch_size: int) -> Cell:
    return Cell(f"{batch_size:,}", batch_size, kind="number")


def _listed(batch_sizes: list[int]) -> str:
    return ", ".join(map(str, batch_sizes))


def _chart(suite_cases: SuiteCases, lines: list[tuple[_Axes, _Line]]) -> Iterator[Chart]:
    """A map of the batch sizes by environment, for the lines on which a case ran out of memory."""
    shown_axes = {*differing_axes(axes for axes, _ in lines), MODEL, DEVICES} - {BATCH_SIZE}
    rows: list[dict[str, Any]] = []
    for axes, line in lines:
        fates = [
            (environment, batch_size, _fate(suite_cases.status(case_id, environment)))
            for environment in suite_cases.environments
            for batch_size, case_id in line.items()
        ]
        if any(fate == OUT_OF_MEMORY for *_, fate in fates):
            case = case_text(axes, shown_axes)
            rows += [
                {"environment": environment, "case": case, "batch_size": batch_size, "fate": status_text(fate)}
                for environment, batch_size, fate in fates
                if fate
            ]
    if rows:
        caption = t("Batch sizes of every network that ran out of memory somewhere, by environment.")
        name = f"{suite_cases.suite}-{suite_cases.protocol}-memory"
        yield figures.block(_map(rows), t("What fits in memory"), name, caption)


def _fate(status: str) -> str:
    if OUT_OF_MEMORY in status:
        return OUT_OF_MEMORY
    return "" if status == NOT_PLANNED else _FITTED if OK in status.split(", ") else _OTHER


def _map(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A column of panels, by environment. Symbols repeat the colours, for readers who do not see colours."""
    fates = list(map(status_text, _FATES))
    fate = {"field": "fate", "type": "nominal", "legend": {"title": None, "orient": "bottom", "labelLimit": 0}}
    cases = list(dict.fromkeys(row["case"] for row in rows))
    title = vocabulary_in_use().axis(BATCH_SIZE).drawn_as
    encoding = {
        "x": {"field": "batch_size", "type": "ordinal", "title": title, "axis": {"labelAngle": 0}},
        "y": {"field": "case", "type": "nominal", "title": None, "sort": cases, "axis": {"labelLimit": 330}},
        "color": {**fate, "scale": {"domain": fates, "range": [*_FATES.values()]}},
        "shape": {**fate, "scale": {"domain": fates, "range": ["square", "cross", "circle"]}},
    }
    symbols = figures.layer({"type": "point", "filled": True, "opacity": 1, "size": 140}, encoding)
    return {
        **figures.data_of(rows),
        "facet": {"field": "environment", "type": "nominal", "header": figures.HEAD_AT_START},
        "columns": 1,
        "spacing": 10,
        "spec": {**symbols, "width": {"step": 56}, "height": {"step": 26}},
    }
