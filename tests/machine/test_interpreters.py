"""Finding CPythons: real ones and things that only look like one."""

import os
import platform
import sys
from pathlib import Path

import pytest

from tsuishi.machine import interpreters
from tsuishi.machine.interpreters import find_python, full_version, has_python, python_remedy

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No interpreter but those in folders named to find_python."""
    monkeypatch.setattr(interpreters, "_FOLDERS", ())
    monkeypatch.setenv("PATH", os.devnull)


def interpreter(folder: Path, name: str, says: str) -> Path:
    """A program that answers as an interpreter of that version would."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


def test_the_interpreter_running_here_says_its_version() -> None:
    assert platform.python_implementation() == "CPython"
    assert full_version(Path(sys.executable)) == platform.python_version()


@pytest.mark.parametrize(
    "says",
    [
        "echo PyPy 3.6.9 /usr/bin/pypy",
        "echo CPython 3.6.9",
        "echo 'pyenv: python3.6: command not found' >&2; exit 127",
        "true",
        "kill -9 $$",
    ],
)
def test_what_is_no_working_cpython_has_no_version(tmp_path: Path, says: str) -> None:
    assert full_version(interpreter(tmp_path, "python3.6", says)) == ""


def test_what_is_not_there_or_cannot_run_has_no_version(tmp_path: Path) -> None:
    assert full_version(tmp_path / "python3.6") == ""
    (tmp_path / "text").write_text("no program")
    assert full_version(tmp_path / "text") == ""


@pytest.mark.usefixtures("nowhere")
def test_the_newest_patch_is_taken_by_number_not_by_text(tmp_path: Path) -> None:
    folders = []
    for version in ("3.6.9", "3.6.15", "3.6.2"):
        interpreter(tmp_path / version / "bin", "python3.6", f"echo CPython {version} $0")
        folders.append(str(tmp_path / version))
    assert find_python("3.6", folders) == tmp_path / "3.6.15" / "bin" / "python3.6"


@pytest.mark.usefixtures("nowhere")
def test_a_folder_may_be_the_one_with_the_interpreter_or_the_one_above(tmp_path: Path) -> None:
    path = interpreter(tmp_path / "bin", "python3.6", "echo CPython 3.6.15 $0")
    assert find_python("3.6", [str(tmp_path)]) == path
    assert find_python("3.6", [str(tmp_path / "bin")]) == path
    assert find_python("3.6", ["/nowhere"]) is None


@pytest.mark.usefixtures("nowhere")
def test_an_interpreter_of_another_version_under_that_name_is_not_taken(tmp_path: Path) -> None:
    interpreter(tmp_path, "python3.1", "echo CPython 3.11.7 $0")
    interpreter(tmp_path, "python3.7", "echo CPython 3.6.15 $0")
    assert find_python("3.1", [str(tmp_path)]) is None
    assert find_python("3.7", [str(tmp_path)]) is None


@pytest.mark.usefixtures("nowhere")
def test_version_managers_are_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "_FOLDERS", ("~/.pyenv/versions/*/bin", "$PYENV_ROOT/versions/*/bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    assert find_python("3.6") is None
    in_home = interpreter(tmp_path / "home/.pyenv/versions/3.6.1/bin", "python3.6", "echo CPython 3.6.1 $0")
    assert find_python("3.6") == in_home
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "root"))
    in_root = interpreter(tmp_path / "root/versions/3.6.8/bin", "python3.6", "echo CPython 3.6.8 $0")
    assert find_python("3.6") == in_root


def test_this_machines_own_cpython_is_found_through_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(interpreters, "_FOLDERS", ())
    (tmp_path / f"python{HERE}").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_python(HERE)
    assert found == tmp_path / f"python{HERE}"
    assert full_version(found) == platform.python_version()


@pytest.mark.usefixtures("nowhere")
def test_behind_a_shim_the_real_interpreter_is_found(tmp_path: Path) -> None:
    real = interpreter(tmp_path / "real", "python3.6", "echo CPython 3.6.15 $0")
    interpreter(tmp_path / "shims", "python3.6", f'exec {real} "$@"')
    assert find_python("3.6", [str(tmp_path / "shims")]) == real


@pytest.mark.usefixtures("nowhere")
def test_whether_there_is_a_cpython_is_asked_of_programs_before_scripts_until_one_is(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    interpreter(tmp_path / "shims", "python3.6", f"echo shim >> {asked}; echo CPython 3.6.15 $0")
    folders = [str(tmp_path / "shims")]
    assert not has_python("3.5", folders)
    assert has_python("3.6", folders)
    assert asked.read_text() == "shim\n"
    (tmp_path / f"python{HERE}").symlink_to(sys.executable)
    interpreter(tmp_path / "shims", f"python{HERE}", f"echo again >> {asked}; echo CPython {HERE}.99 $0")
    assert has_python(HERE, [*folders, str(tmp_path)])
    assert asked.read_text() == "shim\n", "the program answers, and the shim is not asked"


@pytest.mark.usefixtures("nowhere")
def test_a_python_of_another_version_or_that_does_not_run_is_none(tmp_path: Path) -> None:
    interpreter(tmp_path, "python3.6", "echo CPython 3.7.1 $0")
    interpreter(tmp_path, "python3.7", "exit 1")
    assert not has_python("3.6", [str(tmp_path)])
    assert not has_python("3.7", [str(tmp_path)])


def test_the_remedy_for_an_old_python_names_no_program_that_has_none() -> None:
    assert python_remedy("3.8") == "pyenv install 3.8, or uv python install 3.8"
    old = python_remedy("3.6")
    assert "uv python install" not in old
    assert "conda create --prefix ~/python3.6 --channel conda-forge python=3.6" in old
