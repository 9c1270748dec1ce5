"""A real trial, as any machine can run it: the source's SciPy baseline, by the interpreter that runs these tests."""

import csv
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.commands.test_tasks import REAL, checkout, invoke
from tests.job import Trial, trials
from tests.words import SHIPPED


@dataclass(frozen=True)
class Done:
    """The main job: the checkout, and the folder of its report."""

    root: Path
    report: Path

    def rows(self, table: str) -> list[dict[str, str]]:
        """The rows of a table of the report."""
        with (self.report / "tables" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def trial(self, implementation: str) -> Trial:
        (found,) = trials(self.root, implementation=implementation)
        return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """The main job of suite conv2d in `host`.

    A probe of the tests answers in the place of the real one, which refuses an interpreter without a framework.
    """
    root = checkout(tmp_path_factory.mktemp("real"))
    (root / "suites" / "bench.toml").unlink()
    shutil.copy(REAL.suites / "conv2d.toml", root / "suites")
    for name in SHIPPED:
        shutil.copy(REAL.published / f"{name}.toml", root / "reports" / "published")
    result = invoke(root, "build", "--env", "host", "run-suite", "--profile", "smoke", "report")
    assert result.returncode == 0, result.stdout + result.stderr
    return Done(root, root / Path(result.stdout.splitlines()[-1].removeprefix("report: ")).parent)


@pytest.mark.parametrize(("implementation", "images"), [("scipy", 1), ("scipy_all_cores", 840)])
def test_scipy_convolves_what_the_source_did(done: Done, implementation: str, images: int) -> None:
    trial = done.trial(implementation)
    assert (trial["status"], trial["device"]) == ("ok", "cpu")
    assert trial["metrics"]["outputs_checked"] == images
    assert trial["metrics"]["max_relative_error"] < 1e-6
    assert trial["metrics"]["flops"] == 2 * 840 * 100 * 100 * 9
    assert {phase: len(seconds) for phase, seconds in trial["seconds"].items()} == {"first_run": 1, "later_runs": 2}


def test_what_needs_a_framework_says_so(done: Done) -> None:
    without = trials(done.root, implementation="framework")
    assert len(without) == 5
    for trial in without:
        assert trial["status"] == "unsupported"
        assert "none of torch, tensorflow, jax, mxnet, chainer is installed in this environment" in trial["reason"]


def test_the_report_holds_the_times_and_says_what_they_do_not_explain(done: Done) -> None:
    first = [row for row in done.rows("cases") if row["quantity"] == "first_run_s"]
    for row in first:
        (seconds,) = done.trial(row["implementation"])["seconds"]["first_run"]
        assert float(row["estimate"]) == seconds
    assert {row["implementation"] for row in first} == {"scipy", "scipy_all_cores"}
    told = {row["topic"]: row["text"] for row in done.rows("diagnosis")}
    assert told["The graph that ran"] == "No graph was reported, so none was folded."
    assert "The framework on the same terms (input fed, one tower) was not tested." in told["SciPy on equal terms"]
    page = (done.report / "index.html").read_text(encoding="utf-8")
    assert "None of the 45 published claims could be tested here." in page


def test_the_cores_of_this_machine_are_all_used(done: Done) -> None:
    folder = done.root / "results"
    (file,) = folder.glob(f"*/trials/{done.trial('scipy_all_cores')['trial_id']}/trial.json")
    assert f'"processes": {len(os.sched_getaffinity(0))}' in file.read_text(encoding="utf-8")
