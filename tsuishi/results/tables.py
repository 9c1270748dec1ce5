"""The tables of trials as pandas frames, with the types that the schema gives."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsuishi.base.errors import UserError
from tsuishi.results.schema import Column
from tsuishi.results.trial_tables import TableArrays, columns_of

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
