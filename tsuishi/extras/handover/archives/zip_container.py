"""The container of an archive: a ZIP file in one form, so that the same files give the same bytes everywhere.

Entries are in the order of their names, stored unchanged, without dates, owners and comments: compressed bytes would
depend on the release of zlib. Each folder has an entry before its first file, as readers of RO-Crates look for it.
ZIP64 is used exactly where a size, a place or a count needs it. So a reader needs no leniency: it makes every header
and the directory at the end once more, and they must be the same, byte for byte.

Python's zipfile writes other bytes in other releases of Python, and reads only the entries that the directory at the
end names: it does not see bytes between entries, or second names. Other programs read these files.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, NamedTuple

from tsuishi.extras.handover.archives.member_names import TakenNames

_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END_64, _PLACE_OF_END_64 = b"PK\x06\x06", b"PK\x06\x07"
# The versions of the format that have all this: 2.0, and 4.5 for ZIP64. 3 is Unix, which has the modes of files.
_PLAIN, _LARGE, _UNIX = 20, 45, 3 << 8
_STORED = 0
# The first day that the format knows; and a file and a folder that their owner may write and all may read.
_DATE = 0x0021
_FILE, _FOLDER = 0o100644 << 16, 0o040755 << 16 | 0x10
_FULL_16, _FULL_32 = 0xFFFF, 0xFFFFFFFF
_HEADER = struct.Struct("<4s5H3I2H")
_MOST_ENTRIES = 1_000_000
_PIECE = 1 << 20


class BadArchive(ValueError):
    """The file is not in the form that tsuishi writes."""


class StoredFile(NamedTuple):
    """An entry, of a file or of a folder. `offset`: where its header begins, in bytes from the start."""

    name: str
    size: int
    crc: int
    offset: int


class Entry(NamedTuple):
    """A file in an archive that is being read. Its content can be read only before the next entry."""

    name: str
    size: int
    content: Iterator[bytes]


def write(file: IO[bytes], files: Iterable[tuple[str, int, int, Callable[[], Iterable[bytes]]]]) -> None:
    """Write an archive of files: of each its name, size, CRC-32, and a function for its content, in the order of names.

    Raises BadArchive where a content has another size or CRC-32, or a name is not allowed.
    """
    stored: list[StoredFile] = []
    offset, last, names = 0, "", TakenNames()
    for name, size, crc, content in files:
        if why := names.problem(name):
            raise BadArchive(f"{name}: {why}")
        for folder in _new_folders(name, last):
            stored.append(StoredFile(folder, 0, 0, offset))
            offset += file.write(_local_header(stored[-1]))
        entry, last = StoredFile(name, size, crc, offset), name
        stored.append(entry)
        header = _local_header(entry)
        file.write(header)
        was, seen = 0, 0
        for piece in content():
            file.write(piece)
            was, seen = zlib.crc32(piece, was), seen + len(piece)
        if (seen, was) != (size, crc):
            raise BadArchive(f"{name}: it was altered meanwhile")
        offset += len(header) + size
    for piece in _directory(stored, offset):
        file.write(piece)


def read(file: IO[bytes]) -> Iterator[Entry]:
    """The entries of an archive, from the first byte to the last.

    Raises BadArchive at the first byte that is not as `write` writes it. Content comes in pieces of at most 1 MiB.
    """
    stored: list[StoredFile] = []
    folders: list[str] = []
    offset, last, names = 0, "", TakenNames()
    while (start := file.read(4)) == _LOCAL:
        entry = _entry(file, start, offset)
        if stored and entry.name < stored[-1].name:
            raise BadArchive(f"{entry.name!r} is not in the order of names")
        if len(stored) == _MOST_ENTRIES:
            raise BadArchive(f"it has more than {_MOST_ENTRIES:,} entries")
        offset += len(_local_header(entry)) + entry.size
        if entry.name.endswith("/") and not entry.size and not entry.crc:
            folders.append(entry.name)
        else:
            if why := names.problem(entry.name):
                raise BadArchive(f"{entry.name!r}: {why}")
            if folders != list(_new_folders(entry.name, last)):
                raise BadArchive(f"{entry.name!r} does not follow the entries of its folders")
            folders, last = [], entry.name
            content = _content(file, entry)
            yield Entry(entry.name, entry.size, content)
            for _ in content:
                pass
        stored.append(entry)
    if not stored or folders:
        raise BadArchive(
            "it does not begin as an archive" if not stored else f"{folders[0]!r} is a folder without files"
        )
    _check_directory(file, start, stored, offset)


def _new_folders(name: str, last: str) -> Iterator[str]:
    """The folders of a file that `last`, the file before it, is not in, from the outermost; with a slash at the end."""
    for place, letter in enumerate(name):
        if letter == "/" and not last.startswith(name[: place + 1]):
            yield name[: place + 1]


def _entry(file: IO[bytes], start: bytes, offset: int) -> StoredFile:
    """The entry whose header begins with `start`."""
    header = start + _taken(file, _HEADER.size - len(start))
    *_, method, _, _, crc, packed, size, name_length, extra_length = _HEADER.unpack(header)
    try:
        name = _taken(file, name_length).decode("ascii")
    except UnicodeDecodeError as error:
        raise BadArchive("a name has other letters than those of ASCII") from error
    extra = _taken(file, extra_length)
    if method != _STORED:
        raise BadArchive(f"{name!r} is compressed, and no file of an archive is: it could grow without end")
    if size == packed == _FULL_32 and extra_length == 20:
        size = packed = struct.unpack_from("<Q", extra, 4)[0]
    if size != packed:
        raise BadArchive(f"{name!r} has two sizes: {size:,} and {packed:,} bytes")
    entry = StoredFile(name, size, crc, offset)
    if header + name.encode() + extra != _local_header(entry):
        raise BadArchive(f"{name!r} has another header than tsuishi writes")
    return entry


def _content(file: IO[bytes], entry: StoredFile) -> Iterator[bytes]:
    left, crc = entry.size, 0
    while left:
        piece = _taken(file, min(left, _PIECE))
        left, crc = left - len(piece), zlib.crc32(piece, crc)
        yield piece
    if crc != entry.crc:
        raise BadArchive(f"{entry.name} has another content than its header says")


def _check_directory(file: IO[bytes], start: bytes, stored: list[StoredFile], offset: int) -> None:
    expected = _directory(stored, offset)
    for number, piece in enumerate(expected):
        there = start + _read(file, len(piece) - len(start))
        start = b""
        if len(there) < len(piece):
            raise BadArchive("it is broken off")
        if there != piece:
            what = f"describes {stored[number].name} otherwise" if number < len(stored) else "ends otherwise"
            raise BadArchive(f"its directory {what} than its entries are: as a link, with another size or place")
    if file.read(1):
        raise BadArchive("something is behind its end")


def _local_header(entry: StoredFile) -> bytes:
    large = entry.size >= _FULL_32
    size = _FULL_32 if large else entry.size
    extra = struct.pack("<2H2Q", 1, 16, entry.size, entry.size) if large else b""
    name = entry.name.encode("ascii")
    needed = _LARGE if large else _PLAIN
    return (
        _HEADER.pack(_LOCAL, needed, 0, _STORED, 0, _DATE, entry.crc, size, size, len(name), len(extra)) + name + extra
    )


def _directory(stored: list[StoredFile], offset: int) -> Iterator[bytes]:
    """The directory at the end of an archive: a piece for each entry, and the end."""
    size = 0
    for entry in stored:
        piece = _central_header(entry)
        size += len(piece)
        yield piece
    count = len(stored)
    yield _ending(count, size, offset)


def _central_header(entry: StoredFile) -> bytes:
    large = entry.size >= _FULL_32
    long = [entry.size, entry.size] * large + [entry.offset] * (entry.offset >= _FULL_32)
    extra = struct.pack(f"<2H{len(long)}Q", 1, 8 * len(long), *long) if long else b""
    needed = _LARGE if long else _PLAIN
    size = _FULL_32 if large else entry.size
    name, mode = entry.name.encode("ascii"), _FOLDER if entry.name.endswith("/") else _FILE
    return (
        struct.pack("<4s6H3I", _CENTRAL, _UNIX | needed, needed, 0, _STORED, 0, _DATE, entry.crc, size, size)
        + struct.pack("<5H2I", len(name), len(extra), 0, 0, 0, mode, min(entry.offset, _FULL_32))
        + name
        + extra
    )


def _ending(count: int, size: int, offset: int) -> bytes:
    """The end of an archive. count, size, offset: the entries of its directory, its bytes and its place."""
    ending = b""
    if count >= _FULL_16 or size >= _FULL_32 or offset >= _FULL_32:
        fields = struct.pack("<2H2I4Q", _UNIX | _LARGE, _LARGE, 0, 0, count, count, size, offset)
        ending = struct.pack("<4sQ", _END_64, len(fields)) + fields
        ending += struct.pack("<4sIQI", _PLACE_OF_END_64, 0, offset + size, 1)
    entries = min(count, _FULL_16)
    return ending + struct.pack("<4s4H2IH", _END, 0, 0, entries, entries, min(size, _FULL_32), min(offset, _FULL_32), 0)


def _taken(file: IO[bytes], size: int) -> bytes:
    taken = _read(file, size)
    if len(taken) < size:
        raise BadArchive("it is broken off")
    return taken


def _read(file: IO[bytes], size: int) -> bytes:
    return file.read(size) if size else b""
