"""GPUs that a trial was given and that do not arrive in its environment: here none does, as nothing has a driver."""

import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from tests.bench import REAL, make_checkout
from tests.machine.test_compatibility import Machine
from tests.run.test_runner import Nobody, session
from tests.sessions import seeing
from tests.synthetic_run import run_record
from tests.words import case
from tsuishi.base.screen import Screen
from tsuishi.engines import sandbox
from tsuishi.engines.subprocesses import ProcessStarter
from tsuishi.environments import doctor, possible
from tsuishi.environments.entry import Ready
from tsuishi.environments.possible import Question
from tsuishi.plan import trials
from tsuishi.plan.planning import measurable, plan_builds_only
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.run.runner import Runner

WORKLOAD = """
from common import devices

def possible(request):
    devices.placement(request, 1)
    return []

def run(request, emitter):
    possible(request)
"""
SAID = "given 1 GPUs, and CUDA's driver lists 0 here: `sudo nvidia-modprobe -u -c 0` makes /dev/nvidia-uvm; see also"


CARD = Machine("Tesla T4")


@pytest.fixture
def made(tmp_path: Path) -> tuple[Session, dict[str, Ready]]:
    make_checkout(tmp_path, "ok")
    experiments = tmp_path / "suites" / "workloads" / "experiments"
    (experiments / "behave.py").write_text(WORKLOAD)
    work = session(tmp_path)
    return work, work.build(plan_builds_only(work).environments)


def test_a_trial_without_its_gpus_failed_with_the_remedy_and_is_no_finding(
    made: tuple[Session, dict[str, Ready]],
) -> None:
    work, ready = made
    planned = [
        trial.model_copy(update={"accelerator": "cuda"})
        for trial in trials.plan_trials(measurable(work, [one.environment for one in ready.values()], {}), 0)
    ]
    run = RunDirectory.create(
        work.settings.results / "run", run_record("run", plan=[trial.content() for trial in planned])
    )
    Runner(seeing(work, nvml=CARD), run, ready, Nobody()).run(planned, [planned])
    ((_, trial),) = run.finished()
    assert trial.status == "failed"
    assert (trial.reason or "").startswith(f"GpusMissing: {SAID}")


def test_which_cases_can_run_is_asked_again_when_the_gpus_have_arrived(
    made: tuple[Session, dict[str, Ready]],
) -> None:
    work, ready = made
    said: list[str] = []
    question: Question = ("behave", case(suite="bench", protocol="steady", devices=1), {})
    where = (ready["host"], work.checkout, work.settings.cache, "this")
    assert possible.unsupported(*where, "cuda", CARD.gpus, [question], said.append) == {}
    asked, answer = said
    assert asked == "asking host which cases it can run"
    assert answer.startswith(f"host: it cannot say which cases it can run, so all are tried: {SAID}")
    assert list(work.settings.cache.glob("possible/*")) == []


def test_the_doctor_asks_an_environment_for_the_gpus(made: tuple[Session, dict[str, Ready]]) -> None:
    work, _ = made
    shutil.copy(REAL.workloads / "experiments" / "probe.py", work.checkout.workloads / "experiments")
    out = io.StringIO()
    doctor.examine(work.builder, CARD, Screen(Console(file=out, width=1000, highlight=False)))
    assert f"missing GPUs in host (host): {SAID.replace(': ', '; ')}" in out.getvalue()


def test_before_a_sandbox_is_used_its_missing_device_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "why_none", lambda python: "")
    monkeypatch.setattr(ProcessStarter, "unified_memory", tmp_path / "nvidia-uvm")
    starter, gpus = ProcessStarter(), CARD.gpus
    assert starter.why_no_gpus(gpus) == (
        f"no {tmp_path}/nvidia-uvm, without which CUDA does not start in a sandbox: `sudo nvidia-modprobe -u -c 0` "
        "makes /dev/nvidia-uvm; see also `nvidia-smi` and CUDA_VISIBLE_DEVICES"
    )
    assert starter.why_no_gpus(()) == ""
    (tmp_path / "nvidia-uvm").touch()
    assert starter.why_no_gpus(gpus) == ""
    (tmp_path / "nvidia-uvm").unlink()
    monkeypatch.setattr(sandbox, "why_none", lambda python: "none")  # libcuda has it made by nvidia-modprobe itself
    assert starter.why_no_gpus(gpus) == ""
