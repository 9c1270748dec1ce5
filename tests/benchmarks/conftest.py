"""An interpreter with PyTorch."""

import os

import pytest

from tests.conftest import missing, one_worker
from tests.job import REAL, invoke
from tsuishi.base.settings import read_settings
from tsuishi.environments.builder import Builder
from tsuishi.specs.environment import read_environment


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with PyTorch for CPUs, as the virtual environment of torch2-cpu has it."""
    with one_worker(tmp_path_factory, "torch"):
        result = invoke(tmp_path_factory.mktemp("torch"), "build", "--engine", "venv", "--env", "torch2-cpu")
    if result.returncode:
        missing(f"no virtual environment with PyTorch: {result.stderr}")
    engines = Builder(read_settings({}, os.environ, {"engine": "venv"}), REAL).engines
    built = engines["venv"].find(read_environment(REAL.images / "torch2-cpu.toml"))
    assert built is not None
    return built.python[0]
