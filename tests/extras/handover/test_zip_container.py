"""The container: the same files give the same bytes, other programs read them, and no other byte passes."""

import io
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuishi.extras.handover.archives import zip_container
from tsuishi.extras.handover.archives.zip_container import BadArchive

FILES = {
    "archive.json": b"{}",
    "runs/a/run.json": b"of a" * 1000,
    "runs/a/trials/b/log.txt": b"",
    "runs/b/run.json": b"1",
}


def alone(text: bytes) -> list[bytes]:
    return [text]


def written(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    zip_container.write(file, [(n, len(t), zlib.crc32(t), partial(alone, t)) for n, t in sorted(files.items())])
    return file.getvalue()


def read(content: bytes) -> dict[str, bytes]:
    return {entry.name: b"".join(entry.content) for entry in zip_container.read(io.BytesIO(content))}


def test_files_come_back_as_they_were() -> None:
    assert read(written(FILES)) == FILES


def test_other_programs_read_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(written(FILES))) as other:
        assert other.testzip() is None
        assert {info.filename: other.read(info) for info in other.infolist() if not info.is_dir()} == FILES
        folders = [info.filename for info in other.infolist() if info.is_dir()]
    assert folders == ["runs/", "runs/a/", "runs/a/trials/", "runs/a/trials/b/", "runs/b/"]
    (tmp_path / "a.zip").write_bytes(written(FILES))
    shutil.unpack_archive(tmp_path / "a.zip", tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / "runs" / "a" / "run.json").read_bytes() == FILES["runs/a/run.json"]


def test_every_flipped_bit_is_refused_or_in_a_content_that_it_changes() -> None:
    content = written(FILES)
    for place in range(8 * len(content)):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(BadArchive):
            read(bytes(changed))


def test_every_cut_is_refused() -> None:
    content = written(FILES)
    for length in range(len(content)):
        with pytest.raises(BadArchive):
            read(content[:length])


@pytest.mark.parametrize("more", [b"\0", b"PK\x03\x04", b"PK\x05\x06" + bytes(18)])
def test_nothing_may_stand_behind_the_end(more: bytes) -> None:
    with pytest.raises(BadArchive, match="something is behind its end"):
        read(written(FILES) + more)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_our_words(content: bytes) -> None:
    with pytest.raises(BadArchive):
        read(content)


@given(st.integers(0, len(written(FILES)) - 1), st.binary(min_size=1, max_size=40))
def test_any_bytes_in_place_of_others_are_refused_in_our_words(place: int, other: bytes) -> None:
    content = written(FILES)
    changed = content[:place] + other + content[place + len(other) :]
    if changed != content:
        with pytest.raises(BadArchive):
            read(changed)


def test_a_file_that_is_altered_while_it_is_written_is_refused() -> None:
    with pytest.raises(BadArchive, match="runs/a: it was altered meanwhile"):
        zip_container.write(io.BytesIO(), [("runs/a", 3, zlib.crc32(b"abc"), lambda: [b"abd"])])


def test_more_files_than_zip_counts_are_written_and_read() -> None:
    files = {f"runs/{number:05}": b"" for number in range(70_000)}
    content = written(files)
    assert read(content) == files
    with zipfile.ZipFile(io.BytesIO(content)) as other:
        assert len(other.namelist()) == 70_001


class Zeros(io.RawIOBase):
    """A file of two entries with more bytes than ZIP counts, made as it is read; a sink of what is written to it."""

    def __init__(self) -> None:
        self.pieces: list[bytes | int] = []
        self.size = 0

    def write(self, piece: bytes) -> int:  # type: ignore[override]
        self.pieces.append(len(piece) if len(piece) == PIECE else bytes(piece))
        self.size += len(piece)
        return len(piece)

    def read(self, size: int = -1) -> bytes:
        taken = b""
        while self.pieces and len(taken) < size:
            first = self.pieces.pop(0)
            text = bytes(first) if isinstance(first, int) else first
            taken, rest = taken + text[: size - len(taken)], text[size - len(taken) :]
            if rest:
                self.pieces.insert(0, rest)
        return taken


PIECE, COUNT = 1 << 20, (4 << 10) + 1


@pytest.mark.long
def test_files_larger_than_zip_counts_are_written_and_read() -> None:
    zeros, size = bytes(PIECE), PIECE * COUNT
    crc = 0
    for _ in range(COUNT):
        crc = zlib.crc32(zeros, crc)

    def pieces() -> Iterator[bytes]:
        return (zeros for _ in range(COUNT))

    file = Zeros()
    zip_container.write(file, [("images/a", size, crc, pieces), ("images/b", 1, zlib.crc32(b"b"), lambda: [b"b"])])  # type: ignore[arg-type]
    found = {entry.name: sum(map(len, entry.content)) for entry in zip_container.read(file)}  # type: ignore[arg-type]
    assert found == {"images/a": size, "images/b": 1}
