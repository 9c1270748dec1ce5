"""Environments side by side, against arithmetic done by hand."""

import math
from pathlib import Path

import pytest
from scipy import stats

from tests.report.compared import add_trials, evidence_of, tables, texts
from tests.synthetic_run import (
    TF,
    TORCH,
    SyntheticRun,
    add_record,
    limits_case,
    machine,
    training_case,
    work,
)
from tsuishi.report.parts.blocks import Chart, Section, Text
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.suite_cases import cases_of_suites
from tsuishi.report.parts.wording import Cell, Table
from tsuishi.report.sections.pairs import matchups
from tsuishi.report.sections.side_by_side import comparison_section
from tsuishi.report.sections.suite_views import suite_section

STEPS = "multi_gpu_scaling: step, mean, ms"
MEANS = "Times the reference, on average"


def found(run: SyntheticRun, *more: SyntheticRun) -> tuple[dict[str, Table], Section]:
    evidence = evidence_of(run, *more)
    made = comparison_section(evidence, matchups(evidence, cases_of_suites(evidence), Explanations(evidence)))
    return {title: table for view in made.views for title, table in tables(view).items()}, made


def test_a_case_is_a_ratio_to_the_first_environment_with_its_interval(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size in (16, 32):
        add_trials(run, training_case(batch_size), TF, 0.1)
        add_trials(run, training_case(batch_size), TORCH, 0.2, apart=0.2)
    shown, made = found(run)
    table = shown[STEPS]
    assert table.columns == ["case", f"{TF}, the reference", TORCH]
    reference, ratio = table.rows[0][1:]
    assert (reference.text, reference.notes) == ("100", ("n = 3",))
    # Variances of 0.01 and 0.04 with 4 freedoms each: together 4 (1 + 4)^2 / (1^2 + 4^2) of them. Days are of 1 %.
    reach = math.hypot(float(stats.t.ppf(0.975, 100 / 17)) * math.sqrt((0.01 + 0.04) / 3), 1.96 * math.sqrt(2) * 0.01)
    assert ratio.value == pytest.approx(2.0)
    assert ratio.text == f"2.00 [{2 * math.exp(-reach):#.3g}, {2 * math.exp(reach):#.3g}]" == "2.00 [1.45, 2.75]"
    assert ratio.notes == ("200\u00a0ms", "n = 3")
    rows = [row for view in made.views for row in view.rows.get("side_by_side", [])]
    torch = next(row for row in rows if row["environment"] == TORCH)
    assert (torch["geometric_mean"], torch["ratio"]) == (pytest.approx(0.2), ratio.value)
    assert torch["ratio_low"] == pytest.approx(2 * math.exp(-reach), rel=1e-5)
    assert {row["reference"] for row in rows} == {TF}


def test_the_mean_over_cases_both_have_has_an_interval_too(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size, factor in ((16, 2.0), (32, 8.0)):
        add_trials(run, training_case(batch_size), TF, 0.1)
        add_trials(run, training_case(batch_size), TORCH, 0.1 * factor)
    add_trials(run, training_case(64), TF, 0.1)
    cell = found(run)[0][MEANS].rows[0][-1]
    assert cell.value == pytest.approx(4.0)
    assert cell.notes == ("cases: 2",)
    assert cell.text.startswith("4.00 [3.")


def test_to_the_right_is_faster_whether_it_is_a_time_or_a_rate(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    product = limits_case("matmul", precision="fp32", matrix_size=1000)
    for environment, step_s in ((TF, 0.2), (TORCH, 0.1)):
        add_trials(run, training_case(16), environment, step_s)
        add_trials(run, product, environment, step_s, trials=1, metrics=work(1e9))
    (chart,) = [block for block in found(run)[1].blocks if isinstance(block, Chart)]
    drawn = {row["case"]: row for row in chart.specification["datasets"]["rows"]}
    assert [row["value"] for row in drawn.values()] == [pytest.approx(2.0), pytest.approx(2.0)]
    step, arithmetic = drawn[STEPS.removesuffix(", ms")], drawn["device_limits: arithmetic"]
    assert step["low"] < 2.0 < step["high"]
    assert arithmetic["low"] is None


def best(run: SyntheticRun) -> list[Cell]:
    return [cell for row in found(run)[0][STEPS].rows for cell in row if cell.best]


def test_the_best_of_a_row_is_marked_where_it_is_clear(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_trials(run, training_case(16), TF, 0.2)
    add_trials(run, training_case(16), TORCH, 0.1)
    assert [cell.value for cell in best(run)] == [pytest.approx(0.5)]


def test_where_more_is_better_the_largest_is_the_best(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for environment, step_s in ((TF, 0.2), (TORCH, 0.1)):
        add_trials(
            run, limits_case("matmul", precision="fp32", matrix_size=1000), environment, step_s, metrics=work(1e9)
        )
    (row,) = found(run)[0]["device_limits: arithmetic, GFLOP/s"].rows
    assert [cell.best for cell in row] == [False, False, True]
    assert row[2].value == pytest.approx(2.0)
    assert row[2].notes[0] == "10.0\u00a0GFLOP/s"


@pytest.mark.parametrize(("trials", "step_s"), [(1, 0.1), (3, 0.19)])
def test_no_best_is_marked_of_single_trials_or_where_intervals_overlap(
    tmp_path: Path, trials: int, step_s: float
) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_trials(run, training_case(16), TF, 0.2, trials)
    add_trials(run, training_case(16), TORCH, step_s, trials)
    assert best(run) == []


def test_what_an_environment_lacks_is_there_with_the_word_for_why(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_trials(run, training_case(16), TF, 0.1)
    run.add(training_case(16), TORCH, status="out_of_memory", reason="out of memory")
    run.add(training_case(32), TF, status="unsupported", reason="no")
    add_trials(run, training_case(32), TORCH, 0.1, trials=1)
    run.add(training_case(64), TF, status="failed", reason="no")
    shown, made = found(run)
    assert texts(shown[STEPS]) == [
        ["batch 16", "100", "out of memory"],
        ["batch 32", "unsupported", "100"],
        ["batch 64", "failed", "not planned"],
    ]
    rows = [row for view in made.views for row in view.rows.get("side_by_side", [])]
    assert [row["status"] for row in rows] == ["ok", "out_of_memory", "unsupported", "ok", "failed", "not planned"]
    assert {row["ratio"] for row in rows} == {None}


def test_the_same_environment_on_two_machines_stands_side_by_side_and_machines_are_named(tmp_path: Path) -> None:
    one, other = SyntheticRun(tmp_path / "one"), SyntheticRun(tmp_path / "other")
    other.machine = add_record(other.directory, "machine", {**machine(), "gpus": [{"name": "RTX 5090"}]})
    add_trials(one, training_case(16), TORCH, 0.4)
    add_trials(other, training_case(16), TORCH, 0.1)
    evidence = evidence_of(one, other)
    made = comparison_section(evidence, matchups(evidence, cases_of_suites(evidence), Explanations(evidence)))
    (table,) = [table for view in made.views for title, table in tables(view).items() if title == STEPS]
    (row,) = table.rows
    assert {name.removesuffix(", the reference") for name in table.columns[1:]} == {
        f"{TORCH} on machine 1",
        f"{TORCH} on machine 2",
    }
    assert row[2].value in (pytest.approx(4.0), pytest.approx(0.25))
    # Two runs are two sessions, one on each side: no interval, and no best.
    assert "[" not in row[2].text
    assert not any(cell.best for cell in row)
    said = " ".join(block.text for block in made.blocks if isinstance(block, Text))
    assert "Machine 1: " in said
    assert "RTX 5090" in said
    assert "were measured in different sessions" in said
    suite = suite_section(Explanations(evidence).of("multi_gpu_scaling"), cases_of_suites(evidence))
    of_suite = " ".join(block.text for block in suite.blocks if isinstance(block, Text))
    assert "Machine 2: " in of_suite


def test_one_environment_has_nothing_beside_it(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_trials(run, training_case(16), TF, 0.1)
    shown, made = found(run)
    assert shown == {}
    assert [block.text for block in made.blocks if isinstance(block, Text)] == [
        "This report has one environment, so there is nothing to compare. A report can take several runs: `--run A,B`."
    ]
