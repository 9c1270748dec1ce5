"""The container: other programs read it, and no byte that its manifest does not vouch for matters."""

import hashlib
import io
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extras.handover.archived import write_files
from tsuishi.extras.handover.archives import archive_manifest, zip_container
from tsuishi.extras.handover.archives.member_names import MANIFEST
from tsuishi.extras.handover.archives.zip_container import BadArchive, Container

FILES = {
    "archive.json": b"{}",
    "runs/a/run.json": b"of a" * 1000,
    "runs/a/trials/b/log.txt": b"",
    "runs/b/run.json": b"1",
}


def digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def alone(text: bytes) -> list[bytes]:
    return [text]


def written(files: dict[str, bytes]) -> bytes:
    every = {**files, MANIFEST: archive_manifest.text_of({name: digest(text) for name, text in files.items()})}
    file = io.BytesIO()
    write_files(file, every)
    return file.getvalue()


def read(content: bytes) -> dict[str, bytes]:
    with io.BufferedReader(io.BytesIO(content)) as file:
        return {entry.name: b"".join(entry.content) for entry in Container(file).entries()}


def is_read_as_it_was(content: bytes) -> bool:
    """Whether an altered archive is read. Fails where it is, and with other files than it had."""
    try:
        found = read(content)
    except BadArchive:
        return False
    assert found == FILES
    return True


def test_files_come_back_as_they_were() -> None:
    assert read(written(FILES)) == FILES


def test_other_programs_read_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(written(FILES))) as other:
        assert other.testzip() is None
        assert {name: other.read(name) for name in other.namelist() if name != MANIFEST and name[-1] != "/"} == FILES
    (tmp_path / "a.zip").write_bytes(written(FILES))
    shutil.unpack_archive(tmp_path / "a.zip", tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / "runs" / "a" / "run.json").read_bytes() == FILES["runs/a/run.json"]


def test_every_flipped_bit_is_refused_or_without_effect() -> None:
    content = written(FILES)
    without_effect = 0
    for place in range(8 * len(content)):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        without_effect += is_read_as_it_was(bytes(changed))
    assert 0 < without_effect < 8 * 700  # the entries of five folders; dates, versions and modes of five files


def test_every_cut_is_refused() -> None:
    content = written(FILES)
    assert not any(is_read_as_it_was(content[:length]) for length in range(len(content)))


@pytest.mark.parametrize("more", [b"\0", b"PK\x03\x04", b"PK\x05\x06" + bytes(18)])
def test_what_stands_behind_the_end_is_refused_or_without_effect(more: bytes) -> None:
    is_read_as_it_was(written(FILES) + more)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_our_words(content: bytes) -> None:
    with pytest.raises(BadArchive):
        read(content)


@given(st.integers(0, len(written(FILES)) - 1), st.binary(min_size=1, max_size=40))
def test_any_bytes_in_place_of_others_are_refused_or_without_effect(place: int, other: bytes) -> None:
    content = written(FILES)
    is_read_as_it_was(content[:place] + other + content[place + len(other) :])


def test_a_file_that_is_altered_while_it_is_written_is_refused() -> None:
    with pytest.raises(BadArchive, match="runs/a: it was altered meanwhile"):
        zip_container.write(io.BytesIO(), [("runs/a", 3, digest(b"abc"), lambda: [b"abd"])])


def test_a_directory_without_end_is_not_read_into_memory(tmp_path: Path) -> None:
    """A sparse file of 5 GB whose end says that it is all directory."""
    path, size = tmp_path / "a.zip", 5 << 30
    end = b"PK\6\6" + (44).to_bytes(8, "little") + bytes(28) + size.to_bytes(8, "little") + bytes(8)
    end += b"PK\6\7" + bytes(4) + size.to_bytes(8, "little") + (1).to_bytes(4, "little")
    end += b"PK\5\6" + bytes(4) + b"\xff" * 12 + bytes(2)
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(end)
    with path.open("rb") as opened, pytest.raises(BadArchive, match="its directory has 5,368,709,120 bytes, and 268,"):
        Container(opened)


def test_more_entries_than_are_read_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = written(FILES)
    monkeypatch.setattr(zip_container, "_MOST_ENTRIES", 9)
    with pytest.raises(BadArchive, match="its directory has more than 9 entries"):
        read(content)
    with pytest.raises(BadArchive, match="more than 9 files and folders"):
        written({**FILES, "runs/c/run.json": b""})


def test_more_files_than_zip_counts_are_written_and_read() -> None:
    files = {f"runs/{number:05}": b"" for number in range(70_000)}
    assert read(written(files)) == files


class Sparse:
    """A file in which the pieces of zeros of another file take no room, as it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.flush, self.seekable = file.seek, file.tell, file.flush, file.seekable

    def write(self, piece: bytes) -> int:
        if len(piece) == PIECE:
            self._file.seek(len(piece), 1)
            return len(piece)
        return self._file.write(piece)


PIECE, COUNT = 1 << 20, (4 << 10) + 1


@pytest.mark.long
def test_files_larger_than_zip_counts_are_written_and_read(tmp_path: Path) -> None:
    zeros, size = bytes(PIECE), PIECE * COUNT
    sha256 = hashlib.sha256()
    for _ in range(COUNT):
        sha256.update(zeros)

    def pieces() -> Iterator[bytes]:
        return (zeros for _ in range(COUNT))

    manifest = archive_manifest.text_of({"images/a": sha256.hexdigest(), "images/b": digest(b"b")})
    files = [
        ("images/a", size, sha256.hexdigest(), pieces),
        ("images/b", 1, digest(b"b"), lambda: alone(b"b")),
        (MANIFEST, len(manifest), digest(manifest), lambda: alone(manifest)),
    ]
    with (tmp_path / "a.zip").open("w+b") as file:
        zip_container.write(Sparse(file), files)  # type: ignore[arg-type]
    with (tmp_path / "a.zip").open("rb") as opened:
        found = {entry.name: sum(map(len, entry.content)) for entry in Container(opened).entries()}
    assert found == {"images/a": size, "images/b": 1}
