"""The manifest of a run: the SHA-256 of each of its files, in the form of `sha256sum`.

manifest-sha256.txt    files written once: records, and the files of each trial, appended when the trial is committed
run-sha256.txt         files written anew: run.json, the gathered tables, and the manifest at the same moment

So the SHA-256 of run-sha256.txt, the root, stands for the whole run: where the root stays, no trial was altered, added
or left out. `sha256sum -c run-sha256.txt manifest-sha256.txt` in the folder of the run compares all files. Where a
runner found that a trial was removed, a comment has the place of its lines, and the trial may be measured again.

A person who can write to the run can write another manifest. It shows alterations to those who noted the root.
"""

import errno
import hashlib
import io
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.results.records import FileRecord, TrialRecord

ONCE, ANEW = "manifest-sha256.txt", "run-sha256.txt"
REMEDY = "copy the run again, or make it anew"
_TRIALS = r"trials/[^/.\\][^/\\]*/[a-z][a-z0-9._-]*"
_WRITTEN_ONCE = rf"records/[a-z]+-[0-9a-f]{{12}}\.json|{_TRIALS}"
_WRITTEN_ANEW = rf"run\.json|datapackage\.json|[a-z]+\.csv|{re.escape(ONCE)}"
_REMOVED = "# removed: "


class Digests(NamedTuple):
    """The SHA-256 of the files of a run, by their paths in it: of files written once, and of files written anew.

    `root`: the digest that stands for the run; empty where none was made since its trials began. `removed`: how many
    trials had been removed before a resumption.
    """

    once: Mapping[str, str]
    anew: Mapping[str, str]
    root: str = ""
    removed: int = 0

    @property
    def are_there(self) -> bool:
        return bool(self.once or self.anew)


def read(run: Path, *, may_be_cut: bool = False) -> Digests:
    """The digests of a run; none for a run without a manifest.

    may_be_cut: a last line that a power cut left unfinished is no fault. Raises UserError where a line is none, or
    gives a file a second digest.
    """
    once, anew = _text(run / ONCE), _text(run / ANEW)
    if may_be_cut:
        once = _whole_lines(once)
    root = hashlib.sha256(anew).hexdigest() if anew else ""
    listed = _parsed(run / ONCE, once, _WRITTEN_ONCE)
    return Digests(listed, _parsed(run / ANEW, anew, _WRITTEN_ANEW), root, once.count(_REMOVED.encode()))


def _text(path: Path) -> bytes:
    """The text of a file; empty where there is none."""
    return files.read_bytes(path) if os.path.lexists(path) else b""


def _whole_lines(text: bytes) -> bytes:
    return text[: text.rfind(b"\n") + 1]


def _parsed(path: Path, text: bytes, names: str) -> dict[str, str]:
    """The digests in a text, by name. names: the pattern of a name."""
    if _whole_lines(text) != text:
        raise UserError(f"{path}: its last line is not whole; {REMEDY}")
    form = re.compile(rf"([0-9a-f]{{64}})  ({names})")
    found: dict[str, str] = {}
    # A list of the lines would take many times as much memory as a text of short lines.
    for number, whole in enumerate(io.BytesIO(text), 1):
        line = whole[:-1].decode(errors="replace")
        if line.startswith(_REMOVED):
            continue
        match = form.fullmatch(line)
        if not match:
            raise UserError(f"{path}: line {number} is not as tsuishi writes it; {REMEDY}")
        if found.setdefault(match[2], match[1]) != match[1]:
            raise UserError(f"{path}: line {number}: {match[2]} has another digest before; {REMEDY}")
    return found


def about(path: Path) -> FileRecord:
    """Size and digest of a regular file. Raises UserError where it cannot be read."""
    size, digest = files.size_and_sha256(path)
    return FileRecord(bytes=size, sha256=digest)


def write_anew(run: Path, names: Iterable[str]) -> None:
    """Write run-sha256.txt: new digests of these files, and the earlier digests of other files.

    A file that is not there is left out. Raises UserError where a file cannot be read.
    """
    listed = _parsed(run / ANEW, _text(run / ANEW), _WRITTEN_ANEW)
    for name in (*names, ONCE):
        listed.pop(name, None)
        if os.path.lexists(run / name):
            listed[name] = about(run / name).sha256
    files.write_bytes(run / ANEW, _lines(dict(sorted(listed.items()))))


def _lines(digests: Mapping[str, str]) -> bytes:
    return "".join(f"{digest}  {name}\n" for name, digest in digests.items()).encode()


class Manifest:
    """The manifest of a run that this process measures, for writing."""

    def __init__(self, run: Path) -> None:
        """Raises UserError as `read` does. A last line that a power cut left unfinished is dropped."""
        self._run, self._path = run, run / ONCE
        text = _text(self._path)
        whole = _whole_lines(text)
        if whole != text:
            os.truncate(self._path, len(whole))
        self._listed = _parsed(self._path, whole, _WRITTEN_ONCE)

    def __contains__(self, file: str) -> bool:
        return file in self._listed

    def __bool__(self) -> bool:
        return bool(self._listed)

    def add(self, trial: TrialRecord) -> None:
        """Add the files of a trial, and the records that it is the first to name. The lines are on the disk afterwards.

        The digests of the trial's files are those in its record. Raises UserError where a file cannot be read, OSError
        where the lines cannot be written; then there is none.
        """
        folder = f"trials/{trial.trial_id}"
        noted = {f"{folder}/{name}": known.sha256 for name, known in self._files_of(trial).items()}
        self._add([*(f"records/{cited}.json" for cited in trial.cited), *noted, f"{folder}/trial.json"], noted)

    def add_records(self, records: Iterable[Path]) -> None:
        """Add records that no trial has named. Raises as `add` does."""
        self._add([f"records/{path.name}" for path in records], {})

    def _add(self, names: Iterable[str], noted: Mapping[str, str]) -> None:
        new = [name for name in names if name not in self._listed]
        digests = {name: noted.get(name) or about(self._run / name).sha256 for name in new}
        if digests:
            self._append(_lines(digests))
        self._listed |= digests

    def _files_of(self, trial: TrialRecord) -> Mapping[str, FileRecord]:
        """The files of a trial beside its trial.json. An earlier tsuishi did not note them."""
        if trial.files is not None:
            return trial.files
        folder = self._run / "trials" / trial.trial_id
        return {name: about(folder / name) for name, _ in files.entries(folder) if name != "trial.json"}

    def forget_removed(self) -> None:
        """Put a comment in the place of the lines of each trial that is not there any more."""
        folders = {name.rpartition("/")[0] for name in self._listed if name.startswith("trials/")}
        gone = {folder for folder in folders if not os.path.lexists(self._run / folder)}
        if not gone:
            return
        lines = []
        for line in _text(self._path).decode().splitlines(keepends=True):
            folder, _, file = line.partition("  ")[2].rstrip("\n").rpartition("/")
            if line.startswith(_REMOVED) or folder not in gone:
                lines.append(line)
            elif file == "trial.json":
                lines.append(_REMOVED + line)
        files.write_bytes(self._path, "".join(lines).encode())
        self._listed = {name: known for name, known in self._listed.items() if name.rpartition("/")[0] not in gone}

    def _append(self, text: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o644)
        with files.naming(self._path), os.fdopen(descriptor, "wb", buffering=0) as file:
            size = os.fstat(descriptor).st_size
            try:
                if file.write(text) != len(text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, size)
                raise
        files.sync(self._run)
