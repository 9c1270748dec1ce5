"""Runs as pandas frames: what was recorded, and what became of everything that was planned."""

from collections import namedtuple
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from tsuishi.base.language import mark
from tsuishi.base.statuses import MISSING, OK
from tsuishi.results.tables import frame, refuse_wrong_rows, typed
from tsuishi.results.reader import Read, RunContents, recorded
from tsuishi.results import schema
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.base.printable import visible
from tsuishi.results.directory import RunDirectory

# What an estimate belongs to. `column` is the environment, or what tells two of one name apart.
CASE_KEYS = ("suite", "protocol", "case_id", "environment", "column")

_WHY_MISSING = mark("planned, but the run was stopped before it: go on with `invoke run-suite --resume latest`")


@dataclass(frozen=True)
class Results:
    """One or several runs. `trials` has a `run_id`; `details` holds each trial.json.

    Rows of `samples`, `metrics` and `telemetry` are many to a trial: `trial` is its index in `trials`. `words` has the
    axes of their cases; `axes` are those of every case, by its id, with the usual values that ids leave out.
    """

    words: Vocabulary
    axes: dict[str, dict[str, Any]]
    runs: dict[str, dict[str, Any]]
    records: dict[str, dict[str, Any]]
    details: dict[tuple[str, str], dict[str, Any]]
    trials: pd.DataFrame
    samples: pd.DataFrame
    metrics: pd.DataFrame
    telemetry: pd.DataFrame

    @cached_property
    def counting(self) -> pd.DataFrame:
        """The trials that count: see last_attempts."""
        return last_attempts(self.trials)

    def telemetry_of(self, trial: int) -> pd.DataFrame:
        """The rows of one trial, which lie together."""
        begin, end = self.telemetry["trial"].searchsorted([trial, trial + 1])
        return self.telemetry.iloc[begin:end]


def read_runs(runs: Sequence[RunDirectory], words: Vocabulary, read: Read = recorded) -> Results:
    """Everything a report rests on, its axes and quantities described by the vocabulary of a checkout.

    Raises UserError for what is unreadable, of a wrong type, or cannot have been.
    """
    found = read(runs)
    completed = words.completed(_cases(found))
    words = words.of(completed.values())
    axes = {case_id: {axis: case[axis] for axis in words.axes if axis in case} for case_id, case in completed.items()}
    rows = [{"run_id": run_id, **seen, **axes.get(seen["case_id"], {})} for run_id, _, seen in found.trials]
    details = {(run_id, trial_id): seen for run_id, trial_id, seen in found.trials}
    trials = _label_columns(typed("trials", schema.of_trials(words.axes), rows, "run_id"), found.records)
    paths = {visible(run.id): run.path / "trials" for run in runs}

    def folder(trial: int) -> Path:
        run_id, trial_id, _ = found.trials[trial]
        return paths[run_id] / trial_id

    tables = {table: frame(table, text, folder) for table, text in found.tables.items()}
    refuse_wrong_rows(tables, trials["status"].eq(OK).to_numpy(bool), folder)
    return Results(words, axes, found.runs, found.records, details, trials, **tables)


def _cases(found: RunContents) -> dict[str, dict[str, Any]]:
    """The axes of every case that was tried or planned, by its id; of a case whose record is lost there are none."""
    planned = {one["case_id"]: one["case"] for run in found.runs.values() for one in run.get("plan", [])}
    tried = {seen["case_id"]: found.records.get(seen["case_record"]) for _, _, seen in found.trials}
    return {**planned, **{case_id: case for case_id, case in tried.items() if case is not None}}


def _label_columns(trials: pd.DataFrame, records: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Adds `column`: the environment, and where that is not one thing, its realised id and its machine too.

    A trial that never started may lack its records; it stands with the others of its environment.
    """
    for record in ("environment_record", "machine_record"):
        known = trials[record].mask(trials[record] == "").groupby([trials["run_id"], trials["environment"]])
        trials[record] = known.transform(lambda ids: ids.ffill().bfill()).fillna("")
    machines = sorted(set(trials["machine_record"]) - {""})
    several = trials.groupby("environment")["environment_record"].nunique() > 1
    told_by = ["environment", "environment_record", "machine_record"]
    labels: dict[Any, str] = {}
    for environment, record, machine in trials[told_by].drop_duplicates().itertuples(index=False):
        label = environment
        if several[environment]:
            realised_id = str(records.get(record, {}).get("realised_id", record))
            label += f" ({realised_id.removeprefix('sha256:')[:19]})"
        if len(machines) > 1 and machine:
            label += f" on machine {machines.index(machine) + 1}"
        labels[environment, record, machine] = label
    keys = zip(*(trials[name].tolist() for name in told_by), strict=True)
    trials["column"] = pd.Series([labels[key] for key in keys], index=trials.index, dtype="object")
    return trials


def named_rows(frame: pd.DataFrame) -> list[Any]:
    """The rows of a frame as named tuples, with a field per column."""
    row: Any = namedtuple("Row", frame.columns)  # type: ignore[misc]
    return list(map(row._make, _rows(frame)))


def dict_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dicts of its columns."""
    names = [str(name) for name in frame]
    return [dict(zip(names, row, strict=True)) for row in _rows(frame)]


def _rows(frame: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Column by column, as pandas takes several times as long to make rows of columns of different types."""
    return zip(*(frame[name].tolist() for name in frame), strict=True)


def is_nothing(value: Any) -> bool:
    """Whether a value of a frame is missing: None, NaN or NA."""
    return value is None or value is pd.NA or value != value


def last_attempts(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials that count: of every case, environment and repetition of a run, the last attempt."""
    ordered = trials.sort_values(["run_id", "trial_id", "attempt"], kind="stable")
    last = ordered.groupby(["run_id", "case_id", "environment", "repetition"])["attempt"].transform("max")
    return ordered[ordered["attempt"] == last]


def outcomes(results: Results) -> pd.DataFrame:
    """One row per planned or tried repetition: what became of it. `missing`: planned, and there is nothing.

    Columns: run_id, suite, protocol, case_id, axes (dict), environment, column, repetition, trial_id, status, reason.
    """
    names = ["run_id", *CASE_KEYS, "axes", "repetition", "trial_id", "status", "reason"]
    trials = results.counting
    rows = dict_rows(trials[[name for name in names if name != "axes"]])
    tried = set()
    for row in rows:
        row["axes"] = results.axes.get(row["case_id"], {})
        tried.add((row["run_id"], row["case_id"], row["environment"], row["repetition"]))
    columns = {(row["run_id"], row["environment"]): row["column"] for row in rows}
    for run_id, run in results.runs.items():
        for planned in run.get("plan", []):
            environment, case = planned["environment"], results.axes[planned["case_id"]]
            if (run_id, planned["case_id"], environment, planned["repetition"]) not in tried:
                label = columns.get((run_id, environment), environment)
                row = {"trial_id": planned["trial"], "status": MISSING, "reason": _WHY_MISSING, "column": label}
                rows.append({**case, **planned, **row, "run_id": run_id, "axes": case})
    frame = pd.DataFrame(rows, columns=names)
    return frame.sort_values(["suite", "case_id", "column", "run_id", "repetition"], kind="stable", ignore_index=True)
