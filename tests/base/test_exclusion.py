"""What one tsuishi at a time may do: by real processes, which are killed, of several users and caches."""

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import make_checkout
from tests.conftest import missing
from tests.run.test_runner import runner_process, samples_written, session, trials, wait_for
from tests.tiny_venv import tiny_checkout
from tsuishi.base import exclusion
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.plan.choice import Choice
from tsuishi.plan.planning import plan_builds_only, plan_run
from tsuishi.plan.session import Session
from tsuishi.results import trial_folders
from tsuishi.run.new_run import run_suite

ROOT = Path(__file__).parents[2]
NOBODY = 65534
# Holds a file or a machine, as the user asked for; a program that it starts outlives it.
HOLD = """
import os, subprocess, sys
from pathlib import Path
from tsuishi.base import exclusion
kind, name, user = sys.argv[1:]
os.setuid(int(user))
with exclusion.machine(name) if kind == "machine" else exclusion.file(Path(name), "measuring"):
    with subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL) as other:
        print(other.pid, flush=True)
"""
KINDS = ("file", "machine")


def hold(kind: str, name: str, doing: str) -> AbstractContextManager[None]:
    return exclusion.machine(name) if kind == "machine" else exclusion.file(Path(name), doing)


@contextmanager
def holder(kind: str, name: str, user: int = 0) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds it; what it has started is ended in the end."""
    command = [sys.executable, "-c", HOLD, kind, name, str(user or os.geteuid())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout
    started = int(process.stdout.readline())
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        os.kill(started, 9)


def name_of(kind: str, folder: Path) -> str:
    return str(folder / "deep" / ".lock") if kind == "file" else f"node 7 of {folder.name} {os.getpid()}"


def refused(kind: str, name: str, doing: str) -> str:
    with pytest.raises(UserError) as caught, hold(kind, name, doing):
        pytest.fail("two hold it")
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_holder_keeps_others_out_and_one_that_is_killed_does_not_whatever_it_has_started(
    kind: str, tmp_path: Path
) -> None:
    name = name_of(kind, tmp_path)
    with holder(kind, name) as process:
        who, doing = f"process {process.pid}", f"measuring on {name}"
        who += f" of {subprocess.check_output(['id', '--user', '--name'], text=True).strip()}" * (kind == "machine")
        for _ in range(3):
            assert refused(kind, name, doing) == f"another tsuishi ({who}) is {doing}; wait for it (--wait)"
        process.kill()
        process.wait()
        with hold(kind, name, doing):
            pass
        with hold(kind, name, doing):
            pass


def test_the_machine_is_one_for_all_users_each_sees_who_holds_it(tmp_path: Path) -> None:
    if os.geteuid():
        missing("no right to be another user")
    name = name_of("machine", tmp_path)
    with holder("machine", name, NOBODY) as process:
        told = f"another tsuishi (process {process.pid} of nobody) is measuring on {name}; wait for it (--wait)"
        assert refused("machine", name, "") == told
    with exclusion.machine(name):
        command = [sys.executable, "-c", HOLD, "machine", name, str(NOBODY)]
        other = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        assert (
            f"another tsuishi (process {os.getpid()} of root) is measuring on {name}; wait for it (--wait)"
            in other.stderr
        )


def test_a_part_of_a_machine_is_held_beside_another(tmp_path: Path) -> None:
    with exclusion.machine(f"{tmp_path.name} GPU 0"), exclusion.machine(f"{tmp_path.name} GPU 1"):
        pass


def test_a_process_of_another_container_is_told_as_that(tmp_path: Path) -> None:
    """Its pid means nothing here. Its network is this one's."""
    if os.geteuid():
        missing("no right to enter another pid namespace")
    name = name_of("machine", tmp_path)
    with exclusion.machine(name):
        command = ["unshare", "--pid", "--fork", sys.executable, "-c", HOLD, "machine", name, "0"]
        other = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert "another tsuishi (a process of root in another container) is measuring on" in other.stderr


def test_a_lock_in_a_folder_from_elsewhere_is_neither_waited_for_nor_followed(tmp_path: Path) -> None:
    victim, link, pipe, foreign = (tmp_path / name for name in ("victim", "link", "pipe", "foreign"))
    victim.write_text("precious")
    link.symlink_to(victim)
    os.mkfifo(pipe)
    assert refused("file", str(link), "measuring").startswith(f"{link}: Too many levels of symbolic links: make it a")
    assert refused("file", str(pipe), "measuring") == f"{pipe}: no regular file (a pipe, a device): remove it"
    assert victim.read_text() == "precious"
    foreign.write_text("12\x1b[2J")
    with foreign.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert refused("file", str(foreign), "measuring") == "another tsuishi is measuring; wait for it (--wait)"
    with exclusion.file(foreign, "measuring"):
        assert foreign.read_text() == str(os.getpid())
    assert foreign.read_text() == ""


