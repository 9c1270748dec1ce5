"""Telemetry as a reader sees it: every trial to choose from, the load over GPUs, and what speaks against numbers."""

from pathlib import Path
from typing import Any

import pytest

from tests.gpu_run import GPU
from tests.large_run import write_large_run
from tests.synthetic_run import (
    TF,
    TORCH,
    SyntheticRun,
    add_record,
    machine,
    steady_samples,
    training_case,
    write_example,
)
from tests.words import WORDS
from tsuishi.estimates import thinning as analysed
from tsuishi.report.parts.blocks import Chart, Explorer, Section, Text
from tsuishi.report.parts.wording import Table
from tsuishi.report.sections import load
from tsuishi.report.sections.load import disturbances, gpu_loads, telemetry_section, telemetry_warnings
from tsuishi.verdicts.evidence import Evidence

SUITE = "multi_gpu_scaling"


def explorer(section: Section) -> Explorer:
    (found,) = [block for block in section.blocks if isinstance(block, Explorer)]
    return found


def rows_of(section: Section, name: str) -> list[dict[str, Any]]:
    """The rows of a table that a view has by column."""
    (table,) = [view.tables[name] for view in section.views if name in view.tables]
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def test_every_trial_that_was_sampled_can_be_chosen(tmp_path: Path) -> None:
    evidence = Evidence([write_example(tmp_path / "run")], (), WORDS)
    block = explorer(telemetry_section(evidence))
    (trial,) = block.data["trials"]
    longest = training_case(64)
    assert trial["id"].endswith(f"b{longest.batch_size}-{longest.id[:6]}.{TF}.r1.a1")
    assert trial["label"] == f"multi_gpu_scaling, warm · training, cnn10, 1 device, batch 64, fp32 · {TF} · trial 1"
    assert trial["phases"][-1] == ["measure", 8.0, 19.0]
    assert trial["step_s"] == 0.5
    assert list(trial["devices"]) == ["host", "gpu0"]
    # Half a second between ticks: 39 bins, the last with the last two ticks.
    assert trial["devices"]["gpu0"]["utilisation_percent"][:3] == [0, 2, 4]
    assert trial["devices"]["gpu0"]["utilisation_percent"][-1] == 77
    assert block.data["quantities"]["memory_mib"] == "memory, MiB"
    assert "Means over 0.500 s" in block.caption


def test_the_csv_has_every_number_that_is_shown(tmp_path: Path) -> None:
    section = telemetry_section(Evidence([write_large_run(tmp_path / "run", trials=40, telemetry_rows=30)], (), WORDS))
    shown = {}
    for row in rows_of(section, "telemetry"):
        shown[row["trial_id"], row["device"], row["begin_s"]] = row
    for trial in explorer(section).data["trials"]:
        for device, lists in trial["devices"].items():
            for quantity, values in lists.items():
                for place, value in enumerate(values):
                    row = shown[trial["id"], device, round(place * trial["step_s"], 3)]
                    assert row[quantity] == value
    assert len({trial for trial, _, _ in shown}) == 40


def test_trials_of_several_runs_are_told_apart(tmp_path: Path) -> None:
    days = {"first": "2026-11-21T08:00:01Z", "second": "2026-11-22T08:00:01Z"}
    runs = [write_example(tmp_path / name, day) for name, day in days.items()]
    trials = explorer(telemetry_section(Evidence(runs, (), WORDS))).data["trials"]
    assert [trial["id"].split("/")[0] for trial in trials] == ["first", "second"]
    assert [trial["label"].split(" · ")[-1] for trial in trials] == ["first", "second"]


