"""The chain of a run: what the runner wrote, in the order in which it was written. A JSON object a line.

Each line has the size and the SHA-256 of a file of the run, and the SHA-256 of the line before it. So one digest, that
of the last line, stands for the whole run: no trial can be altered, added or left out, and the digest stay. What
follows a trial.json is in its `files`. A file that the runner writes anew (run.json, the gathered tables) has a line
for each time; its last line counts. Where a runner found that a trial was removed, a line says so, without a size and a
digest, and the trial may be measured again.

Whoever can write to the run can write another chain. It shows alterations to those who noted the digest.
"""

import errno
import hashlib
import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, ValidationError

from tsuishi.base import files, toml
from tsuishi.base.errors import UserError
from tsuishi.base.toml import Record
from tsuishi.results.records import FileRecord

FILE = "chain.jsonl"
_FILES = r"^(run\.json|datapackage\.json|[a-z]+\.csv|records/[a-z]+-[0-9a-f]{12}\.json|trials/[^/.][^/]*/trial\.json)$"
_REMEDY = "copy the run again, or make it anew"


class Link(Record, extra="forbid"):
    """A line. `before`: the SHA-256 of the line before it; empty in the first line. `file`: its path in the run.

    `about`: None where the file had been removed.
    """

    before: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]
    file: Annotated[str, Field(pattern=_FILES)]
    about: FileRecord | None


class Links(NamedTuple):
    """The lines of a chain. `last`: every file as its last line has it, without those that had been removed.

    `root`: the digest that stands for the run. `removed`: how many lines say that a file had been removed.
    """

    last: dict[str, FileRecord]
    root: str
    removed: int = 0


def read(run: Path) -> Links:
    """The chain of a run, without a line where the run has none.

    Raises UserError where a line is none, does not follow the line before it, or alters what is written once.
    """
    path = run / FILE
    return _parsed(path, _text(path))


def _text(path: Path) -> bytes:
    """The text of a chain; empty where there is none."""
    return files.read_bytes(path) if os.path.lexists(path) else b""


def _parsed(path: Path, text: bytes) -> Links:
    if text and not text.endswith(b"\n"):
        raise UserError(f"{path}: its last line is not whole; {_REMEDY}")
    last: dict[str, FileRecord] = {}
    root, removed = "", 0
    # A list of the lines would take many times as much memory as a text of short lines.
    for number, whole in enumerate(io.BytesIO(text), 1):
        line = whole[:-1]
        try:
            link = Link.model_validate_json(line)
        except ValidationError as error:
            raise UserError(f"{path}: line {number}: {toml.explain(error, Link)}; {_REMEDY}") from error
        if link.before != root:
            raise UserError(f"{path}: line {number} does not follow the line before it; {_REMEDY}")
        if link.about is None:
            last.pop(link.file, None)
            removed += 1
        elif _is_written_once(link.file) and link.file in last:
            raise UserError(f"{path}: line {number}: {link.file} has a line already; {_REMEDY}")
        else:
            last[link.file] = link.about
        root = hashlib.sha256(line).hexdigest()
    return Links(last, root, removed)


def _is_written_once(file: str) -> bool:
    """Whether it is a record or a trial.json; the runner writes other files anew."""
    return "/" in file


def about(path: Path) -> FileRecord:
    """Size and digest of a regular file. Raises UserError where it cannot be read."""
    size, digest = files.size_and_sha256(path)
    return FileRecord(bytes=size, sha256=digest)


def _state(path: Path) -> tuple[int, ...]:
    """What changes with the content of a file: nobody can set the time of its last change. Empty: there is none."""
    try:
        now = path.lstat()
    except OSError:
        return ()
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


class HashChain:
    """The chain of a run that this process measures, for writing."""

    def __init__(self, run: Path) -> None:
        """Raises UserError as `read` does. A last line that a power cut left unfinished is dropped."""
        self._run = run
        path = run / FILE
        text = _text(path)
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            os.truncate(path, len(whole))
        self._last, self._root, _ = _parsed(path, whole)
        # What is written anew, as this process read it last: its state and its content.
        self._read: dict[str, tuple[tuple[int, ...], FileRecord]] = {}

    def __contains__(self, file: str) -> bool:
        return file in self._last

    def __bool__(self) -> bool:
        return bool(self._last)

    def add(self, names: Iterable[str]) -> None:
        """Add a line for each of these files of the run that is new, or another than at its last line.

        The lines are on the disk afterwards. Raises UserError where a file cannot be read, or was altered though it
        is written once, OSError where the lines cannot be written.
        """
        new: dict[str, FileRecord | None] = {}
        for name in names:
            known = self._last.get(name)
            now = about(self._run / name) if _is_written_once(name) else self._about(name)
            if known and known != now and _is_written_once(name):
                raise UserError(f"{self._run / name}: altered since it was written; {_REMEDY}")
            if known != now:
                new[name] = now
        self._append(new)

    def _about(self, name: str) -> FileRecord:
        """As `about`. A file that is as it was when it was last read is not read again: run.json is asked for often."""
        path = self._run / name
        state = _state(path)
        if name not in self._read or self._read[name][0] != state:
            self._read[name] = state, about(path)
        return self._read[name][1]

    def forget_removed(self) -> None:
        """Add a line for each trial that is not there any more."""
        gone = [name for name in self._last if name.startswith("trials/") and not os.path.lexists(self._run / name)]
        self._append(dict.fromkeys(gone))

    def _append(self, new: Mapping[str, FileRecord | None]) -> None:
        """Add a line for each of these files. Raises OSError where they cannot be written; then there is none."""
        root, lines, links = self._root, [], []
        for name, now in new.items():
            links.append(Link(before=root, file=name, about=now))
            lines.append(toml.canonical_json(links[-1].content()).encode())
            root = hashlib.sha256(lines[-1]).hexdigest()
        if lines:
            self._write(b"".join(line + b"\n" for line in lines))
        for link in links:
            if link.about is None:
                del self._last[link.file]
            else:
                self._last[link.file] = link.about
        self._root = root

    def _write(self, text: bytes) -> None:
        path = self._run / FILE
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with files.naming(path), os.fdopen(descriptor, "wb", buffering=0) as file:
            size = os.fstat(descriptor).st_size
            try:
                if file.write(text) != len(text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, size)
                raise
        files.sync(self._run)
