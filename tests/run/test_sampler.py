"""Telemetry: energy checked by hand, and a real sampler over real processes and a full disk."""

import contextlib
import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.base.test_exclusion import ROOT
from tests.counting import lines_run
from tests.run.test_runner import wait_for
from tsuishi.machine.gpus import Nvml
from tsuishi.results import schema
from tsuishi.run import sampler as sampler_module
from tsuishi.run.sampler import (
    CLOSE_INTERVAL_S,
    OtherPrograms,
    Sampler,
    energy_j,
    families,
    others_percent,
    resident_mib,
)


class NoGpus(Nvml):
    """A machine without GPUs, whatever the one under this test has."""

    def __init__(self) -> None:
        self._handles = {}
        self.why_not = "none in this test"
        self.unreadable = {}


class OneGpu(NoGpus):
    """One GPU whose counter has run for a long time."""

    def sample(self, devices: Sequence[int] | None = None) -> list[dict[str, Any]]:
        return [{"device": "gpu0", "power_w": 100.5, "energy_j": 987_654_321.123, "throttle_reasons": ""}]


def series(device: str = "gpu0", **columns: Sequence[object]) -> list[dict[str, Any]]:
    """Rows as csv.DictReader gives them."""
    keys = ("elapsed_s", *columns)
    times: Sequence[object] = range(len(next(iter(columns.values()))))
    return [
        {"device": device, **{key: str(value) for key, value in zip(keys, values, strict=True)}}
        for values in zip(times, *columns.values(), strict=True)
    ]


# At 0, 1, 2, 3, 4 s.
COUNTER = series(energy_j=[1000, 1000, 1200, 1500, 1500], power_w=[0, 0, 0, 0, 0])
POWER = series(energy_j=["", "", "", "", ""], power_w=[0, 100, 200, 200, 0])


@pytest.mark.parametrize(
    ("phases", "joules"),
    [
        ([(1.0, 3.0)], 500.0),
        ([(1.5, 2.5)], 100.0 + 150.0),
        ([(1.25, 1.75)], 100.0),
        ([(0.0, 1.0), (2.0, 3.0)], 300.0),
        ([(-5.0, 99.0)], 500.0),
        ([(2.0, 2.0)], 0.0),
        ([(7.0, 9.0)], 0.0),
    ],
)
def test_energy_by_counter_is_the_difference_between_the_phases_ends(
    phases: list[tuple[float, float]], joules: float
) -> None:
    assert energy_j(COUNTER, phases) == (pytest.approx(joules), "counter")


@pytest.mark.parametrize(
    ("phases", "joules"),
    [
        ([(1.0, 3.0)], 150.0 + 200.0),
        ([(0.0, 4.0)], 50.0 + 150.0 + 200.0 + 100.0),
        ([(0.5, 1.0)], (50.0 + 100.0) / 2 * 0.5),
        ([(1.25, 1.75)], (125.0 + 175.0) / 2 * 0.5),
        ([(2.25, 2.75)], 100.0),
        ([(1.5, 3.5)], (150 + 200) / 2 * 0.5 + 200.0 + (200 + 100) / 2 * 0.5),
        ([(0.0, 1.0), (3.0, 4.0)], 150.0),
    ],
)
def test_energy_by_power_is_the_trapezoid_under_the_samples(phases: list[tuple[float, float]], joules: float) -> None:
    assert energy_j(POWER, phases) == (pytest.approx(joules), "power_integral")


def test_all_devices_count_and_the_weaker_source_is_named() -> None:
    second = [{**row, "device": "gpu1"} for row in POWER]
    assert energy_j(COUNTER + second, [(1.0, 3.0)]) == (pytest.approx(500.0 + 350.0), "power_integral")
    third = [{**row, "device": "gpu1"} for row in COUNTER]
    assert energy_j(COUNTER + third, [(1.0, 3.0)]) == (pytest.approx(1000.0), "counter")


def test_one_missing_counter_value_falls_back_to_power() -> None:
    holed = [dict(row) for row in COUNTER]
    holed[2]["energy_j"] = ""
    assert energy_j(holed, [(1.0, 3.0)]) == (pytest.approx(0.0), "power_integral")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        series("host", power_w=[1, 1]),
        series(power_w=["", ""], energy_j=["", ""]),
        COUNTER[:1],
        COUNTER + series("gpu1", power_w=["", ""], energy_j=["", ""]),
    ],
)
def test_without_enough_there_is_no_energy_rather_than_a_part_of_it(rows: list[dict[str, Any]]) -> None:
    assert energy_j(rows, [(0.0, 1.0)]) == (None, "")


