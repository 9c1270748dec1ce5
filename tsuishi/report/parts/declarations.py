"""Declarations of the columns of a table, the columns that they stand for in a report, and rows as values of these."""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from tsuishi.estimates.intervals import Contrast
from tsuishi.estimates.ratios import as_ratio
from tsuishi.results import schema
from tsuishi.results.schema import Column
from tsuishi.specs.axes import Axis
from tsuishi.specs.case import BATCH_SIZE, PROTOCOL, SUITE
from tsuishi.verdicts.evidence import Evidence


class AxisColumns(NamedTuple):
    """Stands for a column per axis: the `named` axes, or all `but` some; `of_lines`: the axes that tell lines apart."""

    named: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    of_lines: bool = False


Columns = tuple[Column, ...]
# The columns of a table, before the vocabulary of a report says which axes there are.
Declared = tuple[Column | AxisColumns, ...]
EVERY_AXIS = AxisColumns()
WHERE = AxisColumns((SUITE, PROTOCOL))


def columns_of(evidence: Evidence, declared: Declared) -> Columns:
    """The columns, each name once: an explanation may declare a column that is an axis of a suite."""
    named: dict[str, Column] = {}
    for entry in declared:
        some = [entry] if isinstance(entry, Column) else map(schema.axis_column, _axes_of(evidence, entry))
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
    names = [column.name for column in columns]
    unknown = sorted(set().union(*rows) - set(names))
    if unknown:
        raise ValueError(f"no such column: {', '.join(unknown)}; declare it among the columns of its table")
    return {name: list(map(dict.get, rows, repeat(name))) for name in names}


def ratio_columns(logarithm: Contrast | None) -> dict[str, float | None]:
    """The cells `ratio`, `ratio_low` and `ratio_high` of a row, from the logarithm of a ratio."""
    values = as_ratio(logarithm) if logarithm else (None, None, None)
    return dict(zip(("ratio", "ratio_low", "ratio_high"), values, strict=True))
