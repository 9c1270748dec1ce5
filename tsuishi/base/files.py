"""Files that others may have written: only regular ones are read, and no more of them than fits.

What is written here is seen whole or not at all, also after a power cut.
"""

import csv
import ctypes
import errno
import fcntl
import io
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tsuishi.base.errors import UserError

# What a file of ours may hold; a table of telemetry is the largest (a gigabyte is a month of it).
MOST_BYTES = 1 << 30
# A JSON file becomes objects several times its size.
MOST_JSON_BYTES = 64 << 20
_PIECE = 1 << 16
# What reads, copies and writes JSON calls itself for every level.
_DEEPEST = 100
# No link is followed, and no pipe or device waited for.
_OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Of renameat2(2): paths are taken from the working folder.
_HERE, _EXCHANGE = -100, 2
_LIBC = ctypes.CDLL(None, use_errno=True)


def read_bytes(path: Path | str, most: int = MOST_BYTES) -> bytes:
    """A regular file of at most so many bytes. Raises UserError where it is none, or cannot be read."""
    try:
        descriptor = os.open(path, _OPENING)
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise UserError(f"{path}: no regular file (a link, a pipe, a device): remove it, or its run")
            if about.st_size > most:
                raise UserError(f"{path}: {about.st_size} bytes, and {most} are the most that are read: remove it")
            pieces, left = [], most
            # In several pieces where it is large, or grows while it is read.
            while left and (piece := os.read(descriptor, min(left, max(about.st_size, _PIECE)))):
                pieces.append(piece)
                left -= len(piece)
            return b"".join(pieces)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_json(path: Path | str) -> dict[str, Any]:
    """The JSON object in a file. Raises UserError where there is none."""
    return parse_json(path, read_bytes(path, MOST_JSON_BYTES))


def read_rows(path: Path | str) -> list[dict[str, str]]:
    """The rows of a CSV file, by column. Raises UserError where it cannot be read."""
    try:
        return list(csv.DictReader(io.StringIO(read_bytes(path).decode(), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error


def entries(folder: Path) -> list[tuple[str, bool]]:
    """What lies in a folder: names, in their order, and whether each is a folder itself, and no link to one.

    Raises UserError where it is no folder, or a link.
    """
    try:
        descriptor = os.open(folder, _OPENING | os.O_DIRECTORY)
        try:
            with os.scandir(descriptor) as found:
                return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UserError(f"{folder}: no folder that can be read: {error.strerror or error}") from error


def parse_json(path: Path | str, text: bytes) -> dict[str, Any]:
    """The JSON object that was read from a path. Raises UserError where it is none."""
    try:
        value = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object")
    if text.count(b"{") + text.count(b"[") > _DEEPEST and _is_deep(value):
        raise UserError(f"{path}: cannot be read: more than {_DEEPEST} levels deep")
    return value


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _is_deep(value: Any) -> bool:
    """Whether lists and objects lie in each other deeper than anything of ours."""
    level = [value]
    for _ in range(_DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for values in inner for one in values if isinstance(one, dict | list)]
    return bool(level)


def write_json(path: Path, value: Any) -> None:
    """Write so that a reader sees the old file or the new one, never half of either."""
    with replacing(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False, allow_nan=False)
        file.write("\n")


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """A text file that takes the place of `path` once it is written whole and is on the disk.

    Its temporary name is always the same: what a killed process left is written over, and a second writer waits.
    """
    temporary = path.with_name(f".{path.name}.new")
    while (descriptor := _held(temporary, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)) is None:
        pass
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        try:
            file.truncate()
            yield file
            file.flush()
            os.fsync(descriptor)
            temporary.replace(path)
        except IsADirectoryError as error:
            temporary.unlink(missing_ok=True)
            raise UserError(f"{path}: a folder is in its place: remove it") from error
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    sync(path.parent)


@contextmanager
def temporary_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A fresh folder in `parent` whose name begins with `prefix`; what has that name at the end is removed.

    Removed first are those of the same prefix that killed processes left: a living one holds the lock of its folder.
    """
    parent.mkdir(parents=True, exist_ok=True)
    ours = re.compile(rf"{re.escape(prefix)}[0-9a-f]{{8}}")
    for entry in parent.iterdir():
        if ours.fullmatch(entry.name):
            _remove_abandoned(entry)
    descriptor = None
    while descriptor is None:
        folder = parent / f"{prefix}{secrets.token_hex(4)}"
        folder.mkdir()
        descriptor = _held(folder, _FOLDER)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def exchange(one: Path, other: Path) -> None:
    """Swap two names: at every moment something has each. Raises OSError where the file system cannot (NFS)."""
    swap = getattr(_LIBC, "renameat2", None)
    if swap is None or swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        code = ctypes.get_errno() if swap else errno.ENOSYS
        raise OSError(code, os.strerror(code), str(other))


def sync(path: Path) -> None:
    """What was written to a file, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(folder: Path) -> None:
    """Whatever was written to the file system of a folder, on the disk.

    A fsync of each of 200 files took 0.2 to 0.7 s on a local ext4, this 0.02 to 0.1 s.
    """
    descriptor = os.open(folder, _FOLDER)
    try:
        if not hasattr(_LIBC, "syncfs"):
            os.sync()
        elif _LIBC.syncfs(descriptor):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(descriptor)


def _held(path: Path, flags: int) -> int | None:
    """A descriptor that holds the lock of what a path names; None where another process has just taken that away."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        return None
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), path.lstat()):
            return descriptor
    os.close(descriptor)
    return None


def _remove_abandoned(folder: Path) -> None:
    """Remove a temporary folder, unless somebody holds its lock, or nobody can tell."""
    with suppress(OSError):
        descriptor = os.open(folder, _FOLDER)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
