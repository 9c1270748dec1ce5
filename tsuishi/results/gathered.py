"""What a report needs of a run, gathered in a single file: the records and tables of all trials.

The file notes the size and the last change of every file that it was made from. What is new or has changed is read
again from the trials themselves, so nobody has to gather before a report. The file has the seal of this user, made for
this version of the code: a file that comes with a run from elsewhere is not believed.
"""

import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tsuishi.base import files, seals
from tsuishi.base.errors import UserError
from tsuishi.base.printable import PRINTABLE_ASCII, visible
from tsuishi.results import schema, trial_folders
from tsuishi.results.directory import RunDirectory
from tsuishi.results.quick_verification import FileStates
from tsuishi.results.record_files import read_text
from tsuishi.results.records import RECORDS, AnyRecord
from tsuishi.results.trial_tables import Parts, TableArrays, chosen, columns_of, joined

FILE = "gathered.npz"
_FILES = ("trial.json", *(f"{table}.csv" for table in schema.OF_A_TRIAL))
_NO_FILE = (-1, -1)
# An escape other than that of a quote, a backslash, a slash, a line's end or a tab.
_ODD_ESCAPE = re.compile(rb'\\[^"\\/nt]')


class Trials(NamedTuple):
    """The trials of a run, in the order of their folders' names.

    `states`: int64[trials, files, 2], see `_states`. `texts`: every trial.json, made visible, as bytes or a view of
    bytes. `fields`: the fields of trial records by the names of schema.TRIALS, their `settings`, and the `flags` that
    workloads reported. `tables`: by name.
    """

    names: list[str]
    states: np.ndarray
    texts: list[bytes | memoryview]
    fields: dict[str, list[Any]]
    tables: dict[str, TableArrays]


class Records(NamedTuple):
    """The contents of records by their ids, made visible, and the states of their files."""

    contents: dict[str, Any]
    states: dict[str, tuple[int, int]]

    def typed(self) -> dict[str, AnyRecord]:
        """The records by their ids."""
        return {
            name: RECORDS[name.rpartition("-")[0]].model_validate(content) for name, content in self.contents.items()
        }


def read(run: RunDirectory) -> tuple[Trials, Records]:
    """The trials and records of a run as its files are now.

    Reads what has changed since the gathered file was written, and writes that file again if the run is this user's.
    Raises UserError where a file of the run is unreadable, or not what it should be.
    """
    trials, records = _load(run.path / FILE)
    now = _trials_now(run, trials), _records_now(run, records)
    if now[0] is not trials or now[1] is not records:
        with suppress(UserError, OSError):  # no key, or no room: the next report reads again
            if run.is_ours(run.run()):
                _save(run.path / FILE, *now)
    return now


def file_states(trials: Trials, records: Records) -> FileStates:
    """The states of the files of a run as they were when it was read, for quick_verification."""
    trial_json = trials.states[:, _FILES.index("trial.json"), 0].tolist()
    sizes = {f"trials/{name}/trial.json": size for name, size in zip(trials.names, trial_json, strict=True)}
    sizes |= {f"records/{name}.json": size for name, (size, _) in records.states.items()}
    names = json.dumps([trials.names, sorted(records.states.items())]).encode()
    return FileStates(sizes, hashlib.sha256(names + trials.states.tobytes()).hexdigest())


def _trials_now(run: RunDirectory, before: Trials) -> Trials:
    """The trials as they are in their folders now: `before` itself where nothing has changed."""
    folders = run.finished_folders()
    names = [folder.name for folder in folders]
    states = _states_of_trials(folders)
    place_of = {name: place for place, name in enumerate(before.names)}
    places = np.array([place_of.get(name, -1) for name in names], np.int64)
    kept = places >= 0
    kept[kept] = (states[kept] == before.states[places[kept]]).all(axis=(1, 2))
    if kept.all() and len(names) == len(before.names):
        return before
    keys = [*zip(*(before.fields[name] for name in ("case_id", "environment", "repetition")), strict=True)]
    planned = {keys[place]: before.names[place].rpartition(".a")[0] for place in places[kept]}
    new = _read([folder for folder, known in zip(folders, kept, strict=True) if not known], planned)
    places[~kept] = len(before.names) + np.arange(len(new.texts))

    def merged(old: list[Any], added: list[Any]) -> list[Any]:
        both = old + added
        return [both[place] for place in places]

    return Trials(
        names,
        states,
        merged(before.texts, new.texts),
        {name: merged(values, new.fields[name]) for name, values in before.fields.items()},
        {name: chosen(joined([table, new.tables[name]]), places) for name, table in before.tables.items()},
    )


def _read(folders: Sequence[Path], planned: dict[Any, str]) -> Trials:
    """Trials from their folders. planned: see trial_folders.read."""
    parts = {table: Parts(table) for table in schema.OF_A_TRIAL}
    names: list[str] = []
    texts: list[bytes | memoryview] = []
    trials = []
    for folder, trial, text in trial_folders.read(folders, read_visible, planned):
        for part in parts.values():
            part.add(str(folder), trial.digests)
        names.append(folder.name)
        texts.append(text)
        trials.append(trial)
    fields: dict[str, list[Any]] = {
        column.name: [getattr(trial, column.name) for trial in trials] for column in schema.TRIALS
    }
    fields["flags"] = [trial.reported.flags if trial.reported else {} for trial in trials]
    fields["settings"] = [trial.settings or {} for trial in trials]
    return Trials(names, _states_of_trials([]), texts, fields, {table: part.table() for table, part in parts.items()})


