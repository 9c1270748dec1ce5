"""The gathered tables of a run as pandas frames, with the types that the schema gives. Numbers are exact."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import TypeAdapter, ValidationError

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.printable import visible
from tsuishi.results import schema
from tsuishi.results.facts import Phase, Scalar
from tsuishi.results.record_files import REMEDY as ALL_OF_IT
from tsuishi.results.schema import Column
from tsuishi.specs.statuses import RECORDED
from tsuishi.specs.trial_spec import Lengths, Value

# The column of a trial's place among all trials, where a table has many rows of a trial.
TRIAL = "trial"
REMEDY = "restore the file, or remove the trial's folder"
_BOOLEANS = {"true": True, "false": False, "": None}
_NUMBERS = ("integer", "number")
_DETAILS: Mapping[str, TypeAdapter[Any]] = {
    "phases": TypeAdapter(list[Phase]),
    "flags": TypeAdapter(dict[str, Scalar]),
    "settings": TypeAdapter(Lengths),
    "command": TypeAdapter(list[str]),
}


@dataclass(frozen=True)
class TrialDetails:
    """What a report says of a trial beside its columns, see schema.DETAILS; empty where it is not known.

    Phases and command are parsed when they are asked for, as those of few trials are.
    """

    flags: dict[str, Scalar]
    settings: dict[str, Value]
    _phases: str
    _command: str

    @classmethod
    def parsed(cls, phases: str, flags: str, settings: str, command: str) -> "TrialDetails":
        """From the cells of a trial. Raises UserError for flags or settings that are none."""
        return cls(_detail("flags", flags) or {}, _detail("settings", settings) or {}, phases, command)

    @property
    def phases(self) -> list[Phase]:
        """Raises UserError where the cell holds none."""
        return _detail("phases", self._phases) or []

    @property
    def command(self) -> list[str]:
        """Raises UserError where the cell holds none."""
        return _detail("command", self._command) or []


class RunTables(NamedTuple):
    """The tables of a run. `trials`: the columns of schema.TRIALS, in the order of their ids.

    `details`: of each trial. `tables`: by name; `trial` is the place of a row's trial, and the rows of a trial lie
    together, in the order of the trials.
    """

    trials: pd.DataFrame
    details: list[TrialDetails]
    tables: dict[str, pd.DataFrame]


def read(folder: Path, run: Path) -> RunTables:
    """The gathered tables in a folder. run: the folder of the run, for messages.

    Raises UserError where a value is not of its column's type.
    """
    path = folder / "trials.csv"
    frame = _read(path, run, (*schema.TRIALS, *schema.DETAILS))
    if unknown := {*frame["status"]} - {*RECORDED}:
        raise UserError(f"{path}: '{min(unknown)}' is no status; {ALL_OF_IT}")
    details = [*map(TrialDetails.parsed, *(frame.pop(column.name).tolist() for column in schema.DETAILS))]
    place_of = {trial_id: place for place, trial_id in enumerate(frame["trial_id"])}
    tables = {}
    for name, columns in schema.OF_A_TRIAL.items():
        rows = _read(folder / f"{name}.csv", run, columns)
        trials = rows.pop("trial_id").array
        try:
            places = np.array([place_of[trial] for trial in trials.categories], np.int64)[trials.codes]
        except KeyError as error:
            raise UserError(f"{folder / name}.csv: a row is of {error}, which is no trial of the run") from error
        rows.insert(0, TRIAL, places)
        tables[name] = (
            rows.sort_values(TRIAL, kind="stable", ignore_index=True) if (np.diff(places) < 0).any() else rows
        )
    return RunTables(frame, details, tables)


@lru_cache(maxsize=10_000)
def _detail(name: str, text: str) -> Any:
    """The value of a column of schema.DETAILS; None for an empty cell. Raises UserError where it is none."""
    if not text:
        return None
    try:
        return _DETAILS[name].validate_json(json.dumps(visible(json.loads(text))), strict=True)
    except (ValidationError, ValueError, RecursionError) as error:
        raise UserError(f"trials.csv: column '{name}' has {text[:60]}, which it cannot have; {ALL_OF_IT}") from error


def _read(path: Path, run: Path, columns: Sequence[Column]) -> pd.DataFrame:
    """These columns of a table. Texts of a table with many rows of a trial are categories."""
    try:
        with files.reading(path) as file:
            return _parsed(file, columns)
    except (ValueError, KeyError, OverflowError) as error:
        wrong = _wrong_cells(path, run, columns)
        raise next(wrong, UserError(f"{path}: cannot be read: {error}; {REMEDY}")) from error


def _parsed(file: IO[Any], columns: Sequence[Column]) -> pd.DataFrame:
    """These columns of a table in a file. Raises ValueError, KeyError or OverflowError for a value of another type."""
    names = [column.name for column in columns]
    numbers = [column.name for column in columns if column.type in _NUMBERS]
    frame = pd.read_csv(
        file,
        usecols=names,
        dtype={name: "float64" if name in numbers else object for name in names},
        na_values={name: [""] for name in numbers},
        keep_default_na=False,
        lineterminator="\n",
        encoding_errors="replace",
        index_col=False,
        low_memory=False,
    )
    text: Callable[[np.ndarray], Any] = _texts if columns[:1] == schema.TRIALS[:1] else _categories
    typed: dict[str, Callable[[np.ndarray], Any]] = {
        "integer": _integers,
        "number": lambda values: values,
        "boolean": _booleans,
    }
    values = {column.name: typed.get(column.type, text)(frame[column.name].to_numpy()) for column in columns}
    return pd.DataFrame(values, copy=False)


def _texts(values: np.ndarray) -> "pd.Series[Any]":
    return pd.Series([visible(text) for text in values.tolist()], dtype="object")


def _booleans(values: np.ndarray) -> Any:
    return pd.array([_BOOLEANS[text] for text in values.tolist()], dtype="boolean")


def _integers(values: np.ndarray) -> pd.arrays.IntegerArray:
    """Raises ValueError or OverflowError where a number that is there is no 64-bit integer."""
    missing = np.isnan(values)
    whole = np.where(missing, 1, values)
    for number in whole[(np.floor(whole) != whole) | (np.abs(whole) >= 2**63)].tolist():
        if int(number) != number or abs(number) >= 2**63:
            raise ValueError(f"{number!r} is no integer")
    return pd.arrays.IntegerArray(whole.astype("int64"), missing)


def _categories(values: np.ndarray) -> "pd.Categorical[Any]":
    """Texts of which many are the same, visible; the categories are sorted."""
    codes, known = pd.factorize(values)
    shown = [visible(text) for text in known.tolist()]
    categories = sorted({*shown})
    place = {text: number for number, text in enumerate(categories)}
    new = np.array([place[text] for text in shown], np.int32)
    return pd.Categorical.from_codes(new[codes], pd.Index(categories, dtype=object))


def _wrong_cells(path: Path, run: Path, columns: Sequence[Column]) -> Iterator[UserError]:
    """An error for each cell that is not of its column's type, with the file of the trial that it is from."""
    check: dict[str, Callable[[str], object]] = {
        "integer": lambda cell: _integers(np.array([float(cell or "nan")])),
        "number": lambda cell: cell and float(cell),
        "boolean": _BOOLEANS.__getitem__,
    }
    with files.reading(path) as file:
        for row in csv.DictReader(line.decode(errors="replace") for line in file):
            of_trial = run / "trials" / str(row.get("trial_id"))
            where = of_trial / path.name if path.stem in schema.OF_A_TRIAL else path
            for column in columns:
                try:
                    check.get(column.type, str)(row.get(column.name) or "")
                except (ValueError, KeyError, OverflowError) as error:
                    what = f"column '{column.name}' should be of type {column.type}"
                    yield UserError(f"{where}: {what}: {error}: {REMEDY}")


