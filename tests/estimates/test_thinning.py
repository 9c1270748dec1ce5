"""What telemetry says of a trial's GPUs, what of it is shown, and what has drifted: against arithmetic by hand."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.synthetic_run import (
    TF,
    TORCH,
    SyntheticRun,
    add_record,
    machine,
    steady_samples,
    training_case,
)
from tests.words import WORDS
from tsuishi.estimates import drift
from tsuishi.estimates.samples import trial_estimates
from tsuishi.estimates.thinning import LEAST_BINS, MOST_BINS, overview
from tsuishi.results.frames import Results, read_runs

TWO_GPUS = [{"index": 0, "name": "A", "memory_mib": 4000.0}, {"index": 3, "name": "B", "memory_mib": 8000.0}]


def run_on(tmp_path: Path, gpus: list[dict[str, Any]]) -> SyntheticRun:
    run = SyntheticRun(tmp_path / "run")
    run.machine = add_record(run.directory, "machine", {**machine(), "gpus": gpus})
    return run


def tick(second: float, device: str, phase: str = "measure", **values: Any) -> dict[str, Any]:
    return {"elapsed_s": second, "device": device, "phase": phase, **values}


def of_gpu(second: float, device: str, load: float, power_w: float, memory_mib: float, **more: Any) -> dict[str, Any]:
    values = {"utilisation_percent": load, "power_w": power_w, "memory_used_mib": memory_mib}
    return tick(second, device, **{**values, **more})


def quantities(results: Results) -> dict[str, float]:
    found = trial_estimates(results, {})
    return dict(zip(found["quantity"], found["value"], strict=True))


def test_gpus_are_numbered_in_the_order_of_the_trials_devices_over_the_measured_phases(tmp_path: Path) -> None:
    ticks = [
        tick(0.0, "host", utilisation_percent=99.0, process_memory_mib=7.0),
        of_gpu(0.0, "gpu0", 1.0, 1.0, 3900.0, phase="warm_up"),
        of_gpu(1.0, "gpu3", 40.0, 100.0, 1000.0),
        of_gpu(2.0, "gpu3", 20.0, 120.0, 1200.0),
        of_gpu(1.0, "gpu0", 80.0, 200.0, 2000.0),
        of_gpu(2.0, "gpu0", 100.0, 240.0, 3000.0),
        of_gpu(3.0, "gpu0", 0.0, 1.0, 3900.0, phase=""),
    ]
    run = run_on(tmp_path, TWO_GPUS)
    run.add(training_case(16, devices=2), TORCH, steady_samples(16, [0.1] * 4), telemetry=ticks, energy_j=320.0)
    found = quantities(read_runs([run.finish()], WORDS))
    assert (found["gpu0_utilisation_percent"], found["gpu1_utilisation_percent"]) == (90.0, 30.0)
    assert (found["gpu0_power_w"], found["gpu1_power_w"]) == (220.0, 110.0)
    assert (found["gpu0_memory_mib"], found["gpu1_memory_mib"]) == (3000.0, 1200.0)
    assert found["gpu_utilisation_percent"] == 60.0
    assert found["gpu_imbalance"] == pytest.approx((90 - 30) / 60)
    assert found["peak_gpu_memory_mib"] == 4200.0
    # 1200 of 8000 MiB is less than 3000 of 4000.
    assert found["least_gpu_memory_share"] == pytest.approx(0.15)
    # Four blocks of ten steps of 16 images; first and second step are not among the measured phases.
    assert found["energy_per_image_j"] == pytest.approx(320.0 / 640)


def test_readings_count_by_the_time_that_they_stand_for(tmp_path: Path) -> None:
    """Ten readings a second at first, then one: a mean over readings would be that of the beginning."""
    loads = [(1.0, "warm_up", 99.0), *[(1.0 + number / 10, "measure", 10.0) for number in range(1, 11)]]
    loads += [(float(second), "measure", 90.0) for second in range(3, 17)]
    ticks = [of_gpu(at, "gpu0", load, 2 * load, 1.0, phase=phase) for at, phase, load in loads]
    run = run_on(tmp_path, TWO_GPUS)
    run.add(training_case(16), TORCH, steady_samples(16, [0.1] * 4), telemetry=ticks)
    results = read_runs([run.finish()], WORDS)
    found = quantities(results)
    # One second at 10 %, 14 at 90 %.
    assert found["gpu0_utilisation_percent"] == pytest.approx((10 + 14 * 90) / 15)
    assert found["gpu0_power_w"] == pytest.approx(2 * (10 + 14 * 90) / 15)
    (series,) = overview(results, 40 + 3 * LEAST_BINS)
    assert series.step_s == 2.0
    # The second bin has the last close reading, which stands for 0.1 s, and one that stands for a second.
    assert series.devices["gpu0"]["utilisation_percent"][1] == pytest.approx((0.1 * 10 + 90) / 1.1, abs=0.01)


@pytest.mark.parametrize(
    ("joules", "power_w"),
    [
        ((0.0, 100.0, 400.0, 700.0), 300.0),  # counted: 300 W in the phase
        (("", "", "", ""), 150.0),  # not counted: as the driver says it, in the first second the mean of that before
        ((900.0, 1000.0, 50.0, 350.0), 225.0),  # the counter was reset: that second as the driver says it
    ],
)
def test_power_is_the_energy_over_the_time_where_a_gpu_counts_it(
    tmp_path: Path, joules: tuple[float, ...], power_w: float
) -> None:
    said = [("", 0.0, 60.0), ("warm_up", 1.0, 100.0), ("measure", 2.0, 150.0), ("measure", 3.0, 150.0)]
    ticks = [
        of_gpu(at, "gpu0", 99.0, watts, 1.0, phase=phase, energy_j=counted, sm_clock_mhz=1410.0)
        for (phase, at, watts), counted in zip(said, joules, strict=True)
    ]
    run = run_on(tmp_path, TWO_GPUS)
    run.add(training_case(16), TORCH, steady_samples(16, [0.1] * 4), telemetry=ticks)
    found = quantities(read_runs([run.finish()], WORDS))
    assert found["gpu0_power_w"] == pytest.approx(power_w)
    assert found["gpu_sm_clock_mhz"] == 1410.0


def test_a_share_of_memory_is_of_what_the_driver_leaves(tmp_path: Path) -> None:
    run = run_on(tmp_path, [{"index": 0, "name": "A100", "memory_mib": 40960.0, "memory_reserved_mib": 960.0}])
    ticks = [of_gpu(1.0, "gpu0", 1.0, 1.0, 20000.0)]
    run.add(training_case(16), TORCH, steady_samples(16, [0.1] * 4), telemetry=ticks)
    assert quantities(read_runs([run.finish()], WORDS))["least_gpu_memory_share"] == 0.5


def test_their_units_are_known(tmp_path: Path) -> None:
    run = run_on(tmp_path, TWO_GPUS)
    ticks = [of_gpu(1.0, "gpu0", 1.0, 1.0, 1.0)]
    run.add(training_case(16), TORCH, steady_samples(16, [0.1] * 4), telemetry=ticks, energy_j=1.0)
    found = trial_estimates(read_runs([run.finish()], WORDS), {})
    units = dict(zip(found["quantity"], found["unit"], strict=True))
    assert {name: units[name] for name in units if "gpu" in name or "energy" in name} == {
        "gpu0_utilisation_percent": "%", "gpu0_power_w": "W", "gpu0_memory_mib": "MiB", "gpu_utilisation_percent": "%",
        "peak_gpu_memory_mib": "MiB", "least_gpu_memory_share": "1", "energy_per_image_j": "J",
    }  # fmt: skip


def test_one_gpu_has_no_imbalance_and_what_was_not_sampled_is_not_there(tmp_path: Path) -> None:
    run = run_on(tmp_path, [{"index": 0, "name": "A", "memory_mib": None}])
    run.add(training_case(16), TORCH, telemetry=[tick(1.0, "gpu0", utilisation_percent=50.0)])
    assert quantities(read_runs([run.finish()], WORDS)) == {
        "gpu0_utilisation_percent": 50.0,
        "gpu_utilisation_percent": 50.0,
    }


def test_a_trial_that_only_saw_the_host_has_none(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TORCH, telemetry=[tick(1.0, "host", utilisation_percent=50.0)])
    assert quantities(read_runs([run.finish()], WORDS)) == {}


def test_energy_without_images_is_of_no_image(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TORCH, [("measure", 0, 10, 0, 1.0)], energy_j=5.0)
    assert "energy_per_image_j" not in quantities(read_runs([run.finish()], WORDS))


def host_ticks(count: int, every_s: float = 1.0) -> list[dict[str, Any]]:
    loads = [float(number) for number in range(count)]
    return [tick(every_s * load, "host", utilisation_percent=load, process_memory_mib=2 * load) for load in loads]


def test_a_short_trial_is_shown_tick_by_tick(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    ticks = [*host_ticks(4), of_gpu(1.0, "gpu0", 66.6666, 1234.56, 0.0)]
    run.add(training_case(16), TORCH, telemetry=ticks)
    (series,) = overview(read_runs([run.finish()], WORDS))
    assert (series.step_s, series.end_s) == (1.0, 3.0)
    # The last tick ends the trial, and is in its last bin.
    assert series.devices["host"] == {"utilisation_percent": [0, 1, 2.5], "memory_mib": [0, 2, 5]}
    assert series.devices["gpu0"] == {
        "utilisation_percent": [None, 66.67, None],
        "power_w": [None, 1235, None],
        "memory_mib": [None, 0, None],
    }
    assert list(series.devices) == ["host", "gpu0"]


def test_a_long_trial_is_averaged_in_equal_bins(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TORCH, telemetry=host_ticks(4 * MOST_BINS + 1, every_s=0.5))
    (series,) = overview(read_runs([run.finish()], WORDS))
    load = series.devices["host"]["utilisation_percent"]
    assert series.step_s == 2.0
    assert len(load) == MOST_BINS
    # Four ticks a bin, of loads 0, 1, 2, 3 and so on.
    assert load[:3] == [1.5, 5.5, 9.5]


@pytest.mark.long
@settings(deadline=None)
@given(values=st.integers(1, 20_000))
def test_all_trials_share_the_room_there_is(large: Results, values: int) -> None:
    shown = overview(large, values)
    weight = sum(40 + sum(len(one) for lists in each.devices.values() for one in lists.values()) for each in shown)
    # A bin more than the width asks for is one that the last tick falls into.
    assert weight <= values
    bins = [len(next(iter(each.devices["host"].values()))) for each in shown]
    assert max(bins, default=0) <= min(bins, default=0) + 1
    repetitions = large.trials["repetition"]
    left_out = repetitions.drop(index=[each.trial for each in shown])
    assert left_out.empty or not shown or left_out.min() >= max(repetitions[each.trial] for each in shown)
    assert len(shown) == len(large.trials) or values < 12 * (40 + 2 * LEAST_BINS)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Twelve trials: three cases, each four times."""
    run = SyntheticRun(tmp_path_factory.mktemp("telemetry") / "run")
    for repetition in range(1, 5):
        for batch_size in (16, 32, 64):
            run.add(training_case(batch_size), TORCH, repetition=repetition, telemetry=host_ticks(300))
    return read_runs([run.finish()], WORDS)


