"""Runs through a real Slurm of two nodes: the same trials as on this machine, and a row for whatever goes wrong."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

import pytest

from tests.bench import BEHAVIOURS, make_checkout
from tests.commands.test_tasks import checkout, invoke
from tests.extras.cluster.programs import wait_for
from tests.extras.cluster.slurm_cluster import NODES, SlurmCluster
from tests.run.test_runner import session
from tests.words import WORDS
from tsuishi.base.errors import UserError
from tsuishi.commands.listing import run_row
from tsuishi.extras.cluster import arrays
from tsuishi.extras.cluster.submission import detached
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory, open_run
from tsuishi.results.records import MachineRecord, TrialRecord
from tsuishi.results.verification import verify
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume

pytestmark = [pytest.mark.system, pytest.mark.timeout(150)]

Rows = list[tuple[str, int, str, str]]


def on_slurm(root: Path, **settings: Any) -> Session:
    return session(root, **{"executor": "slurm", "slurm_poll_s": 0.5, "slurm_lag_s": 1.0, **settings})


def records(run: RunDirectory) -> dict[str, TrialRecord]:
    return {trial.trial_id: trial for _, trial in run.finished()}


def rows(run: RunDirectory) -> Rows:
    """Behaviour, attempt, status and reason of every trial."""
    found = []
    for _, trial in run.finished():
        behaviour = BEHAVIOURS[run.case(trial.case_record)["devices"] - 1]
        found.append((behaviour, trial.attempt, trial.status, trial.reason or ""))
    return sorted(found)


def started(root: Path, count: int = 1) -> bool:
    """Whether so many trials are being written on nodes. A folder may be renamed meanwhile: Path.glob would raise."""
    return len(glob(f"{root}/results/*/trials/.partial-*/samples.csv")) >= count  # noqa: PTH207


def node_of(slurm: SlurmCluster, state: str = "RUNNING") -> str:
    """A node with a job in that state."""
    return slurm.command("squeue", "--noheader", f"--states={state}", "--format=%N").splitlines()[0]


def submitting(root: Path, *settings: str, **options: Any) -> "subprocess.Popen[str]":
    """A process of its own that submits the run of a checkout with settings as name=value, and waits for it."""
    command = [sys.executable, "-m", "tests.extras.cluster.submit", str(root), *settings]
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options}
    return subprocess.Popen(command, text=True, **given)


@contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    """Do something while the block runs, and pass its error on."""
    errors: list[BaseException] = []

    def act() -> None:
        try:
            action()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    yield
    thread.join()
    assert not errors, errors


def assert_whole(run: RunDirectory) -> None:
    """Nothing is left with Slurm or half-written, and every file is what its writer wrote."""
    assert not run.jobs.exists()
    assert not [path.name for path in run.trials.iterdir() if path.name.startswith(".")]
    assert verify(run, WORDS).faults == ()


def test_a_sweep_over_two_nodes_gives_the_rows_of_this_machine(slurm: SlurmCluster, tmp_path: Path) -> None:
    names = ("ok", "unsupported", "raises", "dies", "garbage", "skipped", "out_of_memory", "tells_its_variables")
    make_checkout(tmp_path, *names)
    here = run_suite(session(tmp_path), "here")
    there = run_suite(on_slurm(tmp_path), "there")
    assert rows(there) == rows(here)
    assert_whole(there)
    own, theirs = records(there), records(here)
    for name, record in own.items():
        assert record.environment_record == theirs[name].environment_record
        on_node, at_home = (
            run.record(each.machine_record or "") for run, each in ((there, record), (here, theirs[name]))
        )
        assert isinstance(on_node, MachineRecord)
        assert isinstance(at_home, MachineRecord)
        # A batch system limits its jobs; all else is the same, as both nodes are this machine.
        assert on_node.model_copy(update={"limits": None}) == at_home.model_copy(update={"limits": None})
        assert (record.settings or {}).keys() == (theirs[name].settings or {}).keys()
        if record.status == "ok":
            telemetry = (there.trials / name / "telemetry.csv").read_text().splitlines()
            assert len(telemetry) > 1
            assert "host" in telemetry[1]
    jobs = slurm.command("squeue", "--noheader", "--states=all", "--array", "--format=%j %K %N").splitlines()
    ours = [line.split() for line in jobs if there.id in line]
    assert {node for _, _, node in ours} == {*NODES}
    assert len(ours) == len(names)
    assert len({array for array, _, _ in ours}) == 2, "no array is larger than the site allows"


SLOW = """#!/bin/sh
# Answers once as a busy controller does, whatever it has done.
if mkdir "{folder}/{name}-was-asked" 2>/dev/null; then
    {before}
    echo "Socket timed out on send/recv operation" >&2
    exit 1