@pytest.mark.parametrize("quantity", ["energy_j", "power_w"])
def test_the_work_of_a_phase_does_not_grow_with_the_samples(quantity: str) -> None:
    """Rows are looked at once, whatever the number of phases; by the lines that run, as on every machine."""
    columns: dict[str, Any] = {quantity: range(2000)}
    rows, phases = series("gpu0", **columns), [(float(second), second + 0.5) for second in range(500)]
    alone, together = lines_run(lambda: energy_j(rows, phases[:1])), lines_run(lambda: energy_j(rows, phases))
    assert together < alone + 500 * 100


def test_without_phases_there_is_no_energy() -> None:
    assert energy_j(COUNTER, []) == (None, "")


@given(st.lists(st.floats(0, 1000), min_size=3, max_size=8), st.floats(0, 2), st.floats(0, 2), st.floats(0, 2))
def test_energy_adds_up_over_adjacent_phases(power: list[float], a: float, b: float, c: float) -> None:
    first, second, third = sorted((a, b, c))
    rows = series(power_w=power)
    parts = [energy_j(rows, [(first, second)])[0], energy_j(rows, [(second, third)])[0]]
    whole, _ = energy_j(rows, [(first, third)])
    both, _ = energy_j(rows, [(first, second), (second, third)])
    assert both == pytest.approx(sum(part or 0.0 for part in parts), abs=1e-6)
    # Cutting between two samples adds a corner, which only moves the trapezoid by rounding.
    assert whole == pytest.approx(both, abs=1e-6)


HUNGRY = """
import os, sys, time
block = bytearray(os.urandom(1 << 20)) * 200
print("full", flush=True)
end = time.monotonic() + 30
while time.monotonic() < end:
    sum(range(1000))
"""


