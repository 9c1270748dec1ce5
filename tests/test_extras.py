"""The core without its extras: all of them are taken away, and what asks for extras passes its tests."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import REAL
from tests.house import EXTRAS
from tsuishi.commands.development import ON_ANY_MACHINE

# The tests of the tasks, of environments, and of reports of old runs.
OF_THE_CORE = ("commands", "environments", "results/test_upgrade.py")
LEFT = shutil.ignore_patterns(".*", "__pycache__", "out", "cache", "extras")


@pytest.mark.system
def test_the_core_passes_its_tests_without_extras(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    shutil.copytree(REAL.root, root, ignore=LEFT, symlinks=True)
    (root / EXTRAS.relative_to(REAL.root)).mkdir()
    shutil.copy(EXTRAS / "__init__.py", root / EXTRAS.relative_to(REAL.root))
    tests = [f"tests/{name}" for name in OF_THE_CORE]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", ON_ANY_MACHINE, *tests]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert " passed" in ran.stdout