fi
exec {program} "$@"
"""


def test_an_array_whose_answer_was_lost_is_not_submitted_twice(
    slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, before in (("sbatch", '{program} "$@"'), ("squeue", "")):
        program = shutil.which(name, path=slurm.environ["PATH"])
        before = before.format(program=program)
        (programs / name).write_text(SLOW.format(folder=tmp_path, name=name, before=before, program=program))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{slurm.environ['PATH']}")
    monkeypatch.setattr(arrays, "_BETWEEN_S", 2.0)  # so long that a trial has ended before its array is known
    make_checkout(tmp_path, "ok", "short_sleep")
    run = run_suite(on_slurm(tmp_path))
    assert sorted(path.name for path in tmp_path.glob("*-was-asked")) == ["sbatch-was-asked", "squeue-was-asked"]
    assert [row[:3] for row in rows(run)] == [("ok", 1, "ok"), ("short_sleep", 1, "ok")]
    jobs = slurm.command("squeue", "--noheader", "--states=all", "--array", "--format=%j").splitlines()
    assert len([name for name in jobs if run.id in name]) == 2
    assert_whole(run)


STOPS = """
import sys, time
from tsuishi.extras.cluster.node import stop_on_sigterm
stop_on_sigterm()
try:
    print("ready", flush=True)
    time.sleep(60)
finally:
    time.sleep(0.5)
    print("stopped", flush=True)
