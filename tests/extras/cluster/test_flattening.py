"""The layers of an image as one file system."""

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.conftest import missing
from tsuishi.extras.cluster.flattening import flattened, variables_of

LINK = tarfile.SYMTYPE
# By name: a text is a file's, None a folder, (type, target) a link.
Entries = dict[str, str | tuple[bytes, str] | None]

LOWER: Entries = {
    "a": None,
    "a/one": "lower",
    "a/two": "lower",
    "second": (tarfile.LNKTYPE, "a/one"),
    "b": None,
    "b/x": "lower",
    "b/deep": None,
    "b/deep/y": "lower",
    "c": None,
    "c/z": "lower",
    "d": None,
    "d/kept": "lower",
    "bin": (LINK, "usr/bin"),
    "etc": None,
    "etc/rc": "exit 1",
    "etc/environment": "PATH=/lower",
}
UPPER: Entries = {
    "a": None,
    "a/one": "upper",
    "a/.wh.two": "",
    "b": None,
    "b/.wh..wh..opq": "",
    "b/new": "upper",
    "c": "a file in a folder's place",
    ".wh.gone": "",
    "d": None,
    "d/third": (tarfile.LNKTYPE, "d/new"),
}
MERGED: Entries = {
    "a": None,
    "a/one": "upper",
    "second": "lower",
    "b": None,
    "b/new": "upper",
    "c": "a file in a folder's place",
    "d": None,
    "d/kept": "lower",
    "d/new": "upper",
    "d/third": (tarfile.LNKTYPE, "d/new"),
    "bin": (LINK, "usr/bin"),
    "etc": None,
}


def packed(entries: Entries) -> bytes:
    """A tar archive."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, entry in entries.items():
            member = tarfile.TarInfo(f"./{name}")
            if entry is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(member)
            elif isinstance(entry, tuple):
                member.type, member.linkname = entry
                tar.addfile(member)
            else:
                member.size = len(entry)
                tar.addfile(member, io.BytesIO(entry.encode()))
    return content.getvalue()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of an image of two layers."""
    config = {"config": {"Env": ["PATH=/usr/local/bin", "A=b c=d"]}}
    layers = [LOWER, {"d": None, "d/new": "upper", **UPPER}]
    manifest = [{"Config": "config", "Layers": ["lower", "upper"]}]
    parts = {"manifest.json": json.dumps(manifest).encode(), "config": json.dumps(config).encode()}
    parts |= {name: packed(layer) for name, layer in zip(("lower", "upper"), layers, strict=True)}
    path = tmp_path / "image.tar"
    with tarfile.open(path, "w") as tar:
        for name, content in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def test_upper_layers_replace_and_remove_what_is_below_them(archive: Path) -> None:
    content = io.BytesIO()
    flattened(archive, content)
    content.seek(0)
    found: Entries = {}
    with tarfile.open(fileobj=content) as tar:
        for member in tar:
            assert member.name not in found
            if member.isdir():
                found[member.name] = None
            elif member.islnk() or member.issym():
                found[member.name] = (member.type, member.linkname)
            else:
                file = tar.extractfile(member)
                assert file is not None
                found[member.name] = file.read().decode()
    assert found == MERGED


def test_the_variables_of_an_image_are_those_of_its_config(archive: Path) -> None:
    assert variables_of(archive) == {"PATH": "/usr/local/bin", "A": "b c=d"}


def test_squashfs_tools_take_it(archive: Path, tmp_path: Path) -> None:
    if not shutil.which("sqfstar"):
        missing("no sqfstar (squashfs-tools)")
    image, folder = tmp_path / "image.sqsh", tmp_path / "folder"
    with subprocess.Popen(["sqfstar", "-quiet", "-no-progress", str(image)], stdin=subprocess.PIPE) as squash:
        assert squash.stdin
        flattened(archive, squash.stdin)
        squash.stdin.close()
    assert squash.returncode == 0
    subprocess.run(["unsquashfs", "-quiet", "-no-progress", "-dest", folder, image], check=True)
    assert {str(path.relative_to(folder)) for path in folder.rglob("*")} == {*MERGED}
    assert (folder / "second").read_text() == "lower"
    assert (folder / "d/third").read_text() == "upper"
