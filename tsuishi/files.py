"""Files that others may have written: only regular ones are read, and no more of them than fits.

What is written here is seen whole or not at all, also after a power cut.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tsuishi.errors import UserError

# What a file of ours may hold; a table of telemetry is the largest (a gigabyte is a month of it).
MOST_BYTES = 1 << 30
# A JSON file becomes objects several times its size.
MOST_JSON_BYTES = 64 << 20
_PIECE = 1 << 16
# No link is followed, and no pipe or device waited for.
_OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


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


def parse_json(path: Path | str, text: bytes) -> dict[str, Any]:
    """The JSON object that was read from a path. Raises UserError where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object")
    return value


def write_json(path: Path, value: Any) -> None:
    """Write so that a reader sees the old file or the new one, never half of either."""
    with replacing(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False, allow_nan=False)
        file.write("\n")


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """A text file that takes the place of `path` once it is written whole and is on the disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """What was written to a file, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
