"""Frames and estimates: what a run says, against arithmetic done by hand."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.synthetic_run import (
    TF,
    TORCH,
    SyntheticRun,
    add_record,
    conv2d_case,
    steady_samples,
    training_case,
    write_example,
)
from tests.words import TRIAL_COLUMNS, WORDS
from tsuishi.base import printable
from tsuishi.base.errors import UserError
from tsuishi.estimates.samples import case_estimates, trial_estimates
from tsuishi.estimates.timed_blocks import Described, TimedBlock, phase_estimates
from tsuishi.results.frames import outcomes, read_runs
from tsuishi.specs.source import Epochs

WHOLE = Epochs(case={}, images=50_000, count=100)


DESCRIBED = Described(WORDS, "s")


def estimate(phases: dict[str, list[TimedBlock]], quantity: str, batch_size: int | None = 100) -> Any:
    return {one.quantity: one for one in phase_estimates(phases, batch_size, WHOLE, DESCRIBED)}[quantity]


# Three blocks of 10 steps of 100 images at 0.1, 0.2 and 0.6 s a step.
MEASURE = {"measure": [TimedBlock(10, 1000, 1.0), TimedBlock(10, 1000, 2.0), TimedBlock(10, 1000, 6.0)]}


def test_a_step_is_the_total_time_of_the_blocks_over_their_steps() -> None:
    found = estimate(MEASURE, "step_s")
    # 9 s for 30 steps: the median of the blocks, 0.2 s, would not see the slow block.
    assert found.value == pytest.approx(0.3)
    assert (found.low, found.high) == (pytest.approx(0.15), pytest.approx(0.4))


def test_throughput_is_images_over_seconds_and_no_average_of_rates() -> None:
    # 3000 images in 9 s; the mean of the rates 1000, 500 and 166.7 would be 555.6.
    assert estimate(MEASURE, "throughput_images_per_s").value == pytest.approx(3000 / 9)


def test_epochs_are_derived_from_steps_and_marked() -> None:
    phases = {"first_step": [TimedBlock(1, 100, 3.0)], "second_step": [TimedBlock(1, 100, 0.5)], **MEASURE}
    # ceil(50000 / 100) = 500 steps of 0.3 s; the first epoch has its own first two steps.
    median, first = estimate(phases, "median_epoch_s"), estimate(phases, "first_epoch_s")
    assert (median.value, median.derived) == (pytest.approx(150.0), True)
    assert (first.value, first.derived) == (pytest.approx(3.5 + 498 * 0.3), True)


def test_the_last_batch_of_a_derived_epoch_counts_by_its_images() -> None:
    assert estimate(MEASURE, "median_epoch_s", batch_size=30000).value == pytest.approx(50_000 / 30_000 * 0.3)


def test_what_no_source_trained_has_no_epochs() -> None:
    assert not {one.quantity for one in phase_estimates(MEASURE, 100, None, DESCRIBED)} & {"median_epoch_s"}


def test_whole_epochs_are_taken_as_they_are() -> None:
    phases = {"epoch": [TimedBlock(391, 50000, 20.0), TimedBlock(391, 50000, 14.0), TimedBlock(391, 50000, 16.0)]}
    found = {one.quantity: one for one in phase_estimates(phases, 128, WHOLE, DESCRIBED)}
    assert (found["first_epoch_s"].value, found["first_epoch_s"].derived) == (20.0, False)
    assert (found["median_epoch_s"].value, found["median_epoch_s"].derived) == (pytest.approx(15.0), False)
    assert found["total_s"].value == pytest.approx(20 + 99 * 15)
    assert found["total_s"].derived
    assert found["throughput_images_per_s"].value == pytest.approx(100000 / 30)


def test_shortened_epochs_are_brought_to_50000_images_by_their_later_steps() -> None:
    phases = {"epoch": [TimedBlock(20, 2560, 8.0), TimedBlock(20, 2560, 6.0), TimedBlock(20, 2560, 6.4)]}
    # 391 steps at a median of 0.31 s; the first epoch's surplus is paid once, not 20 times.
    assert estimate(phases, "median_epoch_s", 128).value == pytest.approx(391 * 0.31)
    assert estimate(phases, "first_epoch_s", 128).value == pytest.approx(8.0 + 371 * 0.31)
    assert estimate(phases, "first_epoch_s", 128).derived


def test_epochs_of_which_no_source_says_how_long_they_are_stay_as_they_were_run() -> None:
    phases = {"epoch": [TimedBlock(20, 2560, 8.0), TimedBlock(20, 2560, 6.0), TimedBlock(20, 2560, 6.4)]}
    found = {one.quantity: one for one in phase_estimates(phases, 128, None, DESCRIBED)}
    assert (found["first_epoch_s"].value, found["first_epoch_s"].derived) == (8.0, False)
    assert (found["median_epoch_s"].value, found["median_epoch_s"].derived) == (pytest.approx(6.2), False)
    assert "total_s" not in found


def test_without_the_number_of_epochs_there_is_no_total() -> None:
    phases = {"epoch": [TimedBlock(20, 2560, 8.0), TimedBlock(20, 2560, 6.0)]}
    whole = Epochs(case={}, images=60_000)
    found = {one.quantity: one.value for one in phase_estimates(phases, 128, whole, DESCRIBED)}
    assert found["median_epoch_s"] == pytest.approx(469 * 0.3)
    assert "total_s" not in found


@given(st.lists(st.floats(1e-6, 1e4), min_size=1, max_size=30))
def test_an_estimate_lies_among_its_blocks_and_so_do_their_quartiles(seconds: list[float]) -> None:
    found = estimate({"compute": [TimedBlock(3, 9, s) for s in seconds]}, "compute_s", None)
    least, most = min(seconds) / 3, max(seconds) / 3
    assert least * (1 - 1e-12) <= found.value <= most * (1 + 1e-12)
    assert found.low is None or least <= found.low <= found.high <= most


def test_tables_have_the_schemas_columns_and_types(tmp_path: Path) -> None:
    results = read_runs([write_example(tmp_path / "run")], WORDS)
    assert [name for name in results.trials if name not in ("run_id", "column", "machine")] == TRIAL_COLUMNS
    assert results.samples["seconds"].dtype == "float64"
    assert results.samples["steps"].dtype == "Int64"
    assert results.trials["synthetic"].dtype == "boolean"


def test_reading_trials_and_reading_the_gathered_tables_is_the_same(tmp_path: Path) -> None:
    run = write_example(tmp_path / "run")
    gathered = pd.read_csv(run.path / "samples.csv")
    assert gathered["seconds"].tolist() == read_runs([run], WORDS).samples["seconds"].tolist()


def test_case_estimates_take_the_geometric_mean_and_the_range_of_trials(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for repetition, step_s in enumerate((0.3, 0.1, 0.2), start=1):
        run.add(training_case(16), TF, steady_samples(16, [step_s] * 4), repetition)
    (row,) = _cases(run, "step_s")
    assert (row.estimate, row.low, row.high, row.n, row.spread_kind) == (
        pytest.approx(0.006 ** (1 / 3)), pytest.approx(0.1), pytest.approx(0.3), 3, "trials",
    )  # fmt: skip


def test_one_trial_has_the_quartiles_of_its_blocks_and_one_sample_has_nothing(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, steady_samples(16, [0.1, 0.2, 0.3, 0.4, 0.5]))
    (row,) = _cases(run, "step_s")
    assert (row.low, row.high, row.n, row.spread_kind) == (pytest.approx(0.2), pytest.approx(0.4), 1, "blocks")
    (row,) = _cases(run, "first_step_s")
    assert (row.n, row.spread_kind) == (1, "")
    assert pd.isna(row.low)


def test_only_the_last_attempt_counts(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, steady_samples(16, [9.0] * 4), status="interrupted", reason="the machine went off")
    run.add(training_case(16), TF, steady_samples(16, [0.1] * 4), attempt=2)
    (row,) = _cases(run, "step_s")
    assert (row.estimate, row.n) == (pytest.approx(0.1), 1)
    results = read_runs([run.finish()], WORDS)
    assert len(results.trials) == 2
    assert outcomes(results)["status"].tolist() == ["ok"]


def test_a_last_metric_is_the_trials_metric(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, [], metrics=[("test_accuracy", 0.1, "1"), ("test_accuracy", 0.6, "1")])
    (row,) = _cases(run, "accuracy")
    assert (row.estimate, row.unit) == (0.6, "1")


def test_what_was_planned_and_is_not_there_is_missing(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(conv2d_case(), TF, [("first_run", 0, 1, 840, 1.0)])
    run.add_plan(conv2d_case(), TORCH)
    found = outcomes(read_runs([run.finish()], WORDS))
    assert dict(zip(found["column"], found["status"], strict=True)) == {TF: "ok", TORCH: "missing"}
    assert "--resume" in found["reason"].iloc[1]
    of_check = SyntheticRun(tmp_path / "check", task="check")
    of_check.add_plan(conv2d_case(), TORCH)
    found = outcomes(read_runs([of_check.finish()], WORDS))
    assert found["reason"].tolist() == ["planned, but the run was stopped before it"]


def test_runs_of_two_machines_stand_side_by_side(tmp_path: Path) -> None:
    first, second = SyntheticRun(tmp_path / "a"), SyntheticRun(tmp_path / "b")
    second.machine = add_record(second.directory, "machine", {"cpu": {"model": "Other", "logical": 4, "physical": 4}})
    for run in (first, second):
        run.add(conv2d_case(), TF, [("first_run", 0, 1, 840, 1.0)])
    results = read_runs([first.finish(), second.finish()], WORDS)
    assert sorted(case_estimates(trial_estimates(results, {}))["column"]) == [
        f"{TF} on machine 1",
        f"{TF} on machine 2",
    ]


def test_a_value_of_the_wrong_type_names_table_and_column(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(conv2d_case(), TF, [("first_run", 0, 1, 840, "fast")])  # type: ignore[list-item]
    with pytest.raises(UserError, match=r"/trials/.*/samples\.csv: column 'seconds' should be of type number"):
        read_runs([run.finish()], WORDS)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain", "plain"),
        ("a\x00b", "a⟨U+0000⟩b"),
        ("\u202egnp.exe", "⟨U+202E⟩gnp.exe"),
        ("\ud800", "⟨U+D800⟩"),
        ("שלום 追試\n", "שלום 追試\n"),
    ],
)
def test_unprintable_characters_become_visible(text: str, seen: str) -> None:
    assert printable.visible({"key": [text]}) == {"key": [seen]}


def _cases(run: SyntheticRun, quantity: str) -> list[Any]:
    found = case_estimates(trial_estimates(read_runs([run.finish()], WORDS), {}))
    return list(found[found["quantity"] == quantity].itertuples())
