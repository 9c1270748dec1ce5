"""Reading files that others may have written: regular files only, of limited size. Writing files whole or not at all.

A file that is written here is never seen half-written, not even after a power cut.
"""

import csv
import ctypes
import errno
import fcntl
import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO

from tsuishi.base.errors import UserError

# A table of telemetry is the largest file; a gigabyte holds a month.
MOST_BYTES = 1 << 30
# The objects of a JSON file take several times its size in memory.
MOST_JSON_BYTES = 64 << 20
# How the name of a private folder begins.
PRIVATE = "tsuishi-archive-"
_PIECE, _LARGE_PIECE = 1 << 16, 1 << 20
_NOT_REGULAR = "no regular file (a link, a pipe, a device): remove it, or its run"
# Levels of JSON. The functions that read, copy and write JSON are recursive.
_DEEPEST = 100
# What file managers keep in a folder (Windows, macOS, KDE), and network file systems of a removed file that is open.
_LEFT = re.compile(r"(?i)thumbs\.db|desktop\.ini|\.ds_store|\.directory|\._.*|\.nfs[0-9a-f]+|\.fuse_hidden.*")
# Does not follow a link, nor wait for a pipe or device.
_OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Windows has devices of these names in every folder, whatever their ending.
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
# File systems take 255 bytes; times, endings and temporary names are added to a name.
_LONGEST_NAME = 100
# Errors of a disk: it is full, or fails.
_OF_DISKS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}
_FULL = {errno.ENOSPC, errno.EDQUOT}
# AT_FDCWD and RENAME_EXCHANGE of renameat2(2).
_HERE, _EXCHANGE = -100, 2
_LIBC = ctypes.CDLL(None, use_errno=True)


def unfit(name: str) -> str:
    """Why no file or folder should be given a name, as some system cannot have it; empty where it may.

    >>> unfit("con.toml"), unfit("torch2-cpu")
    ("'con.toml' is a device on Windows: give another name", '')
    """
    if len(name.encode()) > _LONGEST_NAME:
        return f"a name of {len(name.encode())} bytes is too long: {_LONGEST_NAME} are the most"
    return f"'{name}' is a device on Windows: give another name" if is_windows_device(name) else ""


def is_windows_device(name: str) -> bool:
    """Whether Windows has a device of this name in every folder."""
    return _DEVICE.fullmatch(name) is not None


def advice(error: OSError) -> str:
    """What to do about a file that cannot be written."""
    return "free some room" if error.errno in _FULL else "mend that"