"""


def test_a_second_sigterm_does_not_stop_what_stops() -> None:
    with subprocess.Popen([sys.executable, "-c", STOPS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        for _ in range(5):
            process.terminate()
            time.sleep(0.02)
        assert process.stdout.read() == "stopped\n"
    assert process.returncode == 128 + signal.SIGTERM


def test_the_whole_chain_runs_on_a_cluster_by_its_options(slurm: SlurmCluster, tmp_path: Path) -> None:
    root = checkout(tmp_path, "ok", "out_of_memory")
    options = ("--env", "host.host", "--executor", "slurm", "--partition", "main", "--time", "5")
    planned = invoke(root, "run-suite", *options, "--plan")
    assert planned.returncode == 0, planned.stderr
    assert re.search(
        r"^Slurm: 2 trials, at most 100 at once: [0-9.]+ node-hours and 0.00 GPU-hours expected, at most [0-9.]+ node-",
        planned.stdout,
        re.MULTILINE,
    )
    assert not (root / "results").exists()
    done = invoke(root, "build", "run-suite", "report", *options, INVOKE_TSUISHI_SLURM_POLL_S="0.5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 ok, 1 out_of_memory" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("index.html")
    limits = slurm.command("squeue", "--noheader", "--states=all", "--sort=-i", "--format=%P %l").splitlines()
    assert limits[0] == "main 5:00"


def killed_while_it_submits(root: Path, *behaviours: str, once: Callable[[], object] | None = None) -> RunDirectory:
    """A run whose submitting process was killed, while two of its trials run and others wait; or once it is time."""
    make_checkout(root, *behaviours)
    process = submitting(root)
    wait_for(once or (lambda: started(root, 2)), 60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return open_run(root / "results")


def test_a_submitting_process_that_is_killed_loses_nothing_and_its_run_goes_on(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    run = killed_while_it_submits(tmp_path, "ok", "short_sleep", "silent_for_long", "garbage")
    assert detached(run) > 0
    with pytest.raises(UserError, match=r"trials of run .* are with Slurm: go on with --executor slurm"):
        resume(session(tmp_path, executor="local"))
    time.sleep(4)  # some end while nobody looks
    resumed = resume(on_slurm(tmp_path))
    assert [row[:3] for row in rows(resumed)] == [
        ("garbage", 1, "ok"),
        ("ok", 1, "ok"),
        ("short_sleep", 1, "ok"),
        ("silent_for_long", 1, "ok"),
    ]
    assert_whole(resumed)


def test_jobs_that_slurm_forgot_are_rows_where_they_had_begun_and_all_their_trials_are_run(
    own_cluster: SlurmCluster, tmp_path: Path
) -> None:
    killed_while_it_submits(tmp_path, "short_sleep", "silent_for_long", "ok")
    own_cluster.forget_jobs()
    run = resume(on_slurm(tmp_path))
    after = rows(run)
    lost = [row for row in after if row[2] == "interrupted"]
    assert {row[3] for row in lost} == {"its job is gone, and Slurm does not know any more how it ended"}
    assert lost
    assert sorted(row[0] for row in after if row[2] == "ok") == ["ok", "short_sleep", "silent_for_long"]
    assert len(after) == 3 + len(lost)
    assert_whole(run)


def test_what_squeue_forgot_the_accounts_know(tmp_path: Path, accounting_cluster: SlurmCluster) -> None:
    slurm, long = accounting_cluster, BEHAVIOURS.index("silent_for_long") + 1
    run = killed_while_it_submits(
        tmp_path,
        *("short_sleep", "silent_for_long", "ok", "garbage"),
        once=lambda: list(tmp_path.glob(f"results/*/trials/.partial-*-d{long}-*/samples.csv")),
    )
    slurm.command("scancel", f"--user={os.geteuid()}")
    wait_for(lambda: not slurm.command("squeue", "--noheader", "--states=all"), 60)
    resumed = resume(on_slurm(tmp_path), run.id)
    after = rows(resumed)
    assert sorted(row[0] for row in after if row[2] == "ok") == ["garbage", "ok", "short_sleep", "silent_for_long"]
    reasons = {row[3] for row in after if row[2] == "interrupted"}
    on_nodes = {f"its job was cancelled on {name}" for name in NODES}
    assert reasons & on_nodes
    assert reasons <= {*on_nodes, "its job was cancelled before it started"}
    assert_whole(resumed)


def test_ctrl_c_without_a_terminal_detaches_and_a_resumption_gathers(slurm: SlurmCluster, tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "short_sleep", "garbage")
    process = submitting(tmp_path)
    wait_for(lambda: started(tmp_path), 60)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    run = open_run(tmp_path / "results")
    assert f"trials stay with Slurm; `invoke run-suite --resume {run.id}` gathers them" in said
    assert process.returncode == 130
    assert re.search(rf"with Slurm: \d trials?; --resume {run.id} gathers them", run_row(run.path)[-1])
    resumed = resume(on_slurm(tmp_path))
    assert [row[:3] for row in rows(resumed)] == [("garbage", 1, "ok"), ("ok", 1, "ok"), ("short_sleep", 1, "ok")]
    assert_whole(resumed)


def test_a_controller_that_is_restarted_costs_nothing(slurm: SlurmCluster, tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "short_sleep", "silent_for_long", "garbage")

    def restart() -> None:
        wait_for(lambda: started(tmp_path, 2), 60)
        slurm.stop_controller()
        time.sleep(5)  # jobs end, and nobody hears of it
        slurm.start_controller()

    with meanwhile(restart):
        run = run_suite(on_slurm(tmp_path))
    assert {row[1:3] for row in rows(run)} == {(1, "ok")}
    assert_whole(run)


def test_a_node_that_loses_its_power_is_a_failed_row_and_its_trial_runs_once_more(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    make_checkout(tmp_path, "silent_for_long", "ok")
    lost: list[str] = []

    def cut() -> None:
        wait_for(lambda: started(tmp_path) and slurm.command("squeue", "--noheader", "--states=RUNNING"), 60)
        wait_for(lambda: list(tmp_path.glob("results/*/trials/*.a1")), 60)  # only the long trial is left
        wait_for(lambda: len(slurm.command("squeue", "--noheader", "--states=RUNNING").splitlines()) == 1, 60)
        lost.append(node_of(slurm))
        assert slurm.kill_node(lost[0], power_cut=True)

    with meanwhile(cut):
        run = run_suite(on_slurm(tmp_path))
    assert rows(run) == [
        ("ok", 1, "ok", ""),
        ("silent_for_long", 1, "failed", f"node {lost[0]} failed (NODE_FAIL)"),
        ("silent_for_long", 2, "ok", ""),
    ]
    assert_whole(run)


def test_a_node_that_slurm_takes_for_dead_and_is_alive_commits_nothing_any_more(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    make_checkout(tmp_path, "silent_for_long")
    lost: list[str] = []

    def part() -> None:
        wait_for(lambda: started(tmp_path), 60)
        lost.append(node_of(slurm))
        assert slurm.kill_node(lost[0], power_cut=False)
        slurm.command("scontrol", "update", f"NodeName={lost[0]}", "State=DOWN", "Reason=parted")

    with meanwhile(part):
        run = run_suite(on_slurm(tmp_path))
    assert [row[:3] for row in rows(run)] == [("silent_for_long", 1, "failed"), ("silent_for_long", 2, "ok")]
    assert_whole(run)


def test_cancelled_and_preempted_jobs_are_interrupted_rows(slurm: SlurmCluster, tmp_path: Path) -> None:
    make_checkout(tmp_path, "silent_for_long")
    work = on_slurm(tmp_path)
    work = replace(work, choice=replace(work.choice, repetitions=3))

    def cancel() -> None:
        wait_for(lambda: started(tmp_path, 2), 60)
        waiting = slurm.command("squeue", "--noheader", "--array", "--states=PENDING", "--format=%i").split()
        running = slurm.command("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%i").split()
        slurm.command("scancel", *waiting, running[0])
        options = ("--partition=urgent", "--exclusive", "--nodes=2", "--output=/dev/null")
        slurm.command("sbatch", *options, "--wrap", "sleep 1")

    with meanwhile(cancel):
        run = run_suite(work)
    found = Counter((attempt, status, reason.rstrip("12")) for _, attempt, status, reason in rows(run))
    assert found == {
        (1, "interrupted", "its job was cancelled on n"): 1,
        (1, "interrupted", "its job was cancelled before it started"): 1,
        (1, "interrupted", "its job was preempted on n"): 1,
        (2, "ok", ""): 1,
    }
    assert_whole(run)


def test_ctrl_c_at_a_terminal_asks_and_cancels(slurm: SlurmCluster, tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "silent_for_long", "garbage", "sleeps")
    screen, terminal = pty.openpty()
    process = submitting(tmp_path, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    wait_for(lambda: started(tmp_path), 60)
    process.send_signal(signal.SIGINT)
    seen = b""
    while b"`cancel`" not in seen:
        assert select.select([screen], [], [], 30)[0], seen
        seen += os.read(screen, 1 << 16)
    os.write(screen, b"cancel\n")
    with suppress(OSError):  # the terminal is closed
        while select.select([screen], [], [], 60)[0] and os.read(screen, 1 << 16):
            pass
    assert process.wait(60) == 130
    os.close(screen)
    run = open_run(tmp_path / "results")
    assert len(rows(run)) == 4
    assert {row[2] for row in rows(run)} <= {"ok", "interrupted"}, rows(run)
    assert ("sleeps", 1, "interrupted") in [row[:3] for row in rows(run)]
    assert not slurm.command("squeue", "--noheader", "--partition=main", f"--name={run.id}")
    assert_whole(run)


def test_a_job_that_reaches_its_time_limit_is_a_timeout_with_the_remedy(slurm: SlurmCluster, tmp_path: Path) -> None:
    """A minute is the shortest limit."""
    make_checkout(tmp_path, "sleeps")
    run = run_suite(on_slurm(tmp_path, slurm_time="1"))
    ((behaviour, attempt, status, reason),) = rows(run)
    assert (behaviour, attempt, status) == ("sleeps", 1, "timeout")
    assert re.fullmatch(r"Slurm ended its job on n\d at the job's time limit; allow more with --time", reason)
    ((folder, _),) = run.finished()
    assert len((folder / "samples.csv").read_text().splitlines()) == 2, "what it had measured is kept"
    assert_whole(run)
