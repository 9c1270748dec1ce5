"""Runs with a budget, of real trials in this interpreter: SciPy on one core and on all, as conv2d's source ran it."""

import csv
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.bench import make_checkout
from tests.synthetic_run import listed
from tests.words import WORDS
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.plan.choice import Choice
from tsuishi.plan.planning import NothingToAsk, plan_run
from tsuishi.plan.session import Session
from tsuishi.plan.trials import scatter_name
from tsuishi.report.output.folder import decided_so_far
from tsuishi.results.directory import RunDirectory, open_run
from tsuishi.results.frames import read_runs
from tsuishi.results.manifest import about
from tsuishi.results.run_record import RunRecord
from tsuishi.run.measuring import Measuring
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume

pytestmark = pytest.mark.runs

SUITE = """
title = "SciPy on one core and on all"
workload = "conv2d"
[[questions]]
id = "cores"
title = "SciPy: one core against all of them"
quantity = "first_run_s"
cases = [{ protocol = "literal" }]
of = { implementation = "scipy" }
to = { implementation = "scipy_all_cores" }
[profiles.quick]
settings = { later_runs = 1 }
[[groups]]
expect = { quick = { s = 0.5 } }
[groups.axes]
protocol = "literal"
implementation = ["scipy", "scipy_all_cores"]
devices = 1
images = 40
height = 20
width = 20
channels = 1
filter_size = 3
data = "ones"
"""


class Made(NamedTuple):
    """A checkout with a run that had ten minutes, and what was recorded of the run before each deepening."""

    root: Path
    before: list[RunRecord]


def make_cores(root: Path) -> Checkout:
    made = make_checkout(root, "ok")
    (made.suites / "bench.toml").unlink()
    (made.suites / "cores.toml").write_text(SUITE, encoding="utf-8")
    return made


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return make_cores(tmp_path)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Made:
    before: list[RunRecord] = []
    deepen = Measuring.deepen

    def watched(measuring: Measuring, *arguments: Any) -> None:
        before.append(measuring.run.run())
        deepen(measuring, *arguments)

    root = tmp_path_factory.mktemp("original") / "checkout"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Measuring, "deepen", watched)
        run_suite(session(make_cores(root), 600.0))
    return Made(root, before)


@pytest.fixture
def measured(original: Made, tmp_path: Path) -> Checkout:
    """A copy of the checkout that has a run, to go on with."""
    return Checkout(Path(shutil.copytree(original.root, tmp_path / "checkout", symlinks=True)))


def session(checkout: Checkout, within_s: float | None, **more: Any) -> Session:
    places: dict[str, Any] = {name: checkout.root / name for name in ("cache", "results")}
    settings = Settings(host_python=sys.executable, **places, **more)
    choice = Choice(environments=("host",))
    work = Session(settings, choice, Screen(), checkout, clock=Clock(within_s))
    work.history.learn("report", 1.0)
    work.history.slowness = 0.2  # a trial is expected to take a second, however busy this machine is
    return work


def trials(run: RunDirectory) -> Counter[str]:
    """How many trials of each implementation are ok."""
    found: Counter[str] = Counter()
    for _, trial in run.finished():
        assert trial.status == "ok", trial.reason
        found[run.case(trial.case_record)["implementation"]] += 1
    return found


def test_main_questions_are_recorded_before_anything_is_measured(original: Made) -> None:
    (recorded,) = original.before
    assert [(question.id, question.main) for question in recorded.questions] == [("cores/cores/host", True)]
    assert recorded.plan == ()


def test_a_run_with_time_gets_three_trials_of_each_case_and_says_what_it_planned(measured: Checkout) -> None:
    run = open_run(measured.root / "results")
    counts = trials(run)
    assert set(counts) == {"scipy", "scipy_all_cores"}
    assert len(set(counts.values())) == 1
    assert min(counts.values()) in (3, 6, 12, 24)
    recorded = run.run()
    assert len(recorded.plan) == sum(counts.values())
    assert [call.within_s for call in recorded.sessions] == [600.0]
    assert recorded.arguments["within"] == "600s"


