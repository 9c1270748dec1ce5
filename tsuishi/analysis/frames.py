"""Runs as pandas frames: what was recorded, and what became of everything that was planned.

Every string is made fit to print while it is read (see `visible`), so nothing after this needs to ask.
"""

import csv
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tsuishi import schema
from tsuishi.errors import UserError
from tsuishi.store import FINDINGS, UNFINISHED, RunDirectory, read_json
from tsuishi.suite import AXES

MISSING = "missing"
# What becomes of a trial, in the order in which it is told.
STATUSES = (*FINDINGS, *UNFINISHED, MISSING)
# What an estimate belongs to. `column` is the environment, or what tells two of one name apart.
CASE_KEYS = ("suite", "protocol", "case_id", "environment", "column")

_WHY_MISSING = "planned, but the run was stopped before it: go on with `invoke run-suite --resume latest`"
_BOOLEANS = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class Results:
    """One or several runs. `trials` and `samples` have a `run_id`; `details` holds each trial.json."""

    runs: dict[str, dict[str, Any]]
    records: dict[str, dict[str, Any]]
    details: dict[tuple[str, str], dict[str, Any]]
    trials: pd.DataFrame
    samples: pd.DataFrame
    metrics: pd.DataFrame


def read_runs(runs: Sequence[RunDirectory]) -> Results:
    """Everything a report says about these runs, except telemetry (which is large: see read_telemetry).

    Read from the trials themselves, so it does not matter whether a run was gathered. Raises UserError where a
    file is unreadable or a value is not of the type the schema gives it.
    """
    details, rows, records = {}, [], {}
    parts: dict[str, list[dict[str, Any]]] = {"samples": [], "metrics": []}
    for run in runs:
        for path in sorted(run.records.glob("*.json")):
            records[path.stem] = visible(read_json(path))
        for path, trial in run.finished():
            details[run.id, path.name] = seen = visible(trial)
            rows.append({"run_id": run.id, **seen, **records.get(trial["case_record"], {})})
            for table, collected in parts.items():
                collected += [{"run_id": run.id, "trial_id": path.name, **row} for row in _rows(path, table)]
    return Results(
        {run.id: visible(run.run()) for run in runs},
        records,
        details,
        _label_columns(_typed("trials", rows), records),
        *(_typed(table, part) for table, part in parts.items()),
    )


def read_telemetry(run: RunDirectory, trial_id: str) -> pd.DataFrame:
    """The telemetry of one trial: one row per tick and device."""
    return _typed("telemetry", [{"trial_id": trial_id, **row} for row in _rows(run.trials / trial_id, "telemetry")])


def visible(value: Any) -> Any:
    """The same JSON value with everything unprintable in its strings made visible.

    Control characters, lone surrogates and characters that turn the direction of what follows become ⟨U+…⟩:
    they break files, or show a reader something other than what is there.
    """
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else "".join(map(_visible_character, value))
    if isinstance(value, dict):
        return {visible(key): visible(entry) for key, entry in value.items()}
    return [visible(entry) for entry in value] if isinstance(value, list) else value


def _visible_character(character: str) -> str:
    odd = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and character not in "\n\t"
    return f"⟨U+{ord(character):04X}⟩" if odd else character


def _rows(trial: Path, table: str) -> Iterator[dict[str, str]]:
    """The rows of one trial's part of a table; none where it wrote none."""
    path = trial / f"{table}.csv"
    if path.exists():
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            yield from (visible(row) for row in csv.DictReader(file))


def _typed(table: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a frame with exactly the schema's columns and types (and the run_id); text is never NaN."""
    columns = {column.name: column.type for column in schema.TABLES[table]}
    frame = pd.DataFrame({"run_id": pd.Series([row.get("run_id", "") for row in rows], dtype="object")})
    for name, kind in columns.items():
        values = [None if row.get(name) == "" else row.get(name) for row in rows]
        try:
            if kind in ("integer", "number"):
                numbers = pd.to_numeric(pd.Series(values, dtype="object"))
                frame[name] = numbers.astype("Int64" if kind == "integer" else "float64")
            elif kind == "boolean":
                frame[name] = pd.Series([_BOOLEANS[str(value).lower()] for value in values], dtype="boolean")
            else:
                frame[name] = pd.Series(["" if value is None else str(value) for value in values], dtype="object")
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{table}: column '{name}' should be of type {kind}: {error}; mend the run") from error
    return frame


def _label_columns(trials: pd.DataFrame, records: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Adds `column`: the environment, and where that is not one thing, its realised id and its machine too.

    A trial that never started may lack its records; it stands with the others of its environment.
    """
    for record in ("environment_record", "machine_record"):
        known = trials[record].mask(trials[record] == "").groupby([trials["run_id"], trials["environment"]])
        trials[record] = known.transform(lambda ids: ids.ffill().bfill()).fillna("")
    machines = sorted(set(trials["machine_record"]) - {""})
    several = trials.groupby("environment")["environment_record"].nunique() > 1
    labels = []
    for trial in trials.to_dict("records"):
        label = trial["environment"]
        if several[label]:
            record = trial["environment_record"]
            realised_id = str(records.get(record, {}).get("realised_id", record))
            label += f" ({realised_id.removeprefix('sha256:')[:19]})"
        if len(machines) > 1 and trial["machine_record"]:
            label += f" on machine {machines.index(trial['machine_record']) + 1}"
        labels.append(label)
    trials["column"] = pd.Series(labels, index=trials.index, dtype="object")
    return trials


def named_rows(frame: pd.DataFrame) -> list[Any]:
    """The rows of a frame as named tuples, with a field per column."""
    return list(frame.itertuples(index=False))


def last_attempts(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials that count: of every case, environment and repetition of a run, the last attempt."""
    ordered = trials.sort_values(["run_id", "trial_id", "attempt"], kind="stable")
    last = ordered.groupby(["run_id", "case_id", "environment", "repetition"])["attempt"].transform("max")
    return ordered[ordered["attempt"] == last]


def outcomes(results: Results) -> pd.DataFrame:
    """One row per planned or tried repetition: what became of it. `missing`: planned, and there is nothing.

    Columns: run_id, suite, protocol, case_id, axes (dict), environment, column, repetition, trial_id, status, reason.
    """
    rows: list[dict[Any, Any]] = []
    tried = set()
    for trial in last_attempts(results.trials).to_dict("records"):
        tried.add((trial["run_id"], trial["case_id"], trial["environment"], trial["repetition"]))
        axes = {axis: trial[axis] for axis in AXES if not (pd.isna(trial[axis]) or trial[axis] == "")}
        rows.append({**trial, "axes": axes})
    columns = {(row["run_id"], row["environment"]): row["column"] for row in rows}
    for run_id, run in results.runs.items():
        for planned in run.get("plan", []):
            environment, case = planned["environment"], planned["case"]
            if (run_id, planned["case_id"], environment, planned["repetition"]) not in tried:
                label = columns.get((run_id, environment), environment)
                row = {"trial_id": planned["trial"], "status": MISSING, "reason": _WHY_MISSING, "column": label}
                rows.append({**case, **planned, **row, "run_id": run_id, "axes": case})
    names = ["run_id", *CASE_KEYS, "axes", "repetition", "trial_id", "status", "reason"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.sort_values(["suite", "case_id", "column", "run_id", "repetition"], kind="stable", ignore_index=True)
