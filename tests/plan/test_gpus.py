"""A session on a machine whose GPUs are not those it was planned for."""

from pathlib import Path
from typing import Any

import pytest

from tests.machine.test_compatibility import KNOWN, Machine
from tests.sessions import seeing
from tests.synthetic_run import planned_trial
from tests.words import case
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.engines.interface import Built
from tsuishi.engines.subprocesses import ProcessStarter
from tsuishi.environments.entry import Ready
from tsuishi.machine.gpus import Gpu
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.plan.trials import PlannedTrial
from tsuishi.results.records import EnvironmentRecord
from tsuishi.run import measuring
from tsuishi.run.measuring import check_forced
from tsuishi.run.resume import refuse_other_gpus

NAME = "torch1.1-cu90"


class Two(Machine):
    """Two cards that can be told apart."""

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return (Gpu(0, "GPU-old"), Gpu(1, "GPU-new"))


def session(tmp_path: Path, nvml: Machine) -> Session:
    return seeing(Session(Settings(cache=tmp_path, engine="venv"), Choice(), Screen()), nvml=nvml)


def ready(tmp_path: Path) -> dict[str, Ready]:
    built = Built(KNOWN[NAME], "venv", "", "spec", "realised", ("python",))
    return {NAME: Ready(KNOWN[NAME], ProcessStarter(), built, EnvironmentRecord(name=NAME, cuda_usable=True))}


def trial(devices: int = 1, forced: str = "") -> PlannedTrial:
    planned = case(suite="s", protocol="steady", devices=devices)
    return planned_trial(planned, NAME, 1.0, accelerator="cuda", forced=forced)


def test_a_run_is_not_resumed_on_a_gpu_it_could_not_have_begun_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProcessStarter, "unified_memory", Path("/dev/null"))  # the file that a driver's machine has
    refuse_other_gpus(session(tmp_path, Machine("Tesla V100")), ready(tmp_path), [trial()])
    swapped = session(tmp_path, Machine("GeForce RTX 4090"))
    with pytest.raises(UserError, match=r"^torch1\.1-cu90 cannot be used here any more: NVIDIA GeForce RTX 4090 is"):
        refuse_other_gpus(swapped, ready(tmp_path), [trial()])
    refuse_other_gpus(swapped, ready(tmp_path), [trial(forced="it was")])


def test_every_gpu_that_a_forced_trial_gets_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []

    def note(ready: Any, checkout: Any, accelerator: Any, gpus: Any, say: Any) -> dict[str, Any]:
        checked.append(gpus)
        return {}

    monkeypatch.setattr(measuring, "self_check", note)
    work = session(tmp_path, Two("GeForce RTX 2080 Ti", "GeForce RTX 4090"))
    assert check_forced(work, ready(tmp_path), [trial(1, "too new"), trial(2, "too new")]) == {NAME: {}}
    assert checked == [(Gpu(0, "GPU-old"), Gpu(1, "GPU-new"))]
    assert check_forced(work, ready(tmp_path), [trial(1)]) == {}
