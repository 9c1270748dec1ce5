"""Faults of the machine and of workloads, each really made: what becomes of the trial, and of the run."""

import csv
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pynvml
import pytest

from tests.bench import make_checkout
from tests.driver import V100, fake
from tests.reports import make_report
from tests.run.test_runner import session, trials
from tests.sessions import seeing
from tests.words import WORDS
from tsuishi.base.errors import UserError
from tsuishi.engines import sandbox
from tsuishi.machine.gpus import Nvml
from tsuishi.results.verification import verify
from tsuishi.run.executor import RunStopped
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume
from tsuishi.run.sampler import Sampler, energy_j

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a file system")


@pytest.fixture(autouse=True)
def tried_anew() -> Iterator[None]:
    """Whether a sandbox works is not known from another test."""
    sandbox.why_none.cache_clear()
    yield
    sandbox.why_none.cache_clear()


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system in memory at a folder. PATH may have changed by its end."""
    folder.mkdir(exist_ok=True)
    mount, umount = (str(shutil.which(name)) for name in ("mount", "umount"))
    subprocess.run([mount, "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run([umount, "--lazy", str(folder)], check=True)


@pytest.mark.long
def test_a_workload_that_ignores_signals_ends_at_its_time_and_the_next_trial_is_measured(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ignores_signals", "ok", profile="timeout_s = 2.0")
    others = {*psutil.Process().children(recursive=True)}
    found = trials(run_suite(session(tmp_path)))
    assert (found["ignores_signals"]["status"], found["ok"]["status"]) == ("timeout", "ok")
    left = {*psutil.Process().children(recursive=True)} - others
    # One whose parent ended first is ours, as a subreaper's: dead, and nobody waits for it.
    assert [process for process in left if process.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.system
@ROOT
def test_a_workload_that_fills_its_folder_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_checkout(tmp_path, "fills_its_folder", "ok")
    work = session(tmp_path)
    with mounted(tmp_path / "temporary", "size=8m") as place:
        monkeypatch.setenv("TMPDIR", str(place))
        monkeypatch.setattr(tempfile, "tempdir", None)
        monkeypatch.setenv("PATH", "/nowhere")  # in a sandbox, its folder is in memory
        found = trials(run_suite(work))
        assert list(place.iterdir()) == []
    assert found["fills_its_folder"]["status"] == "failed"
    assert found["fills_its_folder"]["reason"] == "OSError: [Errno 28] No space left on device"
    assert found["ok"]["status"] == "ok"


@pytest.mark.system
@ROOT
def test_results_that_cannot_be_written_are_an_error_before_anything_is_measured(tmp_path: Path) -> None:
    """The chain prints an OSError as a line, with the path."""
    make_checkout(tmp_path, "ok")
    with mounted(tmp_path / "results", "ro"), pytest.raises(OSError, match="Read-only file system") as caught:
        run_suite(session(tmp_path))
    assert str(caught.value.filename).startswith(str(tmp_path / "results"))


def test_a_gpu_that_falls_off_leaves_empty_cells_and_no_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver answers `GPU is lost` from then on; the trial goes on, as its workload says what became of it."""
    asked = 0

    def power() -> int:
        nonlocal asked
        asked += 1
        if asked > 3:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return 250_000

    def lost(value: Any) -> Any:
        def answer() -> Any:
            if asked > 3:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
            return value

        return answer

    falls = ("energy", "temperature0", "utilisation")
    gpu = {name: lost(value) if name in falls else value for name, value in V100.items()}
    monkeypatch.setitem(sys.modules, "pynvml", fake([{**gpu, "power": power}]))
    nvml = Nvml()
    rows = [{**row, "elapsed_s": float(tick)} for tick in range(6) for row in nvml.sample()]
    assert [row["power_w"] for row in rows] == [250.0, 250.0, 250.0, None, None, None]
    assert rows[-1]["temperature_c"] is None
    assert energy_j(rows, [(0.0, 5.0)]) == (None, ""), "no part of it passes for the whole"


def test_a_driver_that_vanishes_ends_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake([V100])
    monkeypatch.setitem(sys.modules, "pynvml", module)
    nvml = Nvml()

    path = tmp_path / "telemetry.csv"
    with Sampler(path, 0.02, lambda: [os.getpid()], nvml) as sampler:
        while not path.exists() or path.read_text().count("gpu0") < 2:
            pass
        module.nvmlLib.every = pynvml.NVML_ERROR_UNINITIALIZED
        before = path.read_text().count("gpu0")
        while path.read_text().count("gpu0") < before + 3:
            pass
        sampler.phase = "measure"
    with path.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["device"] == "gpu0"]
    assert (rows[0]["power_w"], rows[-1]["power_w"]) == ("251.234", "")
    with pytest.raises(UserError, match="1 GPUs are asked for"):
        Nvml("1")


def test_throttling_is_in_every_row_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = iter([0x0, 0x4 | 0x40, 0x0])
    monkeypatch.setitem(sys.modules, "pynvml", fake([{**V100, "throttle": lambda: next(bits)}]))
    nvml = Nvml()
    reasons = [row["throttle_reasons"] for _ in range(3) for row in nvml.sample()]
    assert (reasons[0], reasons[2]) == ("", "")
    assert reasons[1] == "sw_power_cap+hw_thermal_slowdown"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EIO, "Input/output error"), "Input/output error: mend that"),
        (PermissionError(errno.EACCES, "Permission denied", "/sys/power"), "/sys/power: Permission denied: mend that"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "Disk quota exceeded: free some room"),
        (ValueError("no number"), "telemetry ended with ValueError: no number: mend that"),
        (psutil.AccessDenied(7), "telemetry ended with AccessDenied: (pid=7): mend that"),
    ],
    ids=str,
)
def test_whatever_ends_the_telemetry_is_one_line_with_its_own_remedy(
    tmp_path: Path, error: Exception, said: str
) -> None:
    class Broken(Nvml):
        """A driver that fails while a trial runs."""

        def sample(self, devices: Sequence[int] | None = None) -> list[dict[str, Any]]:
            raise error

    make_checkout(tmp_path, "ok")
    with pytest.raises(RunStopped) as caught:
        run_suite(seeing(session(tmp_path), nvml=Broken()))
    (run,) = (tmp_path / "results").iterdir()
    what = said if said.startswith("/") else f"{run}: {said}"
    assert str(caught.value) == (
        f"{what}, then go on with `invoke run-suite --resume {run.name}`; what was measured is kept"
    )
    assert trials(resume(session(tmp_path)))["ok"]["status"] == "ok"


@pytest.mark.parametrize("now", [-1e6, 2.0**32 + 1e6], ids=["before 1970", "after 2106"])
def test_a_clock_that_is_far_off_stops_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: float) -> None:
    make_checkout(tmp_path, "ok", "unsupported")
    monkeypatch.setattr(time, "time", lambda: now)
    monkeypatch.setattr(time, "gmtime", partial(time.gmtime, now))
    run = run_suite(session(tmp_path))
    assert {trial["status"] for trial in trials(run).values()} == {"ok", "unsupported"}
    assert verify(run, WORDS).is_verified
    make_report([run], tmp_path / "reports" / "published", tmp_path / "templates", tmp_path / "report")
