"""action.yml: its steps run as they stand, with the variables that GitHub's runner gives them."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands.test_tasks import REAL, checkout
from tests.conftest import missing
from tests.synthetic_run import listed
from tests.words import WORDS
from tsuishi.base.errors import EXIT_NOTHING_CHECKED, EXIT_VERDICT
from tsuishi.base.files import sha256_of
from tsuishi.results.directory import RunDirectory

pytestmark = pytest.mark.runs


class Runner:
    """What a runner of GitHub gives to a composite action: expressions, files, and steps one after the other."""

    def __init__(self, action: Path, workspace: Path) -> None:
        self.action, self.workspace = action, workspace
        self.described: dict[str, Any] = yaml.safe_load((action / "action.yml").read_text())
        self.summary, self.output = workspace / "summary.md", workspace / "output"

    def __call__(self, **inputs: str) -> tuple[int, str]:
        """Run the steps; the exit code of the last one that ran, and what they printed."""
        self.summary.write_text("")
        self.output.write_text("")
        given = {name: inputs.get(name, each["default"]) for name, each in self.described["inputs"].items()}
        values = {"github.workspace": str(self.workspace)}
        values |= {f"inputs.{name}": self._filled(text, values) for name, text in given.items()}
        code, printed = 0, ""
        for step in self.described["runs"]["steps"]:
            assert step["shell"] == "bash"
            environ = {name: self._filled(text, values) for name, text in step.get("env", {}).items()}
            runners = {"GITHUB_ACTION_PATH": self.action, "GITHUB_OUTPUT": self.output}
            environ |= {name: str(path) for name, path in {**runners, "GITHUB_STEP_SUMMARY": self.summary}.items()}
            bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                bash, cwd=self.workspace, env={**os.environ, **environ}, capture_output=True, text=True, check=False
            )
            code, printed = done.returncode, printed + done.stdout + done.stderr
            if code:
                break
        return code, printed

    @staticmethod
    def _filled(text: str, values: dict[str, str]) -> str:
        return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda match: values[match[1]], text)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    root = tmp_path_factory.mktemp("action")
    action, workspace = checkout(root / "action", "ok"), root / "a workspace"
    workspace.mkdir()
    (action / "action.yml").write_text((REAL.root / "action.yml").read_text())
    for name in ("invoke", "requirements.lock"):
        shutil.copy(REAL.root / name, action)
    if not (Path(sys.prefix) / "requirements.lock").exists():
        missing("a virtual environment that ./invoke made")
    (action / ".venv").symlink_to(sys.prefix)
    return Runner(action, workspace)


def report_of(runner: Runner) -> Path:
    (report,) = re.findall("report=(.*)", runner.output.read_text())
    return Path(report)


def test_its_steps_run_the_suite_and_give_the_page_and_the_summary(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("CACHE", runner.action / "cache"), ("HOST_PYTHON", sys.executable)):
        monkeypatch.setenv(f"INVOKE_TSUISHI_{name}", str(value))
    code, printed = runner(arguments="--env host --repetitions 3 --name first")
    assert code == 0, printed
    report = report_of(runner)
    assert report.parent == runner.workspace / "tsuishi" / "reports"
    assert (report / "index.html").is_file()
    assert runner.summary.read_text() == (report / "report.md").read_text()
    (run,) = (runner.workspace / "tsuishi" / "results").iterdir()

    # Against one run of today nothing can be decided: nothing is measured, and nothing is handed out.
    code, printed = runner(arguments="--env host --repetitions 3 --name second", baseline=str(run), slower="3")
    assert code == EXIT_NOTHING_CHECKED, printed
    assert "with today the runs have 1, their baseline has 1: nothing is measured." in printed
    assert (runner.output.read_text(), runner.summary.read_text()) == ("", "")
    assert [*(runner.workspace / "tsuishi" / "results").iterdir()] == [run]

    # Its exit code is that of the chain.
    code, printed = runner(arguments="--repetitions 3\n\n  --env nowhere\n")
    assert code == 1
    assert "unknown environment 'nowhere'" in printed, "options of all lines count"
    assert (runner.output.read_text(), runner.summary.read_text()) == ("", ""), "not those of the job before"
    code, _ = runner(arguments="--env nowhere", folder=f"{runner.workspace}/of a first job")
    assert code == 1


def on_day(run: Path, target: Path, day: int, times: float = 1.0) -> str:
    """A copy of a run as if it had been measured on that day, with times so many times as long; returns its path."""
    shutil.copytree(run, target)
    for name in ("run.json", *(str(path.relative_to(target)) for path in target.glob("trials/*/trial.json"))):
        text = re.sub(r"20\d\d-\d\d-\d\dT", f"2026-01-{day:02}T", (target / name).read_text())
        content = json.loads(text.replace(run.name, target.name))
        content.pop("mac", None)  # it is nobody's own run
        if samples := content.get("files", {}).get("samples.csv"):
            path = target / Path(name).with_name("samples.csv")
            rows = [*csv.DictReader(path.open(newline=""))]
            with path.open("w", newline="") as file:
                table = csv.DictWriter(file, rows[0], lineterminator="\n")
                table.writeheader()
                table.writerows({**row, "seconds": float(row["seconds"]) * times} for row in rows)
            samples |= {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        (target / name).write_text(json.dumps(content))
    directory = RunDirectory(target)
    directory.gather(WORDS)
    listed(directory)
    return str(target)


def test_its_steps_hold_three_days_against_three_earlier_days(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first form of the gate: green and red, where both sides have the days that it takes."""
    for name, value in (("CACHE", runner.action / "cache"), ("HOST_PYTHON", sys.executable)):
        monkeypatch.setenv(f"INVOKE_TSUISHI_{name}", str(value))
    folder = runner.workspace / "gate"
    code, printed = runner(arguments="--env host --repetitions 3 --name first", folder=str(folder))
    assert code == 0, printed
    (run,) = (folder / "results").iterdir()
    before = [on_day(run, folder / "before" / f"day-{day}", day) for day in (1, 2, 3)]
    faster = [on_day(run, folder / "faster" / f"day-{day}", day, times=0.1) for day in (1, 2, 3)]
    earlier = [on_day(run, folder / "earlier" / f"day-{day}", day) for day in (11, 12)]
    given = {"arguments": "--env host --repetitions 3", "runs": ",".join(earlier), "folder": str(folder), "slower": "3"}
    for baseline, expected in ((before, 0), (faster, EXIT_VERDICT)):
        code, printed = runner(baseline=",".join(baseline), **given)
        assert code == expected, printed
        assert ('failures="0"' in (report_of(runner) / "junit.xml").read_text()) == (expected == 0)
