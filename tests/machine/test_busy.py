"""GPUs that somebody else uses: waited for, refused or used, and said whose they are."""

import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.bench import make_checkout
from tests.driver import MIB, V100, fake
from tests.run.test_runner import session
from tests.sessions import seeing
from tests.synthetic_run import run_record
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.engines.subprocesses import ProcessStarter
from tsuishi.machine import busy
from tsuishi.machine.busy import await_idle, shared_with, used_by_others
from tsuishi.machine.gpus import Nvml
from tsuishi.plan.planning import measurable
from tsuishi.plan.trials import plan_trials
from tsuishi.results.directory import RunDirectory
from tsuishi.run.executor import RunStopped
from tsuishi.run.new_run import run_suite
from tsuishi.run.progress import running
from tsuishi.run.resume import resume, resumed_session
from tsuishi.run.runner import Runner
from tsuishi.specs.environment import read_environment

# Nobody of ours, on any machine.
INIT = psutil.Process(1)
BY_INIT = f"GPU 0 is in use by {INIT.name()} (process 1, 2048 MiB)"


def process(pid: int, mib: int | None = 2048) -> types.SimpleNamespace:
    return types.SimpleNamespace(pid=pid, usedGpuMemory=mib and mib * MIB)


def with_gpus(monkeypatch: pytest.MonkeyPatch, *gpus: dict[str, Any]) -> Nvml:
    """A machine of idle V100s, but for what is given."""
    idle = {**V100, "utilisation": types.SimpleNamespace(gpu=0, memory=0), "display": 0}
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", fake([{**idle, "uuid": f"GPU-{i}", **g} for i, g in enumerate(gpus)]))
    return Nvml()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy, "_SETTLED_S", 0.05)
    monkeypatch.setattr(busy, "_LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(busy, "wsl", lambda: False)


@pytest.fixture
def child() -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"]) as started:
        yield started.pid
        started.kill()


def test_an_idle_gpu_is_used_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = with_gpus(monkeypatch, {}, {"processes": [process(1)]})
    said: list[str] = []
    await_idle(nvml, nvml.gpus[:1], "refuse", 0, said.append)
    assert said == []


def test_our_own_processes_do_not_count(monkeypatch: pytest.MonkeyPatch, child: int) -> None:
    nvml = with_gpus(monkeypatch, {"processes": [process(child), process(os.getpid())]})
    assert used_by_others(nvml, nvml.gpus[0]) == ""


def test_who_uses_it_is_told_with_what_can_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    unseen = 4_190_000  # beyond any process id there is
    nvml = with_gpus(monkeypatch, {"processes": [process(1), process(unseen, None)]})
    assert used_by_others(nvml, nvml.gpus[0]) == (
        f"{BY_INIT}, a program that cannot be seen from here (process {unseen})"
    )


def test_where_no_process_is_told_work_and_memory_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    full = types.SimpleNamespace(total=16384 * MIB, used=9000 * MIB, reserved=0)
    working = types.SimpleNamespace(gpu=98, memory=0)
    nvml = with_gpus(monkeypatch, {"memory": full}, {"utilisation": working}, {"utilisation": None, "memory": None})
    assert [used_by_others(nvml, gpu) for gpu in nvml.gpus] == [
        "GPU 0 is in use by somebody who cannot be seen from here (0 % of its time and 9000 MiB taken)",
        "GPU 1 is in use by somebody who cannot be seen from here (98 % of its time and 512 MiB taken)",
        "",
    ]


def memory(total: int, used: int) -> types.SimpleNamespace:
    return types.SimpleNamespace(total=total * MIB, used=used * MIB, reserved=0)


@pytest.mark.parametrize(
    ("used", "more", "is_used"),
    [
        (2300, {"display": 1}, False),
        (2300, {}, True),
        (2300, {"drawing": [process(1, 2000)]}, False),
        (2300, {"drawing": [process(1, 2000)], "processes": [process(1)]}, True),
        (5000, {"display": 1}, True),
    ],
)
def test_a_desktop_on_a_small_card_is_no_use_by_others(
    monkeypatch: pytest.MonkeyPatch, used: int, more: dict[str, Any], is_used: bool
) -> None:
    nvml = with_gpus(monkeypatch, {"memory": memory(8188, used), **more})
    assert bool(used_by_others(nvml, nvml.gpus[0])) is is_used


def test_under_windows_the_desktop_is_no_use_by_others_though_no_process_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = with_gpus(monkeypatch, {"memory": memory(8188, 2300), "display": None})
    assert used_by_others(nvml, nvml.gpus[0])
    monkeypatch.setattr(busy, "wsl", lambda: True)
    assert used_by_others(nvml, nvml.gpus[0]) == ""


def test_the_server_that_shares_a_gpu_is_no_use_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = with_gpus(monkeypatch, {"processes": [process(1, 30)]})
    monkeypatch.setattr(psutil.Process, "name", lambda self: "nvidia-cuda-mps-server")
    assert used_by_others(nvml, nvml.gpus[0]) == ""


def test_a_gpu_in_use_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = with_gpus(monkeypatch, {"processes": [process(1)]})
    with pytest.raises(UserError) as caught:
        await_idle(nvml, nvml.gpus, "refuse", 600, print)
    assert str(caught.value) == f"{BY_INIT}: free it, choose others with --gpus, or give --busy-gpu use"


def test_what_has_just_ended_is_not_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [[process(1)], []]
    nvml = with_gpus(monkeypatch, {"processes": lambda: answers.pop(0)})
    said: list[str] = []
    monkeypatch.setattr(busy, "_SETTLED_S", 60.0)
    await_idle(nvml, nvml.gpus, "refuse", 0, said.append)
    assert (answers, said) == ([], [])


def test_a_gpu_in_use_is_waited_for_and_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [[process(1)]] * 30  # looks that take 0.02 s at least each: more than _SETTLED_S in all
    nvml = with_gpus(monkeypatch, {"processes": lambda: answers.pop() if answers else []})
    said: list[str] = []
    await_idle(nvml, nvml.gpus, "wait", 60, said.append)
    assert not answers
    assert said == [f"waiting: {BY_INIT}"]


def test_waiting_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = with_gpus(monkeypatch, {"processes": [process(1)]})
    with pytest.raises(UserError) as caught:
        await_idle(nvml, nvml.gpus, "wait", 0.1, lambda line: None)
    assert (
        str(caught.value)
        == f"{BY_INIT}, after 0 s of waiting: free it, allow more (gpu_wait_s, --within), or give --busy-gpu use"
    )


def test_a_gpu_in_use_is_used_all_the_same_where_asked_for_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = with_gpus(monkeypatch, {"processes": [process(1)]})
    said: list[str] = []
    await_idle(nvml, nvml.gpus, "use", 0, said.append)
    assert said == [f"used all the same: {BY_INIT}"]


def test_a_display_and_windows_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = with_gpus(monkeypatch, {}, {"display": 1})
    display = "GPU 1 has a display attached, whose desktop takes memory and time of it"
    assert shared_with(nvml) == [display]
    monkeypatch.setattr(busy, "wsl", lambda: True)
    windows = "this is WSL2: Windows and its desktop use the GPUs too, and hide some values from telemetry"
    assert shared_with(nvml) == [windows, display]
    assert shared_with(with_gpus(monkeypatch)) == [], "without a GPU there is nothing to share"


def test_a_gpu_taken_during_a_run_stops_it_before_the_next_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = make_checkout(tmp_path, "ok")
    work = session(tmp_path, busy_gpu="refuse")
    environment = read_environment(checkout.images / "host.toml")
    ready = work.build([environment])
    planned = [
        trial.model_copy(update={"accelerator": "cuda"})
        for trial in plan_trials(measurable(work, [environment], {}), 0)
    ]
    nvml = with_gpus(monkeypatch, {"processes": [process(1)]})
    run = RunDirectory.create(tmp_path / "results" / "r", run_record("r"))
    with running(Screen(), planned, len(planned)) as audience, pytest.raises(RunStopped) as caught:
        Runner(seeing(work, nvml=nvml), run, ready, audience).run(planned, [planned])
    assert str(caught.value) == (
        f"{BY_INIT}: free it, choose others with --gpus, or give --busy-gpu use, then go on with "
        "`invoke run-suite --resume r`; what was measured is kept"
    )
    assert not list(run.finished())


@pytest.mark.long
def test_a_resumed_run_keeps_to_the_gpus_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessStarter, "unified_memory", Path("/dev/null"))  # the file that a driver's machine has
    make_checkout(tmp_path, "ok")
    with_gpus(monkeypatch, {}, {})
    run = run_suite(session(tmp_path, gpus="device=1"))
    assert run.run().arguments["gpus"] == "device=1"
    again = resumed_session(session(tmp_path), run, run.run())
    assert [gpu.index for gpu in again.nvml.gpus] == [1]
    assert resume(session(tmp_path)).run().arguments["gpus"] == "device=1"
