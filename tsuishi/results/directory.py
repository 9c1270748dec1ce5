"""Contract 2: the run directory. Written by the runner, read by everything after it.

results/<run id>/
    run.json                     what was asked and planned
    records/<kind>-<id>.json     content-addressed, written once: environment, machine, case, workload
    trials/<trial id>/           samples.csv metrics.csv telemetry.csv log.txt.gz; trial.json, which commits them
    .lock                        held by the process that measures
    trials.csv samples.csv metrics.csv telemetry.csv datapackage.json      gathered; can be rebuilt at any time
"""

import csv
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import IO, Any

from tsuishi.base import exclusion, seals, toml
from tsuishi.results import records, run_files, schema
from tsuishi.base.errors import UserError, unknown
from tsuishi.base.files import (
    entries,
    read_json,
    read_rows,
    replacing,
    sync,
    temporary_folder,
    write_json,
)
from tsuishi.specs.trial_id import TrialId
from tsuishi.specs.vocabulary import Vocabulary

SCHEMA_VERSION = 1

# What run.json carries so that its writer knows it again.
_MAC = "mac"
_SEALED = "run.json"
_PARTIAL = ".partial-"
_NEW_RUN = ".run-"


class RunDirectory:
    """One run on disk. Every method leaves it readable at any moment, also after a power cut."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trials = path / "trials"
        self.records = path / "records"

    @classmethod
    def create(cls, path: Path, run: dict[str, Any]) -> "RunDirectory":
        """A new run directory with its run.json. Raises UserError where it exists already."""
        with temporary_folder(path.parent, _NEW_RUN) as fresh:
            directory = cls(fresh)
            directory.trials.mkdir()
            directory.records.mkdir()
            directory.write_run(run)
            try:
                fresh.rename(path)
            except OSError as error:
                if not path.exists():
                    raise
                raise UserError(f"{path} exists; results are never overwritten: give another name") from error
            sync(path.parent)
        return cls(path)

    @property
    def id(self) -> str:
        return self.path.name

    def run(self, read: run_files.Read = read_json) -> dict[str, Any]:
        """run.json. Raises UserError where this is no run directory, one of a later tsuishi, or damaged."""
        run = read(self.path / "run.json")
        if run.get("schema_version") != SCHEMA_VERSION:
            raise UserError(
                f"{self.path}: run schema {run.get('schema_version')}, this tsuishi reads {SCHEMA_VERSION}; "
                "use the version named in its run.json"
            )
        run_files.check_run(self.path / "run.json", run)
        return run

    def is_ours(self, run: dict[str, Any]) -> bool:
        """Whether this user wrote that run.json, for this directory."""
        seal = run.get(_MAC)
        if run.get("run_id") != self.id or not isinstance(seal, str):
            return False
        return seals.is_ours(_content(run), _SEALED, seal)

    def write_run(self, run: dict[str, Any]) -> None:
        write_json(self.path / "run.json", sealed({"schema_version": SCHEMA_VERSION, **run}))

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else measures this run meanwhile, whatever its cache or user. Raises UserError where somebody does."""
        return exclusion.file(self.path / ".lock", f"measuring run {self.id}")

    def add_record(self, kind: str, value: dict[str, Any]) -> str:
        """Store a record under the hash of its content, once; returns its id, `<kind>-<hash>`."""
        record_id = f"{kind}-{toml.digest(value)}"
        path = self.records / f"{record_id}.json"
        if not path.exists():
            write_json(path, value)
        return record_id

    def record(self, record_id: str) -> dict[str, Any]:
        """A record by its id. Raises UserError where it is not what its id says."""
        path = self.records / f"{record_id}.json"
        record = read_json(path)
        records.check_record(path, record)
        return record

    def record_files(self) -> list[Path]:
        """The files of all records. Raises UserError where something else lies there."""
        return [self.records / name for name, _ in entries(self.records) if not name.startswith(".")]

    def partial(self, trial_id: TrialId) -> Path:
        """A fresh directory to write a trial into, not yet part of the run. Raises UserError for no trial's name."""
        if not run_files.attempt_of(str(trial_id)):
            raise UserError(f"{self.trials}/{trial_id}: it has not the name of a trial: start a new run")
        path = self.trials / f"{_PARTIAL}{trial_id}"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def commit(self, partial: Path, trial: dict[str, Any]) -> Path:
        """Make a partial trial part of the run: all on the disk, then trial.json, then the directory's own name."""
        for file in partial.iterdir():
            sync(file)
        sync(partial)
        write_json(partial / "trial.json", trial)
        return self._name(partial)

    def settle(self) -> None:
        """Complete what a killed runner had committed: trials that have their trial.json, but not yet their name."""
        for _, partial in self.left_behind():
            if (partial / "trial.json").exists():
                self._name(partial)

    def _name(self, partial: Path) -> Path:
        final = self.trials / partial.name.removeprefix(_PARTIAL)
        partial.rename(final)
        sync(self.trials)
        return final

    def left_behind(self) -> Iterator[tuple[TrialId, Path]]:
        """Trial id and partial directory of trials a killed runner was writing."""
        for name, is_folder in entries(self.trials):
            trial_id = run_files.attempt_of(name.removeprefix(_PARTIAL))
            if name.startswith(_PARTIAL) and is_folder and trial_id:
                yield trial_id, self.trials / name

    def finished(self, read: run_files.Read = read_json) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Every trial of the run, all attempts, in the order of their ids. Raises UserError for what is none."""
        return run_files.read_trials(self.finished_folders(), read)

    def finished_folders(self) -> list[Path]:
        """The directories of these trials. Raises UserError where something else lies there."""
        found = [one for one in entries(self.trials) if not one[0].startswith(".")]
        for name, is_folder in found:
            if not is_folder:
                raise UserError(f"{self.trials / name}: no folder of a trial, but a link or a file: remove it")
        run_files.check_attempts(self.trials, [name for name, _ in found])
        return [self.trials / name for name, _ in found]

    def gather(self, words: Vocabulary) -> None:
        """Rebuild the run's tables from its trials; their axes are described by the vocabulary of a checkout."""
        trials = list(self.finished())
        record = cache(self.record)
        cases = [record(trial["case_record"]) for _, trial in trials]
        columns = schema.of_trials(words.of(cases).axes)
        names = [column.name for column in columns]
        with replacing(self.path / "trials.csv") as file:
            rows = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
            rows.writeheader()
            for (_, trial), case in zip(trials, cases, strict=True):
                row = {**trial, **case}
                rows.writerow({name: csv_value(row.get(name)) for name in names})
        for table in schema.OF_A_TRIAL:
            with replacing(self.path / f"{table}.csv") as file:
                _concatenate(table, (path for path, _ in trials), file)
        tables = {"trials": columns, **schema.OF_A_TRIAL}
        write_json(self.path / "datapackage.json", schema.data_package(self.id.lower(), tables))


