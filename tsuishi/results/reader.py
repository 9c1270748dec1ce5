"""What runs recorded: their files, read; every string made fit to print, so nothing after this needs to ask.

A run has thousands of small files. What is plain ASCII, as nearly all of it is, is recognised as a whole and passed on
as it is; the rest is looked at character by character. Nothing heavy is imported here: `ahead` reads in a process of
its own while the process that asked still imports pandas.
"""

import csv
import gc
import hashlib
import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tsuishi.results import schema
from tsuishi.base import processes
from tsuishi.base.errors import UserError
from tsuishi.base.files import MOST_JSON_BYTES, entries, parse_json, read_bytes
from tsuishi.base.printable import visible
from tsuishi.results.directory import RunDirectory

# The column of a trial's number, where a table has many rows of a trial.
TRIAL = "trial"
# So many take longer to read than it takes to start a process.
MANY_TRIALS = 1_000

_PRINTABLE = bytes([ord("\n"), *range(0x20, 0x7F)])
# Not of a quote, a backslash, a slash, a line's end or a tab.
_ODD_ESCAPE = re.compile(rb'\\[^"\\/nt]')


class RunContents(NamedTuple):
    """Every run.json by run id, every record by its id, and every trial: run id, trial id and trial.json.

    `tables`: samples, metrics and telemetry of all trials as CSV; in front of a row its trial's place in `trials`.
    """

    runs: dict[str, dict[str, Any]]
    records: dict[str, dict[str, Any]]
    trials: list[tuple[str, str, dict[str, Any]]]
    tables: dict[str, bytes]


# What reads runs, here or elsewhere.
Read = Callable[[Sequence[RunDirectory]], RunContents]


def recorded(runs: Sequence[RunDirectory]) -> RunContents:
    """What these runs recorded.

    Read from the trials themselves, so it does not matter whether a run was gathered. Raises UserError where a file is
    unreadable.
    """
    records: dict[str, dict[str, Any]] = {}
    trials: list[tuple[str, str, dict[str, Any]]] = []
    parts = {table: Parts(table) for table in schema.OF_A_TRIAL}
    for run in runs:
        for path in run.record_files():
            # What is made visible has another hash.
            records[path.stem] = visible(run.record(path.stem))
        for folder, trial in run.finished(read_visible):
            for part in parts.values():
                part.add(len(trials), folder, trial.get("tables"))
            trials.append((visible(run.id), visible(folder.name), trial))
    texts = {table: part.text() for table, part in parts.items()}
    return RunContents({visible(run.id): run.run(read_visible) for run in runs}, records, trials, texts)


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector of cycles: there are none worth it, and to look for them takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def ahead(runs: Sequence[RunDirectory]) -> Iterator[Read]:
    """Reading begun: runs of many trials are read by a process that starts at once, and the others when it is asked.

    What is given takes the same runs, and raises what `recorded` does. Meant for the main thing that a process does:
    what is imported meanwhile is never looked through for cycles, which takes a third of a second in all.
    """
    with uncollected(), _begun(runs) as read:
        yield read
    gc.freeze()


@contextmanager
def _begun(runs: Sequence[RunDirectory]) -> Iterator[Read]:
    if sum(len(entries(run.trials)) for run in runs) < MANY_TRIALS:
        yield recorded
        return
    paths = [str(run.path.absolute()) for run in runs]
    with processes.start("tsuishi.results.reader", *paths, stdout=subprocess.PIPE) as process:
        try:
            yield lambda _: processes.answer(process, "reads the runs")
        finally:
            process.kill()


def read_visible(path: Path | str) -> dict[str, Any]:
    """A JSON object, made visible. Raises UserError where it cannot be read."""
    text = read_bytes(path, MOST_JSON_BYTES)
    value = parse_json(path, text)
    return visible(value) if text.translate(None, _PRINTABLE) or _ODD_ESCAPE.search(text) else value


class Parts:
    """The parts that trials have of one table, put together; the number of the trial stands in front of every row."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._file = f"{table}.csv"
        self._columns = [name for name in schema.names(table) if name != "trial_id"]
        self._head = f"{','.join(self._columns)}\n".encode()
        self._rows: list[bytes] = []

    def add(self, trial: int, folder: Path, digests: Any = None) -> None:
        """Read a trial's part; a trial that wrote none has no rows.

        `digests`: the SHA-256 of its tables by their names, as its trial.json has them; None in trials of old that
        have none. Raises UserError where the part is not the one that was written.
        """
        # Not a Path, which takes as long as reading a small file.
        path = f"{folder}/{self._file}"
        try:
            part = read_bytes(path)
        except UserError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            self._hold(path, digests, None)
            return
        self._hold(path, digests, part)
        plain = part.startswith(self._head) and part.endswith(b"\n") and not part.translate(None, _PRINTABLE)
        if not plain or b'"' in part or b"\n\n" in part:
            self._rows.append(self._rewritten(path, trial, part))
        elif len(part) > len(self._head):
            # Every line is a row.
            rows, number = part[len(self._head) : -1], b"%d," % trial
            self._rows.append(number + rows.replace(b"\n", b"\n" + number) + b"\n")

    def _hold(self, path: str, digests: Any, part: bytes | None) -> None:
        """Raise UserError where a part is not what its trial wrote down."""
        if digests is None:
            return
        found = None if part is None else hashlib.sha256(part).hexdigest()
        if not isinstance(digests, dict) or digests.get(self._table) != found:
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
    """Answer with what the runs recorded."""
    gc.disable()
    try:
        processes.reply(recorded([RunDirectory(Path(path)) for path in paths]))
    except UserError as error:
        processes.reply(error)


if __name__ == "__main__":
    # As the module that others import: what is pickled names it.
    from tsuishi.results import reader as this

    this._serve(sys.argv[1:])
