"""Tables of what was measured: which cases are in which."""

from pathlib import Path

from tests.report.compared import compared, tables
from tests.synthetic_run import TF, SyntheticRun, steady_samples, training_case
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.sections.quantity_tables import measured


def view_of(run: SyntheticRun, published: bool = False) -> View:
    comparison = compared(run, published=published)
    return measured(comparison, Explanations(comparison.evidence).of(comparison.suite))


def shown(run: SyntheticRun, published: bool = False) -> dict[str, list[tuple[str, ...]]]:
    view = view_of(run, published)
    return {title: [tuple(cell.text for cell in row[:2]) for row in one.rows] for title, one in tables(view).items()}


def test_the_first_table_has_every_case_and_the_others_those_that_have_something(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    parts = [("forward", index, 10, 160, 0.3) for index in range(4)]
    run.add(training_case(16), TF, [*steady_samples(16, [0.1] * 4), *parts])
    run.add(training_case(32), TF, steady_samples(32, [0.1] * 4))
    run.add(training_case(64), TF, status="out_of_memory", reason="no")
    found = shown(run)
    assert found["Steps"] == [("batch 16", "0.1000"), ("batch 32", "0.1000"), ("batch 64", "out of memory")]
    assert found["Parts of a step"] == [("batch 16", "0.03000")]
    parts_table = tables(view_of(run))["Parts of a step"]
    assert parts_table.notes[-1] == (
        "Cases without any of these are left out; what became of them is in the first table."
    )


def test_a_case_that_failed_keeps_the_row_of_its_published_numbers(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, steady_samples(16, [0.1] * 4))
    run.add(training_case(128), TF, status="out_of_memory", reason="no")
    assert ("batch 128", "out of memory") in shown(run, published=True)["Epochs of 50,000 images"]


def test_where_nothing_was_measured_there_are_the_outcomes(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, status="failed", reason="no")
    assert shown(run) == {"Outcome": [("the one case", "failed")]}


def test_replicas_alone_are_no_parity(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, steady_samples(16, [0.1] * 4), metrics=[("replicas", 1, "1")])
    assert "Parity" not in shown(run)
