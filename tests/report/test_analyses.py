"""Scaling, load over GPUs and parity, against arithmetic done by hand."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.synthetic_run import TF, TORCH, SyntheticRun, machine, steady_samples, training_case
from tsuishi.analysis import parity
from tsuishi.analysis.evidence import Evidence
from tsuishi.analysis.imbalance import Load, loads
from tsuishi.analysis.scaling import Measured, scalings
from tsuishi.published import read_sources
from tsuishi.report import analyses
from tsuishi.report.comparison import Comparison
from tsuishi.suite import Case

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"


def measured(devices: int, batch_size: int, images_per_s: float, simulated: bool = False, **axes: Any) -> Measured:
    strategy = "none" if devices == 1 else "mirrored"
    axes = {"model": "cnn10", "strategy": strategy, "devices": devices, "batch_size": batch_size, **axes}
    return Measured("x", axes, images_per_s, simulated)


def test_strong_scaling_is_at_the_same_global_batch_and_weak_at_the_same_batch_per_device() -> None:
    found = list(scalings([measured(1, 64, 100.0), measured(1, 128, 120.0), measured(2, 128, 180.0)]))
    assert [(one.kind, one.baseline_batch_size, one.speedup, one.efficiency) for one in found] == [
        ("strong", 128, pytest.approx(1.5), pytest.approx(0.75)),
        ("weak", 64, pytest.approx(1.8), pytest.approx(0.9)),
    ]


def test_a_baseline_differs_in_devices_strategy_and_batch_only() -> None:
    baselines = [measured(1, 64, 100.0, precision="tf32"), measured(1, 64, 100.0, model="wrn28_10"),
                 measured(1, 64, 100.0, strategy="towers")]  # fmt: skip
    assert not list(scalings([*baselines, measured(2, 64, 150.0)]))


def test_a_batch_that_devices_cannot_share_evenly_has_no_weak_scaling() -> None:
    found = list(scalings([measured(1, 42, 100.0), measured(1, 128, 100.0), measured(3, 128, 150.0)]))
    assert [one.kind for one in found] == ["strong"]


def compared(run: SyntheticRun, published: Path | None = None, suite: str = "multi_gpu_scaling") -> Comparison:
    return Comparison(Evidence([run.finish()], read_sources(published) if published else ()), suite, "steady")


def test_simulated_scaling_is_marked_and_published_scaling_stands_beside_it(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(128), TF, steady_samples(128, [1.0] * 4))
    run.add(training_case(128, strategy="mirrored", devices=2), TF, steady_samples(128, [0.8] * 4), simulated=True)
    tables, rows = analyses.analyse(compared(run, PUBLISHED))
    (strong,) = [table for table in tables if table.title == "Strong scaling: the same global batch"]
    assert [cell.text for cell in strong.rows[0]] == [
        TF,
        "cnn10, mirrored",
        "2",
        "128",
        "128",
        "1.250",
        "0.6250",
    ]
    assert strong.rows[0][-1].notes == ("simulated",)
    assert strong.notes[-1].endswith("says nothing about GPUs.")
    # cnn10 at 128: 13.90 s an epoch on one GPU, 11.92 s on two.
    found = {(row["series"], row["kind"], row["batch_size"]): row for row in rows["scaling"] if row["model"] == "cnn10"}
    assert found["RTX 2080 Ti (published)", "strong", 128]["speedup"] == pytest.approx(13.90 / 11.92)
    assert found["RTX 2080 Ti (published)", "weak", 256]["speedup"] == pytest.approx(13.90 / 9.00)


def ticks(**by_device: list[float]) -> pd.DataFrame:
    rows = [
        {"elapsed_s": float(second), "phase": "measure", "device": device, "utilisation_percent": value}
        for device, values in by_device.items()
        for second, value in enumerate(values)
    ]
    return pd.DataFrame([*rows, {**rows[0], "phase": "warm_up", "utilisation_percent": 0.0}]).assign(
        memory_used_mib=lambda frame: frame["device"].map({"gpu0": 3000.0, "gpu1": 1000.0, "host": None})
    )


def test_load_is_the_mean_over_the_measured_phases_and_imbalance_its_range_over_the_mean() -> None:
    utilisation, memory = loads(ticks(gpu0=[80.0, 100.0], gpu1=[20.0, 40.0], host=[50.0, 50.0]), ["measure"])
    assert utilisation == Load("utilisation_percent", {"gpu0": 90.0, "gpu1": 30.0})
    assert utilisation.imbalance == pytest.approx(1.0)
    assert memory.imbalance == pytest.approx(1.0)


def test_idle_gpus_are_even_and_one_gpu_says_nothing() -> None:
    utilisation, _ = loads(ticks(gpu0=[0.0], gpu1=[0.0]), ["measure"])
    assert utilisation.imbalance == 0.0
    assert loads(ticks(gpu0=[80.0], host=[50.0]), ["measure"]) == []
    assert loads(ticks(gpu0=[80.0], gpu1=[50.0]), ["epoch"]) == []


def on_two_gpus(run: SyntheticRun, repetition: int, first: float, second: float) -> None:
    telemetry = [
        {"elapsed_s": tick / 2, "phase": "measure", "device": device, "utilisation_percent": value,
         "memory_used_mib": 1000}
        for tick in range(4)
        for device, value in (("gpu0", first), ("gpu1", second))
    ]  # fmt: skip
    case = training_case(128, strategy="data_parallel", devices=2)
    run.add(case, TORCH, steady_samples(128, [0.1] * 4), repetition, telemetry=telemetry)


def test_the_load_over_two_gpus_is_a_table_with_the_mean_over_trials(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.machine = run.directory.add_record("machine", {**machine(), "gpus": [{"name": "A"}, {"name": "A"}]})
    on_two_gpus(run, 1, 90, 40)
    on_two_gpus(run, 2, 70, 40)
    load = analyses.gpu_loads(Evidence([run.finish()], ()), "multi_gpu_scaling")
    assert load.table is not None
    assert load.table.columns[-3:] == ["gpu0", "gpu1", "imbalance"]
    assert [[cell.text for cell in row[2:]] for row in load.table.rows] == [
        ["utilisation, %", "80.00", "40.00", "0.6667"],
        ["memory used, MiB", "1,000", "1,000", "0.000"],
    ]
    assert {row["device"]: row["mean"] for row in load.rows[:2]} == {"gpu0": 80.0, "gpu1": 40.0}


def test_where_no_trial_had_two_gpus_a_note_says_so_if_it_was_asked_for(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "one")
    run.add(training_case(16), TF, [])
    assert analyses.gpu_loads(Evidence([run.finish()], ()), "multi_gpu_scaling") == (None, "", [])
    run = SyntheticRun(tmp_path / "two")
    run.add(training_case(16, strategy="mirrored", devices=2), TF, [], simulated=True)
    assert "one device says nothing" in analyses.gpu_loads(Evidence([run.finish()], ()), "multi_gpu_scaling").note


def test_the_largest_difference_of_a_loss_is_relative_to_the_largest() -> None:
    assert parity.largest_difference({"a": 2.0, "b": 1.9, "c": 1.95}) == pytest.approx(0.05)
    assert parity.largest_difference({"a": 0.0, "b": 0.0}) == 0.0
    assert parity.largest_difference({"a": 2.0}) is None


def test_parity_is_a_table_of_errors_by_environment_and_of_losses_between_them(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    case = Case.model_validate(
        {"suite": "parity", "protocol": "steady", "model": "cnn10", "strategy": "none", "devices": 1}
    )
    for environment, loss in ((TF, 2.5), (TORCH, 2.4)):
        metrics = [("logits_relative_error", 2e-7, "1"), ("replicas", 1, "1"), ("loss", loss, "1")]
        run.add(case, environment, [], metrics=metrics)
    tables, rows = analyses.analyse(compared(run, suite="parity"))
    assert [[cell.text for cell in row] for row in tables[0].rows] == [["the one case", "2", "0.04000"]]
    assert [(row["model"], row["largest_loss_difference"]) for row in rows["parity"]] == [
        ("cnn10", pytest.approx(0.04))
    ]


def test_a_suite_without_any_of_this_has_no_table_of_it(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, steady_samples(16, [0.1] * 4))
    tables, rows = analyses.analyse(compared(run, PUBLISHED))
    assert tables == []
    assert not any(rows.values())