def test_a_real_childs_memory_and_load_are_seen_at_the_interval_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.csv"
    # Through a shell that stays, so that the memory is a grandchild's.
    with subprocess.Popen(
        ["/bin/sh", "-c", '"$0" -c "$1"; true', sys.executable, HUNGRY], stdout=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout
            assert child.stdout.readline() == b"full\n"
            with Sampler(path, 0.1, lambda: [child.pid], NoGpus()) as sampler:
                wait_for(lambda: ticks(path) >= 4)
                sampler.phase = "measure"
                wait_for(lambda: path.read_text(encoding="utf-8").count("measure") >= 4)
                sampler.phase = ""
        finally:
            for pid in _family(child.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    assert 200 < (sampler.peak_process_memory_mib or 0.0) < 400
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == [name for name in schema.column_names("telemetry") if name != "trial_id"]
    times = [float(row["elapsed_s"]) for row in found]
    assert times[:-1] == sorted(times[:-1])
    changed = [row["phase"] for row in found].index("measure")
    assert on_the_grid(times[:changed])
    assert on_the_grid(times[changed - 1 : -1])
    assert {row["device"] for row in found} == {"host"}
    assert {row["phase"] for row in found} == {"", "measure"}
    assert all(float(row["process_memory_mib"]) > 200 for row in found)
    assert max(float(row["utilisation_percent"]) for row in found) > 10
    assert {row["power_w"] for row in found} == {""}


BUSY = """
import time
print("ready", flush=True)
input()
end = time.monotonic() + 60
while time.monotonic() < end:
    sum(range(1000))
"""


def test_what_a_trial_computes_is_not_of_others(tmp_path: Path) -> None:
    """The same busy process, once as the trial and once beside a trial that waits: they differ by what it computed."""
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdin
            assert child.stdout
            assert child.stdout.readline() == b"ready\n"
            busy, waits = psutil.Process(child.pid), psutil.Process(os.getppid())
            as_trial, beside = OtherPrograms(), OtherPrograms()
            assert (as_trial.percent([busy]), beside.percent([waits])) == (None, None)
            begun, computed = time.monotonic(), sum(busy.cpu_times()[:2])
            child.stdin.write(b"\n")
            child.stdin.flush()
            time.sleep(1.0)
            mine, others = as_trial.percent([busy]), beside.percent([waits])
            seconds, computed = time.monotonic() - begun, sum(busy.cpu_times()[:2]) - computed
        finally:
            child.kill()
    assert mine is not None
    assert others is not None
    assert others - mine == pytest.approx(100 * computed / seconds / len(os.sched_getaffinity(0)), abs=8)
    assert as_trial.percent([]) is None, "nothing is known of a trial that cannot be seen"


def test_the_share_of_others_is_that_of_the_measured_time() -> None:
    cells = [(0.0, "", ""), (1.0, "", "90"), (2.0, "measure", "0.5"), (4.0, "measure", "2.0"), (5.0, "", "90")]
    rows = [
        {"device": "host", "elapsed_s": str(at), "phase": phase, "others_cpu_percent": share}
        for at, phase, share in cells
    ]
    assert others_percent(rows, ("measure",)) == 1.5
    assert others_percent(rows, ("epoch",)) == (90 + 0.5 + 2 * 2 + 90) / 5, "of the whole trial"
    assert others_percent(rows[:1], ("measure",)) is None
    below = [{**row, "others_cpu_percent": "-1"} for row in rows]
    assert others_percent(below, ("measure",)) == 0.0
    assert others_percent([{**row, "others_cpu_percent": ""} for row in rows], ("measure",)) is None


def test_a_short_phase_has_readings_of_its_own_and_a_quiet_time_has_few(tmp_path: Path) -> None:
    """A process that waits, then computes for half a second: at an interval of a minute, that phase alone is seen."""
    path = tmp_path / "t.csv"
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        assert child.stdout.readline() == b"ready\n"
        before_s = sum(child_times(child.pid))
        with Sampler(path, 60.0, lambda: [child.pid], NoGpus()) as sampler:
            wait_for(lambda: ticks(path) >= 1)
            time.sleep(0.5)
            begin_s = sampler.elapsed_s()
            sampler.phase = "measure"
            child.stdin.write(b"\n")
            child.stdin.flush()
            wait_for(lambda: ticks(path) >= 7)
            end_s = sampler.elapsed_s()
            used_s = sum(child_times(child.pid)) - before_s
            enter(sampler, "")
            time.sleep(0.5)
        child.kill()
    rows = read(path)
    phases = [row["phase"] for row in rows]
    inside = [row for row in rows if row["phase"] == "measure"]
    # At the start, as the phase began, in it, and at the end of all.
    assert phases == ["", "", *["measure"] * len(inside), ""]
    assert len(inside) >= 5
    times_s = [float(row["elapsed_s"]) for row in rows]
    assert begin_s <= times_s[1] + 0.001
    # The end of a phase is a reading of the phase, unless there has just been one.
    assert end_s - CLOSE_INTERVAL_S / 2 <= times_s[-2] + 0.001
    lengths_s = [after - before for before, after in pairwise(times_s[1:-1])]
    loads = [float(row["utilisation_percent"]) for row in inside]
    busy_s = sum(load / 100 * length_s for load, length_s in zip(loads, lengths_s, strict=True))
    # All CPUs together were busy for at least as long as this process, but for clock ticks.
    assert busy_s * os.cpu_count() > 0.7 * used_s  # type: ignore[operator]


def child_times(pid: int) -> tuple[float, float]:
    """The CPU seconds of a process so far: user and system."""
    found = psutil.Process(pid).cpu_times()
    return found.user, found.system


def test_close_readings_end_after_some_seconds_and_are_not_for_phases_that_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler_module, "CLOSE_S", 1.55)
    path = tmp_path / "t.csv"
    with Sampler(path, 60.0, lambda: [], NoGpus()) as sampler:
        for phase, lasts_s in (("epoch", 3.0), ("", 0.2), ("epoch", 1.0), ("", 0.2)):
            enter(sampler, phase)
            time.sleep(lasts_s)
    phases = [row["phase"] for row in read(path)]
    assert len(phases) <= 1 + 1 + 17 + 4
    # The first epoch has close readings and its end, the second its end alone.
    assert phases.count("epoch") >= 4
    assert phases[-3:] == ["", "epoch", ""]


def test_a_workload_that_changes_its_phase_all_the_time_is_not_sampled_all_the_time(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with Sampler(path, 60.0, lambda: [], NoGpus()) as sampler:
        end = time.monotonic() + 1.0
        changes = 0
        while time.monotonic() < end or changes <= 100:
            sampler.phase = f"phase {changes}"
            changes += 1
            time.sleep(0.0005)
    lasted_s = sampler.elapsed_s()
    assert ticks(path) <= 2 + lasted_s / (CLOSE_INTERVAL_S / 2)


def enter(sampler: Sampler, phase: str) -> None:
    """Begin a phase, and wait until the sampler has seen that, however late."""
    sampler.phase = phase
    wait_for(lambda: not sampler._wake.is_set())


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ticks(path: Path) -> int:
    """How many rows a file of telemetry has."""
    return path.read_text(encoding="utf-8").count("\n") - 1 if path.exists() else 0


def on_the_grid(times_s: list[float]) -> bool:
    """Whether no tick comes before its time, however late others are: a late one is before the next one's time."""
    regular = times_s[:-1]  # the last one is at the end, whenever that is
    assert len(regular) >= 3
    return all(third - first > 0.098 for first, third in zip(regular, regular[2:], strict=False))


def _family(root: int) -> list[int]:
    return [root, *(child.pid for child in psutil.Process(root).children(recursive=True))]


def test_a_counter_keeps_its_millijoules_in_the_file(tmp_path: Path) -> None:
    with Sampler(tmp_path / "t.csv", 60.0, lambda: [], OneGpu()):
        time.sleep(0.1)
    with (tmp_path / "t.csv").open(newline="") as file:
        gpu = [row for row in csv.DictReader(file) if row["device"] == "gpu0"]
    assert len(gpu) == 2, "one tick at the beginning, one at the end"
    assert {row["energy_j"] for row in gpu} == {"987654321.123"}


def test_a_process_that_has_ended_counts_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert resident_mib(families([ended.pid])) == resident_mib([]) == 0.0


def test_a_process_that_ends_after_it_was_found_counts_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = families([child.pid])
        assert resident_mib(found) > 0.0
    assert resident_mib(found) == 0.0


def test_a_late_tick_is_not_made_up_for(tmp_path: Path) -> None:
    """Asking for the processes takes long now and then: the next ticks keep to the grid, none comes in a burst."""
    calls = []

    def slow() -> list[int]:
        calls.append(1)
        if len(calls) == 2:
            time.sleep(0.45)
        return []

    path = tmp_path / "t.csv"
    with Sampler(path, 0.1, slow, NoGpus()):
        wait_for(lambda: ticks(path) >= 6)
    with path.open(newline="") as file:
        assert on_the_grid([float(row["elapsed_s"]) for row in csv.DictReader(file)])


def test_a_full_disk_is_raised_when_the_trial_is_over_and_not_before() -> None:
    def trial() -> None:
        with Sampler(Path("/dev/full"), 0.1, lambda: [], NoGpus()):
            time.sleep(0.4)
            reached.append("the end")

    reached: list[str] = []
    with pytest.raises(OSError, match="No space left on device") as caught:
        trial()
    assert caught.value.errno == errno.ENOSPC
    assert reached == ["the end"]


def test_a_full_disk_does_not_hide_the_error_that_ended_the_trial() -> None:
    def trial() -> None:
        with Sampler(Path("/dev/full"), 0.1, lambda: [], NoGpus()):
            time.sleep(0.2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trial()


SAMPLES = """
import json, sys
from pathlib import Path
from tests.run.test_sampler import NoGpus
from tsuishi.run.sampler import Sampler
path, interval_s, *pids = sys.argv[1:]
with Sampler(Path(path), float(interval_s), lambda: [*map(int, pids)], NoGpus()) as sampler:
    print("samples", flush=True)
    sys.stdin.readline()
print(json.dumps(sampler.holes))
"""


def holes_of(path: Path, stop: Callable[[int], None], *arguments: str) -> list[list[float]]:
    """The holes of a sampler in a process of its own, which is given to `stop`."""
    command = [sys.executable, "-c", SAMPLES, str(path), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "samples\n"
        time.sleep(1.0)
        stop(process.pid)
        time.sleep(1.0)
        process.stdin.write("\n")
        process.stdin.flush()
        found: list[list[float]] = json.loads(process.stdout.readline())
    return found


def stopped(pid: int) -> None:
    """Stopped for three seconds."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(3.0)
    os.kill(pid, signal.SIGCONT)


@pytest.mark.long
@pytest.mark.parametrize("interval_s", ["0.1", "60"])
def test_a_time_in_which_nothing_was_sampled_is_a_hole_whatever_the_interval(tmp_path: Path, interval_s: str) -> None:
    assert holes_of(tmp_path / "t.csv", lambda pid: None, interval_s) == []
    # A tick may take seconds, so a stop in the middle of one is none: on a busy machine ticks take a tenth of the time.
    tries = (holes_of(tmp_path / "t.csv", stopped, interval_s) for _ in range(4))
    ((begin_s, end_s, still_s),) = next(filter(None, tries), [])
    assert 2.9 < still_s < 4.5
    assert end_s - begin_s == pytest.approx(still_s, abs=0.1)


@pytest.mark.long
def test_a_trial_that_is_stopped_alone_is_a_hole(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as trial:
        holes = holes_of(tmp_path / "t.csv", lambda _: stopped(trial.pid), "1", str(trial.pid))
        trial.kill()
    assert 2.0 < sum(still_s for _, _, still_s in holes) < 5.5
