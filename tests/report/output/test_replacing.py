"""A report takes the place of another: there is one at every moment, whole and on the disk, and nothing is left."""

import errno
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tsuishi.base import files
from tsuishi.report.output import folder

LOOKS = """
import os, sys
found = missed = 0
print(flush=True)
while os.path.exists(sys.argv[2]):
    try:
        os.stat(sys.argv[1])
        found += 1
    except FileNotFoundError:
        missed += 1
print(found, missed)
"""


def replace_report(out: Path, text: str) -> None:
    with folder._replacing(out) as fresh:
        (fresh / "index.html").write_text(text)


def test_there_is_a_report_at_every_moment_while_another_takes_its_place(tmp_path: Path) -> None:
    out, going_on = tmp_path / "out", tmp_path / "going-on"
    going_on.touch()
    replace_report(out, "0")
    command = [sys.executable, "-c", LOOKS, str(out / "index.html"), str(going_on)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout
        reader.stdout.readline()
        for number in range(100):
            replace_report(out, str(number))
        going_on.unlink()
        found, missed = map(int, reader.stdout.read().split())
    assert (found > 100, missed) == (True, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_report_is_on_the_disk_before_it_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def noted(name: str, function: Callable[..., None], *given: Path) -> None:
        calls.append(name)
        function(*given)

    for name in ("sync_all", "exchange", "sync"):
        monkeypatch.setattr(files, name, partial(noted, name, getattr(files, name)))
    replace_report(tmp_path / "out", "new")
    assert calls == ["sync_all", "exchange", "sync"]


def test_where_names_cannot_be_swapped_a_killed_process_leaves_a_report_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(one: Path, other: Path) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(files, "exchange", refused)
    out, old = tmp_path / "out", tmp_path / ".out.old"
    for text in ("first", "second"):
        replace_report(out, text)
        assert (out / "index.html").read_text() == text
    out.rename(old)
    with pytest.raises(ZeroDivisionError), folder._replacing(out):
        raise ZeroDivisionError
    assert (out / "index.html").read_text() == "second"
    shutil.copytree(out, old)
    replace_report(out, "third")
    assert (out / "index.html").read_text() == "third"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
