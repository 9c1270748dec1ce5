"""The container of an archive: a ZIP file whose entries are stored unchanged, without dates, owners and comments.

The identity of an archive is its root, the SHA-256 of its manifest, and not the bytes of this file. So only the files
that the manifest names are read, each once, with the length of its entry and the digest of the manifest. Whatever else
is in the file (bytes between entries, entries that the manifest does not name, dates, comments) is not read, and cannot
matter. Sizes are checked before anything is read or written.

(Python's zipfile reads the directory at the end and takes from it where each entry is; a further library, as
stream-unzip, would read entries that no directory names.)
"""

import hashlib
import re
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator
from typing import IO, BinaryIO, NamedTuple

from tsuishi.extras.handover.archives.member_names import MANIFEST, TakenNames, folders_of

# A file and a folder that their owner may write and all may read.
_FILE, _FOLDER = 0o100644 << 16, 0o040755 << 16 | 0x10
_MOST_MANIFEST_BYTES = 128 << 20
# The most entries: zipfile makes an object of each. And the most bytes of their directory, which it reads at once.
_MOST_ENTRIES, _MOST_DIRECTORY_BYTES = 1_000_000, 256 << 20
_ENTRY = b"PK\1\2"
_PIECE = 1 << 20
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
# What zipfile raises for a file that is no ZIP file, or not as its directory says.
_UNREADABLE = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, RuntimeError, ValueError, EOFError, OverflowError, OSError),
    *(struct.error, LookupError),
)


class BadArchive(ValueError):
    """The file is no archive, or holds other files than its manifest says."""


class Entry(NamedTuple):
    """A file in an archive. `content` raises BadArchive at its end where it is not that of the manifest."""

    name: str
    size: int
    content: Iterator[bytes]


def write(file: IO[bytes], files: Iterable[tuple[str, int, str, Callable[[], Iterable[bytes]]]]) -> None:
    """Write an archive of files: of each its name, size, SHA-256, and a function for its content.

    Raises BadArchive where a content has another size or digest, or a name is not allowed.
    """
    names, folders = TakenNames(), set[str]()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, size, digest, content in files:
            if why := names.problem(name):
                raise BadArchive(f"{name}: {why}")
            for folder in (f"{path}/" for path in folders_of(name)):
                if folder not in folders:  # readers of RO-Crates look for it
                    archive.writestr(_info(folder, _FOLDER, 0), b"")
                    folders.add(folder)
            if len(archive.filelist) >= _MOST_ENTRIES:
                raise BadArchive(f"more than {_MOST_ENTRIES:,} files and folders")
            info = _info(name, _FILE, size)
            sha256, seen = hashlib.sha256(), 0
            with archive.open(info, "w") as entry:
                for piece in content():
                    entry.write(piece)
                    sha256.update(piece)
                    seen += len(piece)
            if (seen, sha256.hexdigest()) != (size, digest):
                raise BadArchive(f"{name}: it was altered meanwhile")


def _info(name: str, mode: int, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr, info.file_size = mode, size
    return info


class Container:
    """An archive that is open for reading.

    `manifest`: the text of its manifest; `digests`: the SHA-256 of the files that it names, by name; `sizes`: their
    bytes, of those that are there. Raises BadArchive where the file is no archive, its manifest is none or names a file
    that may not have that name, or its files have more bytes than it has.
    """

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._zip = zipfile.ZipFile(_Bounded(file))
            size = file.seek(0, 2)
        except _UNREADABLE as error:
            raise BadArchive(f"it is no ZIP file, or was cut: {error}") from error
        if MANIFEST not in self._zip.NameToInfo:
            raise BadArchive(f"it has no {MANIFEST}")
        manifest = self._info(MANIFEST)
        if manifest.file_size > min(size, _MOST_MANIFEST_BYTES):
            raise BadArchive(f"{MANIFEST}: {manifest.file_size:,} bytes are more than are read")
        self.manifest = b"".join(self._pieces(manifest, ""))
        self.digests = _parsed(self.manifest)
        there = (name for name in self.digests if name in self._zip.NameToInfo)
        self.sizes = {name: self._info(name).file_size for name in there}
        if sum(self.sizes.values()) > size:
            raise BadArchive(f"its files have more bytes than the {size:,} of the archive")

    def entries(self) -> Iterator[Entry]:
        """The files that the manifest names, in its order."""
        for name, digest in self.digests.items():
            is_there = name in self.sizes
            content = self._pieces(self._info(name), digest) if is_there else _absent(name)
            yield Entry(name, self.sizes.get(name, 0), content)

    def _info(self, name: str) -> zipfile.ZipInfo:
        info = self._zip.NameToInfo[name]
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise BadArchive(f"{name!r} is compressed, and no file of an archive is: it could grow without end")
        return info

    def _pieces(self, info: zipfile.ZipInfo, digest: str) -> Iterator[bytes]:
        """The content of an entry in pieces of at most 1 MiB. digest: of the manifest; empty for its own text."""
        sha256 = hashlib.sha256()
        try:
            with self._zip.open(info) as entry:
                while piece := entry.read(_PIECE):
                    sha256.update(piece)
                    yield piece
        except _UNREADABLE as error:
            raise BadArchive(f"{info.filename}: altered, or cut: {error}") from error
        if digest and sha256.hexdigest() != digest:
            raise BadArchive(f"{info.filename}: altered: its content is not that of the manifest")


class _Bounded:
    """A file of which zipfile reads no more at once than the largest directory has, with the most entries."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_DIRECTORY_BYTES:
            raise ValueError(f"its directory has {size:,} bytes, and {_MOST_DIRECTORY_BYTES:,} are the most")
        piece = self._file.read(size)
        if piece.count(_ENTRY) > _MOST_ENTRIES:
            raise ValueError(f"its directory has more than {_MOST_ENTRIES:,} entries")
        return piece

    def close(self) -> None:
        """Whoever opened the file closes it."""


def _absent(name: str) -> Iterator[bytes]:
    yield from ()
    raise BadArchive(f"{name}: the manifest lists it, and it is not there")


def _parsed(text: bytes) -> dict[str, str]:
    """The digests of files by name, as a manifest has them."""
    listed: dict[str, str] = {}
    names, last = TakenNames(), ""
    *lines, rest = text.decode("ascii", "replace").split("\n")
    for number, line in enumerate([*lines, *[rest] * bool(rest)], 1):
        match = _LINE.fullmatch(line)
        if not match or match[2] <= last or rest:
            raise BadArchive(f"{MANIFEST}: line {number} is not as tsuishi writes it")
        last = match[2]
        if why := names.problem(last):
            raise BadArchive(f"{MANIFEST}: {last!r}: {why}")
        listed[last] = match[1]
    return listed