def test_an_answer_is_printed_when_it_is_decided_and_as_the_report_words_it(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real sentence of a report; two sides of a size that no scatter of this machine hides."""
    suite = checkout.suites / "cores.toml"
    text = suite.read_text(encoding="utf-8").replace(
        'to = { implementation = "scipy_all_cores" }', "to = { images = 1 }"
    )
    text = text.replace('of = { implementation = "scipy" }', "of = { images = 900 }").replace(
        "images = 40", "images = [1, 900]"
    )
    suite.write_text(text.replace('["scipy", "scipy_all_cores"]', '"scipy"'), encoding="utf-8")

    def decided(path: Path) -> dict[str, str]:
        return decided_so_far(RunDirectory(path), checkout.published, WORDS)

    run = run_suite(replace(session(checkout, 600.0), decided=decided))
    said = [
        line for line in capsys.readouterr().out.splitlines() if "SciPy: one core against all of them, host: " in line
    ]
    assert len(said) == 1, said
    after, _, sentence = said[0].partition(": ")
    assert re.fullmatch(r"(\d+ min )?\d+ s", after)
    (answer,) = decided(run.path).values()
    assert re.sub(r"[\d.]+", "N", sentence) == re.sub(r"[\d.]+", "N", answer)
    assert "is at least" in sentence


def test_a_time_that_is_too_short_says_what_would_do(checkout: Checkout) -> None:
    with pytest.raises(UserError) as caught:
        run_suite(session(checkout, 4.1))
    assert str(caught.value).startswith("4 s are too short: the shortest question (SciPy: one core against all of them")
    assert "give --within 2m" in str(caught.value)
    assert not list(checkout.root.glob("results/*"))


def test_the_time_that_is_advised_is_longer_than_the_given_time_and_enough(checkout: Checkout) -> None:
    """Also where devices are heated first: that took the whole of 90 s, and 60 s were advised."""
    with pytest.raises(UserError) as caught:
        plan_run(session(checkout, 90.0, heat_s=88.0))
    (advised,) = re.findall(r"give --within (\d+)m", str(caught.value))
    assert 60 * int(advised) > 90
    assert plan_run(session(checkout, 60.0 * int(advised), heat_s=88.0)).outlined.asked


def test_an_environment_that_refuses_every_case_leaves_nothing_to_ask(checkout: Checkout) -> None:
    """Then `check` tries the next environment."""
    suite = checkout.suites / "cores.toml"
    suite.write_text(suite.read_text(encoding="utf-8").replace('["scipy", "scipy_all_cores"]', '"framework"'))
    with pytest.raises(NothingToAsk, match="nothing to ask: no question of the chosen suites can be answered"):
        run_suite(session(checkout, 600.0))


def test_a_plan_says_what_it_can_find_at_the_scatter_that_earlier_runs_had_here(
    checkout: Checkout, original: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    plan_run(session(checkout, 600.0), only=True)
    assert (
        "At the usual scatter between trials (too few measured here yet: 3 % is assumed), 3 trials find a difference"
    ) in capsys.readouterr().out
    measured = Checkout(original.root)
    run = open_run(measured.root / "results")
    squares, freedom = 0.0, 0
    for implementation in trials(run):
        logs = [
            math.log(float(row["seconds"]))
            for folder, trial in run.finished()
            if run.case(trial.case_record)["implementation"] == implementation
            for row in csv.DictReader((folder / "samples.csv").open())
            if row["phase"] == "first_run"
        ]
        squares += statistics.variance(logs) * (len(logs) - 1)
        freedom += len(logs) - 1
    name = scatter_name("host", "cpu", "cores", "literal", "first_run_s")
    scatter = math.sqrt(squares / freedom)
    assert session(measured, None).history.scatter([name]) == pytest.approx(scatter)
    plan_run(session(measured, 600.0), only=True)
    assert f"At the scatter seen here ({100 * scatter:.1f} % between trials of host), " in capsys.readouterr().out


def test_a_run_of_everything_keeps_its_scatter_and_a_plan_of_single_trials_has_no_power(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    work = session(checkout, None)
    run_suite(replace(work, choice=replace(work.choice, repetitions=3)))
    name = scatter_name("host", "cpu", "cores", "literal", "first_run_s")
    assert session(checkout, None).history.scatter([name])
    capsys.readouterr()
    plan_run(session(checkout, None))
    assert "trials find" not in capsys.readouterr().out


def test_a_run_is_deepened_by_more_time_and_finished_without(measured: Checkout) -> None:
    run = open_run(measured.root / "results")
    first = trials(run)
    lost = sorted(run.trials.iterdir())[0]
    for file in lost.iterdir():
        file.unlink()
    lost.rmdir()
    finished = resume(session(measured, None))
    assert trials(finished) == first
    deeper = resume(session(measured, 60.0))
    counts = trials(deeper)
    assert all(counts[name] >= first[name] for name in first)
    of_more = [60.0] * (counts != first)  # none where the question was decided
    assert [call.within_s for call in deeper.run().sessions] == [600.0, None, *of_more]
    if counts == first:
        assert deeper.run() == finished.run()


def test_a_session_that_cannot_heat_its_device_says_so_and_measures(
    checkout: Checkout, measured: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    """The interpreter of the tests has no framework; without the setting a CPU is not heated at all."""
    run = run_suite(session(checkout, 60.0, heat_s=1.0))
    said = capsys.readouterr().out
    assert "heating by host: 1 s of matrix products (tsuishi.heat_s)" in said
    assert "not heated: " in said
    assert [call.heated_s for call in run.run().sessions] == [0.0]
    assert trials(run)
    assert [call.heated_s for call in open_run(measured.root / "results").run().sessions] == [None]


def test_a_deeper_run_measures_an_excluded_trial_again_before_it_looks(measured: Checkout) -> None:
    run = open_run(measured.root / "results")
    folder, trial = next(run.finished())
    table = folder / "samples.csv"
    head, row, *rows = table.read_text().splitlines()
    table.write_text("\n".join([head, ",".join([*row.split(",")[:-1], "-1"]), *rows, ""]))
    record = json.loads((folder / "trial.json").read_text())
    record["files"]["samples.csv"] = about(table).content()
    (folder / "trial.json").write_text(json.dumps(record))
    run.gather(WORDS)
    listed(run)  # a runner that wrote such a row lists it
    deeper = resume(session(measured, 60.0))
    assert (deeper.trials / str(trial.id.next_attempt) / "trial.json").exists()
    assert [exclusion.trial_id for exclusion in read_runs([deeper], WORDS).excluded] == []


def test_a_run_without_limit_measures_everything_and_names_questions_all_the_same(checkout: Checkout) -> None:
    run = run_suite(session(checkout, None))
    assert trials(run) == {"scipy": 1, "scipy_all_cores": 1}
    assert [question.id for question in run.run().questions] == ["cores/cores/host"]


@pytest.mark.parametrize("after", [1, 4])
def test_what_is_done_when_ctrl_c_comes_is_a_run_that_goes_on(checkout: Checkout, after: int) -> None:
    """The real signal, while some trial is measured."""
    code = f"""
from pathlib import Path
from tests.run.test_measuring import session
from tsuishi.run.measuring import Measuring
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume
from tsuishi.base.checkout import Checkout
run_suite(session(Checkout(Path({str(checkout.root)!r})), 120.0))
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout
    for line in process.stdout:
        if line.startswith(f"[{after}/"):
            process.send_signal(signal.SIGINT)
            break
    process.stdout.read()
    assert process.wait() != 0
    run = open_run(checkout.root / "results")
    statuses = Counter(trial.status for _, trial in run.finished())
    assert statuses["ok"] >= after
    assert set(statuses) <= {"ok", "interrupted"}
    assert json.loads((run.path / "run.json").read_text(encoding="utf-8"))["questions"]
    again = resume(session(checkout, None))
    planned = {entry.id for entry in again.run().plan}
    done = {trial.id.planned for _, trial in again.finished() if trial.status == "ok"}
    assert planned == done
