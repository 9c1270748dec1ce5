"""What an environment says it cannot run, as a host interpreter is asked: heard, kept, and written as rows."""

import csv
import gzip
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.bench import make_checkout
from tests.run.test_runner import Nobody, session
from tests.synthetic_run import run_record
from tests.words import case
from tsuishi.base.checkout import Checkout
from tsuishi.base.processes import Process
from tsuishi.engines.interface import Built, Launch
from tsuishi.environments import possible
from tsuishi.environments.entry import Ready
from tsuishi.environments.possible import Question
from tsuishi.plan import trials
from tsuishi.plan.planning import measurable, plan_builds_only
from tsuishi.plan.session import Session
from tsuishi.plan.trials import PlannedTrial
from tsuishi.results.directory import RunDirectory
from tsuishi.run.resume import planned_again, unfinished
from tsuishi.run.runner import Runner

# Refuses what has several devices, a part of it without and a part of it with what it imports.
WORKLOAD = """
from common import events

def possible(request):
    if request.case["devices"] > 2:
        raise events.Unsupported("{} devices: there are two".format(request.case["devices"]))
    return [(two, (request.settings["later_runs"],))] if request.case["devices"] == 2 else []

def two(runs):
    raise events.Unsupported("two devices, later runs {}".format(runs))

def run(request, emitter):
    for function, arguments in possible(request):
        function(*arguments)
    emitter.environment(framework="none", versions={"none": "1"})
"""
SUITE = """
title = "what is refused"
workload = "picky"
[[groups]]
axes = { protocol = "steady", devices = [1, 2, 3] }
"""
SETTINGS = {"later_runs": 10}
TWO = "Unsupported: two devices, later runs 10"
THREE = "Unsupported: 3 devices: there are two"