def in_the_way(kind: str, chosen: Session) -> str:
    """The lock that a plan has to get."""
    return chosen.settings.exclusive_on if kind == "machine" else str(chosen.settings.cache / "building.lock")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_the_way_is_said_before_the_plan_and_waited_for_if_asked(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A build is in the way of a build, a measurement in the way of a measurement."""
    checkout, settings = tiny_checkout(tmp_path)
    if kind == "machine":
        checkout = make_checkout(tmp_path / "entered", "ok")
    more = {"exclusive_on": f"plans of {tmp_path.name} {os.getpid()}", "host_python": sys.executable}
    plan, environment = (plan_run, "host") if kind == "machine" else (plan_builds_only, "tiny")
    more["engine"] = "host" if kind == "machine" else "venv"
    chosen = Session(settings.model_copy(update=more), Choice(environments=(environment,)), Screen(), checkout)
    with holder(kind, in_the_way(kind, chosen)) as process:
        with pytest.raises(UserError, match=rf"^another tsuishi \(process {process.pid}.*; wait for it \(--wait\)$"):
            plan(chosen)
        assert capsys.readouterr().out == ""
        plan(chosen, only=True)
        capsys.readouterr()

        class Relieved(Screen):
            def say(self, text: str) -> None:
                super().say(text)
                if text.startswith("waiting: "):
                    process.kill()

        plan(replace(chosen, settings=chosen.settings.model_copy(update={"wait": True}), screen=Relieved()))
        first, *rest = capsys.readouterr().out.splitlines()
        assert first.startswith(f"waiting: another tsuishi (process {process.pid}")
        assert any(line.startswith("expected: ") for line in rest)


def test_what_is_built_is_measured_while_others_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_checkout(tmp_path, "ok")
    chosen = session(tmp_path)
    with holder("file", in_the_way("file", chosen)) as process:
        run = run_suite(chosen)
    assert {trial["status"] for trial in trials(run).values()} == {"ok"}
    said = capsys.readouterr().out
    assert said.startswith(f"beside this, another tsuishi (process {process.pid}) is ")


@pytest.mark.long
def test_two_runs_with_two_caches_at_once_would_disturb_each_other_and_are_refused(tmp_path: Path) -> None:
    make_checkout(tmp_path / "one", "sleeps")
    make_checkout(tmp_path / "other", "ok")
    child = runner_process(tmp_path / "one")
    try:
        wait_for(lambda: samples_written(tmp_path / "one"))
        with pytest.raises(UserError) as caught:
            run_suite(session(tmp_path / "other"))
        who = f"another tsuishi (process {child.pid} of "
        assert str(caught.value).startswith(who)
        assert str(caught.value).endswith(
            f") is measuring on {os.environ['INVOKE_TSUISHI_EXCLUSIVE_ON']}; wait for it (--wait)"
        )
        assert not (tmp_path / "other" / "results").exists()
    finally:
        child.kill()
        child.communicate()


@pytest.mark.long
def test_a_run_resumed_twice_at_once_from_two_caches_is_resumed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """On two machines that share the folder, say: nothing but the run itself keeps them apart."""
    make_checkout(tmp_path, "ok", "sleeps", profile="timeout_s = 1.0")
    run = run_suite(session(tmp_path))
    both = []
    for machine in ("one", "other"):
        monkeypatch.setenv("INVOKE_TSUISHI_EXCLUSIVE_ON", f"{machine} {tmp_path.name} {os.getpid()}")
        command = [sys.executable, "-m", "tests.resume_bench", str(tmp_path), str(tmp_path / machine)]
        given = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        both.append(subprocess.Popen(command, text=True, cwd=ROOT, **given))  # type: ignore[call-overload]
        request.addfinalizer(both[-1].kill)
    assert [process.stderr.readline() for process in both] == ["ready\n"] * 2
    for attempt in (2, 3, 4):
        for process in both:
            process.stdin.write("\n")
            process.stdin.flush()
        resumed, refused = sorted((process.stderr.readline() for process in both), reverse=True)
        assert resumed == "resumed\n"
        told = rf"another tsuishi( \(process \d+\))? is measuring run {run.id}; wait for it \(--wait\)\n"
        assert re.fullmatch(told, refused)
        assert {name: (one["status"], one["attempt"]) for name, one in trials(run).items()} == {
            "ok": ("ok", 1),
            "sleeps": ("timeout", attempt),
        }
        assert len(list(run.finished())) == attempt + 1
        assert len((run.path / "trials.csv").read_text().splitlines()) == attempt + 2
        assert not list(trial_folders.left_behind(run.trials))
