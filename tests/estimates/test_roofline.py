"""Fractions of a device's limits, against rooflines drawn by hand."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.synthetic_run import (
    TF,
    TORCH,
    SyntheticRun,
    add_record,
    conv2d_case,
    limits_case,
    steady_samples,
    training_case,
    work,
)
from tests.words import WORDS
from tsuishi.estimates import roofline as limits
from tsuishi.estimates.roofline import Device, Limit, roofline
from tsuishi.estimates.timed_blocks import TimedBlock, work_estimates
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.verdicts.evidence import Evidence

# 100 FLOP/s in FP32, 1000 in FP16, 10 B/s.
MEMORY = ("bytes_per_s", "")
DEVICE = {
    ("flops_per_s", "fp32"): Limit(100.0, 90.0, 120.0), ("flops_per_s", "fp16"): Limit(1000.0), MEMORY: Limit(10.0)
}  # fmt: skip


def rates(
    phases: dict[str, list[TimedBlock]], metrics: dict[str, float], batch_size: int | None = None
) -> dict[str, Any]:
    return {one.quantity: one for one in work_estimates(phases, metrics, batch_size)}


def test_a_rate_of_the_machine_itself_is_no_limit_of_a_device() -> None:
    """Reading a file or memory is neither a product nor a copy: no device gets limits, or a row without any, by it."""
    row = {"machine_record": "m", "device": "cpu", "precision": "", "quantity": "bytes_per_s", "value": 1e9}
    found = limits.measured_limits({**row, "operation": name} for name in ("storage_read", "host_memory_read"))
    assert found == {}


def test_rates_are_the_work_of_all_steps_over_all_seconds() -> None:
    blocks = [TimedBlock(10, 0, 1.0), TimedBlock(10, 0, 2.0), TimedBlock(10, 0, 6.0)]
    found = rates({"warm_up": [TimedBlock(1, 0, 9.0)], "measure": blocks}, {"flops": 300.0, "bytes": 30.0})
    assert found["flops_per_s"].value == pytest.approx(30 * 300 / 9)
    assert (found["flops_per_s"].low, found["flops_per_s"].high) == (pytest.approx(1000), pytest.approx(2250))
    assert found["bytes_per_s"].value == pytest.approx(30 * 30 / 9)
    assert found["bytes_per_s"].derived


def test_tokens_are_a_rate_like_other_work() -> None:
    found = rates({"measure": [TimedBlock(10, 0, 2.0), TimedBlock(10, 0, 6.0)]}, {"tokens": 512.0})
    assert {name: one.value for name, one in found.items()} == {"throughput_tokens_per_s": 512 * 20 / 8}


@pytest.mark.parametrize("phase", ["measure", "compute", "later_runs"])
def test_the_work_is_that_of_the_phase_that_works(phase: str) -> None:
    found = rates({"host_to_device": [TimedBlock(1, 0, 9.0)], phase: [TimedBlock(2, 0, 1.0)]}, {"flops": 5.0})
    assert {name: one.value for name, one in found.items()} == {"flops_per_s": 10.0}


def test_an_epoch_is_as_much_work_as_its_images_and_the_first_is_left_out() -> None:
    epochs = [TimedBlock(3, 250, 9.0), TimedBlock(3, 250, 1.0), TimedBlock(3, 250, 1.0)]
    assert rates({"epoch": epochs}, {"flops": 100.0}, batch_size=100)["flops_per_s"].value == pytest.approx(250)


def test_distinct_images_count_once() -> None:
    metrics = {"examples_per_step": 512.0, "distinct_images_per_step": 128.0}
    found = rates({"measure": [TimedBlock(10, 5120, 2.0)]}, metrics)
    assert found["distinct_images_per_s"].value == pytest.approx(640)


def test_without_work_or_time_there_is_no_rate() -> None:
    assert not rates({"measure": [TimedBlock(10, 0, 1.0)]}, {"loss": 1.0})
    assert not rates({"first_run": [TimedBlock(1, 0, 1.0)]}, {"flops": 1.0})
    assert not rates({"measure": [TimedBlock(10, 0, 0.0)]}, {"flops": 1.0})


@pytest.mark.parametrize(
    ("flops_per_s", "bytes_per_s", "precision", "devices", "value", "bound"),
    [
        (50.0, 1.0, "fp32", 1, 0.5, "arithmetic"),
        (50.0, 8.0, "fp32", 1, 0.8, "memory"),
        (50.0, 1.0, "fp32", 2, 0.25, "arithmetic"),
        (50.0, 0.1, "amp_fp16", 1, 0.05, "arithmetic"),
        (50.0, 1.0, "", 1, 0.5, "arithmetic"),  # a suite without the axis computes in FP32
        (250.0, 1.0, "fp32", 1, 2.5, "arithmetic"),  # above the limit, and shown so
    ],
)
def test_the_fraction_is_of_the_nearer_limit(
    flops_per_s: float, bytes_per_s: float, precision: str, devices: int, value: float, bound: str
) -> None:
    found = roofline({"flops_per_s": flops_per_s, "bytes_per_s": bytes_per_s}, DEVICE, precision, devices)
    assert found == (pytest.approx(value), bound)


def test_without_a_limit_for_the_precision_or_the_memory_there_is_no_fraction() -> None:
    assert roofline({"flops_per_s": 1.0, "bytes_per_s": 1.0}, DEVICE, "bf16", 1) is None
    assert roofline({"flops_per_s": 1.0, "bytes_per_s": 1.0}, {("flops_per_s", "fp32"): Limit(1.0)}, "fp32", 1) is None
    assert roofline({"flops_per_s": 1.0}, {("flops_per_s", "fp32"): Limit(4.0)}, "fp32", 1) == (0.25, "arithmetic")


def add_limits(run: SyntheticRun) -> None:
    """In two environments; the better of each counts: 200 FLOP/s, 40 B/s."""
    for environment, flops, moved in ((TF, 200.0, 10.0), (TORCH, 100.0, 40.0)):
        blocks = [("measure", index, 1, 0, 1.0) for index in range(4)]
        product = limits_case("matmul", precision="fp32", matrix_size=8)
        run.add(product, environment, blocks, metrics=work(flops, 1e6))
        run.add(limits_case("memory_copy", buffer_mib=1), environment, blocks, metrics=work(moved=moved))
        run.add(limits_case("host_to_device", buffer_mib=1), environment, blocks, metrics=work(moved=1e9))


def test_limits_are_the_best_of_all_environments_on_the_machine(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_limits(run)
    assert Evidence([run.finish()], (), WORDS).limits == {
        Device(run.machine, "cpu"): {("flops_per_s", "fp32"): Limit(200.0), MEMORY: Limit(40.0)}
    }


@pytest.mark.parametrize("trials", [3, 12])
def test_a_limit_grows_neither_with_the_number_of_trials_nor_with_that_of_cases(trials: int) -> None:
    """Twelve cases that reach 100 FLOP/s, with a scatter of 3 %: the largest trial is 107, the largest mean 103."""
    random, misses, found = np.random.default_rng(trials), 0, []
    for _ in range(400):
        rows = [
            {"machine_record": "m", "device": "cpu", "operation": "matmul", "quantity": "flops_per_s", "run_id": "r",
             "precision": "fp32", "case_id": str(case), "column": "e", "repetition": trial,
             "value": 100.0 * math.exp(random.normal(0, 0.03))}
            for case in range(12) for trial in range(trials)
        ]  # fmt: skip
        value, low, high = limits.measured_limits(rows)[Device("m", "cpu")]["flops_per_s", "fp32"]
        assert low is not None
        assert high is not None
        found.append(value)
        misses += not low <= 100 <= high
    assert np.mean(found) == pytest.approx(100, rel=0.003)
    assert misses / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def fractions(run: SyntheticRun, suite: str = "multi_gpu_scaling") -> list[Any]:
    evidence = Evidence([run.finish()], (), WORDS)
    cases = evidence.cases[(evidence.cases["quantity"] == "fraction_of_limit") & (evidence.cases["suite"] == suite)]
    return list(cases.itertuples())


def test_a_training_row_has_its_fraction_with_the_spread_of_its_blocks(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_limits(run)
    samples = steady_samples(16, [0.5, 1.0, 1.0, 2.0])
    run.add(training_case(16), TORCH, samples, metrics=work(45.0, 1.0))
    (row,) = fractions(run)
    # 40 steps of 45 FLOP in 45 s against 200 FLOP/s.
    assert row.estimate == pytest.approx(0.2)
    assert (row.low, row.high) == (pytest.approx(45 / 200 * 0.875), pytest.approx(45 / 200 * 1.25))
    assert (row.unit, row.spread_kind, row.blocks) == ("1", "blocks", 4)


def test_real_devices_add_up_and_simulated_ones_are_one(tmp_path: Path) -> None:
    for simulated, value in ((True, 0.225), (False, 0.1125)):
        run = SyntheticRun(tmp_path / str(simulated))
        add_limits(run)
        case = training_case(16, strategy="mirrored", devices=2)
        run.add(case, TF, steady_samples(16, [1.0] * 4), metrics=work(45.0, 1.0), simulated=simulated)
        assert fractions(run)[0].estimate == pytest.approx(value)


def test_limits_of_another_machine_are_no_limits(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_limits(run)
    run.machine = add_record(run.directory, "machine", {"cpu": {"model": "Other"}, "gpus": []})
    run.add(training_case(16), TORCH, steady_samples(16, [1.0] * 4), metrics=work(45.0, 1.0))
    assert fractions(run) == []


def test_the_view_says_which_limit_and_where_none_was_measured(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_limits(run)
    run.add(training_case(16), TORCH, steady_samples(16, [1.0] * 4), metrics=work(45.0, 30.0))
    run.add(training_case(16, precision="amp_bf16"), TORCH, steady_samples(16, [1.0] * 4), metrics=work(45.0, 30.0))
    suite_cases = SuiteCases(Evidence([run.finish()], (), WORDS), "multi_gpu_scaling", "steady")
    cells = [suite_cases.cell(case_id, TORCH, "fraction_of_limit") for case_id in suite_cases.case_ids]
    assert sorted((cell.text, cell.notes[-1:]) for cell in cells) == [("0.750", ("of memory",)), ("not measured", ())]
    rows = [row for row in suite_cases.rows() if row["quantity"] == "fraction_of_limit"]
    assert [(row["estimate"], row["bound"]) for row in rows] == [(0.75, "memory")]


def test_literal_runs_of_a_convolution_have_a_fraction_too(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_limits(run)
    samples = [("first_run", 0, 1, 840, 9.0), *[("later_runs", index, 1, 840, 0.5) for index in range(3)]]
    run.add(conv2d_case(), TF, samples, metrics=work(150.0, 1.0))
    (row,) = fractions(run, "conv2d")
    assert row.estimate == pytest.approx(1.5)


def test_the_limits_are_rows_of_a_file() -> None:
    rows = limits.rows({Device("m", "cpu"): DEVICE})
    names = ("machine_record", "device", "quantity", "precision", "value", "low", "high")
    assert [[row.get(name) for name in names] for row in rows] == [
        ["m", "cpu", "flops_per_s", "fp32", 100.0, 90.0, 120.0],
        ["m", "cpu", "flops_per_s", "fp16", 1000.0, None, None],
        ["m", "cpu", "bytes_per_s", "", 10.0, None, None],
    ]
