"""The tables that trials write, as arrays: a part is read once, cell by cell, and held to the types of the schema."""

import csv
import hashlib
import io
from array import array
from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, NamedTuple

import numpy as np

from tsuishi.base.errors import UserError
from tsuishi.base.files import read_bytes
from tsuishi.base.printable import PRINTABLE_ASCII, visible
from tsuishi.results import schema
from tsuishi.results.schema import Column

REMEDY = "restore the file, or remove the trial's folder"


class TableArrays(NamedTuple):
    """A table of many trials: the rows of a trial lie together, in the order of the trials.

    `counts`: the rows of each trial, int64[trials]. `columns`: by name, float64[rows] where the column has numbers
    (NaN: an empty cell), else int32[rows], each the place of a text in `texts[name]`.
    """

    counts: np.ndarray
    columns: dict[str, np.ndarray]
    texts: dict[str, list[str]]


class Parts:
    """Reads the parts of a table, one trial after the other."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._columns = columns_of(table)
        self._counts = array("q")
        self._values: dict[str, array[Any]] = {
            column.name: array("d" if _is_number(column) else "i") for column in self._columns
        }
        self._places: dict[str, dict[str, int]] = {
            column.name: {} for column in self._columns if not _is_number(column)
        }

    def add(self, folder: str, digests: Mapping[str, str] | None = None) -> None:
        """Read the part of a trial; a trial that wrote none has no rows.

        digests: the SHA-256 of the trial's tables by their names, as its trial.json has them; None where an earlier
        tsuishi wrote none. Raises UserError where the part has changed since, or has a wrong value.
        """
        path = f"{folder}/{self._table}.csv"
        part = _content(path)
        if digests is not None:
            digest = None if part is None else hashlib.sha256(part).hexdigest()
            if digests.get(self._table) != digest:
                what = "is missing" if part is None else "was changed"
                raise UserError(f"{path}: {what} since its trial wrote it: restore it, or remove the trial's folder")
        rows = _rows(path, part or b"", [column.name for column in self._columns])
        self._counts.append(len(rows))
        for column, cells in zip(self._columns, zip(*rows, strict=True), strict=bool(rows)):
            self._add_cells(path, column, cells)

    def _add_cells(self, path: str, column: Column, cells: Sequence[str]) -> None:
        values = self._values[column.name]
        if not _is_number(column):
            places = self._places[column.name]
            values.extend([places.setdefault(cell, len(places)) for cell in cells])
            return
        try:
            numbers = [float(cell) if cell else nan for cell in cells]
            if column.type == "integer":
                _check_whole(numbers)
        except (ValueError, OverflowError) as error:
            reason = f"column '{column.name}' should be of type {column.type}: {error}"
            raise UserError(f"{path}: {reason}: {REMEDY}") from error
        values.extend(numbers)

    def table(self) -> TableArrays:
        """The rows of all trials that were added."""
        types = {"d": np.float64, "i": np.int32}
        columns = {name: np.frombuffer(values, types[values.typecode]) for name, values in self._values.items()}
        counts = np.frombuffer(self._counts, np.int64)
        return TableArrays(counts, columns, {name: list(places) for name, places in self._places.items()})


def columns_of(table: str) -> list[Column]:
    """The columns of a trial's part of a table."""
    return [column for column in schema.OF_A_TRIAL[table] if column.name != "trial_id"]


def _is_number(column: Column) -> bool:
    return column.type in ("integer", "number")


def joined(tables: Sequence[TableArrays]) -> TableArrays:
    """The trials of all these tables, in their order. Raises ValueError where there is no table."""
    first, *others = [table for table in tables if len(table.counts)] or tables[:1]
    if not others:
        return first
    counts = np.concatenate([table.counts for table in tables])
    columns, texts = {}, {}
    for name in first.columns:
        values = [table.columns[name] for table in tables]
        if name in first.texts:
            places = {text: place for place, text in enumerate(first.texts[name])}
            recoded = [
                np.array([places.setdefault(text, len(places)) for text in table.texts[name]] or [0], np.int32)
                for table in tables
            ]
            values = [new[old] for new, old in zip(recoded, values, strict=True)]
            texts[name] = list(places)
        columns[name] = np.concatenate(values)
    return TableArrays(counts, columns, texts)


def chosen(table: TableArrays, trials: np.ndarray) -> TableArrays:
    """The rows of some trials, by the places of these trials (int64) in the order that is asked for."""
    starts = (np.cumsum(table.counts) - table.counts)[trials]
    counts = table.counts[trials]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = np.repeat(starts, counts) + within
    return TableArrays(counts, {name: values[rows] for name, values in table.columns.items()}, table.texts)


def _content(path: str) -> bytes | None:
    """The content of a part; None where there is no file."""
    try:
        return read_bytes(path)
    except UserError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def _rows(path: str, part: bytes, names: Sequence[str]) -> list[list[str]]:
    """The cells of a part by row, in the order of `names`; a cell that is not there is empty."""
    plain = not part.translate(None, PRINTABLE_ASCII)
    try:
        head, *rows = [row for row in csv.reader(io.StringIO(part.decode(errors="replace"), newline="")) if row] or [[]]
    except csv.Error as error:
        raise UserError(f"{path}: cannot be read: {error}; remove its trial") from error
    if head != names or {len(row) for row in rows} - {len(names)}:
        cells = (dict(zip(head, row, strict=False)) for row in rows)
        rows = [[known.get(name, "") for name in names] for known in cells]
    return rows if plain else visible(rows)


def _check_whole(numbers: Sequence[float]) -> None:
    """Raise ValueError or OverflowError where a number that is there is no 64-bit integer."""
    for number in numbers:
        if number == number and (int(number) != number or abs(number) >= 2**63):
            raise ValueError(f"{number!r} is no integer")