def joined(runs: Sequence[RunTables]) -> RunTables:
    """The trials of several runs, run after run."""
    if len(runs) == 1:
        return runs[0]
    runs = runs or [_nothing()]
    begins = np.cumsum([0, *(len(run.trials) for run in runs)]).tolist()
    tables = {}
    for name in schema.OF_A_TRIAL:
        of_runs = [
            run.tables[name].assign(**{TRIAL: run.tables[name][TRIAL] + begin})
            for run, begin in zip(runs, begins, strict=False)
        ]
        tables[name] = pd.DataFrame({column: _joined([rows[column] for rows in of_runs]) for column in of_runs[0]})
    details = [details for run in runs for details in run.details]
    return RunTables(pd.concat([run.trials for run in runs], ignore_index=True), details, tables)


def _joined(columns: Sequence["pd.Series[Any]"]) -> Any:
    if isinstance(columns[0].dtype, pd.CategoricalDtype):
        return pd.api.types.union_categoricals([*columns], sort_categories=True)
    return pd.concat(columns, ignore_index=True)


def _nothing() -> RunTables:
    """The tables of no run."""

    def empty(columns: Sequence[Column]) -> pd.DataFrame:
        return _parsed(io.StringIO(",".join(column.name for column in columns) + "\n"), columns)

    tables = {name: empty(columns) for name, columns in schema.OF_A_TRIAL.items()}
    for rows in tables.values():
        rows.insert(0, TRIAL, rows.pop("trial_id").cat.codes.astype("int64"))
    return RunTables(empty(schema.TRIALS), [], tables)


def chosen(run: RunTables, places: np.ndarray) -> RunTables:
    """Some of the trials, by their places (int64) in rising order."""
    new = np.full(len(run.trials), -1)
    new[places] = np.arange(len(places))
    tables = {}
    for name, rows in run.tables.items():
        now = new[rows[TRIAL].to_numpy()]
        kept = rows[now >= 0].assign(**{TRIAL: now[now >= 0]}).reset_index(drop=True)
        for column in kept.select_dtypes("category"):
            kept[column] = kept[column].cat.remove_unused_categories()
        tables[name] = kept
    details = [run.details[place] for place in places]
    return RunTables(run.trials.iloc[places].reset_index(drop=True), details, tables)
