"""Chains of tasks as Invoke runs them: options shared, mistakes in one line, the exit code held back."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tsuishi.commands.options import Options

ROOT = Path(__file__).parents[2]
TASKS = """
import os, signal
from functools import partial
from tsuishi.base.option_table import Option
from tsuishi.commands import command_line
from tsuishi.base.errors import BuildError, UserError

task = partial(command_line.task, rows=[
    Option("env", "build run-suite lock", "environments to build"),
    *(Option(name, "build", "") for name in ("engine", "host-python")),
    *(Option(name, "build", "", switch=False) for name in ("plan", "broken", "stopped")),
    Option("locked-only", "build", "", switch=True),
    Option("repetitions", "run-suite", ""),
    *(Option(name, "run-suite", "", switch=False) for name in ("fails", "interrupted", "terminated", "bug")),
    Option("run", "report", ""),
    Option("fail-on", "report", ""),
    Option("name", "open-run", "the id of a run", positional=True),
])

def say(name, chain):
    print(name, chain.tasks, sorted(chain.options.given.items()), chain.run_id, flush=True)

@task
def build(chain):
    say("build", chain)
    if not chain.options.has("locked_only", default=True):
        print("locks first")
    if chain.options.has("broken"):
        raise BuildError("torch is 1.2, promised 1.1")
    if chain.options.has("stopped"):
        raise KeyboardInterrupt

@task
def run_suite(chain):
    given = chain.options
    say("run-suite", chain)
    chain.run_id = "the-run"
    if given.has("fails"):
        chain.end_with(3)
    if given.has("interrupted"):
        raise KeyboardInterrupt
    if given.has("terminated"):
        os.kill(os.getpid(), signal.SIGTERM)
    if given.has("bug"):
        raise KeyError("a bug")

@task
def report(chain):
    say("report", chain)

@task
def lock(chain):
    say("lock", chain)

@task
def open_run(chain):
    say("open-run", chain)

@task
def settings(chain):
    from tsuishi.base.settings import read_settings
    found = read_settings(chain.configured, chain.variables, {})
    print(found.indexes, found.telemetry_interval, found.engine)

namespace = command_line.collected(globals())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    configuration = "tasks:\n  executor_class: tsuishi.commands.chain.ChainExecutor\ntsuishi: {}\n"
    (tmp_path / "invoke.yaml").write_text(configuration)
    return tmp_path


def invoke(folder: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    given = {key: value for key, value in os.environ.items() if not key.startswith("INVOKE_")}
    given |= {"PYTHONPATH": str(ROOT), **environ}
    command = [sys.executable, "-m", "invoke", *arguments]
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False)


def with_task(folder: Path, name: str, body: str) -> None:
    """Add a task of another name; `stop` in its body is Ctrl-C."""
    head, tail = (folder / "tasks.py").read_text().split("namespace =")
    stop = "from tsuishi.commands.run_suite import measured_run\n\ndef stop():\n    raise KeyboardInterrupt\n"
    (folder / "tasks.py").write_text(f"{head}{stop}\n@task\ndef {name}(chain):\n    {body}\n\nnamespace ={tail}")


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


def test_options_of_every_task_of_the_main_job_may_stand_at_the_end(folder: Path) -> None:
    chain = ("build", "run-suite", "report")
    given = ("--env", "a", "--repetitions=3", "--plan", "--no-locked-only", "--host-python", "py", "--run", "report")
    result = invoke(folder, *chain, *given)
    assert (result.returncode, result.stderr) == (0, "")
    options = sorted(
        {
            "env": "a",
            "repetitions": "3",
            "plan": True,
            "locked_only": False,
            "host_python": "py",
            "run": "report",
        }.items()
    )
    first, locked, *rest = result.stdout.splitlines()
    assert [first, *rest] == [
        f"build {chain} {options} ",
        f"run-suite {chain} {options} ",
        f"report {chain} {options} the-run",
    ]
    assert locked == "locks first"


@pytest.mark.parametrize(
    "words",
    [
        "build --repetitions 3 run-suite report",
        "build run-suite --run=x report",
        "report --env a run-suite",
        "run-suite build --plan report --engine venv",
        "build run-suite report --engine venv --env tf1.13-cpu",
    ],
)
def test_options_of_the_main_job_may_stand_anywhere_behind_its_first_task(folder: Path, words: str) -> None:
    result = invoke(folder, *words.split())
    assert (result.returncode, result.stderr) == (0, "")
    tasks = [word for word in words.split() if word in ("build", "run-suite", "report")]
    assert [line.split()[0] for line in result.stdout.splitlines()] == tasks


