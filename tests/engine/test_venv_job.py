"""The main job without an engine: a virtual environment of a CPython that this machine has."""

from pathlib import Path

import pytest

from tests.conftest import missing
from tests.engine.conftest import linked_cache
from tests.job import invoke, rows
from tsuishi.base.settings import read_settings
from tsuishi.machine.interpreters import find_python
from tsuishi.results import directory

pytestmark = pytest.mark.pythons


def test_without_an_engine_the_main_job_runs_in_a_virtual_environment(tmp_path: Path) -> None:
    if find_python("3.6") is None:
        missing("no CPython 3.6")
    cache = linked_cache(read_settings({}, {}, {}).cache, tmp_path / "cache")
    result = invoke(
        tmp_path,
        *("build", "--env", "tf1.13-cpu", "run-suite", "--suite", "conv2d", "--profile", "smoke", "report"),
        INVOKE_TSUISHI_CACHE=str(cache),
        DOCKER_HOST=f"unix://{tmp_path}/nobody.sock",
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
    assert "tf1.13-cpu   venv" in result.stdout
    assert {row["status"] for row in rows(tmp_path, "trials")} == {"ok"}
    run = directory.open_run(tmp_path / "results")
    record = run.environment(rows(tmp_path, "trials")[0]["environment_record"]).content()
    assert record["engine"] == "venv"
    assert record["substitutions"][0]["used"].startswith("CPython 3.6.")
