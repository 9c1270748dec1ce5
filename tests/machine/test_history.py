"""What things took here beats what was guessed elsewhere."""

from pathlib import Path

import pytest

from tsuishi.machine.history import _CAUTION as CAUTION
from tsuishi.machine.history import History, calibration_s
from tsuishi.results.records import MachineRecord
from tsuishi.results.same_machine import is_like


def history(path: Path, slowness: float = 2.0, machine: str = "m", record: MachineRecord | None = None) -> History:
    if record:
        found = History(path, machine, record.content(), lambda other: is_like(record, other))
    else:
        found = History(path, machine)
    found.slowness = slowness
    return found


def test_a_guess_is_scaled_by_the_machine_until_something_was_measured(tmp_path: Path) -> None:
    here = history(tmp_path)
    assert here.expected_s("build docker tf", 60.0) == 60.0 * 2 * CAUTION
    here.learn("build docker tf", 30.0)
    assert here.expected_s("build docker tf", 60.0) == 30.0


def test_a_guess_of_work_on_gpus_is_not_longer_on_a_machine_with_a_slow_cpu(tmp_path: Path) -> None:
    assert history(tmp_path, slowness=5.0).expected_s("trial on a GPU", 10.0, scales=False) == 10.0 * CAUTION


def test_guesses_of_a_kind_are_scaled_by_how_others_of_it_turned_out(tmp_path: Path) -> None:
    here = history(tmp_path)
    for number, took_s in enumerate((30.0, 50.0, 40.0)):
        here.learn(f"trial {number}", took_s, 10.0, ("trial tf conv2d", "trial tf"))
    assert here.expected_s("trial 9", 5.0, ("trial tf conv2d", "trial tf")) == 20.0
    assert here.expected_s("trial 9", 5.0, ("trial tf parity", "trial tf")) == 20.0
    assert here.expected_s("trial 9", 5.0, ("trial torch parity", "trial torch")) == 5.0 * 2 * CAUTION


def test_the_latest_measurements_count(tmp_path: Path) -> None:
    here = history(tmp_path)
    for took_s in [100.0] * 20 + [10.0] * 7:
        here.learn("report", took_s)
    assert here.report_s == 10.0


def test_it_is_kept_for_the_next_call_and_for_this_machine_alone(tmp_path: Path) -> None:
    here = history(tmp_path)
    here.learn("report", 7.0)
    here.keep()
    assert history(tmp_path).report_s == 7.0
    assert not history(tmp_path, machine="other").measured("report")


def test_what_was_learnt_stays_when_the_system_is_updated_and_not_on_another_machine(tmp_path: Path) -> None:
    here = history(tmp_path, machine="a", record=MachineRecord(kernel="6.1", memory_mib=8000))
    here.learn("report", 7.0)
    here.keep()
    updated = MachineRecord(kernel="6.2", memory_mib=7990)
    later = history(tmp_path, machine="b", record=updated)
    assert later.report_s == 7.0
    later.learn("report", 9.0)
    later.keep()
    assert history(tmp_path, machine="b", record=updated).report_s == 8.0
    assert not history(tmp_path, machine="c", record=MachineRecord(kernel="6.1", memory_mib=4000)).measured("report")


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "[]",
        '{"durations": {"report": ["x"]}}',
        '{"durations": 1}',
        "\x00",
        '{"scatters": {"steps": 1}}',
        '{"scatters": {"steps": {"run": [0.01]}}}',
        '{"scatters": {"steps": {"run": [-0.01, 9]}}}',
        '{"scatters": {"steps": {"run": [0.01, 0]}}}',
        '{"scatters": {"steps": {"run": [1e999, 9]}}}',
        '{"scatters": {"steps": {"run": [0.01, 1e999]}}}',
        '{"scatters": {"steps": {"run": ["x", 9]}}}',
    ],
)
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "m.json").write_text(damaged)
    assert not history(tmp_path).measured("report")
    assert history(tmp_path).scatter(["steps"]) is None


def test_scatter_is_pooled_over_names_and_runs_by_degrees_of_freedom(tmp_path: Path) -> None:
    here = history(tmp_path)
    here.learn_scatter("steps of tf", "a", 0.01, 3)
    assert here.scatter(["steps of tf"]) is None, "three degrees of freedom say too little"
    here.learn_scatter("steps of tf", "b", 0.04, 6)
    here.learn_scatter("steps of torch", "a", 0.0, 3)
    here.keep()
    again = history(tmp_path)
    assert again.scatter(["steps of tf"]) == pytest.approx(((0.01 * 3 + 0.04 * 6) / 9) ** 0.5)
    assert again.scatter(["steps of tf", "steps of torch", "unknown"]) == pytest.approx((0.27 / 12) ** 0.5)
    assert [again.has_scatter(name) for name in ("steps of tf", "unknown")] == [True, False]


def test_what_an_earlier_tsuishi_kept_of_settings_is_no_reason_to_forget_durations(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    kept = '{"durations": {"report": [7.0]}, "changes": {"conv2d cpu threads=1": [2.0]}}'
    (tmp_path / "history" / "here.json").write_text(kept)
    assert History(tmp_path, "here").report_s == 7.0


def test_a_resumed_run_replaces_its_scatter_and_only_the_latest_runs_are_kept(tmp_path: Path) -> None:
    here = history(tmp_path)
    here.learn_scatter("steps", "a", 1.0, 4)
    here.learn_scatter("steps", "a", 0.04, 8)
    assert here.scatter(["steps"]) == pytest.approx(0.2)
    for number in range(7):
        here.learn_scatter("steps", str(number), 0.01, 4)
    assert here.scatter(["steps"]) == pytest.approx(0.1)


def test_the_machine_is_timed_by_a_calculation_that_takes_some_time() -> None:
    assert 0.001 < calibration_s() < 60
