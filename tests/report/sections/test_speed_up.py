"""Scaling, against arithmetic done by hand."""

from pathlib import Path
from typing import Any

import pytest

from tests.report.compared import compared, tables
from tests.synthetic_run import TF, SyntheticRun, limits_case, steady_samples, training_case, work
from tsuishi.estimates.scaling import SpeedPoint, scalings
from tsuishi.report.parts.blocks import Chart, View
from tsuishi.report.sections import speed_up


def measured(devices: int, batch_size: int, images_per_s: float, simulated: bool = False, **axes: Any) -> SpeedPoint:
    strategy = "none" if devices == 1 else "mirrored"
    axes = {"model": "cnn10", "strategy": strategy, "devices": devices, "batch_size": batch_size, **axes}
    return SpeedPoint("x", axes, images_per_s, simulated)


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


def over(nodes: int, devices: int, batch_size: int, images_per_s: float) -> SpeedPoint:
    strategy = "none" if devices == 1 else "distributed_data_parallel"
    return measured(devices, batch_size, images_per_s, nodes=nodes, strategy=strategy)


def test_nodes_are_held_against_one_node_with_as_many_devices_each() -> None:
    on_one = [over(1, 1, 64, 100.0), over(1, 4, 128, 300.0), over(1, 4, 256, 360.0)]
    both = [over(2, 8, 256, 612.0), over(2, 2, 128, 150.0)]
    found = [one for one in scalings([*on_one, *both]) if one.nodes > 1]
    held = [(one.kind, one.baseline_devices, one.baseline_batch_size, one.speedup, one.efficiency) for one in found]
    assert held == [
        ("strong", 4, 256, pytest.approx(1.7), pytest.approx(0.85)),
        ("weak", 4, 128, pytest.approx(2.04), pytest.approx(1.02)),
        ("weak", 1, 64, pytest.approx(1.5), pytest.approx(0.75)),
    ]


def test_scaling_over_nodes_has_tables_of_its_own(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(128), TF, steady_samples(128, [1.0] * 4))
    both = training_case(128, strategy="distributed_data_parallel", devices=2, nodes=2)
    run.add(both, TF, steady_samples(128, [0.625] * 4))
    found = tables(speed_up.scaling_view(compared(run)))
    assert [*found] == ["Strong scaling over nodes: the same global batch"]
    (table,) = found.values()
    assert [cell.text for cell in table.rows[0]][1:] == [
        "distributed_data_parallel", "2", "2", "128", "128", "1.60", "0.800"
    ]  # fmt: skip
    assert table.notes[1] == "Efficiency: speed-up ÷ nodes."


def test_the_sum_of_gradients_is_a_share_of_the_step_by_the_fastest_all_reduce_on_the_same_devices(
    tmp_path: Path,
) -> None:
    # 3,000,000 gradients of 4 bytes, two devices: 12 MB at 120 MB/s take 0.1 s of a step of 0.8 s.
    run = SyntheticRun(tmp_path / "run")
    parameters = [("trainable_parameters", 3e6, "1")]
    for case, step_s in (
        (training_case(128), 1.0),
        (training_case(128, strategy="mirrored", devices=2), 0.8),
        (training_case(128, strategy="mirrored", devices=4), 0.5),
    ):
        run.add(case, TF, steady_samples(128, [step_s] * 4), metrics=parameters)
    for buffer_mib, rate in ((8, 80e6), (64, 120e6)):
        case = limits_case("all_reduce", devices=2, buffer_mib=buffer_mib)
        run.add(case, TF, steady_samples(1, [0.5] * 4), metrics=work(moved=rate / 2))
    view = speed_up.scaling_view(compared(run))
    assert [row["summing_share"] for row in view.rows["scaling"]] == [pytest.approx(0.125), None]
    table = tables(view)["Strong scaling: the same global batch"]
    assert [table.columns[-1], *(row[-1].text for row in table.rows)] == ["sum of gradients", "12 %", ""]


