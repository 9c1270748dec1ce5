"""Artefacts: what environments are built from, in a content-addressed cache.

    <cache>/artifacts/<sha256>/<file name>

Everything an environment is built from passes through here, so a build needs no network. Threads and processes may use
one cache at once: a file gets its name whole and verified, or not at all.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.base.screen import Say

# Wheels, sdists and Debian packages have such names, and nothing reads them as anything but a name.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~%-]*")


class Cache:
    """Files by the SHA-256 of their content."""

    def __init__(self, root: Path) -> None:
        self.root = root / "artifacts"

    def find(self, hashes: Sequence[str], python: str | None = None) -> Path | None:
        """The file with one of these hashes, by where it lies; `verified` looks at its content.

        Several hashes stand for every file of a release: only one that `python` (major.minor) can use will do.
        """
        for sha256 in hashes:
            folder = self.root / sha256
            for file in sorted(folder.iterdir()) if folder.is_dir() else ():
                if len(hashes) == 1 or usable(file.name, python):
                    return file
        return None

    def verified(self, hashes: Sequence[str], say: Say, python: str | None = None) -> Path | None:
        """Like `find`, but what has changed is removed, with a word about it."""
        while path := self.find(hashes, python):
            expected = path.parent.name
            # Another thread or process may have removed it meanwhile, or put the right one there.
            with suppress(FileNotFoundError), path.open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
                if actual == expected:
                    return path
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    path.unlink()
                    told = f"(sha256 {actual[:12]}…, expected {expected[:12]}…)"
                    say(f"{path.name} in the cache was altered {told}: removed")
        return None

    def part(self, file: str, hashes: Sequence[str]) -> Path:
        """Where a file is brought together before it is kept. Raises UserError where it would lie elsewhere."""
        _refuse_path(file)
        return self.root / f".{file}.{hashes[0][:16]}.part"

    def keep(self, part: Path, file: str, sha256: str) -> Path:
        """Take in a part whose hash is known to be this. Raises UserError for a name that leads elsewhere."""
        _refuse_path(file)
        final = self.root / sha256 / file
        final.parent.mkdir(parents=True, exist_ok=True)
        return part.replace(final)


def _refuse_path(file: str) -> None:
    """Names come from URLs and locks, in which ..%2f..%2fx is one."""
    if not _NAME.fullmatch(file):
        raise UserError(
            f"{file!r} is no name of a file: nothing is kept under it; correct the lock or the URL it is from"
        )


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def usable(file: str, python: str | None) -> bool:
    """Whether a wheel is for that Python (major.minor) on this platform; anything else is taken to be an sdist."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename
    from unearth import TargetPython

    try:
        tags = parse_wheel_filename(file)[3]
    except InvalidWheelFilename:
        return True
    version = tuple(int(part) for part in python.split(".")) if python else None
    return not tags.isdisjoint(TargetPython(py_ver=version).supported_tags())
