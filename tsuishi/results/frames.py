"""Runs as pandas frames: their trials and tables, and the outcome of everything that was planned."""

from collections import namedtuple
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import Any

import pandas as pd

from tsuishi.base.errors import UserError
from tsuishi.base.files import private_folder
from tsuishi.base.language import mark
from tsuishi.base.printable import visible
from tsuishi.results import run_tables
from tsuishi.results.admission import Exclusion, exclude
from tsuishi.results.assurance import Assurance, assurance
from tsuishi.results.attempts import last_rows
from tsuishi.results.directory import RunDirectory
from tsuishi.results.record_files import read_visible
from tsuishi.results.records import (
    AnyRecord,
    CaseRecord,
    EnvironmentRecord,
    MachineRecord,
    WorkloadRecord,
)
from tsuishi.results.run_record import RunRecord
from tsuishi.results.run_tables import RunTables, TrialDetails, chosen, joined
from tsuishi.results.same_machine import machines
from tsuishi.results.same_trials import Copy, common
from tsuishi.specs.statuses import MISSING, OK
from tsuishi.specs.vocabulary import Vocabulary

# What an estimate belongs to. `column` is the label of the environment: its name, or more where two have the same name.
CASE_KEYS = ("suite", "protocol", "case_id", "environment", "column")

_WHY_MISSING = mark("planned, but the run was stopped before it: go on with `invoke run-suite --resume latest`")
_WHY_NEVER = mark("planned, but the run was stopped before it")


@dataclass(frozen=True)
class Results:
    """One or several runs. `trials` has a `run_id`; `details` are those of each of them.

    Records of environments and machines, and names of workloads, are by record id; the `machine` of a trial is the id
    of the record that stands for all of the same machine. `excluded`: the trials with the status excluded, see
    admission.py. `copies`: the runs with trials that other runs have too, of which `runs` has only those with trials of
    their own; `family`: by run, the run that stands for all copies of it. `assurances`: by run, how far it is known to
    be what its runner wrote.

    Rows of `samples`, `metrics` and `telemetry` are many to a trial: `trial` is its index in `trials`. `words` has the
    axes of their cases; `axes` are those of every case, by its id, with the usual values that ids leave out.
    """

    words: Vocabulary
    axes: dict[str, dict[str, Any]]
    runs: dict[str, RunRecord]
    assurances: dict[str, Assurance]
    environments: dict[str, EnvironmentRecord]
    machines: dict[str, MachineRecord]
    workloads: dict[str, str]
    details: list[TrialDetails]
    excluded: list[Exclusion]
    copies: list[Copy]
    family: dict[str, str]
    trials: pd.DataFrame
    samples: pd.DataFrame
    metrics: pd.DataFrame
    telemetry: pd.DataFrame

    @cached_property
    def counting(self) -> pd.DataFrame:
        """The trials that count: see last_rows. Copies of a run are one run, as one of them may have been resumed."""
        families = self.trials.assign(run_id=self.trials["run_id"].map(self.family))
        return self.trials.loc[last_rows(families).index]


def read_runs(runs: Sequence[RunDirectory], words: Vocabulary) -> Results:
    """The contents of runs as frames. words: describes axes and quantities. A trial that is there twice counts once.

    Raises UserError for a file that is unreadable, or has a value that is not of its column's type.
    """
    named = runs_by_name(runs)
    run_records = {name: run.run(read_visible(run.path / "run.json")) for name, run in named.items()}
    assurances = {name: assurance(run) for name, run in named.items()}
    records = {name: record for run in named.values() for name, record in _records(run)}
    of_runs = [_tables(run, assurances[name], words) for name, run in named.items()]
    given = joined(of_runs)
    counts = {name: len(of_run.trials) for name, of_run in zip(named, of_runs, strict=True)}
    given.trials.insert(
        0, "run_id", pd.Series([*chain(*([name] * count for name, count in counts.items()))], dtype=object)
    )
    found = common(counts, given)
    if len(found.kept) < len(given.trials):
        given = chosen(given, found.kept)
    lost = {copy.run_id for copy in found.copies} - {*given.trials["run_id"]}
    run_records = {name: run for name, run in run_records.items() if name not in lost}
    completed = words.completed(_cases(run_records.values(), given.trials["case_id"], records))
    words = words.of(completed.values())
    axes = {case_id: {axis: case[axis] for axis in words.axes if axis in case} for case_id, case in completed.items()}
    environments = {name: record for name, record in records.items() if isinstance(record, EnvironmentRecord)}
    replays = {name for name, run in run_records.items() if run.replays and run.replays.run_id in run_records}
    described = {name: record for name, record in sorted(records.items()) if isinstance(record, MachineRecord)}
    trials = _label_columns(_with_axes(given.trials, words, axes), environments, machines(described), replays)
    excluded = exclude(trials, given.tables, words)
    return Results(
        words,
        axes,
        run_records,
        assurances,
        environments,
        described,
        {name: record.workload or "" for name, record in records.items() if isinstance(record, WorkloadRecord)},
        given.details,
        excluded,
        found.copies,
        found.family,
        trials,
        **given.tables,
    )


def runs_by_name(runs: Sequence[RunDirectory]) -> dict[str, RunDirectory]:
    """The runs by their ids; of runs with the same id, in several folders, the later runs are numbered."""
    named: dict[str, RunDirectory] = {}
    for run in runs:
        first = visible(run.id)
        ids = chain([first], (f"{first} ({number})" for number in count(2)))
        named[next(run_id for run_id in ids if run_id not in named)] = run
    return named