def on_two(tmp_path: Path, *batch_sizes: int) -> View:
    """Steps of 1 s on one device and of 0.8 s on two simulated ones, beside what was published."""
    run = SyntheticRun(tmp_path / "two")
    for batch_size in batch_sizes:
        run.add(training_case(batch_size), TF, steady_samples(batch_size, [1.0] * 4))
        both = training_case(batch_size, strategy="mirrored", devices=2)
        run.add(both, TF, steady_samples(batch_size, [0.8] * 4), simulated=True)
    return speed_up.scaling_view(compared(run, published=True))


def test_a_speed_up_of_several_trials_has_an_interval_and_that_of_single_trials_has_none(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for number, (alone, both) in enumerate(((1.0, 0.8), (1.1, 0.75), (0.95, 0.82)), start=1):
        trial: dict[str, Any] = {"repetition": number, "started_at": f"2026-07-0{number}T10:00:00Z"}
        run.add(training_case(128), TF, steady_samples(128, [alone] * 4), **trial)
        case = training_case(128, strategy="mirrored", devices=2)
        run.add(case, TF, steady_samples(128, [both] * 4), simulated=True, **trial)
    view = speed_up.scaling_view(compared(run))
    (row,) = [row for row in view.rows["scaling"] if row["kind"] == "strong"]
    assert row["speedup"] == pytest.approx((1.0 * 1.1 * 0.95 / (0.8 * 0.75 * 0.82)) ** (1 / 3))
    assert 1 < row["low"] < row["speedup"] < row["high"]
    (cells,) = tables(view)["Strong scaling: the same global batch"].rows
    assert cells[-2].notes[0].count(" – ") == 1
    single = on_two(tmp_path, 128)
    ours = [row for row in single.rows["scaling"] if row["series"] == TF]
    assert [(row["low"], row["high"]) for row in ours] == [(None, None)] * len(ours)


def test_simulated_scaling_is_marked_and_published_scaling_stands_beside_it(tmp_path: Path) -> None:
    view = on_two(tmp_path, 128)
    strong = tables(view)["Strong scaling: the same global batch"]
    assert [cell.text for cell in strong.rows[0]] == [TF, "cnn10, mirrored", "2", "128", "128", "1.25", "0.625"]
    assert strong.rows[0][-1].notes == ("simulated",)
    assert strong.notes[-1].endswith("says nothing about GPUs.")
    # cnn10 at 128: 13.90 s an epoch on one GPU, 11.92 s on two.
    cnn10 = [row for row in view.rows["scaling"] if row["model"] == "cnn10"]
    found = {(row["series"], row["kind"], row["batch_size"]): row for row in cnn10}
    assert found["RTX 2080 Ti (published)", "strong", 128]["speedup"] == pytest.approx(13.90 / 11.92)
    assert found["RTX 2080 Ti (published)", "weak", 256]["speedup"] == pytest.approx(13.90 / 9.00)


def test_efficiency_is_drawn_for_each_network_with_the_published_one(tmp_path: Path) -> None:
    charts = [block for block in on_two(tmp_path, 128, 256).blocks if isinstance(block, Chart)]
    assert [chart.name for chart in charts] == [f"multi_gpu_scaling-steady-efficiency-{number}" for number in (1, 2)]
    assert charts[0].caption.startswith("warm, cnn10. Speed-up over the number of devices")
    assert charts[0].caption.endswith("their scaling says nothing about GPUs.")
    drawn = next(iter(charts[0].specification["datasets"].values()))
    ours = [row["efficiency"] for row in drawn if row["series"] == TF and row["kind"].startswith("Strong")]
    assert ours == pytest.approx([0.625, 0.625])
    assert {row["series"] for row in drawn if row["published"]} == {"RTX 2080 Ti (published)"}


def test_one_device_has_no_scaling(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, steady_samples(16, [0.1] * 4))
    assert speed_up.scaling_view(compared(run, published=True)) == View((), {"scaling": []})
