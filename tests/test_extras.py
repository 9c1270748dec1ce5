"""The core without its extras: without each of them it lists its tasks and makes a report, and without all of them the
tests of what asks for extras pass."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.bench import REAL
from tests.house import EXTRAS
from tests.reports import keep_drawings
from tests.synthetic_run import listed_example
from tsuishi import extras
from tsuishi.commands.development import ON_ANY_MACHINE

# The tests of the tasks, of environments, of reports of old runs, and of what counts the texts and names of all extras.
OF_THE_CORE = (
    *("commands", "environments", "results/test_kept_run.py", "base/test_language.py", "base/test_settings.py"),
    *("specs/test_vocabulary.py", "test_house.py", "verdicts/test_truth.py"),
)
LEFT = shutil.ignore_patterns(".*", "__pycache__", "out", "cache", "extras")
# Imports every module of the core, and is `invoke` then.
WITH_ALL_MODULES = """
from importlib import import_module
from invoke.main import program
from tests.house import core
for module in core():
    import_module(f"tsuishi.{module}".rstrip("."))
program.run()
"""


def checkout_with(names: Iterable[str], root: Path) -> Path:
    """A copy of this checkout that has these extras only, no tests of extras, and none of the user's runs."""

    def left(folder: str, inside: list[str]) -> set[str]:
        return LEFT(folder, inside) | ({"results"} if folder == str(REAL.root) else set())

    shutil.copytree(REAL.root, root, ignore=left, symlinks=True)
    folder = root / EXTRAS.relative_to(REAL.root)
    folder.mkdir()
    shutil.copy(EXTRAS / "__init__.py", folder)
    for name in names:
        shutil.copytree(EXTRAS / name, folder / name)
    return root


def ran(root: Path, *command: str, **environ: str) -> str:
    """The output of a command of Python in a checkout."""
    result = subprocess.run(
        [sys.executable, *command], cwd=root, env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    return result.stdout


@pytest.mark.long
@pytest.mark.parametrize("absent", extras.names())
def test_the_core_needs_no_extra_to_list_its_tasks_to_be_imported_and_to_report(absent: str, tmp_path: Path) -> None:
    root = checkout_with({*extras.names()} - {absent}, tmp_path / "checkout")
    assert "run-suite" in ran(root, "-m", "invoke", "--list")
    run = listed_example(root / "results" / "20261121-080000-example")
    keep_drawings(tmp_path / "cache")
    told = ran(root, "-c", WITH_ALL_MODULES, "report", "--run", run.id, INVOKE_TSUISHI_CACHE=str(tmp_path / "cache"))
    assert f"report: reports/out/{run.id}/index.html" in told


@pytest.mark.system
def test_the_core_passes_its_tests_without_extras(tmp_path: Path) -> None:
    tests = [f"tests/{name}" for name in OF_THE_CORE]
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", ON_ANY_MACHINE, *tests]
    assert " passed" in ran(checkout_with((), tmp_path / "checkout"), *command)