def open_run(results: Path, name: str = "") -> RunDirectory:
    """The run of that id (or path), or the latest. Raises UserError where there is none."""
    runs = known_runs(results)
    if not name:
        if not runs:
            raise UserError(f"there is no run in {results}/ yet: make one with `invoke run-suite`")
        return RunDirectory(list(runs.values())[-1])
    if name in runs:
        return RunDirectory(runs[name])
    if os.path.lexists(Path(name) / "run.json"):
        return RunDirectory(Path(name).resolve())
    raise unknown("run", name, runs)


def known_runs(results: Path) -> dict[str, Path]:
    """Id and directory of every run, oldest first (ids begin with the time)."""
    if not results.is_dir():
        return {}
    folders = sorted(path for path in results.iterdir() if not path.name.startswith("."))
    return {path.name: path for path in folders if os.path.lexists(path / "run.json")}


def sealed(run: dict[str, Any]) -> dict[str, Any]:
    """The content of a run.json with the seal of this user. Raises UserError where this user can have no key."""
    return {**run, _MAC: seals.seal(_content(run), _SEALED)}


def _content(run: dict[str, Any]) -> bytes:
    return toml.canonical_json({name: value for name, value in run.items() if name != _MAC}).encode()


def csv_writer(table: str, file: IO[str]) -> "csv.DictWriter[str]":
    """A writer for one trial's part of a table (the gathered table adds the trial_id)."""
    columns = [name for name in schema.names(table) if name != "trial_id"]
    writer = csv.DictWriter(file, columns, lineterminator="\n", restval="")
    writer.writeheader()
    return writer


def csv_value(value: Any) -> Any:
    """As tables hold it: nothing for None, true and false in lower case, floats to twelve significant digits.

    Twelve keep the millijoules of an energy counter that has run for a year. A carriage return ends a row for some
    readers, and Python's writer does not quote it: a line's end is one newline.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, str):
        return value.replace("\r\n", "\n").replace("\r", "\n")
    return "" if value is None else value


def exact(value: Any) -> Any:
    """Floats with every digit that tells them from their neighbours; the rest as in every table of ours."""
    value = value.item() if hasattr(value, "item") else value
    return repr(float(value)) if isinstance(value, float) else csv_value(value)


def _concatenate(table: str, trials: Iterable[Path], file: IO[str]) -> None:
    """Every trial's part of a table under one header, with the trial's id in front; a row at a time."""
    rows = csv.DictWriter(file, schema.names(table), restval="", extrasaction="ignore", lineterminator="\n")
    rows.writeheader()
    for trial in trials:
        part = trial / f"{table}.csv"
        if os.path.lexists(part):
            rows.writerows({"trial_id": trial.name, **row} for row in read_rows(part))
