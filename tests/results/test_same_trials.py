"""Trials that several runs of a report have in common."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.reports import make_report, markdown_of
from tests.synthetic_run import TF, TORCH, SyntheticRun, conv2d_case, steady_samples, training_case, write_example
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.base.files import write_json
from tsuishi.estimates.samples import case_estimates, trial_estimates
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import Results, outcomes, read_runs


def estimates(*runs: RunDirectory) -> pd.DataFrame:
    return case_estimates(trial_estimates(read_runs(runs, WORDS), {}))


def copied(run: RunDirectory, to: Path, run_id: str | None = None) -> RunDirectory:
    """A copy of a run's folder, also with another id in its run.json."""
    copy = RunDirectory(Path(shutil.copytree(run.path, to)))
    if run_id:
        write_json(copy.path / "run.json", {"schema_version": 1, **run.run().content(), "run_id": run_id})
    return copy


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return write_example(tmp_path / "run")


def shares(results: Results) -> list[tuple[str, str, int, int]]:
    return [tuple(copy) for copy in results.copies]  # type: ignore[misc]


@pytest.mark.long
def test_the_same_run_twice_or_three_times_is_one_run(run: RunDirectory, tmp_path: Path) -> None:
    count = len(run.finished_folders())
    same_id = copied(run, tmp_path / "elsewhere" / "run")
    renamed = copied(run, tmp_path / "renamed", "renamed")
    for others in ([run], [same_id], [renamed], [renamed, run]):
        results = read_runs([run, *others], WORDS)
        assert list(results.runs) == ["run"]
        assert len(results.trials) == len(results.details) == count
        assert estimates(run, *others).equals(estimates(run))
        assert outcomes(results).equals(outcomes(read_runs([run], WORDS)))
        assert [(copy.other, copy.shared, copy.trials) for copy in results.copies] == [("run", count, count)] * len(
            others
        )


def test_a_copy_that_was_resumed_stands_for_the_run_that_it_is_of(tmp_path: Path) -> None:
    first = SyntheticRun(tmp_path / "run")
    first.add(conv2d_case(), TF, [("first_run", 0, 1, 840, 1.0)])
    first.add(conv2d_case(), TORCH, status="interrupted", reason="stopped")
    first.add_plan(training_case(16), TORCH)
    first.finish()
    earlier = copied(first.directory, tmp_path / "earlier", "earlier")
    first.add(conv2d_case(), TORCH, [("first_run", 0, 1, 840, 2.0)], attempt=2)
    later = first.finish()
    results = read_runs([earlier, later], WORDS)
    assert list(results.runs) == ["run"]
    assert shares(results) == [("earlier", "run", 2, 2)]
    found = outcomes(results)
    assert found["status"].tolist() == ["ok", "ok", "missing"]
    assert estimates(earlier, later).equals(estimates(later))


def test_two_copies_that_were_resumed_apart_keep_what_each_has_measured(tmp_path: Path) -> None:
    first = SyntheticRun(tmp_path / "run")
    first.add(conv2d_case(), TF, [("first_run", 0, 1, 840, 1.0)])
    first.add(conv2d_case(), TORCH, status="interrupted", reason="stopped")
    first.finish()
    second = SyntheticRun(tmp_path / "second")
    shutil.rmtree(second.directory.trials)
    shutil.copytree(first.directory.trials, second.directory.trials)
    for run, seconds in ((first, 2.0), (second, 8.0)):
        run.add(conv2d_case(), TORCH, [("first_run", 0, 1, 840, seconds)], attempt=2)
    results = read_runs([first.finish(), second.finish()], WORDS)
    assert list(results.runs) == ["run", "second"]
    assert shares(results) == [("second", "run", 2, 3)]
    assert outcomes(results)["status"].tolist() == ["ok", "ok", "ok"]
    found = estimates(first.directory, second.directory)
    values = dict(zip(zip(found["column"], found["n"], strict=True), found["estimate"], strict=True))
    assert values == {(TF, 1): 1.0, (TORCH, 2): pytest.approx(4.0)}


@pytest.mark.parametrize("other", [{"started_at": "2026-11-21T09:00:01Z"}, {"duration_s": 9.75}, {}])
def test_trials_that_differ_in_their_begin_length_or_rows_are_two(tmp_path: Path, other: dict[str, Any]) -> None:
    first, second = SyntheticRun(tmp_path / "a" / "run"), SyntheticRun(tmp_path / "b" / "run")
    first.add(training_case(16), TF, steady_samples(16, [0.1] * 4))
    second.add(training_case(16), TF, steady_samples(16, [0.1] * 3 + [0.1 if other else 0.11]), **other)
    results = read_runs([first.finish(), second.finish()], WORDS)
    assert results.copies == []
    assert results.trials["run_id"].tolist() == ["run", "run (2)"]
    assert set(estimates(first.directory, second.directory)["n"]) == {2}


@pytest.mark.long
def test_the_report_says_which_run_is_there_twice(run: RunDirectory, tmp_path: Path) -> None:
    checkout, copy = Checkout(), copied(run, tmp_path / "renamed", "renamed")
    count = len(run.finished_folders())
    make_report([run, copy], checkout.published, checkout.templates, tmp_path / "out")
    page = markdown_of(tmp_path / "out")
    assert f"renamed: {count} of its {count} trials are those of run too, by their content: each of them counts" in page
