"""A tree in a folder of one's own: written, brought up to date, and never written over what a person has changed."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.conftest import missing
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.tree import MANIFEST, PARTS, write_tree


@pytest.fixture
def ours(tmp_path: Path) -> Checkout:
    """A checkout of seven files."""
    root = tmp_path / "ours"
    for part in PARTS:
        path = root / part if "." in part else root / part / "deep" / "a file.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(part)
    (root / "suites" / "__pycache__").mkdir()
    (root / "suites" / "__pycache__" / "a.pyc").touch()
    (root / "secret").touch()
    return Checkout(root)


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_new_tree_has_the_parts_and_a_manifest_that_sha256sum_reads(ours: Checkout, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    assert write_tree(folder, ours) == []
    assert files_in(folder) == files_in(ours.root) - {"secret", "suites/__pycache__/a.pyc"} | {MANIFEST}
    try:
        done = subprocess.run(["sha256sum", "--check", "--quiet", MANIFEST], cwd=folder, check=False)
    except FileNotFoundError:
        missing("no sha256sum")
    assert done.returncode == 0


def test_a_later_version_replaces_what_nobody_changed_and_leaves_the_rest(ours: Checkout, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    write_tree(folder, ours)
    (folder / "invoke.yaml").write_text("mine")
    (folder / "suites" / "own.toml").touch()
    for name in ("invoke.yaml", "tasks.py"):
        (ours.root / name).write_text("newer")
    (ours.root / "images" / "deep" / "a file.toml").unlink()
    (ours.root / "images" / "new.toml").touch()
    assert write_tree(folder, ours) == ["invoke.yaml"]
    assert (folder / "tasks.py").read_text() == "newer"
    assert (folder / "invoke.yaml").read_text() == "mine"
    assert {"suites/own.toml", "images/new.toml"} <= files_in(folder)
    assert "images/deep/a file.toml" not in files_in(folder)
    # Whoever takes the newer file on sees no more of it.
    (folder / "invoke.yaml").write_text("newer")
    assert write_tree(folder, ours) == []
    assert hashlib.sha256(b"newer").hexdigest() in (folder / MANIFEST).read_text()


def test_a_tree_whose_writing_was_killed_is_completed(ours: Checkout, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    (folder / "tasks.py").write_bytes((ours.root / "tasks.py").read_bytes())
    assert write_tree(folder, ours) == []
    assert {"tasks.py", "invoke.yaml", MANIFEST} <= files_in(folder)


def test_a_folder_with_other_files_of_these_names_is_refused(ours: Checkout, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "tasks.py").write_text("theirs")
    with pytest.raises(UserError, match=r"tasks\.py: there already, and not from `init`"):
        write_tree(folder, ours)
    assert files_in(folder) == {"tasks.py"}
