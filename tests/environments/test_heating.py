"""Heating: all devices at once, those of the chosen trials alone, in a time that the plan reserves."""

import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bench import make_checkout
from tests.machine.test_compatibility import Machine
from tests.synthetic_run import run_record
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import Checkout
from tsuishi.base.processes import Process
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.engines.interface import Built, Launch
from tsuishi.environments import heating
from tsuishi.environments.entry import Ready
from tsuishi.machine.gpus import Gpu
from tsuishi.plan import planning
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.plan.trials import Matrix
from tsuishi.results.directory import RunDirectory
from tsuishi.run import measuring
from tsuishi.specs.questions import PlannedQuestion

CARDS = Machine(*["Tesla V100"] * 8)
EIGHT = CARDS.gpus
MINUTE = 60.0


def session(root: Path, within_s: float | None, profile: str = "quick", **settings: Any) -> Session:
    checkout = make_checkout(root, "ok", "short_sleep")  # a case with one device, and a case with more
    (checkout.workloads / "experiments" / "heat.py").write_text("def run(request, emitter):\n    pass\n")
    places: dict[str, Any] = {name: root / name for name in ("cache", "results")}
    choice = Choice(environments=("host",), profile=profile)  # type: ignore[arg-type]
    work = Session(Settings(host_python=sys.executable, **places, **settings), choice, Screen(), checkout)
    return replace(work, clock=Clock(within_s))


def in_cuda(work: Session, monkeypatch: pytest.MonkeyPatch) -> Matrix:
    """What could be measured if the interpreter could use all the cards."""
    monkeypatch.setattr(Session, "nvml", CARDS)
    matrix = planning.measurable(work, planning.plan_builds_only(work).environments, {})
    assert {here.accelerator for here in matrix.possible} == {"cuda"}
    return matrix


@pytest.mark.parametrize(
    ("within_s", "profile", "setting", "seconds"),
    [
        (600.0, "quick", None, 18.0),
        (None, "full", None, MINUTE),
        (90.0, "quick", None, 2.7),
        (600.0, "smoke", None, 0.0),
        (90.0, "quick", 30.0, 30.0),
        (600.0, "quick", 0.0, 0.0),
    ],
)
def test_the_plan_reserves_the_time_once_however_many_cards_there_are(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    within_s: float | None,
    profile: str,
    setting: float | None,
    seconds: float,
) -> None:
    work = session(tmp_path, within_s, profile, heat_s=setting)
    matrix = in_cuda(work, monkeypatch)
    start_s = matrix.possible[0].environment.expect.startup_s
    assert planning._heating_s(work, matrix) == pytest.approx(seconds + start_s if seconds else 0.0)


@pytest.mark.long
def test_all_cards_are_heated_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = session(tmp_path, 600.0)
    (ready,) = work.build(planning.plan_builds_only(work).environments).values()
    start, all_here = ready.starter.start, threading.Barrier(len(EIGHT), timeout=60)
    given: list[tuple[Gpu, ...]] = []

    def counted(built: Built, launch: Launch) -> Process:
        given.append(launch.limits.gpus)
        all_here.wait()  # breaks unless eight of them are started before any has ended
        return start(built, launch)

    monkeypatch.setattr(ready.starter, "start", counted)
    assert heating.heat(ready, work.checkout, "cuda", EIGHT, 0.1, print) > 0
    assert sorted(given, key=str) == sorted([(gpu,) for gpu in EIGHT], key=str)


def test_cards_of_no_chosen_trial_stay_cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the matrix a case has more devices; the trials that are chosen have one."""
    work = session(tmp_path, 600.0)
    matrix = in_cuda(work, monkeypatch)
    (cell,) = (cell for cell, trial in matrix.first.items() if trial.case.devices == 1)
    assert len(matrix.first) > 1
    asked = PlannedQuestion(
        id="one", kind="measurement", title={"en": "one"}, worth=1.0, environments=("host",), of=(cell,)
    )
    heated: list[Any] = []

    def heat(ready: Ready, checkout: Checkout, accelerator: str, gpus: list[Gpu], *more: Any) -> float:
        heated.append(gpus)
        return 1.0

    monkeypatch.setattr(measuring, "heat", heat)
    monkeypatch.setattr(measuring.Measuring, "_measure", lambda *given: None)
    run = RunDirectory.create(work.settings.results / "run", run_record("run"))
    ready: dict[str, Ready] = {"host": None}  # type: ignore[dict-item]
    measuring.Measuring(work, run, ready).deepen(matrix, [asked], [])
    assert heated == [[EIGHT[0]]]
