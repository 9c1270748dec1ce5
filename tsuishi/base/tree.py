"""A folder with the files of a checkout beside the package: tasks, images, suites, sources and templates, to change.

tree.sha256 in it, in the format of `sha256sum`, says which files were written. A later version replaces those that
nobody has changed since, and leaves all others.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tsuishi.base import files
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError

MANIFEST = "tree.sha256"
TASKS = "tasks.py"
# As pyproject.toml puts them into a wheel.
PARTS = (
    TASKS,
    "invoke.yaml",
    "requirements.lock",
    "images",
    "suites",
    "templates",
    "reports/published",
)


def write_tree(folder: Path, checkout: Checkout) -> list[str]:
    """Write the files of a checkout into a folder, or bring an earlier tree up to date; returns the files left alone.

    Raises UserError for a folder with another file of these names that no tree has written.
    """
    before, written, left = _manifest(folder), {}, []
    given = {name: (source.read_bytes(), folder / name) for name, source in _files(checkout.root)}
    for content, target in () if before else given.values():
        if target.exists() and not (target.is_file() and target.read_bytes() == content):
            raise UserError(f"{target}: there already, and not from `init`: give a new folder")
    for name, (content, target) in given.items():
        digest = hashlib.sha256(content).hexdigest()
        if target.is_file() and (now := files.sha256_of(target)) != digest and now != before.get(name):
            left.append(name)
        elif not target.is_file() or now != digest:
            target.parent.mkdir(parents=True, exist_ok=True)
            files.write_bytes(target, content)  # a killed call leaves no half of a file
        written[name] = digest
    for name in before.keys() - given.keys():
        if (folder / name).is_file() and files.sha256_of(folder / name) == before[name]:
            (folder / name).unlink()
    if written != before:
        with files.replacing(folder / MANIFEST) as manifest:
            manifest.writelines(f"{digest}  {name}\n" for name, digest in written.items())
    return left


def why_not_trusted(folder: Path) -> str:
    """Why the tree in a folder may hold what another user wrote, in words; empty where only this user or root could.

    Whatever this user has changed in it counts, so digests decide nothing here.
    """
    parts = [folder / part for part in PARTS]
    inside = [folder, folder / MANIFEST, *parts, *(path for part in parts for path in part.rglob("*"))]
    for path in inside:
        for about in (path.lstat(), path.stat()) if path.exists() else ():
            if about.st_uid not in (0, os.geteuid()):
                return f"{path} belongs to user {about.st_uid}"
    for path in (*inside, *folder.parents):
        mode = path.stat().st_mode if path.exists() else 0
        if mode & stat.S_IWOTH and not (mode & stat.S_ISVTX and path.is_dir()):
            return f"everybody may write {path}"
    return ""


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """The files of the parts of a tree, by their names in it."""
    for part in PARTS:
        for path in sorted((root / part).rglob("*")) if (root / part).is_dir() else [root / part]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(root).as_posix(), path


def _manifest(folder: Path) -> dict[str, str]:
    """The digests of the files of a tree, by name; empty where there is no tree."""
    if not (folder / MANIFEST).is_file():
        return {}
    lines = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