def _records(run: RunDirectory) -> Iterator[tuple[str, AnyRecord]]:
    """The records of a run by their ids, made visible."""
    for path in run.record_files():
        if record := run.record(path.stem, visible):
            yield path.stem, record


def _tables(run: RunDirectory, found: Assurance, words: Vocabulary) -> RunTables:
    """The tables of a run: those that its runner gathered, or, where these are not of the trials as they are, anew."""
    if found.has_tables:
        return run_tables.read(run.path, run.path)
    with private_folder() as folder:
        run.gather(words, folder)
        return run_tables.read(folder, run.path)


def _cases(
    runs: Iterable[RunRecord], case_ids: Iterable[str], records: Mapping[str, AnyRecord]
) -> dict[str, Mapping[str, Any]]:
    """The axes of every case that was tried or planned, by its id; a case whose record is lost has none.

    case_ids: of the trials. records: by record id.
    """
    cases: dict[str, Mapping[str, Any]] = {entry.case_id: entry.axes for run in runs for entry in run.plan}
    for case_id in dict.fromkeys(case_ids):
        if isinstance(record := records.get(f"case-{case_id}"), CaseRecord):
            cases[case_id] = record.root
    return cases


def _with_axes(trials: pd.DataFrame, words: Vocabulary, axes: Mapping[str, dict[str, Any]]) -> pd.DataFrame:
    """The trials with the axes of their cases. axes: by case id."""
    cases = [axes.get(case_id, {}) for case_id in trials["case_id"]]
    columns: dict[str, Any] = {}
    texts = [name for name, axis in words.axes.items() if not axis.is_number]
    for name, axis in words.axes.items():
        values = [case.get(name) for case in cases]
        try:
            columns[name] = pd.array(values, "Int64") if axis.is_number else [str(value or "") for value in values]
        except (TypeError, ValueError) as error:
            raise UserError(f"trials.csv: column '{name}' should be of type integer: {error}") from error
    return trials.join(pd.DataFrame(columns, index=trials.index).astype(dict.fromkeys(texts, object)))


def _label_columns(
    trials: pd.DataFrame,
    environments: Mapping[str, EnvironmentRecord],
    same: Mapping[str, str],
    replays: Collection[str],
) -> pd.DataFrame:
    """Adds `machine`, the id of the record that stands for all of the same machine, and `column`.

    That is the environment, with realised id and machine where runs have several of the same name. same: by the id of
    each machine's record, the id that stands for it. replays: the ids of runs that replay another of the runs; their
    environments stand beside the other's, also where machine and environment are the same. A trial that never started
    may lack its records; it stands with the others of its environment.
    """
    for record in ("environment_record", "machine_record"):
        known = trials[record].mask(trials[record] == "").groupby([trials["run_id"], trials["environment"]])
        trials[record] = known.transform(lambda ids: ids.ffill().bfill()).fillna("")
    trials["machine"] = [same.get(record, record) for record in trials["machine_record"]]
    several_machines = sorted(set(trials["machine"]) - {""})
    several = trials.groupby("environment")["environment_record"].nunique() > 1
    trials["is_replay"] = trials["run_id"].isin(replays)
    label_keys = ["environment", "environment_record", "machine", "is_replay"]
    labels: dict[Any, str] = {}
    for environment, record, machine, is_replay in trials[label_keys].drop_duplicates().itertuples(index=False):
        label = environment
        if several[environment]:
            realised_id = (environments[record].realised_id if record in environments else None) or record
            label += f" ({realised_id.removeprefix('sha256:')[:19]})"
        if len(several_machines) > 1 and machine:
            label += f" on machine {several_machines.index(machine) + 1}"
        labels[environment, record, machine, is_replay] = f"{label}, replayed" if is_replay else label
    keys = zip(*(trials[name].tolist() for name in label_keys), strict=True)
    trials["column"] = pd.Series([labels[key] for key in keys], index=trials.index, dtype="object")
    return trials.drop(columns="is_replay")


def ok_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of trials, or of outcomes, whose status is ok."""
    return frame[frame["status"] == OK]


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


def outcomes(results: Results) -> pd.DataFrame:
    """A row per repetition that was planned or tried, with its outcome; `missing`: it was never tried.

    Columns: run_id, suite, protocol, case_id, axes (dict), environment, column, repetition, trial_id, status, reason.
    """
    names = ["run_id", *CASE_KEYS, "axes", "repetition", "trial_id", "status", "reason"]
    trials = results.counting
    rows = dict_rows(trials[[name for name in names if name != "axes"]])
    tried = set()
    for row in rows:
        row["axes"] = results.axes.get(row["case_id"], {})
        tried.add((results.family[row["run_id"]], row["case_id"], row["environment"], row["repetition"]))
    columns = {(row["run_id"], row["environment"]): row["column"] for row in rows}
    for run_id, run in results.runs.items():
        for planned in run.plan:
            key = (results.family[run_id], planned.case_id, planned.environment, planned.repetition)
            if key not in tried:
                tried.add(key)
                label = columns.get((run_id, planned.environment), planned.environment)
                why = _WHY_MISSING if run.is_of_run_suite else _WHY_NEVER
                row = {"run_id": run_id, "status": MISSING, "reason": why, "column": label}
                row |= {name: getattr(planned, name) for name in ("case_id", "environment", "repetition")}
                row["trial_id"] = planned.trial_id
                case = results.axes[planned.case_id]
                rows.append({**case, **row, "axes": case})
    frame = pd.DataFrame(rows, columns=names)
    return frame.sort_values(["suite", "case_id", "column", "run_id", "repetition"], kind="stable", ignore_index=True)
