"""A run on a GPU for which an environment holds PTX alone: it is checked first, and left out where it fails."""

import sys
from pathlib import Path

import pytest

from tests.bench import make_checkout
from tests.machine.test_compatibility import Machine
from tests.plan.test_trials import environment
from tests.sessions import seeing
from tsuishi.base.budget import Clock
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.engines.interface import Built
from tsuishi.engines.subprocesses import ProcessStarter
from tsuishi.environments.entry import Ready
from tsuishi.plan.choice import Choice
from tsuishi.plan.planning import Plan
from tsuishi.plan.session import Session
from tsuishi.results.records import EnvironmentRecord
from tsuishi.run.new_run import run_suite
from tsuishi.specs.environment import Cuda

ONLY_CPU = environment("only-cpu", accelerators=("cpu",), cuda=None)
COMPILED = environment(
    "compiled", cuda=Cuda(toolkit="12.9", min_driver="525.60.13", native=("6.0", "9.0"), ptx=("10.0", "12.0"))
)


def session(root: Path, *named: str) -> Session:
    settings = Settings(cache=root / "cache", results=root / "results", exclusive_on="self-checked")
    work = Session(settings, Choice(named), Screen(), make_checkout(root, "ok"), clock=Clock(None))
    ready = {
        each.name: Ready(
            each,
            ProcessStarter(),
            Built(each, "venv", "", "spec", "realised", (sys.executable,)),
            EnvironmentRecord(name=each.name, cuda_usable=True),
        )
        for each in (COMPILED, ONLY_CPU)
    }
    card = Machine("GeForce RTX 5090")
    return seeing(work, nvml=card, build=lambda asked: {each.name: ready[each.name] for each in asked})


def test_an_environment_that_fails_its_self_check_is_left_out_and_the_others_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_suite(session(tmp_path), plan=Plan((COMPILED, ONLY_CPU), 0.0))
    assert [(trial.environment, trial.status) for _, trial in run.finished()] == [("only-cpu", "ok")]
    ((name, reason),) = [(each.environment, each.reason) for each in run.run().left_out]
    assert name == "compiled"
    assert reason.startswith("compiled cannot be used here: it failed its self-check: ")
    said = capsys.readouterr().out
    assert (
        "compiled: NVIDIA GeForce RTX 5090 is compute capability 12.0 (Blackwell); compiled holds code for 6.0 to 9.0 "
        "and PTX for 10.0 to 12.0, which the driver compiles"
    ) in said
    assert f"left out: {reason}" in said


def test_a_named_environment_that_fails_its_self_check_ends_the_call(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^compiled cannot be used here: it failed its self-check: "):
        run_suite(session(tmp_path, "compiled", "only-cpu"), plan=Plan((COMPILED, ONLY_CPU), 0.0))
    assert not list(tmp_path.glob("results/*"))
