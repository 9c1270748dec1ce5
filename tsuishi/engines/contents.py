"""The files of a virtual environment: recorded when it is built, and compared when it is used.

Outside of its folder only the executable of the interpreter is recorded, not the libraries of Python and the system.
"""

import csv
import hashlib
import os
import re
import stat
from collections.abc import Collection
from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name
from pydantic import BaseModel, ConfigDict

from tsuishi.base import files, toml
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.files import sha256_of

# This file is written last: a virtual environment without it was never finished.
MARK = "tsuishi.json"
_RECORD = "contents.json"
_INTERPRETER = re.compile(r"bin/python[0-9.]*")
# Bytecode holds the paths of its sources; a RECORD holds hashes of scripts, which hold the interpreter's path.
_NOT_PORTABLE = (".pyc", ".dist-info/RECORD")


class _Contents(BaseModel):
    """The file contents.json of a virtual environment."""

    model_config = ConfigDict(strict=True)

    # The files that the module venv made, before any package was installed.
    made: list[str]
    # By path: size in bytes, times of modification and of change in ns since 1970, sha256, or a link's target.
    files: dict[str, tuple[int, int, int, str]]


def paths(venv: Path) -> list[str]:
    """Every file and link in a virtual environment, relative to it."""
    return [*_look(venv)]


def record(venv: Path, made: Collection[str], packages: Collection[str]) -> None:
    """Record all files of a virtual environment.

    `made`: the files of the module venv. `packages`: normalised names. Raises BuildError for a file that is neither in
    `made` nor listed by one of the packages, and for a link that leads out of the environment.
    """
    now = _look(venv)
    for path in sorted(now.keys() - _listed(venv, packages) - set(made)):
        raise BuildError(
            f"{venv / path}: no locked package lists this file: find out which package or program wrote it"
        )
    for path, about in now.items():
        if stat.S_ISLNK(about.st_mode) and not (venv / path).resolve().is_relative_to(venv.resolve()):
            raise BuildError(f"{venv / path}: a link that leads out of the environment: find out what made it")
    held = {
        path: (about.st_size, about.st_mtime_ns, about.st_ctime_ns, _digest(venv / path, about))
        for path, about in now.items()
    }
    with files.replacing(venv / _RECORD) as file:
        file.write(_Contents(made=sorted(made), files=held).model_dump_json())


def realised_id(venv: Path, python: str, lock_sha256: str) -> str:
    """Digest of the interpreter, the lock and every recorded file of a package. It does not depend on the folder.

    Raises UserError where nothing is recorded.
    """
    recorded = _read(venv)
    portable = {
        path: _portable(venv, path, digest)
        for path, (_, _, _, digest) in sorted(recorded.files.items())
        if path not in recorded.made and not path.endswith(_NOT_PORTABLE)
    }
    return "venv:" + toml.digest([python, recorded.files["bin/python"][-1], lock_sha256, portable], 16)


def is_recorded(venv: Path) -> bool:
    """Whether a virtual environment has its record, and its interpreter is there. Looks at no other file."""
    return (venv / _RECORD).is_file() and (venv / "bin" / "python").is_file()


def alteration(venv: Path, *, whole: bool) -> str:
    """The first difference between a virtual environment and its record, in words; empty where there is none.

    Compares the names, sizes and times of all files, and the contents of files that were touched since. `whole`:
    compares the contents of all files.
    """
    try:
        recorded, now = _read(venv).files, _look(venv)
        for path in sorted(recorded.keys() ^ now.keys()):
            return f"{path}: {'not there any more' if path in recorded else 'not there when it was built'}"
        for path, (size, modified, changed, digest) in recorded.items():
            about = now[path]
            if (about.st_size, about.st_mtime_ns) != (size, modified):
                return f"{path}: changed"
            if (whole or about.st_ctime_ns != changed) and _digest(venv / path, about) != digest:
                return f"{path}: other content"
    except (UserError, OSError) as error:
        return str(error)
    return ""


def _look(venv: Path) -> dict[str, os.stat_result]:
    """The state of every file and link by its path. For the links bin/python* it is the state of their target."""
    states, folders, root = {}, [""], os.fspath(venv)
    while folders:
        folder = folders.pop()
        # Names are looked up in an open folder, not from the root: there are tens of thousands.
        opened = os.open(f"{root}/{folder}", os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(opened) as entries:
                for entry in entries:
                    path = folder + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{path}/")
                    elif folder == "bin/" and _INTERPRETER.fullmatch(path):
                        states[path] = (venv / path).stat()
                    else:
                        states[path] = entry.stat(follow_symlinks=False)
        finally:
            os.close(opened)
    for path in (MARK, _RECORD):
        states.pop(path, None)
    return states


def _digest(path: Path, about: os.stat_result) -> str:
    if stat.S_ISLNK(about.st_mode):
        return f"-> {path.readlink()}"
    if not stat.S_ISREG(about.st_mode):
        raise BuildError(f"{path}: no regular file: remove it")
    return sha256_of(path)


def _listed(venv: Path, packages: Collection[str]) -> set[str]:
    """The files that the RECORDs of these packages list."""
    listed = set()
    for site in venv.glob("lib/python*/site-packages"):
        for installed in distributions(path=[str(site)]):
            if canonicalize_name(installed.name or "") in packages:
                rows = csv.reader((installed.read_text("RECORD") or "").splitlines())
                listed |= {os.path.normpath(site.relative_to(venv) / row[0]) for row in rows if row}
    return listed


def _portable(venv: Path, path: str, digest: str) -> str:
    """The digest of a file. The first lines of a script count without the path of the interpreter."""
    if not path.startswith("bin/"):
        return digest
    python = rb'"?' + re.escape(os.fsencode(venv)) + rb'/bin/python[0-9.]*"?'
    # Where the path is long, pip lets a shell start the interpreter.
    shell = rb"/bin/sh\n'''exec' " + python + rb' "\$0" "\$@"\n' + rb"' '''"
    text = re.sub(rb"\A#!(" + python + rb"|" + shell + rb")\n", b"#!python\n", (venv / path).read_bytes())
    return hashlib.sha256(text).hexdigest()


def _read(venv: Path) -> _Contents:
    path = venv / _RECORD
    try:
        return _Contents.model_validate_json(files.read_bytes(path))
    except ValueError as error:
        raise UserError(f"{path}: no record of an environment's files: build it again") from error