def test_where_nothing_was_sampled_there_is_nothing_to_show(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TORCH)
    assert overview(read_runs([run.finish()], WORDS)) == []


def test_clocks_held_back_count_in_measured_phases_of_trials_that_count(tmp_path: Path) -> None:
    run = run_on(tmp_path, TWO_GPUS)
    reasons = ["sw_power_cap+hw_slowdown", "", "sw_power_cap", ""]
    ticks = [of_gpu(float(at), "gpu0", 1.0, 1.0, 1.0, throttle_reasons=one) for at, one in enumerate(reasons)]
    ticks.append(of_gpu(9.0, "gpu0", 1.0, 1.0, 1.0, phase="warm_up", throttle_reasons="sync_boost"))
    run.add(training_case(16), TORCH, telemetry=ticks)
    run.add(training_case(32), TORCH, telemetry=ticks[1:2])
    run.add(training_case(64), TORCH, telemetry=ticks, status="failed", reason="exit code 1")
    measured = drift.gpu_ticks(read_runs([run.finish()], WORDS))
    (throttled,) = drift.throttled(measured)
    assert throttled == 0.5
    assert drift.throttle_reasons_in(measured) == ["hw_slowdown", "sw_power_cap"]


def clocks(*mhz: float) -> list[dict[str, Any]]:
    return [of_gpu(float(at), "gpu0", 1.0, 1.0, 1.0, sm_clock_mhz=one) for at, one in enumerate(mhz)]


