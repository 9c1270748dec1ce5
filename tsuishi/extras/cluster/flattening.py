"""The layers of an image as one file system, in an archive: for engines that know no layers.

Each layer changes those below it (OCI Image Format 1.0, "Image Layer Filesystem Changeset"): an entry replaces what has
its name, `.wh.<name>` removes it, and `.wh..wh..opq` removes everything in its folder.
"""

import posixpath
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from tsuishi.engines.saved_image import config_of, content_of, manifest_of

_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"


def flattened(archive: Path, to: IO[bytes]) -> None:
    """Write the file system of an image as a tar archive, the upper layers first.

    `archive` is an image as an engine saves it. Files of an image that enroot would read or run, etc/environment and
    etc/rc, are left out.
    """
    with tarfile.open(archive) as image, tarfile.open(fileobj=to, mode="w|", format=tarfile.PAX_FORMAT) as out:
        upper = _Upper()
        upper.add({}, {"etc/environment", "etc/rc"}, set())
        for layer in reversed(manifest_of(image)["Layers"]):
            _write_layer(content_of(image, layer), upper, out)


def variables_of(archive: Path) -> dict[str, str]:
    """The variables of the config of an image, which programs in it get."""
    return dict(variable.split("=", 1) for variable in config_of(archive)["config"].get("Env") or [])


class _Upper:
    """What the layers above a layer have, and what they remove."""

    def __init__(self) -> None:
        self._names: dict[str, bool] = {}  # whether it is a folder
        self._removed: set[str] = set()
        self._emptied: set[str] = set()

    def add(self, names: Mapping[str, bool], removed: set[str], emptied: set[str]) -> None:
        """Add a layer."""
        self._names.update(names)
        self._removed |= removed
        self._emptied |= emptied

    def hides(self, name: str) -> bool:
        """Whether an entry of a lower layer is not in the file system: removed, or replaced, or below such."""
        if name in self._names or name in self._removed:
            return True
        return any(
            folder in self._removed or folder in self._emptied or self._names.get(folder) is False
            for folder in _folders(name)
        )


def _write_layer(layer: IO[bytes], upper: _Upper, out: tarfile.TarFile) -> None:
    names: dict[str, bool] = {}
    removed: set[str] = set()
    emptied: set[str] = set()
    with tarfile.open(fileobj=layer) as entries:
        for entry in entries:
            entry.name = name = posixpath.normpath(entry.name).lstrip("/")
            folder, base = posixpath.split(name)
            if base == _OPAQUE:
                emptied.add(folder)
            elif base.startswith(_WHITEOUT):
                removed.add(posixpath.join(folder, base.removeprefix(_WHITEOUT)))
            elif name != "." and not upper.hides(name):
                names[name] = entry.isdir()
                _write_entry(entries, entry, upper, out)
    upper.add(names, removed, emptied)


def _write_entry(entries: tarfile.TarFile, entry: tarfile.TarInfo, upper: _Upper, out: tarfile.TarFile) -> None:
    """Write an entry. A second name of a file that an upper layer hides becomes a file of its own."""
    if entry.islnk():
        entry.linkname = posixpath.normpath(entry.linkname).lstrip("/")
        if upper.hides(entry.linkname):
            target = entries.getmember(entry.linkname)
            entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", target.size
            out.addfile(entry, entries.extractfile(target))
            return
    out.addfile(entry, entries.extractfile(entry) if entry.isreg() else None)


def _folders(name: str) -> Iterator[str]:
    """Every folder above a name."""
    while name := posixpath.dirname(name):
        yield name
