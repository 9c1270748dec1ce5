"""The cache of artefacts, the files that environments are built from, by the SHA-256 of their content.

    <cache>/artifacts/<sha256>/<file name>

Every file of a build passes through it, so a build needs no network. Several threads and processes may use a cache at
once: a file gets its name only when it is whole and verified.
"""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.base.screen import Say

# The names of wheels, sdists and Debian packages. No program reads such a name as a path or an option.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~%-]*")


class Cache:
    """Files by the SHA-256 of their content."""

    def __init__(self, root: Path) -> None:
        self.root = root / "artifacts"

    def find(self, hashes: Sequence[str], python: str | None = None) -> Path | None:
        """The file under one of these hashes; None where there is none. Only `verified` checks its content.

        Several hashes stand for all files of a release: then only a file that `python` (major.minor) can use counts.
        """
        for sha256 in hashes:
            folder = self.root / sha256
            for file in sorted(folder.iterdir()) if folder.is_dir() else ():
                if len(hashes) == 1 or fits_python(file.name, python):
                    return file
        return None

    def verified(self, hashes: Sequence[str], say: Say, python: str | None = None) -> Path | None:
        """Like `find`, but checks the content. A file that has changed is removed, and `say` gets a message."""
        while path := self.find(hashes, python):
            expected = path.parent.name
            # Another thread or process may have removed or replaced the file meanwhile.
            with suppress(FileNotFoundError), path.open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
                if actual == expected:
                    return path
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    path.unlink()
                    difference = f"sha256 {actual[:12]}…, expected {expected[:12]}…"
                    say(f"{path.name} in the cache was altered ({difference}): removed")
        return None

    def refuse_offline(self, missing: Mapping[str, Sequence[str]]) -> None:
        """Raise UserError where an environment misses files (in words, by environment) that are not in the cache."""
        if lacking := {name: files for name, files in missing.items() if files}:
            listed = "; of ".join(f"{name}: {', '.join(files)}" for name, files in lacking.items())
            raise UserError(
                f"offline, and not in the cache are, of {listed}: fill it with "
                f"`invoke fetch --env {','.join(lacking)}` where there is a network, and carry {self.root.parent} over"
            )

    def part(self, file: str, hashes: Sequence[str]) -> Path:
        """The path of a file while it is downloaded. Raises UserError for a name that leads out of the cache."""
        _refuse_path(file)
        return self.root / f".{file}.{hashes[0][:16]}.part"

    def keep(self, part: Path, file: str, sha256: str) -> Path:
        """Move a part with this verified hash to its final path. Raises UserError for a name that leads elsewhere."""
        _refuse_path(file)
        final = self.root / sha256 / file
        final.parent.mkdir(parents=True, exist_ok=True)
        return part.replace(final)


def _refuse_path(file: str) -> None:
    """Raise UserError for a name that is a path: names come from URLs and locks, which may hold ..%2f..%2fx."""
    if not _NAME.fullmatch(file):
        raise UserError(
            f"{file!r} is no name of a file: nothing is kept under it; correct the lock or the URL it is from"
        )


def fits_python(file: str, python: str | None) -> bool:
    """Whether a Python (major.minor) on this platform can use a wheel. Any other file counts as a usable sdist."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename
    from unearth import TargetPython

    try:
        tags = parse_wheel_filename(file)[3]
    except InvalidWheelFilename:
        return True
    version = tuple(int(part) for part in python.split(".")) if python else None
    return not tags.isdisjoint(TargetPython(py_ver=version).supported_tags())