def test_a_phase_that_never_ended_ends_with_the_trial(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    ticks = [{"elapsed_s": second, "device": "host", "utilisation_percent": 1.0} for second in (0.0, 1.0, 4.0)]
    phases = [{"name": "measure", "begin_s": 2.0, "end_s": None}]
    run.add(training_case(16), TORCH, status="timeout", reason="stopped", telemetry=ticks, phases=phases)
    (trial,) = explorer(telemetry_section(Evidence([run.finish()], (), WORDS))).data["trials"]
    assert trial["phases"] == [["measure", 2.0, 4.0]]


def test_where_not_all_fit_the_caption_says_how_many_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "overview", lambda results: analysed.overview(results, 500))
    section = telemetry_section(Evidence([write_large_run(tmp_path / "run", trials=40, telemetry_rows=30)], (), WORDS))
    block = explorer(section)
    count = len(block.data["trials"])
    assert 0 < count < 40
    assert f"{count} of 40 trials are here" in block.caption


def test_without_telemetry_a_note_says_so(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TORCH, [])
    section = telemetry_section(Evidence([run.finish()], (), WORDS))
    assert [block.text for block in section.blocks if isinstance(block, Text)] == ["No telemetry was recorded."]


def test_the_longest_trial_of_every_suite_is_drawn(tmp_path: Path) -> None:
    evidence = Evidence([write_large_run(tmp_path / "run", trials=80, telemetry_rows=12)], (), WORDS)
    drawn = {block.name: block for block in telemetry_section(evidence).blocks if isinstance(block, Chart)}
    assert list(drawn) == [f"{suite}-telemetry" for suite in evidence.suites]
    assert "The longest trial of those above, conv2d-" in drawn["conv2d-telemetry"].caption


def on_two_gpus(run: SyntheticRun, repetition: int, first: float, second: float) -> None:
    telemetry = [
        {"elapsed_s": tick / 2, "phase": "measure", "device": device, "utilisation_percent": value,
         "memory_used_mib": 1000, "sm_clock_mhz": 1500, "throttle_reasons": "sw_power_cap" if tick else ""}
        for tick in range(4)
        for device, value in (("gpu0", first), ("gpu1", second))
    ]  # fmt: skip
    case = training_case(128, strategy="data_parallel", devices=2)
    run.add(case, TORCH, steady_samples(128, [0.1] * 4), repetition, telemetry=telemetry)


@pytest.fixture
def two_gpus(tmp_path: Path) -> Evidence:
    run = SyntheticRun(tmp_path / "run")
    gpus = [{"index": index, "name": "A"} for index in range(2)]
    run.machine = add_record(run.directory, "machine", {**machine(), "gpus": gpus})
    on_two_gpus(run, 1, 90, 40)
    on_two_gpus(run, 2, 70, 40)
    return Evidence([run.finish()], (), WORDS)


def test_the_load_over_two_gpus_is_a_table_with_the_mean_over_trials(two_gpus: Evidence) -> None:
    view = gpu_loads(two_gpus, SUITE)
    (table,) = view.blocks
    assert isinstance(table, Table)
    assert table.columns[2:] == ["gpu0", "gpu1", "imbalance"] * 2
    assert table.groups == [("", 2), ("utilisation, %", 3), ("memory used, MiB", 3)]
    assert [[cell.text for cell in row[2:]] for row in table.rows] == [
        ["80.0", "40.0", "0.667", "1,000", "1,000", "0.00"],
    ]
    assert {row["device"]: row["mean"] for row in view.rows["load"][:2]} == {"gpu0": 80.0, "gpu1": 40.0}


def test_clocks_have_a_panel_where_there_are_any(two_gpus: Evidence) -> None:
    (block,) = load.longest_trial(two_gpus, SUITE, analysed.overview(two_gpus.results)).blocks
    assert isinstance(block, Chart)
    titles = [panel["layer"][-1]["encoding"]["y"]["title"] for panel in block.specification["vconcat"]]
    assert titles == ["utilisation, %", "memory, MiB", "GPU clock, MHz"]


def test_where_the_longest_trial_is_not_shown_the_longest_of_those_shown_is_drawn(two_gpus: Evidence) -> None:
    for series in analysed.overview(two_gpus.results):
        (block,) = load.longest_trial(two_gpus, SUITE, [series]).blocks
        assert isinstance(block, Chart)
        assert f", {two_gpus.results.trials['trial_id'][series.trial]} of run" in block.caption
    assert load.longest_trial(two_gpus, SUITE, []).blocks == ()