def _records_now(run: RunDirectory, before: Records) -> Records:
    """The records as their files are now: `before` itself where nothing has changed."""
    paths = {path.stem: path for path in run.record_files()}
    states = dict(zip(paths, map(tuple, _states(list(map(str, paths.values()))).tolist()), strict=True))
    if states == before.states:
        return before
    contents = {}
    for name in paths:
        if states[name] == before.states.get(name):
            contents[name] = before.contents[name]
        elif record := run.record(name, visible):
            contents[name] = record.content()
    return Records(contents, states)


def read_visible(path: Path | str) -> bytes:
    """The JSON text in a file, made visible. Raises UserError where the file cannot be read, or is odd and no JSON."""
    text = read_text(path)
    if text.translate(None, PRINTABLE_ASCII) or _ODD_ESCAPE.search(text):
        return json.dumps(visible(files.parse_json(path, text))).encode()
    return text


def _states_of_trials(folders: Sequence[Path]) -> np.ndarray:
    """The states of the files of trials, int64[trials, files, 2]."""
    return _states([f"{folder}/{file}" for folder in folders for file in _FILES]).reshape(-1, len(_FILES), 2)


def _states(paths: Sequence[str]) -> np.ndarray:
    """Of every file its size in bytes and the time of its last change in ns, int64[files, 2]; -1 where it is not there.

    Nobody can set the time of the last change (ctime), and a copy of a file has its own.
    """
    states = []
    for path in paths:
        try:
            about = os.lstat(path)
            states.append((about.st_size, about.st_ctime_ns))
        except FileNotFoundError:
            states.append(_NO_FILE)
    return np.array(states, np.int64).reshape(-1, 2)


def _load(path: Path) -> tuple[Trials, Records]:
    """What was gathered into a file; nothing where the file is not there, or has no seal of this user and code."""
    with suppress(UserError):
        if (content := seals.view(path, _purpose())) is not None:
            return _unpacked(_arrays(content.obj))
    return _read([], {}), Records({}, {})


def _save(path: Path, trials: Trials, records: Records) -> None:
    """Write a file that `_load` reads. Raises UserError where this user can have no key, OSError where it cannot."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **_packed(trials, records))
    seals.write(path, file.getvalue(), _purpose())


def _packed(trials: Trials, records: Records) -> dict[str, Any]:
    """Everything as arrays, for _unpacked."""
    texts = {table: trials.tables[table].texts for table in trials.tables}
    rest = json.dumps([trials.names, trials.fields, texts, *records]).encode()
    arrays: dict[str, Any] = {"rest": np.frombuffer(rest, np.uint8), "states": trials.states}
    arrays["texts"] = np.frombuffer(b"".join(trials.texts), np.uint8)
    arrays["ends"] = np.cumsum([len(text) for text in trials.texts], dtype=np.int64)
    for name, table in trials.tables.items():
        arrays |= {f"{name}/{column}": values for column, values in table.columns.items()}
        arrays[f"{name}/"] = table.counts
    return arrays


def _arrays(file: Any) -> dict[str, np.ndarray]:
    """The arrays of an .npz file (bytes, which something else may precede), without copies of them.

    They lie in it uncompressed, and the seal is their check sum. By NumPy's own reader each would be read twice.
    """
    stream, arrays = io.BytesIO(file), {}
    with zipfile.ZipFile(stream) as archive:
        for member in archive.infolist():
            name, extra = np.frombuffer(file, "<u2", 2, member.header_offset + 26).tolist()
            stream.seek(member.header_offset + 30 + name + extra)
            np.lib.format.read_magic(stream)
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
            values = np.frombuffer(file, dtype, math.prod(shape), stream.tell())
            arrays[member.filename.removesuffix(".npy")] = values.reshape(shape)
    return arrays


def _unpacked(arrays: Mapping[str, np.ndarray]) -> tuple[Trials, Records]:
    names, fields, texts, contents, states = json.loads(arrays["rest"].tobytes())
    tables = {}
    for table, of_table in texts.items():
        columns = {column.name: arrays[f"{table}/{column.name}"] for column in columns_of(table)}
        tables[table] = TableArrays(arrays[f"{table}/"], columns, of_table)
    ends = arrays["ends"].tolist()
    text = arrays["texts"].data
    lines: list[bytes | memoryview] = [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    records = Records(contents, {name: tuple(state) for name, state in states.items()})
    return Trials(names, arrays["states"], lines, fields, tables), records


@cache
def _purpose() -> str:
    """What the seal of a gathered file is for: reading by the code of this room as it is now."""
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        code.update(path.read_bytes())
    return f"{FILE} {code.hexdigest()}"