def test_close_readings_at_the_beginning_are_no_third_of_a_measurement(tmp_path: Path) -> None:
    """A clock that is high for the first second of thirty has not drifted; one that falls after ten seconds has."""
    close = [number / 10 for number in range(11)]
    times = [*close, *[float(second) for second in range(2, 31)]]
    run = run_on(tmp_path, TWO_GPUS)
    for batch_size, high_s in ((16, 1.0), (32, 10.0)):
        ticks = [of_gpu(at, "gpu0", 1.0, 1.0, 1.0, sm_clock_mhz=2000 if at <= high_s else 1500) for at in times]
        run.add(training_case(batch_size), TORCH, telemetry=ticks)
    (changed,) = drift.clock_drifts(drift.gpu_ticks(read_runs([run.finish()], WORDS)))
    assert changed == pytest.approx(-0.25)


def test_clocks_held_back_in_close_readings_count_by_their_time(tmp_path: Path) -> None:
    times = [*[number / 10 for number in range(11)], *[float(second) for second in range(2, 11)]]
    ticks = [of_gpu(at, "gpu0", 1.0, 1.0, 1.0, throttle_reasons="sync_boost" if at <= 1.0 else "") for at in times]
    run = run_on(tmp_path, TWO_GPUS)
    run.add(training_case(16), TORCH, telemetry=ticks)
    (share,) = drift.throttled(drift.gpu_ticks(read_runs([run.finish()], WORDS)))
    assert share == pytest.approx(0.1, abs=0.01)


