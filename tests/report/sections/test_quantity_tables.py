"""Tables of what was measured: which cases are in which."""

from pathlib import Path

import pytest

from tests.report.compared import compared, tables
from tests.synthetic_run import TF, TORCH, SyntheticRun, steady_samples, training_case, work
from tests.words import WORDS
from tsuishi.base.language import speaking
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.sections.quantity_tables import measured_view


def view_of(run: SyntheticRun, published: bool = False) -> View:
    suite_cases = compared(run, published=published)
    return measured_view(suite_cases, Explanations(suite_cases.evidence).of(suite_cases.suite))


def shown(run: SyntheticRun, published: bool = False) -> dict[str, list[tuple[str, ...]]]:
    """The rows of each table, up to the first quantity."""
    view = view_of(run, published)
    return {title: [tuple(cell.text for cell in row[:3]) for row in one.rows] for title, one in tables(view).items()}


def test_the_first_table_has_every_case_and_the_others_those_that_have_something(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    parts = [("forward", index, 10, 160, 0.3) for index in range(4)]
    run.add(training_case(16), TF, [*steady_samples(16, [0.1] * 4), *parts])
    run.add(training_case(32), TF, steady_samples(32, [0.1] * 4))
    run.add(training_case(64), TF, status="out_of_memory", reason="no")
    found = shown(run)
    assert found["Steps"] == [("batch 16", TF, "100"), ("batch 32", TF, "100"), ("batch 64", TF, "out of memory")]
    assert found["Parts of a step"] == [("batch 16", TF, "30.0")]
    parts_table = tables(view_of(run))["Parts of a step"]
    assert parts_table.notes[-1] == (
        "Rows without a number are left out; the first table has the status of their cases."
    )


def test_a_row_for_each_environment_and_published_machine_of_a_case(tmp_path: Path) -> None:
    """No table is wider for more environments, and rows of a case can be compared from top to bottom."""
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(128), TF, steady_samples(128, [0.1] * 4))
    run.add(training_case(128), TORCH, steady_samples(128, [0.05] * 4))
    run.add(training_case(64), TORCH, steady_samples(64, [0.05] * 4))
    found = tables(view_of(run, published=True))
    assert found["Steps"].columns[:4] == ["case", "environment", "step, mean, ms", "throughput, images/s"]
    assert [tuple(cell.text for cell in row[:3]) for row in found["Steps"].rows] == [
        ("batch 64", TF, "not planned"), ("batch 64", TORCH, "50.0"),
        ("batch 128", TF, "100"), ("batch 128", TORCH, "50.0"),
    ]  # fmt: skip
    epochs = [tuple(cell.text for cell in row) for row in found["Epochs of 50,000 images"].rows]
    assert ("batch 128", "RTX 2080 Ti (published)", "15.9", "13.9") in [row[:4] for row in epochs]


@pytest.mark.parametrize(
    ("language", "memory", "storage", "rate"),
    [
        ("en", ("one core", "all cores"), ("not in the page cache", "in the page cache"), "data traffic, GB/s"),
        ("ja", ("1 コア", "全コア"), ("ページキャッシュなし", "ページキャッシュ上"), "データ転送, GB/s"),
    ],
)
def test_what_the_machine_reads_has_words_for_cores_and_page_cache(
    tmp_path: Path, language: str, memory: tuple[str, str], storage: tuple[str, str], rate: str
) -> None:
    run = SyntheticRun(tmp_path / "run")
    suite = {"suite": "device_limits", "protocol": "steady"}
    blocks = [("measure", index, 1, 0, 1.0) for index in range(4)]
    for moved, axes in (
        (30e9, {"operation": "host_memory_read", "buffer_mib": 2048, "cores": "one"}),
        (40e9, {"operation": "host_memory_read", "buffer_mib": 2048, "cores": "all"}),
        (2e9, {"operation": "storage_read", "buffer_mib": 256, "cache": "cold"}),
        (20e9, {"operation": "storage_read", "buffer_mib": 256, "cache": "cached"}),
    ):
        run.add(WORDS.case({**suite, **axes}), TORCH, blocks, framework="", metrics=work(moved=moved))
    with speaking(language):
        suite_cases = compared(run, suite="device_limits")
        shown = tables(measured_view(suite_cases, Explanations(suite_cases.evidence).of("device_limits")))
        (table,) = [table for table in shown.values() if rate in table.columns]
    found = {row[0].text: row[table.columns.index(rate)].text for row in table.rows}
    cases = [f"host_memory_read, 2048 MiB, {words}" for words in memory]
    cases += [f"storage_read, 256 MiB, {words}" for words in storage]
    assert found == dict(zip(cases, ("30.0", "40.0", "2.00", "20.0"), strict=True))


def test_a_case_that_failed_keeps_the_row_of_its_published_numbers(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, steady_samples(16, [0.1] * 4))
    run.add(training_case(128), TF, status="out_of_memory", reason="no")
    assert ("batch 128", TF, "out of memory") in shown(run, published=True)["Epochs of 50,000 images"]


def test_where_nothing_was_measured_there_are_the_outcomes(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, status="failed", reason="no")
    assert shown(run) == {"Outcome": [("the only case", TF, "failed")]}


def test_replicas_alone_are_no_parity(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, steady_samples(16, [0.1] * 4), metrics=[("replicas", 1, "1")])
    assert "Parity" not in shown(run)
