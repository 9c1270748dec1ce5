"""Declarations of the columns of a table, the columns that they stand for in a report, and rows as values of these.

A module declares its tables as TABLES, beside the code of their rows. schema.py has the tables of a run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from tsuishi.estimates.intervals import Contrast
from tsuishi.estimates.ratios import as_ratio
from tsuishi.results import schema
from tsuishi.results.schema import Column as Column
from tsuishi.specs.axes import Axis
from tsuishi.specs.case import BATCH_SIZE, PROTOCOL, SUITE
from tsuishi.verdicts.evidence import Evidence

_DESCRIPTION = (
    "An apostrophe stands before text that a spreadsheet would take for a formula, as it begins with =, +, - or @; "
    "also where blanks or quotes come first, or in text a semicolon, a tab or a line's end. Numbers are exact."
)


class AxisColumns(NamedTuple):
    """Stands for a column per axis: the `named` axes, or all `but` some; `of_lines`: the axes that tell lines apart."""

    named: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    of_lines: bool = False

    def __call__(self, evidence: Evidence) -> Iterator[Column]:
        return map(schema.axis_column, _axes_of(evidence, self))


Columns = tuple[Column, ...]
# The columns of a table; a function gives those that depend on the evidence of a report.
Declared = tuple[Column | AxisColumns | Callable[[Evidence], Iterable[Column]], ...]
Tables = dict[str, Declared]
EVERY_AXIS = AxisColumns()
WHERE = AxisColumns((SUITE, PROTOCOL))


def interval(name: str, description: str) -> Columns:
    """The columns of a value and of its interval; see `interval_cells`."""
    ends = (("low", "lower"), ("high", "upper"))
    of_ends = (Column(f"{name}_{end}", "number", f"{word} end of its 95 % interval") for end, word in ends)
    return (Column(name, "number", description), *of_ends)


# Columns of several tables.
CASE_ID = Column("case_id", "string", "hash of the case's canonical JSON: the same case everywhere")
ENVIRONMENT = Column("environment", "string", "environment, with its id and machine where several share its name")
SERIES = Column("series", "string", "environment, or published hardware")
SOURCE = Column("source", "string", "reports/published/<source>.toml")
HARDWARE = Column("hardware", "string", "published hardware")
QUANTITY = Column("quantity", "string", "what the number measures")
UNIT = Column("unit", "string", "of the quantity; 1 is a pure number")
BLOCKS = Column("blocks", "integer", "timed blocks it rests on")
SIMULATED = Column("simulated", "boolean", "some devices were not distinct real GPUs")
SYNTHETIC = Column("synthetic", "boolean", "the data were made up")
DERIVED = Column("derived", "boolean", "no full epoch was run, or it is calculated from the work of a step")
FAMILY: Columns = (
    Column("level", "number", "the verdict follows from the interval of confidence 1 - level; empty: no look yet"),
    Column("family_low", "number", "lower end of that interval"),
    Column("family_high", "number", "upper end of that interval"),
)
_COLUMN = Column("column", "string", "its column in the report: see environment elsewhere")
# The frames of the evidence, which no module of a report makes.
TABLES: Tables = {
    "trials": (
        Column("run_id", "string", "the run it belongs to"),
        *schema.TRIALS,
        EVERY_AXIS,
        Column("machine", "string", "id of the record that stands for all of its machine"),
        _COLUMN,
    ),
    "estimates": (
        Column("run_id", "string", "the run of the trial"),
        Column("trial_id", "string", "the trial"),
        *(WHERE, CASE_ID),
        Column("environment", "string", "name of the environment (images/<name>.toml)"),
        _COLUMN,
        *(SIMULATED, SYNTHETIC, QUANTITY),
        Column("value", "number", "total time of the trial's blocks over their steps, or as its quantity says"),
        UNIT,
        Column("low", "number", "lower quartile of the blocks"),
        Column("high", "number", "upper quartile of the blocks"),
        *(BLOCKS, DERIVED),
        Column("rounding", "number", "half a unit of the last digit of printed numbers, in the unit of the value"),
    ),
}


def columns_of(evidence: Evidence, declared: Declared) -> Columns:
    """The columns, each name once: an explanation may declare a column that is an axis of a suite."""
    named: dict[str, Column] = {}
    for entry in declared:
        some = [entry] if isinstance(entry, Column) else entry(evidence)
        named |= {column.name: column for column in some if column.name not in named}
    return (*named.values(),)


def _axes_of(evidence: Evidence, which: AxisColumns) -> Iterator[Axis]:
    """The axes that an entry stands for: named axes in the order of their names, others in canonical order."""
    axes = evidence.words.axes
    if which.named:
        yield from (evidence.words.axis(name) for name in which.named)
    elif which.of_lines:
        used = {name for case in evidence.every_axes if BATCH_SIZE in case for name in case}
        apart = (SUITE, PROTOCOL, BATCH_SIZE)
        yield from (axis for name, axis in axes.items() if axis.in_fits or (name in used and name not in apart))
    else:
        yield from (axis for name, axis in axes.items() if name not in which.but)


def filled(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The values of exactly these columns, in this order, from rows; None where a row has no value.

    Raises ValueError where a row has another column.
    """
    known = names_without_axes(columns)
    unknown = sorted(set().union(*rows) - set(known))
    if unknown:
        raise ValueError(f"no such column: {', '.join(unknown)}; declare it among the columns of its table")
    return {name: list(map(dict.get, rows, repeat(name))) for name in known}


def names_without_axes(declared: Iterable[object]) -> list[str]:
    """The names of the columns, without axes."""
    return [column.name for column in declared if isinstance(column, Column)]


def cells(declared: Declared, of: object) -> dict[str, Any]:
    """The cells of the columns that have the name of an attribute of this object."""
    return {name: getattr(of, name) for name in names_without_axes(declared) if hasattr(of, name)}


def interval_cells(name: str, values: Iterable[float | None]) -> dict[str, float | None]:
    """The cells of `interval`, from a value and the ends of its interval."""
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def ratio_columns(logarithm: Contrast | None) -> dict[str, float | None]:
    """The cells `ratio`, `ratio_low` and `ratio_high` of a row, from the logarithm of a ratio."""
    return interval_cells("ratio", as_ratio(logarithm) if logarithm else (None, None, None))


def report_package(declared: Mapping[str, Columns]) -> str:
    """The text of tables/datapackage.json, from the columns of every table."""
    package = {"description": _DESCRIPTION, **schema.data_package("tsuishi-report", declared)}
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"
