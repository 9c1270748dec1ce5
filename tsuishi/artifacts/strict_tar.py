"""Strict reading of tar archives and gzip streams that others made: any deviation from the format is refused.

Python's tarfile stops silently at a damaged header where other programs continue, so its checks would miss content that
they use. Here every byte belongs to a header or a content, or is a zero that fills a block or the end.
"""

import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from gzip import BadGzipFile
from typing import IO

_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 20
_ZEROS = bytes(_BLOCK)
# The magic of POSIX. Headers of GNU have other fields in the same places.
_MAGIC = b"ustar\x0000"
_KINDS = (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE)
_PART = r"(?!\.\.?(/|\Z))[A-Za-z0-9._+@:-]+"
_NAME = re.compile(rf"{_PART}(/{_PART})*")
_LONGEST_NAME = 255
# The keys that an extended header may have, and its most bytes.
_PAX = frozenset({"path", "linkpath", "size", "mtime", "atime", "ctime", "uid", "gid", "uname", "gname"})
_LONGEST_PAX = 16 << 10
_RECORD = re.compile(rb"([1-9][0-9]{0,4}) ([^=\n]+)=([^\n]*)\n")
# gzip compresses programs to a third and zeros to a thousandth. Of small streams the ratio says nothing.
_RATIO = 100
_SPARED = 64 << 20
# zlib's number for the header and the checksum of gzip.
_GZIP = 31


class Damaged(ValueError):
    """The data deviate from their format, or are larger than they may be."""


@dataclass(frozen=True)
class ArchiveLimits:
    """The most entries of an archive, and the most bytes of an entry."""

    members: int = 10_000
    member_bytes: int = 64 << 30


@dataclass(frozen=True)
class Member:
    """An entry of an archive. Its content can be read only before the next entry."""

    name: str
    kind: bytes
    link: str
    size: int
    # Every byte of its headers.
    header: bytes
    # The first byte of the content, in the file.
    offset: int
    content: Iterator[bytes]


def members(file: IO[bytes], limits: ArchiveLimits = ArchiveLimits()) -> Iterator[Member]:
    """The entries of a tar archive, up to the end of the file. Raises Damaged at the first deviation."""
    return _Reader(file, limits).members()


class _Reader:
    def __init__(self, file: IO[bytes], limits: ArchiveLimits) -> None:
        self._file = file
        self._limits = limits
        self._offset = 0

    def members(self) -> Iterator[Member]:
        names: set[str] = set()
        while member := self._member():
            if member.name in names:
                raise Damaged(f"{member.name} is there twice")
            names.add(member.name)
            if len(names) > self._limits.members:
                raise Damaged(f"more than {self._limits.members} entries")
            yield member
            for _ in member.content:
                pass
            self._take_padding(member.size)
        if not self._offset - _BLOCK:
            raise Damaged("nothing is in it")
        rest = self._take(_BLOCK) + self._file.read(tarfile.RECORDSIZE)
        if any(rest) or len(rest) > tarfile.RECORDSIZE:
            raise Damaged("something is behind its end")

    def _member(self) -> Member | None:
        """The next entry; None at the end."""
        block = self._take(_BLOCK)
        if block == _ZEROS:
            return None
        header, entry = block, _entry(block)
        extended: Mapping[str, str] = {}
        if entry.type == tarfile.XHDTYPE:
            if entry.size > _LONGEST_PAX:
                raise Damaged(f"an extended header has {entry.size:,} bytes, and {_LONGEST_PAX:,} are the most")
            text = self._take(entry.size)
            extended = _records(text)
            self._take_padding(entry.size)
            block = self._take(_BLOCK)
            header += text + bytes(-len(text) % _BLOCK) + block
            entry = _entry(block)
        name, size = extended.get("path", entry.name).removesuffix("/"), int(extended.get("size", entry.size))
        if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
            raise Damaged(f"{name!r} is no name of a file in it")
        if entry.type not in _KINDS or (size and entry.type != tarfile.REGTYPE):
            raise Damaged(f"{name} is no plain file")
        if not 0 <= size <= self._limits.member_bytes:
            raise Damaged(f"{name} has {size:,} bytes, and {self._limits.member_bytes:,} are the most")
        link = extended.get("linkpath", entry.linkname)
        return Member(name, entry.type, link, size, header, self._offset, self._content(size))

    def _content(self, left: int) -> Iterator[bytes]:
        while left:
            chunk = self._take(min(left, _CHUNK))
            left -= len(chunk)
            yield chunk

    def _take_padding(self, size: int) -> None:
        """Read the zeros that fill the last block of a content of `size` bytes."""
        if any(self._take(-size % _BLOCK)):
            raise Damaged("something is between its entries")

    def _take(self, size: int) -> bytes:
        taken = self._file.read(size)
        if len(taken) != size:
            raise Damaged("unexpected end of data")
        self._offset += size
        return taken


def _entry(block: bytes) -> tarfile.TarInfo:
    try:
        entry = tarfile.TarInfo.frombuf(block, "ascii", "strict")
    except (tarfile.HeaderError, ValueError) as error:
        raise Damaged(f"a header is damaged: {error}") from error
    if block[257:265] != _MAGIC:
        raise Damaged("a header is of another format than POSIX's")
    return entry


def _records(text: bytes) -> Mapping[str, str]:
    """The records of an extended header."""
    records: dict[str, str] = {}
    while text:
        match = _RECORD.match(text)
        key = match[2].decode("ascii", "replace") if match else ""
        if not match or match.end() != int(match[1]) or key not in _PAX or key in records:
            raise Damaged("an extended header is damaged, or says what none has to")
        if key == "size" and not re.fullmatch(rb"[0-9]{1,15}", match[3]):
            raise Damaged("an extended header is damaged, or says what none has to")
        records[key] = match[3].decode("ascii", "replace")
        text = text[match.end() :]
    return records


def inflated(packed: Iterable[bytes], most: int) -> Iterator[bytes]:
    """The content of a gzip stream, in pieces.

    Raises BadGzipFile where the stream is no gzip or incomplete, and where its content has more than `most` bytes, or
    more than 64 MiB plus a hundred times the bytes of the stream.
    """
    taken = made = 0
    unpacker = zlib.decompressobj(_GZIP)
    for chunk in packed:
        taken, piece = taken + len(chunk), b""
        while chunk or len(piece) == _CHUNK:
            if unpacker.eof:
                if not chunk:
                    break
                unpacker = zlib.decompressobj(_GZIP)  # a stream may consist of several parts
            try:
                piece = unpacker.decompress(chunk, _CHUNK)
            except zlib.error as error:
                raise BadGzipFile(f"it is no gzip: {error}") from error
            chunk = unpacker.unconsumed_tail or unpacker.unused_data
            made += len(piece)
            if made > min(most, taken * _RATIO + _SPARED):
                raise BadGzipFile(f"{taken:,} bytes become more than {made - len(piece):,}")
            yield piece
    if not unpacker.eof:
        raise BadGzipFile("it is broken off")
