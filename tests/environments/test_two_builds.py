"""What the comparison of two images finds; images that were really built are in tests/engine/test_reproducible.py."""

import io
import tarfile
from typing import Any

import pytest

from benchmarks.two_builds import Comparison, compare, read_content


def archive(**changes: Any) -> bytes:
    """A tar with a folder, a file, a link and another name of the file; `changes` are of the file's entry."""
    content = changes.pop("content", b"text")
    folder, file = tarfile.TarInfo("usr"), tarfile.TarInfo("usr/file")
    link, same = tarfile.TarInfo("usr/link"), tarfile.TarInfo("usr/same")
    folder.type, link.type, same.type = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
    link.linkname, same.linkname = changes.pop("points_to", "file"), "usr/file"
    file.size = len(content)
    for name, value in changes.items():
        setattr(file, name, value)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(folder)
        tar.addfile(file, io.BytesIO(content))
        tar.addfile(link)
        tar.addfile(same)
    return buffer.getvalue()


def compared(first: bytes, second: bytes, chunk: int = 100) -> Comparison:
    """By streams in chunks that end anywhere."""
    streams = ((tar[i : i + chunk] for i in range(0, len(tar), chunk)) for tar in (first, second))
    return compare(*(read_content(stream) for stream in streams))


def test_the_same_is_the_same() -> None:
    assert compared(archive(), archive()) == Comparison(4, {}, 0)


def test_times_of_modification_are_counted_and_no_difference() -> None:
    assert compared(archive(), archive(mtime=1)) == Comparison(4, {}, 1)


@pytest.mark.parametrize(
    ("changes", "path", "said"),
    [
        ({"mode": 0o600}, "usr/file", ["mode 0o644, 0o600"]),
        ({"uid": 7}, "usr/file", ["owner 0:0, 7:0"]),
        ({"points_to": "other"}, "usr/link", ["points_to file, other"]),
    ],
)
def test_every_other_difference_is_named_with_both_values(changes: dict[str, Any], path: str, said: list[str]) -> None:
    assert compared(archive(), archive(**changes)).differing == {path: said}


def test_content_is_compared_by_its_hash_and_size() -> None:
    ((path, (of_content,)),) = compared(archive(), archive(content=b"tent")).differing.items()
    assert path == "usr/file"
    assert of_content.startswith("sha256 982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1, ")
    (found,) = compared(archive(), archive(content=b"texts")).differing.values()
    assert found[0] == "size_bytes 4, 5"


def test_what_only_one_has_is_named() -> None:
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    found = compared(archive(), empty.getvalue())
    assert found.files == 0
    assert set(map(tuple, found.differing.values())) == {("only in the first",)}
    assert compared(empty.getvalue(), archive()).differing["usr/file"] == ["only in the second"]
