"""What other commands say of a run that is being measured, and do to it: by real processes."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.commands.test_tasks import checkout, invoke, invoking
from tests.run.test_runner import runner_process, samples_written, wait_for
from tsuishi.results.directory import RunDirectory, open_run


@pytest.fixture
def runner(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that measures a run whose trial would take ten minutes."""
    process = runner_process(checkout(tmp_path, "ok", "sleeps"))
    wait_for(lambda: samples_written(tmp_path))
    yield process
    process.kill()
    process.wait()


def ended(runner: "subprocess.Popen[str]", root: Path) -> RunDirectory:
    """The run after Ctrl-C."""
    os.kill(runner.pid, signal.SIGINT)
    runner.wait()
    return open_run(root / "results")


@pytest.mark.long
def test_nothing_is_removed_from_a_living_run_and_a_run_that_has_ended_goes(
    runner: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    before = open_run(tmp_path / "results")
    ended_run = tmp_path / "results" / "20200101-000000-ended"
    ended_run.mkdir()
    (ended_run / "run.json").write_bytes((before.path / "run.json").read_bytes())
    cleaned = invoke(tmp_path, "clean", "--results")
    holder = f"another tsuishi (process {runner.pid}) is measuring run {before.id}; wait for it (--wait)"
    assert cleaned.stdout.splitlines() == [f"removed results/{ended_run.name}", f"left results/{before.id}: {holder}"]
    assert (cleaned.returncode, cleaned.stderr, ended_run.exists()) == (0, "", False)
    doctor = invoke(tmp_path, "doctor", "--remove-strays")
    assert (doctor.stderr, before.id in doctor.stdout) == ("", False)
    statuses = sorted(trial.status for _, trial in ended(runner, tmp_path).finished())
    assert statuses in (["interrupted", "ok"], ["interrupted"]), "both trials, in any order"
    assert invoke(tmp_path, "verify").returncode == 0
    assert invoke(tmp_path, "clean", "--results").stdout == f"removed results/{before.id}\n"


@pytest.mark.long
def test_images_and_the_cache_stay_while_a_run_is_measured(runner: "subprocess.Popen[str]", tmp_path: Path) -> None:
    kept = tmp_path / "cache" / "artifacts"
    kept.mkdir(parents=True, exist_ok=True)
    refused = invoke(tmp_path, "clean", "--cache", "--results")
    assert re.fullmatch(rf"error: another tsuishi \(process {runner.pid} of \w+\) is measuring on .*\n", refused.stderr)
    assert kept.exists()


@pytest.mark.long
def test_a_living_run_is_neither_altered_nor_left_by_a_killed_runner(
    runner: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    run, by = open_run(tmp_path / "results"), f"being measured by process {runner.pid}"
    listed = invoke(tmp_path, "list").stdout
    assert by in listed
    assert "altered" not in listed
    verified = invoke(tmp_path, "verify")
    assert verified.stderr == f"error: run {run.id} is {by}: verify it when that has ended\n"
    assert (verified.stdout, verified.returncode) == ("", 1)
    reported = invoke(tmp_path, "report", "--out", "living")
    assert reported.returncode == 0, reported.stderr
    page = (tmp_path / "reports" / "out" / "living" / "details.md").read_text(encoding="utf-8")
    assert "being measured" in page
    assert "altered: " not in page
    ended(runner, tmp_path)
    assert by not in invoke(tmp_path, "list").stdout
    assert invoke(tmp_path, "verify").returncode == 0


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM])
def test_a_signal_that_ends_a_run_is_told_as_ctrl_c_is(tmp_path: Path, number: signal.Signals) -> None:
    root = checkout(tmp_path, "sleeps")
    with invoking(root, "run-suite", "--env", "host") as process:
        wait_for(lambda: samples_written(root))
        process.send_signal(number)
        _, said = process.communicate()
    assert (process.returncode, said) == (130, "interrupted; `invoke run-suite --resume latest` goes on\n")
    (trial,) = (trial for _, trial in open_run(root / "results").finished())
    assert trial.status == "interrupted"


@pytest.mark.long
def test_a_lost_terminal_ends_nothing_under_nohup(tmp_path: Path) -> None:
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = invoking(checkout(tmp_path, "short_sleep"), "run-suite", "--env", "host")
    finally:
        signal.signal(signal.SIGHUP, ignored)
    wait_for(lambda: list(tmp_path.glob("results/*/trials/.partial-*")))
    process.send_signal(signal.SIGHUP)
    assert (process.communicate()[1], process.returncode) == ("", 0)


@pytest.mark.long
def test_ctrl_z_stops_neither_the_runner_nor_its_trial(runner: "subprocess.Popen[str]", tmp_path: Path) -> None:
    os.kill(runner.pid, signal.SIGTSTP)
    assert runner.stdout
    line = next(line for line in runner.stdout if "Ctrl-Z" in line)
    told = "Ctrl-Z does not stop a run, whose trial would go on alone: Ctrl-C ends it, and --resume goes on with it"
    assert line.strip() == told
    assert psutil.Process(runner.pid).status() != psutil.STATUS_STOPPED
    assert ended(runner, tmp_path).measured_by() == ""