class Bench:
    """A checkout whose only suite is picky, its host environment, and how often something was started in it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        make_checkout(root, "ok")
        (root / "suites" / "bench.toml").unlink()
        (root / "suites" / "picky.toml").write_text(SUITE)
        (root / "suites" / "workloads" / "experiments" / "picky.py").write_text(WORKLOAD)
        self.work: Session = session(root)
        self.ready: dict[str, Ready] = self.work.build(plan_builds_only(self.work).environments)
        self.started: list[str] = []
        self.said: list[str] = []
        starter = self.ready["host"].starter
        start = starter.start

        def counted(built: Built, launch: Launch) -> Process:
            self.started.append(json.loads(launch.arguments[2])["experiment"])
            return start(built, launch)

        monkeypatch.setattr(starter, "start", counted)

    def unsupported(self, *questions: Question, machine: str = "this") -> dict[str, str]:
        work = self.work
        return possible.unsupported(
            self.ready["host"], work.checkout, work.settings.cache, machine, "cpu", (), questions, self.said.append
        )

    def planned(self, asked: bool) -> list[PlannedTrial]:
        """Every trial, with the reasons of the environment where it is `asked`."""
        environments = [one.environment for one in self.ready.values()]
        return trials.plan_trials(measurable(self.work, environments, self.ready if asked else {}), 0)

    def run(self, planned: list[PlannedTrial], name: str) -> RunDirectory:
        work = self.work
        directory = RunDirectory.create(
            work.settings.results / name, run_record(name, plan=[trial.content() for trial in planned])
        )
        Runner(work, directory, self.ready, Nobody()).run(planned, [planned])
        return directory

    def kept(self) -> list[Path]:
        return sorted((self.work.settings.cache / "possible").glob("*.json"))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def question(devices: int, settings: Mapping[str, Any] = SETTINGS, suite: str = "picky") -> Question:
    return "picky", case(suite=suite, protocol="steady", devices=devices), settings


def test_one_start_answers_for_all_cases_and_the_next_call_starts_nothing(bench: Bench) -> None:
    questions = [question(1), question(2), question(3), question(3, suite="other")]
    wanted = {
        questions[1][1].id: TWO,
        questions[2][1].id: THREE,
        questions[3][1].id: THREE,
    }
    assert bench.unsupported(*questions) == wanted
    assert bench.unsupported(*questions) == wanted
    assert len(bench.started) == 1
    assert bench.said == ["asking host which cases it can run"]


def test_only_cases_without_an_answer_are_asked(bench: Bench) -> None:
    bench.unsupported(question(3))
    assert bench.unsupported(question(3), question(2)) == {question(3)[1].id: THREE, question(2)[1].id: TWO}
    other = question(2, {"later_runs": 5})
    assert bench.unsupported(other) == {other[1].id: "Unsupported: two devices, later runs 5"}
    assert len(bench.started) == 3
    assert len(bench.kept()) == 1


def test_another_machine_and_other_workloads_are_asked_anew(bench: Bench) -> None:
    bench.unsupported(question(3))
    bench.unsupported(question(3), machine="another")
    workload = bench.work.checkout.workloads / "experiments" / "picky.py"
    workload.write_text(workload.read_text().replace("there are two", "there is less"))
    assert bench.unsupported(question(3)) == {question(3)[1].id: "Unsupported: 3 devices: there is less"}
    assert len(bench.started) == len(bench.kept()) == 3


def test_a_program_that_comes_is_asked_about_where_it_would_be_found(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    bench.unsupported(question(3))
    (programs / "g++").touch()
    bench.unsupported(question(3))
    assert len(bench.started) == 2


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"a": 1}', "\x00"])
def test_a_damaged_answer_is_asked_for_again(bench: Bench, damage: str) -> None:
    bench.unsupported(question(3))
    (file,) = bench.kept()
    whole = file.read_text()
    file.write_text(damage)
    assert bench.unsupported(question(3)) == {question(3)[1].id: THREE}
    assert len(bench.started) == 2
    assert file.read_text() == whole


def test_an_environment_that_cannot_answer_gives_no_reasons_and_a_line_says_so(bench: Bench) -> None:
    workload = bench.work.checkout.workloads / "experiments" / "picky.py"
    workload.write_text("import a_module_that_is_not_there\n")
    assert bench.unsupported(question(3), question(2)) == {}
    assert bench.said == [
        "asking host which cases it can run",
        "host: it cannot say which cases it can run, so all are tried: No module named 'a_module_that_is_not_there'",
    ]
    assert bench.kept() == []


@pytest.mark.long
def test_thousands_of_cases_fit(bench: Bench) -> None:
    questions = [question(devices) for devices in range(1, 12_001)]
    found = bench.unsupported(*questions)
    assert len(found) == len(questions) - 1
    assert found[questions[-1][1].id] == "Unsupported: 12000 devices: there are two"
    assert len(bench.started) == 2


def test_a_row_that_was_answered_is_that_of_the_trial_and_says_that_nothing_was_started(bench: Bench) -> None:
    tried = bench.run(bench.planned(asked=False), "tried")
    before = len(bench.started)
    planned = bench.planned(asked=True)
    assert sorted(trial.unsupported for trial in planned) == ["", THREE, TWO]
    asked = bench.run(planned, "asked")
    assert bench.started[before:] == ["possible", "picky"]
    # Each run draws its seed, which settings and command have.
    own = ("started_at", "duration_s", "startup_s", "exit_code", "peak_process_memory_mib", "settings", "command")
    for then, now in zip(rows_of(tried), rows_of(asked), strict=True):
        assert {name: now[name] for name in now if name not in own} == {
            name: then[name] for name in then if name not in own
        }
    for path, trial in asked.finished():
        assert bool(trial.asked) == (trial.status == "unsupported")
        if trial.asked:
            assert (trial.duration_s, trial.exit_code, trial.startup_s) == (0.0, None, None)
            assert (trial.reason or "?") in answer_to(trial.asked, bench.work.checkout)
            for table in ("samples", "metrics", "telemetry"):
                assert len((path / f"{table}.csv").read_text().splitlines()) == 1
            assert gzip.decompress((path / "log.txt.gz").read_bytes()) == b""


def rows_of(run: RunDirectory) -> list[dict[str, str]]:
    with (run.path / "trials.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def answer_to(command: Sequence[str], checkout: Checkout) -> str:
    """What the recorded question is answered when it is asked again by hand."""
    python, script, argument = command
    assert (python, script) == ("python", "suites/workloads/run.py")
    done = subprocess.run([sys.executable, str(checkout.root / script), argument], capture_output=True, check=True)
    return done.stdout.decode()


def test_what_was_answered_is_final_and_kept_by_the_plan(bench: Bench) -> None:
    planned = bench.planned(asked=True)
    run = bench.run(planned, "run")
    recorded = run.run()
    environments = {"host": bench.ready["host"].environment}
    again = planned_again(bench.work, run.path, recorded, environments)
    assert [trial.unsupported for trial in again] == [trial.unsupported for trial in planned]
    assert unfinished(run, again) == []