def test_where_no_trial_had_two_gpus_a_note_says_so_if_it_was_asked_for(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "one")
    run.add(training_case(16), TF, [])
    assert gpu_loads(Evidence([run.finish()], (), WORDS), SUITE).blocks == ()
    run = SyntheticRun(tmp_path / "two")
    run.add(training_case(16, strategy="mirrored", devices=2), TF, [], simulated=True)
    (note,) = gpu_loads(Evidence([run.finish()], (), WORDS), SUITE).blocks
    assert isinstance(note, Text)
    assert "no trial used two GPUs" in note.text


def test_warnings_count_trials_and_say_how_bad_it_was(two_gpus: Evidence) -> None:
    assert list(telemetry_warnings(two_gpus)) == []
    assert list(disturbances(two_gpus)) == [
        "In 2 of 2 trials a GPU's clock was held back in measured phases, for up to 75 % of the time: sw_power_cap."
    ]


@pytest.mark.parametrize(
    ("of_gpu", "said"),
    [
        ({"display_active": False, "power_limit_w": 450.0, "power_limit_default_w": 450.0}, []),
        ({"power_limit_w": 300.0, "power_limit_default_w": 450.0}, ["may take 300 W, and usually 450 W."]),
        ({"power_limit_w": 300.0}, []),
        ({"power_limit_w": 449.9, "power_limit_default_w": 450.0}, []),
        ({"display_active": True}, ["has a display attached, whose desktop takes memory and time of it."]),
    ],
)
def test_a_desktop_and_a_lowered_power_limit_are_said_of_gpus_that_computed(
    tmp_path: Path, of_gpu: dict[str, Any], said: list[str]
) -> None:
    run = SyntheticRun(tmp_path / "run")
    idle = {"index": 1, "name": "an idle card", "display_active": True}
    gpus = [{"index": 0, "name": GPU["device"], **of_gpu}, idle]
    run.machine = add_record(run.directory, "machine", {**machine(), "gpus": gpus})
    run.add(training_case(16), TORCH, steady_samples(16, [0.1] * 8), **GPU)
    # Another node has such a card too, on which nothing was computed, and a third is as the first.
    add_record(run.directory, "machine", {**machine(), "kernel": "6.2", "gpus": [{**idle, "name": GPU["device"]}]})
    run.machine = add_record(run.directory, "machine", {**machine(), "kernel": "6.3", "gpus": gpus})
    run.add(training_case(32), TORCH, steady_samples(32, [0.1] * 8), **GPU)
    found = list(disturbances(Evidence([run.finish()], (), WORDS)))
    assert found == [f"GPU 0 ({GPU['device']}) {each}" for each in said]


def test_a_gpu_that_no_trial_could_use_is_said_with_the_answers(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.machine = add_record(run.directory, "machine", {**machine(), "gpus_unused": "Driver Not Loaded"})
    run.add(training_case(16), TORCH, steady_samples(16, [0.1] * 8))
    found = list(disturbances(Evidence([run.finish()], (), WORDS)))
    assert found == ["A GPU of NVIDIA was not used: Driver Not Loaded."]


def test_drifting_steps_are_warned_of(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size, last_s in ((16, 0.12), (32, 0.0899), (64, 0.1)):
        run.add(training_case(batch_size), TORCH, steady_samples(batch_size, [0.1, 0.1, 0.1, 0.1, last_s, last_s]))
    (warning,) = telemetry_warnings(Evidence([run.finish()], (), WORDS))
    assert warning.startswith("In 2 of 3 trials the time of a step still changed during the measurement:")
    assert warning.endswith("1 became slower, 1 faster, by 20 % at most.")


def test_steady_trials_are_not_warned_of(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TORCH, steady_samples(16, [0.1] * 8))
    assert list(telemetry_warnings(Evidence([run.finish()], (), WORDS))) == []
