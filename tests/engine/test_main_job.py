"""The main job on real input: the four pinned environments, both suites, a report; with an engine and without."""

import csv
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import missing
from tsuishi import store
from tsuishi.engines.pythons import find_python
from tsuishi.environment import known_environments, read_environment
from tsuishi.rooms import Rooms
from tsuishi.settings import Settings
from tsuishi.suite import read_suite

REAL = Rooms()
PINNED = [name for name, path in known_environments(REAL.images).items() if read_environment(path).pinned]


def invoke(folder: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    given = {"INVOKE_TSUISHI_RESULTS": str(folder / "results"), "INVOKE_TSUISHI_REPORTS": str(folder / "reports")}
    command = [sys.executable, "-m", "invoke", *arguments]
    return subprocess.run(
        command, cwd=REAL.root, env={**os.environ, **given, **environ}, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> tuple[Path, str]:
    """The main job in containers, smoke profile: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("job")
    result = invoke(folder, "build", "--engine", "docker", "run-suite", "--profile", "smoke", "report")
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
    return folder, result.stdout


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    with (store.open_run(folder / "results").path / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.engine
def test_every_case_runs_in_every_pinned_environment(done: tuple[Path, str]) -> None:
    suites = [read_suite(path) for path in sorted(REAL.suites.glob("*.toml"))]
    cases = sum(len(list(suite.cases("smoke", "cpu"))) for suite in suites)
    statuses = Counter((row["environment"], row["status"]) for row in rows(done[0], "trials"))
    assert statuses == {(name, "ok"): cases for name in PINNED}


@pytest.mark.engine
def test_every_environment_reports_what_it_promises(done: tuple[Path, str]) -> None:
    run = store.open_run(done[0] / "results")
    records = {run.record(trial["environment_record"])["name"]: trial for _, trial in run.finished()}
    for name in PINNED:
        environment = read_environment(REAL.images / f"{name}.toml")
        record = run.record(records[name]["environment_record"])
        assert record["python"].startswith(f"{environment.python}.")
        assert record["packages"] | {pin.name: pin.version for pin in environment.pins} == record["packages"]
        assert record["image"]["labels"]["io.tsuishi.lock-sha256"] == environment.lock_sha256
        framework = environment.framework
        assert records[name]["framework"] == f"{framework} {environment.promises[framework]}"


@pytest.mark.engine
def test_every_output_of_conv2d_was_checked_against_scipy(done: tuple[Path, str]) -> None:
    trials = {row["trial_id"] for row in rows(done[0], "trials") if row["suite"] == "conv2d"}
    errors = {
        row["trial_id"]: float(row["value"]) for row in rows(done[0], "metrics") if row["name"] == "max_relative_error"
    }
    framework_trials = {trial for trial in trials if "-scipy-" not in trial}
    assert framework_trials <= set(errors)
    assert max(errors.values()) < 1e-4


@pytest.mark.engine
def test_the_same_network_starts_from_the_same_loss_everywhere(done: tuple[Path, str]) -> None:
    metrics = rows(done[0], "metrics")
    counts = {row["value"] for row in metrics if row["name"] == "trainable_parameters"}
    assert counts == {"1925258"}
    losses = [float(row["value"]) for row in metrics if row["name"] == "initial_loss"]
    assert len(losses) == len(PINNED)
    assert max(losses) - min(losses) < 1e-4 * min(losses)


@pytest.mark.engine
def test_folding_makes_later_runs_of_four_towers_far_faster_than_of_three(done: tuple[Path, str]) -> None:
    """TF 1.13.1 folds constants up to 10 MiB: 840 images on 4 towers are 8.0 MiB each, on 3 towers 10.7 MiB."""
    later = {
        int(trial["devices"]): min(
            float(row["seconds"])
            for row in rows(done[0], "samples")
            if row["trial_id"] == trial["trial_id"] and row["phase"] == "later_runs"
        )
        for trial in rows(done[0], "trials")
        if trial["environment"] == "tf1.13-cpu"
        and trial["protocol"] == "literal"
        and trial["implementation"] == "framework"
        and trial["suite"] == "conv2d"
    }
    assert later[3] > 20 * later[4]


@pytest.mark.engine
def test_the_report_is_where_it_says_and_the_same_when_made_again(done: tuple[Path, str]) -> None:
    folder, printed = done
    index = Path(printed.splitlines()[-1].removeprefix("report: "))
    files = {path.relative_to(index.parent): path.read_bytes() for path in index.parent.rglob("*") if path.is_file()}
    assert {Path("index.html"), Path("report.md"), Path("tables/cases.csv")} <= set(files)
    assert invoke(folder, "report").returncode == 0
    assert files == {
        path.relative_to(index.parent): path.read_bytes() for path in index.parent.rglob("*") if path.is_file()
    }


@pytest.mark.pythons
def test_without_an_engine_the_main_job_runs_in_a_virtual_environment(tmp_path: Path) -> None:
    if find_python("3.6") is None:
        missing("no CPython 3.6")
    result = invoke(
        tmp_path,
        *("build", "--env", "tf1.13-cpu", "run-suite", "--suite", "conv2d", "--profile", "smoke", "report"),
        DOCKER_HOST=f"unix://{tmp_path}/nobody.sock",
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
    assert "tf1.13-cpu   venv" in result.stdout
    assert {row["status"] for row in rows(tmp_path, "trials")} == {"ok"}
    run = store.open_run(tmp_path / "results")
    record = run.record(rows(tmp_path, "trials")[0]["environment_record"])
    assert record["engine"] == "venv"
    assert record["substitutions"][0]["used"].startswith("CPython 3.6.")
