"""A checkout's commit is its own: never that of a repository around it, or of one that a variable names."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tsuishi.base import checkout
from tsuishi.base.checkout import Checkout, git_state


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(root), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def repository(root: Path) -> str:
    """A new repository; returns its commit."""
    root.mkdir()
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", f"-m{root.name}")
    return git(root, "rev-parse", "HEAD")


def state(root: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    monkeypatch.setattr(checkout, "Checkout", lambda: Checkout(root))
    git_state.cache_clear()
    try:
        return git_state()
    finally:
        git_state.cache_clear()


def unknown(why: str) -> Mapping[str, Any]:
    return {"commit": None, "dirty": None, "why_unknown": why}


def test_the_commit_is_the_checkouts_also_inside_a_hook_of_another_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = repository(tmp_path / "ours"), repository(tmp_path / "theirs")
    assert ours != theirs
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        place = {"GIT_DIR": "", "GIT_INDEX_FILE": "index", "GIT_OBJECT_DIRECTORY": "objects"}[name]
        monkeypatch.setenv(name, str(tmp_path / "theirs" / ".git" / place))
    assert state(tmp_path / "ours", monkeypatch) == {"commit": ours, "dirty": False}
    (tmp_path / "ours" / "new").touch()
    assert state(tmp_path / "ours", monkeypatch) == {"commit": ours, "dirty": True}


def test_an_unpacked_checkout_has_no_commit_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path / "outer")
    inner = tmp_path / "outer" / "inner"
    inner.mkdir()
    assert state(inner, monkeypatch) == unknown("it lies in another repository, and has none of its own")
    alone = tmp_path / "alone"
    alone.mkdir()
    assert state(alone, monkeypatch) == unknown("it is not in git")
    monkeypatch.setenv("PATH", str(alone))
    assert state(inner, monkeypatch) == unknown("there is no git here")


def test_a_checkout_of_another_user_says_what_git_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = repository(tmp_path / "theirs")
    try:
        os.chown(tmp_path / "theirs", os.getuid() + 1, -1)
    except PermissionError:
        missing("no right to give files away")
    for name in ("HOME", "XDG_CONFIG_HOME"):  # whose configuration may name it as safe
        monkeypatch.setenv(name, str(tmp_path))
    found = state(tmp_path / "theirs", monkeypatch)
    assert found == unknown("its folder belongs to another user, and git's safe.directory does not name it")
    configured = {"COUNT": "1", "KEY_0": "safe.directory", "VALUE_0": str(tmp_path / "theirs")}
    for name, value in configured.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    assert state(tmp_path / "theirs", monkeypatch)["commit"] == commit


HIDDEN = {
    "status.showUntrackedFiles": "no",
    "core.excludesFile": "{root}/../hidden",
    "status.relativePaths": "true",
    "core.fsmonitor": "/bin/true",
    "core.attributesFile": "{root}/../filtered",
    "filter.same.clean": "printf known",
    "diff.ignoreSubmodules": "all",
}


@pytest.mark.parametrize("change", ["new", "new in a folder", "edited", "assumed unchanged", "staged", "removed"])
def test_a_changed_checkout_is_dirty_whatever_git_is_configured_to_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    root = tmp_path / "ours"
    repository(root)
    (root / ".gitignore").write_text("results/\n")
    (root / "known.toml").write_text("known")
    git(root, "add", ".")
    git(root, "commit", "-qm", "files")
    (root / "results").mkdir()
    (root / "results" / "run.json").touch()
    (tmp_path / "hidden").write_text("*.toml\nsuites\n")
    (tmp_path / "filtered").write_text("*.toml filter=same\n")
    (tmp_path / ".gitconfig").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    for name, value in HIDDEN.items():
        git(root, "config", "--global", name, value.format(root=root))
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text("*.toml\n")
    assert state(root, monkeypatch)["dirty"] is False
    index = (root / ".git" / "index").read_bytes()
    if change == "assumed unchanged":
        git(root, "update-index", "--assume-unchanged", "known.toml")
    if change == "removed":
        (root / "known.toml").unlink()
    elif change.startswith("new"):
        path = root / "suites" / "zoo.toml" if change == "new in a folder" else root / "zoo.toml"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    else:
        (root / "known.toml").write_text("other")
    if change == "staged":
        git(root, "add", "known.toml")
    assert state(root, monkeypatch)["dirty"] is True
    assert change in ("staged", "assumed unchanged") or (root / ".git" / "index").read_bytes() == index
