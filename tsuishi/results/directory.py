"""Contract 2: the run directory. Written by the runner, read by everything after it.

results/<run id>/
    run.json                     the request and the plan
    records/<kind>-<id>.json     content-addressed, written once: environment, machine, case, workload
    trials/<trial id>/           samples.csv metrics.csv telemetry.csv log.txt.gz; trial.json, which commits them
    manifest-sha256.txt          digests of records and trials, in the order in which they were written (manifest.py)
    run-sha256.txt               digests of run.json, of the gathered tables and of that manifest
    .lock                        held by the process that measures
    .jobs/                       the jobs that a scheduler was given and has not brought back
    trials.csv samples.csv metrics.csv telemetry.csv datapackage.json      gathered; can be rebuilt at any time
"""

import csv
import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import Any, TextIO, TypeVar

from tsuishi.base import exclusion, seals, toml
from tsuishi.base.errors import UserError, unknown
from tsuishi.base.files import entries, parse_json, read_bytes, replacing, sync, temporary_folder, write_json
from tsuishi.base.option_table import options_of
from tsuishi.base.printable import PRINTABLE_ASCII, visible
from tsuishi.results import schema, trial_folders
from tsuishi.results.record_files import REMEDY, is_schema, json_text, parsed, read_record
from tsuishi.results.records import AnyRecord, CaseRecord, EnvironmentRecord, TrialRecord, record_id
from tsuishi.results.run_record import RUN_SUITE, SCHEMA_VERSION, RunRecord
from tsuishi.specs.vocabulary import Vocabulary

T = TypeVar("T")

# The tables of a run, and what their columns mean: gathered from its trials.
GATHERED = ("trials.csv", *(f"{table}.csv" for table in schema.OF_A_TRIAL), "datapackage.json")
# The files that a runner writes again and again.
WRITTEN_ANEW = ("run.json", *GATHERED)
# The purpose of the seal of a run.json.
_SEALED = "run.json"
# The most characters of the first line of a table that are read.
_LONGEST_HEADER = 1 << 16
_NEW_RUN = ".run-"
# Stands for the latest run where a run is named.
LATEST = "latest"


