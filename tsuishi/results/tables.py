"""What runs recorded (reader.py) as pandas frames, with the types the schema gives."""

import csv
import io
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from tsuishi.results import schema
from tsuishi.results.reader import TRIAL
from tsuishi.results.schema import Column
from tsuishi.base.errors import UserError

_BOOLEANS = {"true": True, "false": False, "none": None, "": None}


def frame(table: str, text: bytes, folder: Callable[[int], Path]) -> pd.DataFrame:
    """A table of many rows to a trial, with the trial's number (see Recorded.tables) and the schema's types.

    `folder`: of a trial, where its files are. Raises UserError for a value of another type, naming its file.
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
        found = read("category")
        # As categories at once, which takes half the time, texts that all look like numbers become such.
        if any(is_numeric_dtype(found[name].cat.categories) for name in texts):
            found = read("object")
        whole = [name for name in numbers if types[name] == "integer"]
        return found.astype({**dict.fromkeys(whole, "Int64"), **dict.fromkeys(texts, "category")})
    except (TypeError, ValueError, OverflowError):
        # Slower, but it says which value is wrong.
        rows = [{**row, TRIAL: int(row[TRIAL])} for row in csv.DictReader(io.StringIO(text.decode(), newline=""))]
        for trial, own in itertools.groupby(rows, key=itemgetter(TRIAL)):
            try:
                typed(table, schema.OF_A_TRIAL[table], [*own], TRIAL)
            except UserError as error:
                raise UserError(f"{folder(trial)}/{error}") from error
        return typed(table, schema.OF_A_TRIAL[table], rows, TRIAL)


def refuse_wrong_rows(tables: Mapping[str, pd.DataFrame], ok: np.ndarray, folder: Callable[[int], Path]) -> None:
    """Raise UserError for a row that no workload can have sent, which names its file and how to go on.

    `ok`: of every trial, whether it ended well; the others, which may have been killed while they wrote, are not used.
    `folder`: of a trial, where its files are.
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
    """(table, what is wrong, of every row whether it is right)."""

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


def typed(table: str, columns: Sequence[Column], rows: list[dict[str, Any]], key: str) -> pd.DataFrame:
    """Rows as a frame of the column `key`, as it is, and the table's columns with their types; text is never NaN.

    There is no trial_id where `key` is the number of the trial. Raises UserError where a value is not of its type.
    """
    frame = pd.DataFrame({key: pd.Series([row[key] for row in rows], dtype="int64" if key == TRIAL else "object")})
    for column in columns:
        name, kind = column.name, column.type
        if key == TRIAL and name == "trial_id":
            continue
        values = [row.get(name) for row in rows]
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