def test_a_clock_has_drifted_where_its_last_third_differs_from_its_first(tmp_path: Path) -> None:
    run = run_on(tmp_path, TWO_GPUS)
    run.add(training_case(16), TORCH, telemetry=clocks(2000, 2000, 1900, 1950, 1800, 1800))
    run.add(training_case(32), TORCH, telemetry=clocks(2000, 2000, 500, 500, 1990, 1990))
    run.add(training_case(64), TORCH, telemetry=clocks(2000, 1000))
    (changed,) = drift.clock_drifts(drift.gpu_ticks(read_runs([run.finish()], WORDS)))
    assert changed == pytest.approx(-0.1)


@pytest.mark.parametrize("times", [(0, 1, 2, 5, 5), (5, 5, 8, 9, 10), (5, 5, 5)])
def test_readings_of_one_moment_are_no_third_of_a_measurement(times: tuple[int, ...], tmp_path: Path) -> None:
    run = run_on(tmp_path, TWO_GPUS)
    ticks = [of_gpu(float(at), "gpu0", 1.0, 1.0, 1.0, sm_clock_mhz=1500 + at) for at in times]
    run.add(training_case(16), TORCH, telemetry=ticks)
    assert drift.clock_drifts(drift.gpu_ticks(read_runs([run.finish()], WORDS))).empty


def test_steps_have_drifted_where_the_last_blocks_differ_from_the_first(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TORCH, steady_samples(16, [0.1, 0.1, 0.2, 0.2, 0.12, 0.12]))
    run.add(training_case(32), TORCH, steady_samples(32, [0.1, 0.1, 0.2, 0.2, 0.103, 0.103]))
    run.add(training_case(64), TORCH, steady_samples(64, [0.1, 0.1, 0.2, 0.2, 0.5]))
    # A first epoch is slow for reasons of its own.
    epochs = [("epoch", 0, 10, 160, 9.0), *[("epoch", index, 10, 160, 1.0) for index in range(1, 7)]]
    run.add(training_case(128, protocol="literal"), TF, epochs)
    found = drift.step_drifts(read_runs([run.finish()], WORDS))
    assert found.tolist() == pytest.approx([0.2])


def test_a_run_without_telemetry_has_not_drifted(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TORCH)
    results = read_runs([run.finish()], WORDS)
    ticks = drift.gpu_ticks(results)
    found: list[pd.Series] = [drift.throttled(ticks), drift.clock_drifts(ticks), drift.step_drifts(results)]
    assert [one.tolist() for one in found] == [[], [], []]
