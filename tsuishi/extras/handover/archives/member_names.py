"""The names that files in an archive may have: such that every system writes them where they belong, and only there."""

import re

from tsuishi.base.files import MOST_BYTES, MOST_JSON_BYTES, is_windows_device

# The end of an archive's own name.
SUFFIX = ".tsuishi.zip"
# The folders of an archive, and the files beside them.
RUNS, INPUTS, SBOMS, REPORT, IMAGES, ARTIFACTS = "runs", "inputs", "sboms", "report", "images", "artifacts"
MANIFEST = "manifest-sha256.txt"
RECORD = "archive.json"
CRATE = "ro-crate-metadata.json"
CITATION = "CITATION.cff"
FOLDERS = frozenset({RUNS, INPUTS, SBOMS, REPORT, IMAGES, ARTIFACTS})
FILES = frozenset({MANIFEST, RECORD, CRATE, CITATION})

_PART = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._+@=~%-]*[A-Za-z0-9_+@=~%-])?")
_MOST_CHARACTERS, _MOST_FOLDERS = 600, 8
# File systems take 255 bytes.
_LONGEST_PART = 250


def problem(name: str) -> str:
    """Why a file in an archive may not have this name; empty where it may."""
    *folders, last = parts = name.split("/")
    if len(name) > _MOST_CHARACTERS or len(folders) > _MOST_FOLDERS or max(map(len, parts)) > _LONGEST_PART:
        return f"a name of {len(name)} characters in {len(folders)} folders is too long or too deep"
    if not all(map(_PART.fullmatch, parts)):
        return "no name that every system writes in its own place (letters of ASCII, no '..', no '/' before it)"
    if any(map(is_windows_device, parts)):
        return "the name of a device"
    if (folders[0] not in FOLDERS) if folders else (last not in FILES):
        return "no file of an archive of tsuishi"
    return ""


def problem_of_size(name: str, size: int) -> str:
    """Why a file in an archive may not have so many bytes; empty where it may. Images and packages are not bounded."""
    folder = name.partition("/")[0]
    most = MOST_BYTES if folder in (RUNS, INPUTS) else size if folder in (IMAGES, ARTIFACTS) else MOST_JSON_BYTES
    return f"{size:,} bytes, and {most:,} are the most that are read" if size > most else ""


class TakenNames:
    """The names so far: two names that differ only in case are the same for some systems, and no file is a folder."""

    def __init__(self) -> None:
        self._spelled: dict[str, str] = {}
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def problem(self, name: str) -> str:
        """Why a further file may not have this name; empty where it may, and then the name is taken."""
        if why := problem(name):
            return why
        if name in self._files:
            return "there twice"
        folders = folders_of(name)
        for path in [*folders, name]:
            if self._spelled.setdefault(path.lower(), path) != path:
                return f"the same as {self._spelled[path.lower()]} where upper and lower case are the same"
        if self._files.intersection(folders):
            return "in a folder that is a file, too"
        if name in self._folders:
            return "a file that is a folder, too"
        self._files.add(name)
        self._folders.update(folders)
        return ""


def folders_of(name: str) -> list[str]:
    """The folders that a name lies in, from the outermost.

    >>> folders_of("runs/a/run.json")
    ['runs', 'runs/a']
    """
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]
