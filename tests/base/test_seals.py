"""Seals: what this user wrote, told from what others did."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tsuishi.base import seals as ownership
from tsuishi.base.errors import UserError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


def test_a_seal_holds_for_its_content_its_purpose_and_its_key(home: Path) -> None:
    seal = ownership.seal(b"content", "run")
    assert ownership.is_ours(b"content", "run", seal)
    assert not ownership.is_ours(b"other", "run", seal)
    assert not ownership.is_ours(b"content", "report", seal)
    (home / "tsuishi" / "key").unlink()
    assert not ownership.is_ours(b"content", "run", seal)


def test_purpose_and_content_cannot_run_into_each_other() -> None:
    assert ownership.seal(b"b", "a") != ownership.seal(b"", "ab")


@pytest.mark.parametrize("forged", ["", "0" * 64, "é", "\ud800", "x" * 1_000_000], ids=range(5))
def test_what_is_no_seal_is_not_ours(forged: str) -> None:
    assert not ownership.is_ours(b"content", "run", forged)


def test_the_key_is_for_its_user_alone_whatever_the_umask(home: Path) -> None:
    mask = os.umask(0)
    try:
        ownership.seal(b"", "run")
    finally:
        os.umask(mask)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home / "tsuishi", home / "tsuishi" / "key")}
    assert modes == {"tsuishi": 0o700, "key": 0o600}
    assert [path.name for path in (home / "tsuishi").iterdir()] == ["key"]


def test_processes_that_begin_at_once_have_one_key() -> None:
    program = "from tsuishi.base import seals as ownership; input(); print(ownership.seal(b'', 'run'))"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    started = [subprocess.Popen([sys.executable, "-c", program], **pipes, text=True) for _ in range(4)]
    for process in started:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    seals = {process.communicate()[0] for process in started}
    assert seals == {ownership.seal(b"", "run") + "\n"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622], ids=oct)
def test_a_key_that_others_can_read_or_write_is_refused(home: Path, mode: int) -> None:
    ownership.seal(b"", "run")
    (home / "tsuishi" / "key").chmod(mode)
    with pytest.raises(UserError, match=r"key: no key that only you can read: remove it, and another is made$"):
        ownership.seal(b"", "run")


@pytest.mark.system
def test_the_key_of_another_user_is_refused(home: Path) -> None:
    ownership.seal(b"", "run")
    os.chown(home / "tsuishi" / "key", 65534, 65534)
    with pytest.raises(UserError, match="no key that only you can read"):
        ownership.seal(b"", "run")


def test_what_is_no_key_is_refused(home: Path) -> None:
    key = home / "tsuishi" / "key"
    ownership.seal(b"", "run")
    key.write_bytes(b"short")
    with pytest.raises(UserError, match="no key that only you can read"):
        ownership.seal(b"", "run")
    key.unlink()
    os.mkfifo(key, 0o600)
    with pytest.raises(UserError, match="no regular file"):
        ownership.seal(b"", "run")
    key.unlink()
    key.symlink_to("/dev/zero")
    with pytest.raises(UserError, match="cannot be read"):
        ownership.seal(b"", "run")


def test_without_a_place_for_it_there_is_no_key(home: Path) -> None:
    home.write_text("a file")
    with pytest.raises(
        UserError,
        match=r"key: the key of this user cannot be made: .*: make its folder writable, or set XDG_CONFIG_HOME$",
    ):
        ownership.seal(b"", "run")


def test_a_home_without_hard_links_has_a_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shared folder of a virtual machine, exFAT or some file systems of clusters."""

    def refuse(*paths: object, **options: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    assert ownership.is_ours(b"content", "run", ownership.seal(b"content", "run"))
    assert [path.name for path in (home / "tsuishi").iterdir()] == ["key"]