class RunDirectory:
    """One run on disk. Every method leaves it readable at any moment, also after a power cut."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trials = path / "trials"
        self.records = path / "records"
        self._lock = path / ".lock"
        # What was handed to a scheduler and is not back yet; there only meanwhile.
        self.jobs = path / ".jobs"

    @classmethod
    def create(cls, path: Path, run: RunRecord) -> "RunDirectory":
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

    def run(self, text: bytes = b"") -> RunRecord:
        """run.json, or the given text of it.

        Raises UserError where this is no run directory, is of another schema, or is damaged.
        """
        path = self.path / "run.json"
        text = text or json_text(path)
        version = parse_json(path, text).get("schema_version")
        if not is_schema(version, SCHEMA_VERSION):
            known = f"this tsuishi reads {SCHEMA_VERSION}"
            raise UserError(f"{self.path}: run schema {version}, and {known}: the tsuishi that made it reads it")
        return parsed(path, text, RunRecord)

    def is_ours(self, run: RunRecord) -> bool:
        """Whether this user wrote that run.json, for this directory."""
        if run.run_id != self.id or run.mac is None:
            return False
        return seals.is_ours(_without_seal(run.content()), _SEALED, run.mac)

    def write_run(self, run: RunRecord) -> None:
        """Write run.json with the seal of this user. Raises UserError where this user can have no key."""
        write_json(self.path / "run.json", sealed({"schema_version": SCHEMA_VERSION, **run.content()}))

    def alone(self) -> AbstractContextManager[None]:
        """Keep other processes from measuring this run meanwhile. Raises UserError where another measures it."""
        return exclusion.file(self._lock, f"measuring run {self.id}")

    def measured_by(self) -> str:
        """Which other process measures this run, in words; empty where none does."""
        return exclusion.holder(self._lock)

    def add(self, record: AnyRecord) -> str:
        """Store a record under its id, once; returns the id."""
        name = record_id(record)
        path = self.records / f"{name}.json"
        if not path.exists():
            write_json(path, record.content())
        return name

    def record(self, name: str, shown: Callable[[Any], Any] = lambda value: value) -> AnyRecord | None:
        """The record of an id: see read_record."""
        return read_record(self.records / f"{name}.json", shown)

    def case(self, name: str) -> dict[str, Any]:
        """The axes in the record of a case. Raises UserError as `record` does, and where it is of another kind."""
        return self._record_of(name, CaseRecord).root

    def environment(self, name: str) -> EnvironmentRecord:
        """The record of an environment. Raises UserError as `case` does."""
        return self._record_of(name, EnvironmentRecord)

    def _record_of(self, name: str, model: type[T]) -> T:
        record = self.record(name)
        if not isinstance(record, model):
            raise UserError(f"{self.records / name}.json: it is a record of another kind; {REMEDY}")
        return record

    def record_files(self) -> list[Path]:
        """The files of all records. Raises UserError where something else lies there."""
        return [self.records / name for name, _ in entries(self.records) if not name.startswith(".")]

    def finished_folders(self) -> list[Path]:
        """The folder of every trial. Raises UserError where something else lies among them."""
        return trial_folders.finished(self.trials)

    def finished(self) -> Iterator[tuple[Path, TrialRecord]]:
        """Every trial of the run, all attempts, in the order of their names: its folder, and its record.

        Raises UserError where something is no trial.
        """
        return trial_folders.read(self.finished_folders())

    def gather(self, words: Vocabulary, into: Path | None = None, columns_of: Path | None = None) -> None:
        """Rebuild the tables of the run from those of its trials. words: describes the axes of their cases.

        into: another folder for them, where they are not kept. columns_of: a folder with tables, perhaps of an earlier
        tsuishi: an axis, or a column, that neither they nor a trial has is left out. Raises UserError where a table of
        a trial was altered.
        """
        write: Writing = replacing if into is None else _kept_by_nobody
        into = into or self.path
        trials = list(self.finished())
        case_of = cache(self.case)
        cases = [case_of(trial.case_record) for _, trial in trials]
        axes = words.of(cases).axes
        fields: Sequence[schema.Column] = (*schema.TRIALS, *schema.DETAILS)
        number = schema.exact
        if columns_of and (columns_of / "trials.csv").exists():
            found = table_header(columns_of / "trials.csv")
            known = {*found}.union(*cases)
            axes = {name: axis for name, axis in axes.items() if name in known}
            if schema.DETAILS[0].name not in found:
                number = schema.csv_value
                recorded = {name for _, trial in trials for name, value in trial if value is not None}
                recorded -= {column.name for column in schema.DETAILS}
                fields = [column for column in fields if column.name in known | recorded]
        columns = (*fields, *map(schema.axis_column, axes.values()))
        with write(into / "trials.csv") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow([column.name for column in columns])
            for (_, trial), case in zip(trials, cases, strict=True):
                rows.writerow(map(number, [*_cells(trial, fields), *map(case.get, axes)]))
        tables: dict[str, tuple[schema.Column, ...]] = {"trials": columns}
        for table, every in schema.OF_A_TRIAL.items():
            parts = [(folder, trial.digests) for folder, trial in trials]
            tables[table] = every
            if columns_of and (columns_of / f"{table}.csv").exists():
                paths = [folder / f"{table}.csv" for folder, _ in parts]
                known = {*table_header(columns_of / f"{table}.csv")}.union(
                    *map(table_header, filter(os.path.lexists, paths))
                )
                tables[table] = tuple(column for column in every if column.name in known)
            with write(into / f"{table}.csv") as file:
                _concatenate(table, [column.name for column in tables[table]], parts, file)
        with write(into / "datapackage.json") as file:
            package = schema.data_package(self.run().run_id.lower(), tables)
            file.write(json.dumps(package, indent=2, ensure_ascii=False) + "\n")


Writing = Callable[[Path], AbstractContextManager[TextIO]]


def _kept_by_nobody(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="")


def table_header(path: Path) -> list[str]:
    """The names of the columns of a table."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return file.readline(_LONGEST_HEADER).rstrip("\n").split(",")


def open_run(results: Path, name: str = "") -> RunDirectory:
    """The run of that id (or path); without a name, or for LATEST, the latest. Raises UserError where there is none."""
    runs = known_runs(results)
    if name in ("", LATEST):
        if not runs:
            raise UserError(f"there is no run in {results}/ yet: make one with `invoke run-suite`")
        return RunDirectory(list(runs.values())[-1])
    if name in runs:
        return RunDirectory(runs[name])
    if os.path.lexists(Path(name) / "run.json"):
        return RunDirectory(Path(name).resolve())
    raise unknown("run", name, runs)


