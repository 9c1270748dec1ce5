"""The tables of trials as pandas frames, with the types that the schema gives."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tsuishi.base.errors import UserError
from tsuishi.results.schema import Column
from tsuishi.results.trial_tables import REMEDY, TableArrays, columns_of

# The column of a trial's place among all trials, where a table has many rows of a trial.
TRIAL = "trial"
_BOOLEANS = {"true": True, "false": False, "none": None, "": None}


def frame(name: str, table: TableArrays) -> pd.DataFrame:
    """A table as a frame with the types of the schema; `trial` is the place of a row's trial among all trials."""
    columns: dict[str, Any] = {TRIAL: np.repeat(np.arange(len(table.counts)), table.counts)}
    for column in columns_of(name):
        values = table.columns[column.name]
        if column.type == "integer":
            missing = np.isnan(values)
            columns[column.name] = pd.arrays.IntegerArray(np.where(missing, 1, values).astype("int64"), missing)
        elif column.type == "number":
            columns[column.name] = values
        else:
            columns[column.name] = _categorical(values, table.texts[column.name])
    return pd.DataFrame(columns, copy=False)


def _categorical(places: np.ndarray, texts: Sequence[str]) -> "pd.Categorical[Any]":
    """Texts that are given as places in a list; the categories are those in use, sorted."""
    used = sorted(np.unique(places).tolist(), key=texts.__getitem__)
    codes = np.zeros(len(texts) + 1, np.int32)
    codes[used] = np.arange(len(used))
    categories = pd.Index([texts[place] for place in used], dtype=object)
    return pd.Categorical.from_codes(codes[places], categories)


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
            raise UserError(f"{file}: row {number}: {what}: {REMEDY}")


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