def test_a_failed_trial_and_interruptions_keep_their_exit_codes_with_options_at_the_end(folder: Path) -> None:
    assert invoke(folder, "build", "run-suite", "report", "--fails").returncode == 3
    assert invoke(folder, "build", "run-suite", "report", "--interrupted").returncode == 130


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("build run-suite report --repetitoins 3", "unknown option --repetitoins; did you mean --repetitions?"),
        ("build --plna", "unknown option --plna; did you mean --plan?"),
        ("lock --evn=a", "unknown option --evn; did you mean --env?"),
        ("build --no-locked-onyl", "unknown option --no-locked-onyl; did you mean --no-locked-only?"),
        ("--lits", "unknown option --lits; did you mean --list?"),
        ("report --zzz", "unknown option --zzz; see `invoke --help report`"),
        (
            "biuld run-suite",
            "unknown task 'biuld'; did you mean 'build'? known: build, lock, open-run, report, run-suite, settings",
        ),
        (
            "--help biuld",
            "unknown task 'biuld'; did you mean 'build'? known: build, lock, open-run, report, run-suite, settings",
        ),
        ("it's", "unknown task 'it's'; known: build, lock, open-run, report, run-suite, settings"),
        (
            "--list biuld",
            "--list takes no name: `invoke --list` shows all tasks, `invoke --help biuld` this task",
        ),
        ("open-run", "`open-run` needs its name: the id of a run"),
        ("report --repetitions", "--repetitions needs a value"),
        ("build --env --plan", "--env needs a value"),
        (
            "run-suite --fail-on contradicted",
            "--fail-on belongs to `report`, which is not in this chain: add it, or leave --fail-on out",
        ),
        (
            "report --host-python py",
            "--host-python belongs to `build`, which is not in this chain: add it, or leave --host-python out",
        ),
        ("build lock --repetitions 3 run-suite", "--repetitions is no option of `lock`: write it behind `run-suite`"),
        ("--repetitions 3 run-suite", "--repetitions stands before the first task: write it behind `run-suite`"),
        (
            "build report --env a --env b",
            "--env is given as 'a' and as 'b'; it holds for the whole chain: give it once",
        ),
        (
            "build report --env=a --env=b run-suite",
            "--env is given as 'a' and as 'b'; it holds for the whole chain: give it once",
        ),
        (
            "build --locked-only report --no-locked-only",
            "--locked-only and --no-locked-only are both given; one of them holds for the whole chain: give it once",
        ),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_before_anything_is_done(
    folder: Path, words: str, message: str
) -> None:
    result = invoke(folder, *words.split())
    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"error: {message}\n")


def test_help_explains_a_tasks_own_options_and_names_the_other_tasks_of_the_main_job(folder: Path) -> None:
    shown = invoke(folder, "--help", "build").stdout
    assert re.search(r"--env=STRING +environments to build\n", shown)
    assert not re.search("--repetitions|--run=", shown)
    assert "options of the other tasks, too: `invoke --help run-suite`, `invoke --help report`\n" in shown
    assert invoke(folder, "build", "--help").stdout == shown
    assert "repetitions" not in invoke(folder, "--help", "lock").stdout


def test_help_is_no_argument_of_a_task_that_takes_one_without_a_flag(folder: Path) -> None:
    asked = invoke(folder, "open-run", "--help")
    assert (asked.returncode, asked.stdout) == (0, invoke(folder, "--help", "open-run").stdout)
    assert "open-run" in asked.stdout


def test_a_shell_is_offered_the_options_of_the_whole_main_job(folder: Path) -> None:
    offered = invoke(folder, "--complete", "--", "invoke build --").stdout.split()
    assert {"--env", "--repetitions", "--fail-on"} <= set(offered)


def test_the_plain_invoke_command_reads_options_the_same(folder: Path) -> None:
    """Without `python -m`: the console script starts Invoke's program by another way."""
    script = Path(sys.executable).with_name("invoke")
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [script, "build", "run-suite", "report", "--repetitions", "3"],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert len(result.stdout.splitlines()) == 3


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


def test_a_run_that_another_task_makes_goes_on_with_run_suite(folder: Path) -> None:
    with_task(folder, "run_again", "measured_run(chain, stop)")
    result = invoke(folder, "run-again")
    assert (result.returncode, result.stderr) == (130, "interrupted; `invoke run-suite --resume latest` goes on\n")


def test_what_is_interrupted_outside_a_run_goes_on_with_the_same_command(folder: Path) -> None:
    result = invoke(folder, "build", "--stopped")
    assert (result.returncode, result.stderr) == (130, "interrupted; the same command goes on\n")


def test_a_bug_keeps_its_traceback(folder: Path) -> None:
    result = invoke(folder, "run-suite", "--bug")
    assert result.returncode == 1
    assert result.stderr.startswith("Traceback (most recent call last):")
    assert result.stderr.endswith("KeyError: 'a bug'\n")


@pytest.mark.long
def test_variables_are_cast_by_tsuishi_and_not_by_invoke(folder: Path) -> None:
    """Invoke would refuse a variable in place of a list, and take int("0.5") where the file says 1."""
    with (folder / "invoke.yaml").open("w") as file:
        file.write("tasks:\n  executor_class: tsuishi.commands.chain.ChainExecutor\n")
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


def test_a_path_with_commas_is_one_path_where_it_exists(tmp_path: Path) -> None:
    for name in ("a,b, c", "d"):
        (tmp_path / name).mkdir()
    for folder, before in ((tmp_path, ""), (Path(), f"{tmp_path}/")):
        options = Options({"run": f"{before}a,b, c, {before}d,{before}gone,e,{before}d"})
        found = options.paths("run", folder)
        assert found == (*(f"{before}{name}" for name in ("a,b, c", "d", "gone")), "e")
    assert Options({}).paths("run") == ()
