"""The tables of runs (reader.py) as pandas frames, with the types that the schema gives."""

import csv
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from tsuishi.base.errors import UserError
from tsuishi.results import schema
from tsuishi.results.reader import TRIAL
from tsuishi.results.schema import Column

_BOOLEANS = {"true": True, "false": False, "none": None, "": None}


def frame(table: str, text: bytes, folder: Callable[[int], Path]) -> pd.DataFrame:
    """A table that has many rows of a trial, with the trial's number (see RunContents.tables) and the schema's types.

    folder: gives the folder of a trial. Raises UserError, which names the file, for a value of another type.
    """
    types = {column.name: column.type for column in schema.OF_A_TRIAL[table] if column.name != "trial_id"}
    numbers = [name for name, kind in types.items() if kind in ("integer", "number")]
    texts = [name for name in types if name not in numbers]

    def read(text_type: str) -> pd.DataFrame:
        return pd.read_csv(
            io.BytesIO(text),
            dtype={TRIAL: "int64", **dict.fromkeys(numbers, "float64"), **dict.fromkeys(texts, text_type)},
            na_values={name: [""] for name in numbers},
            keep_default_na=False,
        )

    try:
        rows = read("category")
        # Categories are read in half the time, but texts that all look like numbers become numbers.
        if any(is_numeric_dtype(rows[name].cat.categories) for name in texts):
            rows = read("object")
        whole = [name for name in numbers if types[name] == "integer"]
        return rows.astype({**dict.fromkeys(whole, "Int64"), **dict.fromkeys(texts, "category")})
    except (TypeError, ValueError, OverflowError):
        # Slower, but it says which value is wrong.
        lines = [{**row, TRIAL: int(row[TRIAL])} for row in csv.DictReader(io.StringIO(text.decode(), newline=""))]
        for trial, own in itertools.groupby(lines, key=itemgetter(TRIAL)):
            try:
                _typed_rows(table, [*own])
            except UserError as error:
                raise UserError(f"{folder(trial)}/{error}") from error
        return _typed_rows(table, lines)


def refuse_wrong_rows(tables: Mapping[str, pd.DataFrame], ok: np.ndarray, folder: Callable[[int], Path]) -> None:
    """Raise UserError for a row that no workload can have sent; it names the file and says how to go on.

    ok: of every trial whether it ended well; the others may have been killed while they wrote, and are not checked.
    folder: gives the folder of a trial.
    """
    used = {table: rows[ok[rows[TRIAL]]] for table, rows in tables.items()}
    for table, what, right in _checks(used):
        rows = used[table]
        if not right.all():
            first = int(np.argmin(right))
            trial = rows[TRIAL].iloc[first]
            number = int((rows[TRIAL].iloc[: first + 1] == trial).sum())
            file = folder(trial) / f"{table}.csv"
            raise UserError(f"{file}: row {number}: {what}: restore the file, or remove the trial's folder")


def _checks(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple[str, str, np.ndarray]]:
    """Every check: its table, what is wrong with a row that fails it, and of every row whether it passes."""

    def within(table: str, column: str, least: float) -> np.ndarray:
        values = tables[table][column].to_numpy("float64", na_value=np.nan)
        return (values >= least) & (values < np.inf)

    samples = tables["samples"]
    place = samples.groupby([TRIAL, "phase"], observed=True).cumcount()
    yield "samples", "its index is not its place in its phase", samples["index"].eq(place).fillna(False).to_numpy(bool)
    yield "samples", "steps is not 1 or more", within("samples", "steps", 1)
    yield "samples", "images is not 0 or more", within("samples", "images", 0)
    yield "samples", "seconds is not above 0 and finite", within("samples", "seconds", np.nextafter(0, 1))
    yield "metrics", "value is not finite", np.isfinite(tables["metrics"]["value"].to_numpy())
    yield "telemetry", "elapsed_s is not 0 or more", within("telemetry", "elapsed_s", 0)


def _typed_rows(table: str, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows of many trials as a typed frame, with the trial's number in place of its id."""
    names = [name for name in schema.names(table) if name != "trial_id"]
    frame = pd.DataFrame({TRIAL: pd.Series([row[TRIAL] for row in rows], dtype="int64")})
    columns = [column for column in schema.OF_A_TRIAL[table] if column.name != "trial_id"]
    return frame.join(typed(table, columns, {name: [row.get(name) for row in rows] for name in names}))


def typed(table: str, columns: Iterable[Column], values_of: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """These columns of a table as a frame, with their types; a text is never NaN. values_of: by column.

    Raises UserError where a value is not of its type.
    """
    frame = pd.DataFrame()
    for column in columns:
        name, kind, values = column.name, column.type, values_of[column.name]
        try:
            if kind in ("integer", "number"):
                known = [None if value == "" else value for value in values]
                numbers = pd.to_numeric(pd.Series(known, dtype="object"))
                frame[name] = numbers.astype("Int64" if kind == "integer" else "float64")
            elif kind == "boolean":
                frame[name] = pd.Series([_BOOLEANS[str(value).lower()] for value in values], dtype="boolean")
            else:
                frame[name] = pd.Series(["" if value is None else str(value) for value in values], dtype="object")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            reason = f"column '{name}' should be of type {kind}: {error}"
            raise UserError(f"{table}.csv: {reason}: restore the file, or remove the trial's folder") from error
    return frame
