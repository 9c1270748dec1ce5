"""`invoke explain` for real: SciPy's convolutions of a source, with settings whose effect is known."""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.commands.test_tasks import REAL
from tests.extras.explain.test_difference import ASKED
from tests.job import invoke
from tests.run.test_runner import wait_for
from tsuishi.extras.explain import explaining
from tsuishi.extras.explain.difference import Difference
from tsuishi.specs.questions import LOOKS

pytestmark = pytest.mark.runs


def start(folder: Path, *words: str) -> "subprocess.Popen[str]":
    given = {name: value for name, value in os.environ.items() if not name.startswith("INVOKE_")}
    kept = ("INVOKE_TSUISHI_EXCLUSIVE_ON", "INVOKE_TSUISHI_CACHE")
    given |= {name: os.environ[name] for name in kept if name in os.environ}
    command = [sys.executable, "-m", "invoke", "explain", "conv2d-gce", "--row", "SciPy", "--in", str(folder)]
    command += ["--env", "host", "--engine", "host", "--host-python", sys.executable, *words]
    return subprocess.Popen(command, cwd=REAL.root, env=given, stdout=PIPE, stderr=PIPE, text=True)


def explain(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    process = start(folder, *words)
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def test_a_tenth_of_the_images_explains_a_tenth_of_the_time(tmp_path: Path) -> None:
    done = explain(tmp_path / "check", "--mine", "images=84", "--within", "75s")
    assert done.returncode == 0, done.stdout + done.stderr
    (plan,) = tmp_path.glob("check/results/*/run.json")
    (rounds,) = {*Counter(trial["case_id"] for trial in json.loads(plan.read_text())["plan"]).values()}
    assert rounds in LOOKS
    assert "differs: images: 84 in place of 840" in done.stdout
    bars = {
        name: (float(times), finding)
        for name, times, finding in re.findall(r"^\| (\w+) \| ([\d.,]+) \[.*?\] \| ([\w ]+) \|", done.stdout, re.M)
    }
    assert {*bars} == {"images", "remainder"}
    # A run of a tenth of the images takes a tenth of the time, and what does not depend on them.
    assert 0.05 < bars["images"][0] < 0.3
    assert bars["images"][1] == "certain"
    # Three rounds take about 10 s: where they decide nothing, there is time for a second look.
    assert rounds > LOOKS[0] or bars["remainder"][1] != "undecided"
    whole = float(re.findall(r"^Mine is ([\d.]+) times the printed 0.222 ", done.stdout, re.M)[0])
    assert whole == pytest.approx(bars["images"][0] * bars["remainder"][0], rel=0.02)
    # The report has the same bars, also where it is made again: run.json says what was to be explained.
    (page,) = (tmp_path / "check" / "reports" / "out").glob("*explain*")
    (sentence,) = re.findall(r"^Mine is .*$", done.stdout, re.M)
    assert sentence in (page / "report.json").read_text()
    drawn = (page / "charts" / "explanation.svg").read_text()
    assert ">images</text>" in drawn
    again = invoke(tmp_path / "again", "report", "--run", str(tmp_path / "check" / "results" / page.name))
    assert again.returncode == 0, again.stderr
    assert sentence in (tmp_path / "again" / "reports" / page.name / "report.json").read_text()


def test_without_settings_of_mine_those_that_the_number_does_not_state_are_measured(tmp_path: Path) -> None:
    done = explain(tmp_path / "check", "--repetitions", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "may differ: threads: usual in place of 1" in done.stdout
    assert re.search(r"^Mine is [\d.]+ \[.*\] times the printed 0.222 .* does not state threads: ", done.stdout, re.M)
    assert re.search(r"^\| threads \| .* \| usual in place of 1 \|$", done.stdout, re.M)


@pytest.mark.parametrize(
    ("mine", "message"),
    [
        ("images=840", "nothing differs from the printed case ("),
        ("protocol=steady", "not separable: no number of protocol=steady in host: its suite has no such case"),
        ("image=84", "--mine: unknown axis 'image'"),
        ("implementation=framework", "not separable: no number of implementation=framework in host: "),
        ("batch_size=1", "of batch_size=1 in host: ValueError: case has unknown 'batch_size'; known: protocol, "),
    ],
)
def test_what_cannot_be_explained_says_why(tmp_path: Path, mine: str, message: str) -> None:
    done = explain(tmp_path / "check", "--mine", mine, "--repetitions", "1")
    assert done.returncode == 1, done.stdout
    assert message in done.stderr


def test_an_engine_that_is_that_of_the_printed_number_is_no_difference(tmp_path: Path) -> None:
    done = explain(tmp_path / "check", "--mine-env", "host.host")
    assert "nothing differs from the printed case (" in done.stderr


def test_an_interrupted_explanation_goes_on_with_the_same_command(tmp_path: Path) -> None:
    command = tmp_path / "check", "--mine", "images=84", "--repetitions", "4"
    process = start(*command)

    def measured() -> list[Path]:
        return sorted(tmp_path.glob("check/results/*/trials/*/trial.json"))

    try:
        wait_for(measured, 120)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, said.splitlines()[-1]) == (130, "interrupted; the same command goes on")
    (run,) = tmp_path.glob("check/results/*/run.json")
    before = {path: path.read_bytes() for path in measured()}
    again = explain(*command)
    assert again.returncode == 0, again.stderr
    assert f"run {run.parent.name} was interrupted, and goes on" in again.stdout
    assert [*tmp_path.glob("check/results/*/run.json")] == [run]
    assert before.items() <= {path: path.read_bytes() for path in measured()}.items()
    planned = len(json.loads(run.read_text())["plan"])
    assert len(measured()) in (planned, planned + 1), "a trial that was interrupted is attempted again"


def test_too_little_time_for_both_ends_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    done = explain(tmp_path / "check", "--mine", "images=84,filter_size=3", "--within", "1s")
    assert done.returncode == 1, done.stdout
    assert "error: the fewest corners do not fit: " in done.stderr
    assert "; --plan --within none says how long all take" in done.stderr
    assert not [*tmp_path.glob("check/results/*/trials/*")]


def test_the_last_settings_become_one_factor_first() -> None:
    asked = Difference.model_validate({**ASKED, "mine": {"images": 84, "filter_size": 3, "channels": 3}})
    assert [each.groups for each in explaining._fewer_factors(asked)] == [
        [("images",), ("filter_size",), ("channels",)],
        [("images",), ("filter_size", "channels")],
        [("images", "filter_size", "channels")],
    ]
