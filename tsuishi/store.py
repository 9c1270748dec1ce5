"""Contract 2: the run directory. Written by the runner, read by everything after it.

results/<run id>/
    run.json                     what was asked and planned
    records/<kind>-<id>.json     content-addressed, written once: environment, machine, case, workload
    trials/<trial id>/           trial.json samples.csv metrics.csv telemetry.csv log.txt.gz; whole or not there
    trials.csv samples.csv metrics.csv telemetry.csv datapackage.json      gathered; can be rebuilt at any time
"""

import csv
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

from tsuishi import exclusion, schema, spec
from tsuishi.errors import UserError, unknown
from tsuishi.files import read_json, replacing, sync, temporary_folder, write_json

SCHEMA_VERSION = 1

# A finding is final; the others are run again, as a new attempt, by --resume.
FINDINGS = ("ok", "out_of_memory", "unsupported", "skipped")
UNFINISHED = ("timeout", "failed", "interrupted")

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

    def run(self, read: Callable[[Path], dict[str, Any]] | None = None) -> dict[str, Any]:
        """run.json. Raises UserError where this is no run directory, or one of a later tsuishi."""
        run = (read or read_json)(self.path / "run.json")
        if run.get("schema_version") != SCHEMA_VERSION:
            raise UserError(
                f"{self.path}: run schema {run.get('schema_version')}, this tsuishi reads {SCHEMA_VERSION}; "
                "use the version named in its run.json"
            )
        return run

    def write_run(self, run: dict[str, Any]) -> None:
        write_json(self.path / "run.json", {"schema_version": SCHEMA_VERSION, **run})

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else measures this run meanwhile, whatever its cache or user. Raises UserError where somebody does."""
        return exclusion.file(self.path / ".lock", f"measuring run {self.id}")

    def add_record(self, kind: str, value: dict[str, Any]) -> str:
        """Store a record under the hash of its content, once; returns its id, `<kind>-<hash>`."""
        record_id = f"{kind}-{spec.digest(value)}"
        path = self.records / f"{record_id}.json"
        if not path.exists():
            write_json(path, value)
        return record_id

    def record(self, record_id: str) -> dict[str, Any]:
        return read_json(self.records / f"{record_id}.json")

    def partial(self, trial_id: str) -> Path:
        """A fresh directory to write a trial into, not yet part of the run."""
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

    def left_behind(self) -> Iterator[tuple[str, Path]]:
        """Trial id and partial directory of trials a killed runner was writing."""
        for path in sorted(self.trials.glob(f"{_PARTIAL}*")):
            yield path.name.removeprefix(_PARTIAL), path

    def finished(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Every trial of the run, all attempts, in the order of their ids."""
        for path in self.finished_folders():
            yield path, read_json(path / "trial.json")

    def finished_folders(self) -> list[Path]:
        """The directories of these trials."""
        with os.scandir(self.trials) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
        return [self.trials / name for name in names if os.path.exists(f"{self.trials}/{name}/trial.json")]  # noqa: PTH110

    def gather(self) -> None:
        """Rebuild the run's tables from its trials."""
        trials = list(self.finished())
        with replacing(self.path / "trials.csv") as file:
            rows = csv.DictWriter(file, schema.names("trials"), extrasaction="ignore", lineterminator="\n")
            rows.writeheader()
            rows.writerows(self._trial_row(trial) for _, trial in trials)
        for table in schema.OF_A_TRIAL:
            with replacing(self.path / f"{table}.csv") as file:
                _concatenate(table, (path for path, _ in trials), file)
        write_json(self.path / "datapackage.json", schema.data_package(self.id.lower()))

    def _trial_row(self, trial: dict[str, Any]) -> dict[str, Any]:
        row = {**trial, **self.record(trial["case_record"])}
        return {name: csv_value(row.get(name)) for name in schema.names("trials")}


def open_run(results: Path, name: str = "") -> RunDirectory:
    """The run of that id (or path), or the latest. Raises UserError where there is none."""
    runs = known_runs(results)
    if not name:
        if not runs:
            raise UserError(f"there is no run in {results}/ yet: make one with `invoke run-suite`")
        return RunDirectory(list(runs.values())[-1])
    if name in runs:
        return RunDirectory(runs[name])
    if (Path(name) / "run.json").is_file():
        return RunDirectory(Path(name))
    raise unknown("run", name, runs)


def known_runs(results: Path) -> dict[str, Path]:
    """Id and directory of every run, oldest first (ids begin with the time)."""
    return {path.parent.name: path.parent for path in sorted(results.glob("[!.]*/run.json"))}


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


def _concatenate(table: str, trials: Iterable[Path], file: IO[str]) -> None:
    """Every trial's part of a table under one header, with the trial's id in front; a row at a time."""
    rows = csv.DictWriter(file, schema.names(table), restval="", extrasaction="ignore", lineterminator="\n")
    rows.writeheader()
    for trial in trials:
        part = trial / f"{table}.csv"
        if part.exists():
            with part.open(encoding="utf-8", newline="") as source:
                rows.writerows({"trial_id": trial.name, **row} for row in csv.DictReader(source))
