"""Commands in messages, as they are typed here."""

import re
import stat
from pathlib import Path

import pytest

from tests.house import PACKAGE
from tsuishi.base import typed
from tsuishi.base.option_table import OPTIONS
from tsuishi.base.typed import as_typed, program_of


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the PATH names, with a program `invoke` and a program `tsuishi`."""
    for name in ("invoke", "tsuishi"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path))
    program_of.cache_clear()
    return tmp_path


def test_a_program_is_called_as_it_was_typed(on_path: Path) -> None:
    assert program_of("./invoke") == "./invoke"
    assert program_of("../tsuishi/invoke") == "../tsuishi/invoke"
    assert program_of(f"{on_path}/invoke") == "invoke"
    assert program_of(f"{on_path}/tsuishi") == "tsuishi"
    assert program_of("/elsewhere/invoke") == "/elsewhere/invoke"
    assert program_of("../a folder/invoke") == "'../a folder/invoke'"
    assert program_of("/site-packages/invoke/__main__.py") == program_of("-c") == "invoke"


def test_commands_in_a_text_are_as_typed_and_words_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed, "program", lambda: r"'a\1/invoke'")
    assert as_typed("`invoke verify`") == r"`'a\1/invoke' verify`"
    monkeypatch.setattr(typed, "program", lambda: "./invoke")
    for before, after in (
        ("none yet: invoke build run-suite report", "none yet: ./invoke build run-suite report"),
        ("go on with `invoke run-suite --resume x`, or `invoke verify`",
         "go on with `./invoke run-suite --resume x`, or `./invoke verify`"),
        ("`invoke --list` shows all", "`./invoke --list` shows all"),
        ("workers that invoke listeners, ./invoke build, re-invoke build", None),
    ):  # fmt: skip
        assert as_typed(before) == (before if after is None else after)


def test_every_command_in_a_message_is_a_task() -> None:
    tasks = {task for row in OPTIONS for task in row.of}
    commands = {
        (path.name, found)
        for path in PACKAGE.rglob("*.py")
        for found in re.findall(r"`invoke ([a-z][a-z-]*)", path.read_text(encoding="utf-8"))
    }
    assert len(commands) > 40
    assert [command for command in sorted(commands) if command[1] not in {*tasks, "advisories", "lint"}] == []
