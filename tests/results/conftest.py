"""A run that a runner really made, and copies of it."""

import shutil
from pathlib import Path

import pytest

from tests.bench import make_checkout
from tests.run.test_runner import session
from tsuishi.results.assurance import OF_ITS_USER
from tsuishi.results.directory import RunDirectory
from tsuishi.run.new_run import run_suite


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a run."""
    root = tmp_path_factory.mktemp("bench")
    make_checkout(root, "ok", "raises", "unsupported")
    run_suite(session(root))
    return root


@pytest.fixture(scope="module")
def made(bench: Path) -> RunDirectory:
    (path,) = (bench / "results").iterdir()
    return RunDirectory(path)


@pytest.fixture
def run(made: RunDirectory, tmp_path: Path) -> RunDirectory:
    """A copy of the run, as somebody else gets it: its seal is not of this user."""
    shutil.copytree(made.path, tmp_path / made.id)
    for name in OF_ITS_USER:
        (tmp_path / made.id / name).unlink(missing_ok=True)
    return RunDirectory(tmp_path / made.id)
