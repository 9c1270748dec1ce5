"""The table of machines: how much faster each is than the machine of the first run."""

from pathlib import Path

import pytest

from tests.report.compared import evidence_of, tables, texts
from tests.synthetic_run import TF, TORCH, SyntheticRun, add_record, machine, training_case
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.suite_cases import cases_of_suites
from tsuishi.report.parts.wording import NOTHING
from tsuishi.report.sections.machine_speeds import machine_view
from tsuishi.report.sections.pairs import matchups

TITLE = "Machines, the fastest first"


def run_on(path: Path, memory_mib: int, **step_s: float) -> SyntheticRun:
    """A run on a machine with this memory; step_s: of TF and TORCH."""
    run = SyntheticRun(path)
    run.started_at = f"2026-11-21T08:{memory_mib % 60:02}:01Z"
    run.machine = add_record(run.directory, "machine", {**machine(), "memory_mib": memory_mib})
    for name, seconds in step_s.items():
        environment = {"tf": TF, "torch": TORCH}[name]
        for batch_size in (16, 32):
            blocks = [("measure", index, 1, batch_size, seconds * batch_size) for index in range(4)]
            run.add(training_case(batch_size), environment, blocks)
    return run


def made(*runs: SyntheticRun) -> View | None:
    evidence = evidence_of(*runs)
    return machine_view(evidence, matchups(evidence, cases_of_suites(evidence), Explanations(evidence)))


def test_machines_stand_by_their_speed_over_what_both_have(tmp_path: Path) -> None:
    mine = run_on(tmp_path / "mine", 8000, tf=0.01, torch=0.02)
    fast = run_on(tmp_path / "fast", 16000, tf=0.0025)
    slow = run_on(tmp_path / "slow", 4000, tf=0.02, torch=0.02)
    found = made(mine, fast, slow)
    assert found is not None
    rows = texts(tables(found)[TITLE])
    assert [row[2:] for row in rows] == [["2", "4.00"], [NOTHING, "1"], ["4", "0.707"]]
    assert all("Example CPU" in row[0] for row in rows)
    assert [row["ratio"] for row in found.rows["machines"]] == [pytest.approx(4.0), None, pytest.approx(0.5**0.5)]


def test_a_machine_without_a_shared_number_stands_last_without_one(tmp_path: Path) -> None:
    mine, other = run_on(tmp_path / "mine", 8000, tf=0.01), run_on(tmp_path / "other", 16000, torch=0.01)
    found = made(mine, other)
    assert found is not None
    assert [row[2:] for row in texts(tables(found)[TITLE])] == [[NOTHING, "1"], ["0", NOTHING]]


def test_a_single_machine_has_no_table(tmp_path: Path) -> None:
    assert made(run_on(tmp_path / "mine", 8000, tf=0.01, torch=0.02)) is None
