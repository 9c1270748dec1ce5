"""Tables as CSV files."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from tsuishi.report.parts.blocks import TableValues
from tsuishi.results.frames import is_nothing
from tsuishi.results.schema import exact

# Where text would begin a formula in a spreadsheet, also if semicolons or tabs separate the cells. The text that is
# read ahead contains no such beginning, so it is read once.
_FORMULA = re.compile(r"""(?:^|(?<=[;\t\n]))(?=(?:[^\S\t\n]|["'])*[=+\-@＝＋－＠])""")
_ROWS = 20_000
_NOTHING = {type(None), type(pd.NA)}
# Values that stand for a missing number.
_NO_NUMBER = {repr(None), repr(float("nan")), repr(pd.NA)}


def text(columns: TableValues) -> str:
    """A table as CSV."""
    return "".join(parts(columns))


def parts(columns: TableValues) -> Iterator[str]:
    """A table as CSV, so many rows at a time: all cells of a large run's estimates at once would be gigabytes.

    By columns, as csv.writer takes thrice as long.
    """
    yield ",".join(map(_cell, columns)) + "\n" * bool(columns)
    for begin in range(0, max(map(len, columns.values()), default=0), _ROWS):
        several = (values[begin : begin + _ROWS] for values in columns.values())
        cells = [_cells(some.tolist() if isinstance(some, pd.Series) else some) for some in several]
        yield "\n".join([*map(",".join, zip(*cells, strict=True)), ""])


def _cells(values: Sequence[Any]) -> list[str]:
    kinds = set(map(type, values)) - _NOTHING
    if not kinds:
        return [""] * len(values)
    if kinds <= {float, int}:
        return ["" if text in _NO_NUMBER else text for text in map(repr, values)]
    # Few other values are equal, and 1 equals True.
    if kinds in ({str}, {bool}):
        known = {value: _cell(value) for value in set(values)}
        return list(map(known.__getitem__, values))
    return list(map(_cell, values))


def _cell(value: Any) -> str:
    """A value as tables have it, in quotes where it has to be. Text is no formula; a number stays a number."""
    text = "" if is_nothing(value) else str(exact(value))
    if isinstance(value, str):
        text = _FORMULA.sub("'", text)
    return '"' + text.replace('"', '""') + '"' if any(special in text for special in ',"\n') else text