def open_to_resume(results: Path, name: str, task: str = RUN_SUITE) -> RunDirectory:
    """The run of a task to go on with: for LATEST its latest.

    Raises UserError where there is none, and for the name of a run of another task.
    """
    if name in ("", LATEST):
        for path in reversed(known_runs(results).values()):
            if RunDirectory(path).run().task == task:
                return RunDirectory(path)
        raise UserError(f"there is no run of `invoke {task}` in {results}/ yet")
    run = open_run(results, name)
    if (other := run.run().task) != task:
        resume = " and --resume" if "resume" in {row.name for row in options_of((other,))} else ""
        raise UserError(f"run {run.id} is of `invoke {other}`, with the options it began with{resume}: go on there")
    return run


def known_runs(results: Path) -> dict[str, Path]:
    """Id and directory of every run, oldest first (ids begin with the time)."""
    if not results.is_dir():
        return {}
    folders = sorted(path for path in results.iterdir() if not path.name.startswith("."))
    return {path.name: path for path in folders if os.path.lexists(path / "run.json")}


def new_run_id(results: Path, now: time.struct_time, name: str) -> str:
    """The id of a run that begins now; ids are in the order of time. Runs of the same second and name are numbered."""
    first = f"{time.strftime('%Y%m%d-%H%M%S', now)}-{name}"
    ids = chain([first], (f"{first}-{number}" for number in count(2)))
    return next(run_id for run_id in ids if not os.path.lexists(results / run_id))


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a run.json with the seal of this user. Raises UserError where this user can have no key."""
    return {**content, "mac": seals.seal(_without_seal(content), _SEALED)}


def _without_seal(content: Mapping[str, Any]) -> bytes:
    return toml.canonical_json({name: value for name, value in content.items() if name != "mac"}).encode()


def _cells(trial: TrialRecord, columns: Iterable[schema.Column]) -> Iterator[Any]:
    """The values of a trial in these columns; lists and objects as JSON."""
    content = trial.content()
    content["flags"] = (content.get("reported") or {}).get("flags")
    for column in columns:
        value = content.get(column.name)
        value = visible(schema.csv_value(value) if isinstance(value, str) else value)
        is_json = column.type in ("array", "object") and value is not None
        yield json.dumps(value, ensure_ascii=False, separators=(",", ":")) if is_json else value


def _concatenate(
    table: str, names: Sequence[str], parts: Iterable[tuple[Path, Mapping[str, str] | None]], file: TextIO
) -> None:
    """Write every trial's part of a table under one header; the trial's id is the first column.

    parts: the folder of each trial, and the SHA-256 of its tables where they were noted.
    """
    file.write(",".join(names) + "\n")
    for folder, digests in parts:
        path = folder / f"{table}.csv"
        part = read_bytes(path) if os.path.lexists(path) else None
        if digests is not None and digests.get(table) != (None if part is None else hashlib.sha256(part).hexdigest()):
            what = "is missing" if part is None else "was changed"
            raise UserError(f"{path}: {what} since its trial wrote it: restore it, or remove the trial's folder")
        if part:
            file.write(_plain_rows(part, folder.name, names[1:]) or _any_rows(path, part, names[1:]))


def _plain_rows(part: bytes, trial_id: str, names: Sequence[str]) -> str:
    """The rows of a part in which each cell stands as it is between commas; empty where a row needs more care."""
    if b"\n" not in part:
        return ""
    head, *lines, end = part.split(b"\n")
    is_plain = head == ",".join(names).encode() and not end and not part.translate(None, PRINTABLE_ASCII)
    if not is_plain or b'"' in part or {line.count(b",") for line in lines} - {len(names) - 1}:
        return ""
    return "".join(f"{trial_id},{line}\n" for line in part.decode().split("\n")[1:-1])


def _any_rows(path: Path, part: bytes, names: Sequence[str]) -> str:
    """The rows of a part, made visible; a cell that is not there is empty, and one of no column is left out."""
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    try:
        for row in csv.DictReader(io.StringIO(part.decode(errors="replace"), newline="")):
            writer.writerow([path.parent.name, *(visible(row.get(name) or "") for name in names)])
    except csv.Error as error:
        raise UserError(f"{path}: cannot be read: {error}; remove its trial") from error
    return rows.getvalue()
