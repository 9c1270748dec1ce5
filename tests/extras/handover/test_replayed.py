"""A run and its replay in words: how fast the cases are there and here, and which claims hold where."""

from pathlib import Path
from typing import Any

import pytest

from tests.gpu_run import add_steps, two_gpus
from tests.synthetic_run import TF, TORCH, SyntheticRun, add_record, machine, training_case
from tests.words import WORDS
from tsuishi.extras.handover.sections import summary_views
from tsuishi.report.parts.blocks import Bullets, Text, View
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.suite_cases import cases_of_suites
from tsuishi.report.parts.wording import Table, worded
from tsuishi.report.sections.pairs import matchups
from tsuishi.report.sections.verdict_table import Verdicts
from tsuishi.specs.source import read_sources
from tsuishi.verdicts.evidence import Evidence

PUBLISHED = Path(__file__).parents[3] / "reports" / "published"


def replay_of(run: SyntheticRun, path: Path, *, same_machine: bool = False) -> SyntheticRun:
    """A run that replays another, a day later, on a machine with more memory or on the same machine."""
    replay = SyntheticRun(path, replays={"run_id": run.run["run_id"], "root": "0" * 64})
    replay.started_at = "2026-11-22T08:00:01Z"
    if not same_machine:
        replay.machine = add_record(replay.directory, "machine", {**machine(), "memory_mib": 15902})
    return replay


def found(*runs: SyntheticRun) -> list[View]:
    evidence = Evidence([run.finish() for run in runs], read_sources(PUBLISHED, WORDS, tables=False), WORDS)
    with worded(evidence.words):
        compared = matchups(evidence, cases_of_suites(evidence), Explanations(evidence))
        return list(summary_views(evidence, compared, Verdicts(evidence).judgements))


def text_of(view: View) -> str:
    """The sentences of a view."""
    lines = [line for block in view.blocks if isinstance(block, Bullets) for line in block.items]
    return "\n".join([*(block.text for block in view.blocks if isinstance(block, Text)), *lines])


def steps(run: SyntheticRun, environment: str, seconds: float) -> None:
    run.add(training_case(16), environment, [("measure", index, 1, 16, seconds) for index in range(4)])


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.05, "{here} is about 2.0 times as fast as {there}; "),
        (0.25, "{here} takes about 2.5 times as long as {there}; "),
        (0.098, "{here} is about as fast as {there}; "),
    ],
)
def test_how_fast_a_replay_is_says_a_sentence_without_an_interval(tmp_path: Path, seconds: float, said: str) -> None:
    run = SyntheticRun(tmp_path / "run")
    steps(run, TF, 0.1)
    again = replay_of(run, tmp_path / "again")
    steps(again, TF, seconds)
    (view,) = found(run, again)
    (row,) = view.rows["replayed"]
    assert row["ratio"] == pytest.approx(0.1 / seconds)
    assert row["environment"].endswith(", replayed")
    sentence = said.format(here=row["environment"], there=row["reference"])
    why = "days: 1 there and 1 here; an interval needs 3 on each side."
    assert f"{sentence}numbers compared: 1; {why}" in text_of(view)


def test_three_sessions_on_each_side_give_an_interval(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    again = replay_of(run, tmp_path / "again")
    for each, seconds in ((run, 0.1), (again, 0.05)):
        for session in range(1, 4):
            each.started_at = f"2026-11-{20 + session}T08:00:01Z"
            samples = [("measure", index, 1, 16, seconds * (1 + session / 100)) for index in range(4)]
            each.add(training_case(16), TF, samples, repetition=session)
        each.run["sessions"] = [{"began_at": f"2026-11-{20 + session}T08:00:00Z"} for session in range(1, 4)]
    (view,) = found(run, again)
    assert "is about 2.0 times as fast" in text_of(view)
    assert "; 95 % interval 1.8" in text_of(view)
    (row,) = view.rows["replayed"]
    assert row["ratio_low"] < 2.0 < row["ratio_high"]


def test_the_same_machine_has_columns_of_its_own_for_the_replay(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    steps(run, TORCH, 0.1)
    again = replay_of(run, tmp_path / "again", same_machine=True)
    steps(again, TORCH, 0.1)
    (view,) = found(run, again)
    assert view.rows["replayed"][0]["environment"] == "torch2-cpu, replayed"
    assert view.rows["replayed"][0]["reference"] == "torch2-cpu"


def test_a_run_is_no_replay_where_the_report_lacks_its_original(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    again = replay_of(run, tmp_path / "again")
    steps(again, TORCH, 0.1)
    assert found(again) == []


def scaled(run: SyntheticRun, of_two: float) -> None:
    """torch on one GPU and on two, which take `of_two` of its time."""
    two_gpus(run)
    for batch_size in (128, 512, 2048):
        for model, times in (("cnn10", 1.0), ("wrn28_10", 9.0)):
            step_s = times * (0.009 + batch_size / 4800)
            two: dict[str, Any] = {"devices": 2, "strategy": "data_parallel"}
            add_steps(run, TORCH, step_s, batch_size=batch_size, model=model)
            add_steps(run, TORCH, of_two * step_s, batch_size=batch_size, model=model, **two)


def test_claims_are_sorted_by_the_side_on_which_they_hold(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    again = replay_of(run, tmp_path / "again")
    scaled(run, 0.6)
    scaled(again, 1.4)
    (view,) = found(run, again)
    assert "Claims that hold only there: torch-2080ti d (torch2-cpu)." in text_of(view)
    assert "on both" not in text_of(view)
    (table,) = [block for block in view.blocks if isinstance(block, Table) and block.title == "Claims there and here"]
    (row,) = [[cell.text for cell in row] for row in table.rows]
    assert row == ["torch-2080ti", "d", "torch2-cpu", "reproduced", "contradicted"]


def test_claims_that_hold_on_both_sides_are_said(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    again = replay_of(run, tmp_path / "again")
    scaled(run, 0.6)
    scaled(again, 0.55)
    (view,) = found(run, again)
    assert "Claims that hold on both: torch-2080ti d (torch2-cpu)." in text_of(view)
