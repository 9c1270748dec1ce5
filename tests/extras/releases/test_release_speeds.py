"""The releases of a family on a machine: each against the oldest and the newest, and what is no such comparison."""

from pathlib import Path
from typing import Any

import pytest

from tests.report.compared import evidence_of, tables, texts
from tests.synthetic_run import SyntheticRun, add_record, environment, training_case
from tsuishi.extras.releases.sections import release_views
from tsuishi.report.parts.blocks import Chart, Heading, View
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.suite_cases import cases_of_suites
from tsuishi.report.parts.wording import NOTHING
from tsuishi.report.sections.pairs import matchups

RELEASED = {"torch1.1-cpu": "2019-04-30", "torch1.5-cpu": "2020-04-21", "torch2-cpu": "2026-07-08"}
STEP_S = {"torch1.1-cpu": 0.02, "torch1.5-cpu": 0.08, "torch2-cpu": 0.01}
TITLE = "Releases of torch, by date"


def made(path: Path, *without: str, **more: Any) -> list[View]:
    """The views of a run of these environments. without: those whose records have no release. more: of all trials."""
    frameworks = {name: f"torch {name}" for name in [*RELEASED][::-1]}
    run = SyntheticRun(path, frameworks=frameworks)
    for name, framework in frameworks.items():
        family = {} if name in without else {"family": "torch", "released": RELEASED[name]}
        run.environments[name] = add_record(run.directory, "environment", {**environment(name, framework), **family})
        for batch_size in (16, 32):
            blocks = [("measure", index, 1, batch_size, STEP_S[name] * batch_size) for index in range(4)]
            run.add(training_case(batch_size), name, blocks, **more)
    evidence = evidence_of(run)
    return [*release_views(evidence, matchups(evidence, cases_of_suites(evidence), Explanations(evidence)))]


def test_releases_stand_by_date_against_the_oldest_and_the_newest(tmp_path: Path) -> None:
    (view,) = made(tmp_path / "run")
    assert texts(tables(view)[TITLE]) == [
        ["torch1.1-cpu", "2019-04-30", "3.6.15", "yes", NOTHING, "1", "2", "0.500"],
        ["torch1.5-cpu", "2020-04-21", "3.6.15", "yes", "2", "0.250", "2", "0.125"],
        ["torch2-cpu", "2026-07-08", "3.6.15", "yes", "2", "2.00", NOTHING, "1"],
    ]
    assert [block.text for block in view.blocks if isinstance(block, Heading)] == [
        "What 7 years of torch did to this machine"
    ]
    ratios = [(row["environment"], row["reference"], row["ratio"]) for row in view.rows["releases"]]
    assert ratios[1:3] == [
        ("torch1.1-cpu", "torch2-cpu", pytest.approx(0.5)),
        ("torch1.5-cpu", "torch1.1-cpu", pytest.approx(0.25)),
    ]


def test_each_suite_has_a_row_and_a_line(tmp_path: Path) -> None:
    (view,) = made(tmp_path / "run")
    (of_suites,) = [rows for title, rows in tables(view).items() if title != TITLE]
    assert texts(of_suites) == [["multi_gpu_scaling: step, mean", "1", "0.250", "2.00"]]
    (chart,) = [block for block in view.blocks if isinstance(block, Chart)]
    assert [(row["date"], row["value"]) for row in chart.specification["datasets"]["rows"]] == [
        ("2019-04-30", 1.0),
        ("2020-04-21", pytest.approx(0.25)),
        ("2026-07-08", pytest.approx(2.0)),
    ]


def test_a_release_that_was_forced_is_not_native(tmp_path: Path) -> None:
    (view,) = made(tmp_path / "run", forced="GPU 8.9 is newer")
    assert {row[3] for row in texts(tables(view)[TITLE])} == {"no"}


def test_two_releases_and_older_records_have_no_such_page(tmp_path: Path) -> None:
    assert made(tmp_path / "run", "torch1.5-cpu") == []
