"""The folder of each trial in a run: written under a temporary name, committed by its trial.json, read again.

A trial exists whole or not at all, also after a power cut: its files are on the disk before trial.json is, and
trial.json is before the folder has its own name. A call that finds a folder with a trial.json and a temporary name
gives it its own. Several writers of the same trial, on several machines, each have a folder of their own; the first
that commits is the trial.
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.base.files import entries, sync, write_json
from tsuishi.results.record_files import REMEDY, json_text, parsed
from tsuishi.results.records import TrialRecord
from tsuishi.specs.trial_id import TrialId

_PARTIAL = ".partial-"
# Between the id and the writer: no name of a trial has it.
_WRITTEN_BY = "~"


def begin(trials: Path, trial_id: TrialId, writer: str = "") -> Path:
    """A fresh folder to write a trial into, not yet part of the run.

    trials: the folder of all trials. writer: tells writers apart that may write the trial at the same time. Raises
    UserError where the id cannot be the name of a folder.
    """
    if not _attempt(str(trial_id)):
        raise UserError(f"{trials}/{trial_id}: it has not the name of a trial: start a new run")
    path = trials / f"{_PARTIAL}{trial_id}{writer and _WRITTEN_BY + writer}"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return path


def commit(partial: Path, trial: TrialRecord) -> Path:
    """Make a folder from `begin` part of the run: first its files, then trial.json, then its own name.

    Returns its path from now on. Raises OSError (ENOTEMPTY) where another writer was the first.
    """
    for file in partial.iterdir():
        sync(file)
    sync(partial)
    write_json(partial / "trial.json", trial.content())
    return _named(partial)


def settle(trials: Path) -> None:
    """Give its own name to every folder that a killed process had committed, but not yet named.

    Folders of trials that another writer has committed are removed.
    """
    for trial_id, partial in left_behind(trials):
        if (trials / str(trial_id)).exists():
            shutil.rmtree(partial, ignore_errors=True)
        elif (partial / "trial.json").exists():
            with suppress(FileNotFoundError):  # its writer is alive, and has just named it
                _named(partial)


def left_behind(trials: Path) -> list[tuple[TrialId, Path]]:
    """Id and folder of every trial that a process was writing, which may have been killed."""
    partial = [(name, is_folder) for name, is_folder in entries(trials) if name.startswith(_PARTIAL)]
    ids = [(_attempt(_name_of(name)), trials / name) for name, is_folder in partial if is_folder]
    return [(trial_id, path) for trial_id, path in ids if trial_id]


def finished(trials: Path) -> list[Path]:
    """The folder of every trial, all attempts, in the order of their names.

    Raises UserError for anything else that lies among them, and for an attempt without those before it.
    """
    attempts: dict[TrialId, list[int]] = {}
    folders = []
    for name, is_folder in entries(trials):
        if name.startswith("."):
            continue
        if not is_folder:
            raise UserError(f"{trials / name}: no folder of a trial, but a link or a file: remove it")
        trial_id = _attempt(name)
        if trial_id is None:
            raise UserError(f"{trials / name}: it has not the name of a trial; {REMEDY}")
        attempts.setdefault(trial_id.planned, []).append(trial_id.attempt)
        folders.append(trials / name)
    for planned, numbers in attempts.items():
        for expected, number in zip(count(1), sorted(numbers), strict=False):
            if number != expected:
                raise UserError(f"{trials}/{planned}.a{number}: there is no attempt {expected} before it; {REMEDY}")
    return folders


def last_attempt(trials: Path, planned: TrialId) -> Path | None:
    """The folder of the last attempt at a planned trial; None where there is no attempt."""
    folder, trial_id = None, planned.next_attempt
    while (path := trials / str(trial_id)).exists():
        folder, trial_id = path, trial_id.next_attempt
    return folder


def read(folders: Iterable[Path]) -> Iterator[tuple[Path, TrialRecord]]:
    """Every folder with the record in its trial.json.

    Raises UserError where a trial.json is none, is of another trial than its folder, or of the same trial under another
    name.
    """
    names: dict[tuple[str, str, int], str] = {}
    for folder in folders:
        # Not a Path, which takes as long as reading a small file.
        path = f"{folder}/trial.json"
        trial = parsed(path, json_text(path), TrialRecord)
        trial_id = trial.id
        if str(trial_id) != folder.name or not trial_id.is_of(trial.case_id, trial.environment):
            raise UserError(f"{path}: it is of another trial than its folder; {REMEDY}")
        if trial.case_record != f"case-{trial.case_id}":
            raise UserError(f"{path}: its record is of another case; {REMEDY}")
        planned = str(trial_id.planned)
        if names.setdefault((trial.case_id, trial.environment, trial.repetition), planned) != planned:
            raise UserError(f"{path}: the same trial is there under another name; {REMEDY}")
        yield folder, trial


def _named(partial: Path) -> Path:
    final = partial.with_name(_name_of(partial.name))
    partial.rename(final)
    sync(partial.parent)
    return final


def _name_of(partial: str) -> str:
    return partial.removeprefix(_PARTIAL).partition(_WRITTEN_BY)[0]


def _attempt(name: str) -> TrialId | None:
    """The id that a folder's name is; None where it is no attempt at a trial."""
    with suppress(ValueError):
        trial_id = TrialId.parse(name)
        return trial_id if trial_id.attempt else None
    return None
