"""The files of runs, read: every record is held to its type, and every string is made fit to print.

A run has thousands of small files. Nearly all of them are plain ASCII, which is recognised for a whole file at once;
only the others are looked at character by character. Nothing heavy is imported here: `ahead` reads in a process of its
own while the process that asked still imports pandas.
"""

import csv
import gc
import hashlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tsuishi.base import processes
from tsuishi.base.errors import UserError
from tsuishi.base.files import entries, parse_json, read_bytes
from tsuishi.base.printable import visible
from tsuishi.results import schema, trial_folders
from tsuishi.results.directory import RunDirectory
from tsuishi.results.record_files import read_text
from tsuishi.results.records import Axes, CaseRecord, EnvironmentRecord, MachineRecord, WorkloadRecord

# The column of a trial's number, where a table has many rows of a trial.
TRIAL = "trial"
# To read so many trials takes longer than to start a process.
MANY_TRIALS = 1_000

_PRINTABLE = bytes([ord("\n"), *range(0x20, 0x7F)])
# An escape other than that of a quote, a backslash, a slash, a line's end or a tab.
_ODD_ESCAPE = re.compile(rb'\\[^"\\/nt]')


class RunContents(NamedTuple):
    """The files of runs.

    `runs`: each run.json as text, by run id. `environments`, `machines`, `cases` (axes) and `workloads` (names):
    records by their ids. `trials`: the id of its run and the trial.json of each, as text. `tables`: samples, metrics,
    telemetry of all trials as CSV; the first column is the place of the trial in `trials`. Texts pass between processes
    at no cost.
    """

    runs: dict[str, bytes]
    environments: dict[str, EnvironmentRecord]
    machines: dict[str, MachineRecord]
    cases: dict[str, Axes]
    workloads: dict[str, str]
    trials: list[tuple[str, bytes]]
    tables: dict[str, bytes]


# What reads runs, in this process or in another.
Read = Callable[[Sequence[RunDirectory]], RunContents]


def contents(runs: Sequence[RunDirectory]) -> RunContents:
    """What the files of these runs hold, each held to its type.

    Tables are read from the trials themselves, so it does not matter whether a run was gathered. Raises UserError where
    a file is unreadable or not what it should be.
    """
    read = RunContents({}, {}, {}, {}, {}, [], {})
    parts = {table: Parts(table) for table in schema.OF_A_TRIAL}
    for run in runs:
        for path in run.record_files():
            match run.record(path.stem, visible):
                case EnvironmentRecord() as environment:
                    read.environments[path.stem] = environment
                case MachineRecord() as machine:
                    read.machines[path.stem] = machine
                case WorkloadRecord(workload=workload):
                    read.workloads[path.stem] = workload or ""
                case CaseRecord(root=axes):
                    read.cases[path.stem] = axes
        for folder, trial, text in trial_folders.read(run.finished_folders(), read_visible):
            for part in parts.values():
                part.add(len(read.trials), folder, trial.tables)
            read.trials.append((visible(run.id), text))
        read.runs[visible(run.id)] = text = read_visible(run.path / "run.json")
        run.run(text)
    read.tables.update({table: part.text() for table, part in parts.items()})
    return read


@contextmanager
def uncollected() -> Iterator[None]:
    """Switch the collector of cycles off meanwhile: it finds next to none, and takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def ahead(runs: Sequence[RunDirectory]) -> Iterator[Read]:
    """Begin to read at once: runs of many trials are read by another process, the others when `read` is called.

    Gives a `read` that takes the same runs, and raises what `contents` does. Meant for a process that does nothing
    else: modules that are imported meanwhile are never searched for cycles, which would take a third of a second.
    """
    with uncollected(), _begun(runs) as read:
        yield read
    gc.freeze()


@contextmanager
def _begun(runs: Sequence[RunDirectory]) -> Iterator[Read]:
    if sum(len(entries(run.trials)) for run in runs) < MANY_TRIALS:
        yield contents
        return
    paths = [str(run.path.absolute()) for run in runs]
    with processes.start("tsuishi.results.reader", *paths, stdout=subprocess.PIPE) as process:
        try:
            yield lambda _: processes.answer(process, "reads the runs")
        finally:
            process.kill()


def read_visible(path: Path | str) -> bytes:
    """The JSON text in a file, made visible. Raises UserError where the file cannot be read, or is odd and no JSON."""
    text = read_text(path)
    if text.translate(None, _PRINTABLE) or _ODD_ESCAPE.search(text):
        return json.dumps(visible(parse_json(path, text))).encode()
    return text


class Parts:
    """A table of all trials, put together from the part of each; the first column is the trial's number."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._file = f"{table}.csv"
        self._columns = [name for name in schema.names(table) if name != "trial_id"]
        self._head = f"{','.join(self._columns)}\n".encode()
        self._rows: list[bytes] = []

    def add(self, trial: int, folder: Path, digests: Mapping[str, str] | None = None) -> None:
        """Read the part of a trial; a trial that wrote none has no rows.

        digests: the SHA-256 of the trial's tables by their names, as its trial.json has them; None where an earlier
        tsuishi wrote none. Raises UserError where the part is not the one that was written.
        """
        # Not a Path, which takes as long as reading a small file.
        path = f"{folder}/{self._file}"
        try:
            part = read_bytes(path)
        except UserError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            self._check(path, digests, None)
            return
        self._check(path, digests, part)
        plain = part.startswith(self._head) and part.endswith(b"\n") and not part.translate(None, _PRINTABLE)
        if not plain or b'"' in part or b"\n\n" in part:
            self._rows.append(self._rewritten(path, trial, part))
        elif len(part) > len(self._head):
            # Every line is a row.
            rows, number = part[len(self._head) : -1], b"%d," % trial
            self._rows.append(number + rows.replace(b"\n", b"\n" + number) + b"\n")

    def _check(self, path: str, digests: Mapping[str, str] | None, part: bytes | None) -> None:
        """Raise UserError where a part is not the one whose digest its trial wrote down."""
        if digests is None:
            return
        digest = None if part is None else hashlib.sha256(part).hexdigest()
        if digests.get(self._table) != digest:
            what = "is missing" if part is None else "was changed"
            raise UserError(f"{path}: {what} since its trial wrote it: restore it, or remove the trial's folder")

    def _rewritten(self, path: str, trial: int, part: bytes) -> bytes:
        """A part with the table's columns in their order, made visible."""
        rows = csv.DictReader(io.StringIO(part.decode(errors="replace"), newline=""))
        file = io.StringIO()
        columns = [TRIAL, *self._columns]
        writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore", lineterminator="\n")
        try:
            writer.writerows({**visible(row), TRIAL: trial} for row in rows)
        except csv.Error as error:
            raise UserError(f"{path}: cannot be read: {error}; remove its trial") from error
        return file.getvalue().encode()

    def text(self) -> bytes:
        """All rows as CSV."""
        return b"".join([f"{TRIAL},".encode(), self._head, *self._rows])


def _serve(paths: Sequence[str]) -> None:
    """Answer with the contents of the runs at these paths."""
    gc.disable()
    try:
        processes.reply(contents([RunDirectory(Path(path)) for path in paths]))
    except UserError as error:
        processes.reply(error)


if __name__ == "__main__":
    # Not as __main__: pickles name the module of a class.
    from tsuishi.results import reader as this

    this._serve(sys.argv[1:])
