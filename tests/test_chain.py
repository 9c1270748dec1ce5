"""Chains of tasks as Invoke runs them: options shared, mistakes in one line, the exit code held back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TASKS = """
import os, signal
from invoke import task
from tsuishi.chain import ChainExecutor
from tsuishi.errors import BuildError, UserError

def say(name):
    print(name, ChainExecutor.tasks, sorted(ChainExecutor.options.items()), ChainExecutor.run_id, flush=True)

@task
def build(ctx, env="", engine="", plan=False, broken=False, stopped=False):
    say("build")
    if broken:
        raise BuildError("torch is 1.2, promised 1.1")
    if stopped:
        raise KeyboardInterrupt

@task(name="run-suite")
def run_suite(ctx, env="", repetitions="", fails=False, interrupted=False, terminated=False, bug=False):
    say("run-suite")
    ChainExecutor.run_id = "the-run"
    ChainExecutor.exit_code = 3 if fails else 0
    if interrupted:
        raise KeyboardInterrupt
    if terminated:
        os.kill(os.getpid(), signal.SIGTERM)
    if bug:
        raise KeyError("a bug")

@task
def report(ctx, run=""):
    say("report")

@task
def settings(ctx):
    from tsuishi.settings import read_settings
    found = read_settings(dict(ctx.config.tsuishi), ChainExecutor.variables, {})
    print(found.indexes, found.telemetry_interval, found.engine)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "invoke.yaml").write_text("tasks:\n  executor_class: tsuishi.chain.ChainExecutor\ntsuishi: {}\n")
    return tmp_path


def invoke(folder: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    given = {key: value for key, value in os.environ.items() if not key.startswith("INVOKE_")}
    given |= {"PYTHONPATH": str(ROOT), **environ}
    command = [sys.executable, "-m", "invoke", *arguments]
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False)


def test_options_given_to_any_task_hold_for_the_whole_chain(folder: Path) -> None:
    result = invoke(folder, "build", "--engine", "venv", "run-suite", "--env", "a,b", "report")
    assert (result.returncode, result.stderr) == (0, "")
    shared = "('build', 'run-suite', 'report') [('engine', 'venv'), ('env', 'a,b')]"
    assert result.stdout.splitlines() == [f"build {shared} ", f"run-suite {shared} ", f"report {shared} the-run"]


def test_the_same_option_given_twice_alike_is_no_conflict(folder: Path) -> None:
    result = invoke(folder, "build", "--env", "a", "run-suite", "--env", "a")
    assert (result.returncode, result.stderr) == (0, "")


def test_an_option_given_twice_differently_is_refused_before_anything_is_done(folder: Path) -> None:
    result = invoke(folder, "build", "--env", "a", "run-suite", "--env", "b")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == ("error: --env is given as 'a' and as 'b'; it holds for the whole chain: give it once\n")


def test_the_exit_code_of_a_failed_trial_comes_after_the_report(folder: Path) -> None:
    result = invoke(folder, "build", "run-suite", "--fails", "report")
    assert result.returncode == 3
    assert result.stderr == ""
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["build", "run-suite", "report"]


def test_a_users_mistake_is_one_line_and_ends_the_chain(folder: Path) -> None:
    result = invoke(folder, "build", "--broken", "run-suite")
    assert result.returncode == 1
    assert result.stderr == "error: torch is 1.2, promised 1.1\n"
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["build"]


@pytest.mark.parametrize("option", ["--interrupted", "--terminated"])
def test_ctrl_c_and_sigterm_end_the_chain_with_130(folder: Path, option: str) -> None:
    result = invoke(folder, "run-suite", option, "report")
    assert result.returncode == 130
    assert result.stderr == "interrupted; `invoke run-suite --resume latest` goes on\n"
    assert len(result.stdout.splitlines()) == 1


def test_what_is_interrupted_outside_a_run_goes_on_with_the_same_command(folder: Path) -> None:
    result = invoke(folder, "build", "--stopped")
    assert (result.returncode, result.stderr) == (130, "interrupted; the same command goes on\n")


def test_a_bug_keeps_its_traceback(folder: Path) -> None:
    result = invoke(folder, "run-suite", "--bug")
    assert result.returncode == 1
    assert result.stderr.startswith("Traceback (most recent call last):")
    assert result.stderr.endswith("KeyError: 'a bug'\n")


def test_variables_are_cast_by_tsuishi_and_not_by_invoke(folder: Path) -> None:
    """Invoke would refuse a variable in place of a list, and take int("0.5") where the file says 1."""
    with (folder / "invoke.yaml").open("w") as file:
        file.write("tasks:\n  executor_class: tsuishi.chain.ChainExecutor\n")
        file.write("tsuishi:\n  indexes: [https://a]\n  telemetry_interval: 1\n  engine: venv\n")
    result = invoke(folder, "settings")
    assert (result.stdout, result.stderr) == ("('https://a',) 1.0 venv\n", "")
    variables = {"INVOKE_TSUISHI_INDEXES": "https://b,https://c", "INVOKE_TSUISHI_TELEMETRY_INTERVAL": "0.5"}
    result = invoke(folder, "settings", **variables)
    assert (result.stdout, result.stderr) == ("('https://b', 'https://c') 0.5 venv\n", "")
    result = invoke(folder, "settings", INVOKE_TSUISHI_TELEMETRY_INTERVAL="false")
    assert result.returncode == 1
    assert result.stderr == (
        "error: settings: key 'telemetry_interval': input should be a valid number, "
        "unable to parse string as a number; given: 'false'\n"
    )