def read_bytes(path: Path | str, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file of at most `most` bytes. Raises UserError for anything else."""
    try:
        descriptor = os.open(path, _OPENING)
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise UserError(f"{path}: {_NOT_REGULAR}")
            if about.st_size > most:
                raise UserError(f"{path}: {about.st_size} bytes, and {most} are the most that are read: remove it")
            content = os.read(descriptor, min(most, about.st_size + 1))
            if len(content) == about.st_size > 0:
                return content
            # A read may return less than the whole file, the file may grow meanwhile, and some have no size.
            pieces, left = [content], most - len(content)
            while left and (piece := os.read(descriptor, min(left, _PIECE))):
                pieces.append(piece)
                left -= len(piece)
            return b"".join(pieces)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error


def size_and_sha256(path: Path | str) -> tuple[int, str]:
    """Bytes and SHA-256 of a regular file, read piece by piece. Raises UserError for anything else."""
    with reading(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


@contextmanager
def reading(path: Path | str) -> Iterator[io.BufferedReader]:
    """A regular file of any size, open for reading. Raises UserError for anything else, and where a read fails."""
    try:
        descriptor = os.open(path, _OPENING)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UserError(f"{path}: {_NOT_REGULAR}")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                yield file
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error


def pieces(path: Path | str) -> Iterator[bytes]:
    """The content of a regular file of any size, in pieces. Raises UserError for anything else."""
    with reading(path) as file:
        while piece := file.read(_LARGE_PIECE):
            yield piece


def read_json(path: Path | str) -> dict[str, Any]:
    """The JSON object in a file. Raises UserError where the file holds no JSON object."""
    return parse_json(path, read_bytes(path, MOST_JSON_BYTES))


def read_rows(path: Path | str) -> list[dict[str, str]]:
    """The rows of a CSV file, each as cell by column. Raises UserError where the file cannot be read."""
    try:
        return list(csv.DictReader(io.StringIO(read_bytes(path).decode(), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error


def entries(folder: Path) -> list[tuple[str, bool]]:
    """The names in a folder, sorted, and whether each is a folder; a link to a folder is none.

    Files that programs leave in folders which they show or share are left out: tsuishi gives no file such a name.

    Raises UserError where `folder` is a link, or no folder.
    """
    try:
        descriptor = os.open(folder, _OPENING | os.O_DIRECTORY)
        try:
            with os.scandir(descriptor) as listing:
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
                return sorted((name, is_folder) for name, is_folder in found if is_folder or not _LEFT.fullmatch(name))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UserError(f"{folder}: no folder that can be read: {error.strerror or error}") from error


def parse_json(path: Path | str, text: bytes) -> dict[str, Any]:
    """The JSON object in a text that was read from a path. Raises UserError where the text is no JSON object."""
    try:
        value = json.loads(text, parse_constant=_refused, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object")
    if text.count(b"{") + text.count(b"[") > _DEEPEST and _is_deep(value):
        raise UserError(f"{path}: cannot be read: more than {_DEEPEST} levels deep")
    return value


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def finite(text: str) -> float:
    """A finite number. 1e999 is valid JSON, but nothing that is written again can hold it."""
    number = float(text)
    return number if math.isfinite(number) else _refused(text)


def _is_deep(value: Any) -> bool:
    """Whether lists and objects are nested more than _DEEPEST levels deep."""
    level = [value]
    for _ in range(_DEEPEST):
        inner = (node.values() if isinstance(node, dict) else node for node in level)
        level = [child for children in inner for child in children if isinstance(child, dict | list)]
    return bool(level)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file; a reader sees the old file or the new file, never a part."""
    with replacing(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False, allow_nan=False)
        file.write("\n")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file; a reader sees the old file or the new file, never a part."""
    with replacing(path) as file:
        file.buffer.write(content)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name a path in an error of the disk that names none: a write and a flush do not know where they write."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _OF_DISKS:
            error.filename = str(path)
        raise


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[TextIO]:
    """A text file that replaces `path` after it is written whole and is on the disk. mode: less the umask.

    Its temporary name is always the same, so the rest of a killed process is overwritten, and a second writer waits.
    Raises UserError where `path` is a folder.
    """
    temporary = path.with_name(f".{path.name}.new")
    while (descriptor := _held(temporary, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode)) is None:
        pass
    with naming(path), os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
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
def temporary_folder(parent: Path, prefix: str, mode: int = 0o777) -> Iterator[Path]:
    """A fresh folder in `parent` whose name begins with `prefix`; it is removed at the end.

    Folders that killed processes left under the same prefix are removed first: a living process holds its lock. mode:
    of the folder, less the umask.
    """
    parent.mkdir(parents=True, exist_ok=True)
    name = re.compile(rf"{re.escape(prefix)}[0-9a-f]{{8}}")
    for entry in parent.iterdir():
        if name.fullmatch(entry.name):
            _remove_abandoned(entry)
    descriptor = None
    while descriptor is None:
        folder = parent / f"{prefix}{secrets.token_hex(4)}"
        folder.mkdir(mode)
        descriptor = _held(folder, _FOLDER)
    try:
        with naming(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def private_folder() -> AbstractContextManager[Path]:
    """A fresh folder for this user alone among the system's temporary files; it is removed at the end."""
    return temporary_folder(Path(tempfile.gettempdir()), PRIVATE, 0o700)


def exchange(first: Path, second: Path) -> None:
    """Swap two names; at no moment is either free. Raises OSError where the file system cannot do it (NFS)."""
    swap = getattr(_LIBC, "renameat2", None)
    if swap is None or swap(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE):
        code = ctypes.get_errno() if swap else errno.ENOSYS
        raise OSError(code, os.strerror(code), str(second))


def sync(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(folder: Path) -> None:
    """Wait until everything written to the file system of a folder is on the disk.

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


def _held(path: Path, flags: int, mode: int = 0) -> int | None:
    """A descriptor that holds the lock of the file at a path; None where another process has just removed the file."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
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
    # Its lock is held until it is gone: a process that has just made it finds then that it is not there, not later.
    with _lock_of_abandoned(folder) as is_held:
        if is_held:
            shutil.rmtree(folder, ignore_errors=True)


def is_abandoned(folder: Path) -> bool:
    """Whether a temporary folder is this user's, and no process holds its lock; False where that cannot be seen."""
    with _lock_of_abandoned(folder) as is_held:
        return is_held


@contextmanager
def _lock_of_abandoned(folder: Path) -> Iterator[bool]:
    """Hold the lock of a temporary folder of this user; False where another process holds it, or it cannot be seen."""
    descriptor, is_held = None, False
    with suppress(OSError):
        if is_folder_of_ours(folder):
            descriptor = os.open(folder, _FOLDER)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_held = True
    try:
        yield is_held
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_folder_of_ours(path: Path) -> bool:
    """Whether a folder is this user's own, and no link."""
    with suppress(OSError):
        about = path.lstat()
        return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
    return False


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
