"""What killed calls leave is shown and removed; what belongs to a living process is left alone."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.bench import make_checkout
from tests.run.test_runner import daemons, samples_written, session, trials, wait_for
from tests.run.test_sampler import NoGpus
from tests.synthetic_run import TORCH, SyntheticRun, steady_samples, training_case
from tsuishi.base import files, owner
from tsuishi.engines.subprocesses import ChildProcess, abandoned_scratch
from tsuishi.environments import doctor, strays
from tsuishi.plan.session import Session
from tsuishi.results import directory
from tsuishi.run.resume import resume

pytestmark = pytest.mark.runs


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of these tests alone."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.fixture
def runner(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["subprocess.Popen[bytes]"]:
    """A run that measures without a sandbox, whose workload waits and has started a daemon."""
    make_checkout(tmp_path, "waits_with_a_daemon", profile="timeout_s = 5.0")
    monkeypatch.setattr(owner, "MARK", "TSUISHI_TRIAL_OF_STRAYS")
    command = [sys.executable, "-m", "tests.run_bench", str(tmp_path), owner.MARK]
    variables = {**os.environ, "PATH": "/nowhere"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables) as child:
        wait_for(lambda: samples_written(tmp_path) and daemons(tmp_path))
        yield child
        child.kill()
    for process in daemons(tmp_path):
        with suppress(psutil.NoSuchProcess):  # it may end by itself meanwhile
            process.kill()


def found(work: Session) -> list[str]:
    """The strays of this session: other tests run beside, so those of the machine are filtered by its folders."""
    return [stray.what for stray in strays.find(work.builder.engines, work.settings)]


def kill_with_its_supervisor(runner: "subprocess.Popen[bytes]") -> None:
    """Nothing else can leave a process behind."""
    (supervisor,) = psutil.Process(runner.pid).children()
    supervisor.suspend()
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    supervisor.kill()


def test_nothing_of_a_living_run_is_a_stray(runner: "subprocess.Popen[bytes]", tmp_path: Path, temporary: Path) -> None:
    work = session(tmp_path)
    assert not [what for what in found(work) if str(tmp_path) in what or "of run" in what]
    list(strays.remove(work.builder.engines, work.settings))
    assert daemons(tmp_path)
    assert runner.poll() is None
    assert list(temporary.glob("tsuishi-*"))
    assert list(tmp_path.glob("results/*/trials/.partial-*"))


def test_what_a_killed_run_left_is_shown_and_removed_and_the_run_resumes(
    runner: "subprocess.Popen[bytes]", tmp_path: Path, temporary: Path
) -> None:
    kill_with_its_supervisor(runner)
    work, (left,) = session(tmp_path), daemons(tmp_path)
    (scratch,) = temporary.glob("tsuishi-*")
    run = directory.open_run(tmp_path / "results")
    again = f"of run {run.id}: begun by a call that was killed; `invoke run-suite --resume {run.id}` records it"
    shown = found(work)
    (trial,) = (what for what in shown if what.endswith(again))
    ours = {
        f"process {left.pid} ({left.name()}): of a trial whose runner was killed",
        f"folder {scratch}: of a call that was killed",
        trial,
    }
    assert ours <= set(shown), "shown has the strays of other tests, too"
    assert ours <= set(strays.remove(work.builder.engines, work.settings))
    assert not daemons(tmp_path)
    assert not list(temporary.iterdir())
    assert not list(run.trials.glob(".partial-*"))
    assert not [what for what in found(work) if str(tmp_path) in what or "of run" in what]
    resumed = resume(session(tmp_path, host_python=sys.executable))
    assert [trial["status"] for trial in trials(resumed).values()] == ["timeout"]


def test_a_trial_that_is_whole_but_for_its_name_is_not_removed(tmp_path: Path, temporary: Path) -> None:
    """It has been measured; --resume gives it its name."""
    run = SyntheticRun(tmp_path / "results" / "20261101-080000-quick")
    name = run.add(training_case(32), TORCH, steady_samples(32, [1.0] * 4))
    run.finish()
    whole = run.directory.trials / name
    partial = whole.rename(whole.with_name(f".partial-{name}"))
    make_checkout(tmp_path, "ok")
    work = session(tmp_path)
    assert [what for what in found(work) if f"trial {name} of run" in what and "whole, without its name" in what]
    assert not [what for what in strays.remove(work.builder.engines, work.settings) if name in what]
    assert partial.exists()


KILLED_WITH_A_FOLDER = """
import os, signal, sys
from pathlib import Path
from tsuishi.base import files
with files.temporary_folder(Path(sys.argv[1]), ".wheelhouse-"), files.private_folder():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_temporary_folders_of_killed_calls_are_removed_and_those_in_use_stay(tmp_path: Path, temporary: Path) -> None:
    make_checkout(tmp_path, "ok")
    work = session(tmp_path)
    place = work.settings.cache / "venvs"
    place.mkdir(parents=True)
    subprocess.run([sys.executable, "-c", KILLED_WITH_A_FOLDER, str(place)], check=False)
    (in_cache,), (private,) = place.iterdir(), temporary.iterdir()
    assert private.stat().st_mode & 0o077 == 0, "others cannot read it"
    with files.temporary_folder(work.settings.results, ".run-") as in_use:
        assert {f"folder {folder}: of a call that was killed" for folder in (in_cache, private)} <= set(found(work))
        list(strays.remove(work.builder.engines, work.settings))
        assert in_use.exists()
    assert not in_cache.exists()
    assert not private.exists()


def test_a_folder_of_a_workload_that_still_runs_is_no_stray(temporary: Path) -> None:
    scratch = temporary / f"tsuishi-{'0' * 32}"
    command = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)"]
    process = ChildProcess(command, {"HOME": str(scratch)}, str(scratch))
    try:
        next(iter(process.output()))
        assert scratch.exists()
        assert abandoned_scratch() == []
    finally:
        process.stop()
        process.wait()
    scratch.mkdir()
    assert abandoned_scratch() == [scratch]


@pytest.mark.usefixtures("temporary")
def test_processes_that_end_while_they_are_looked_at_do_no_harm() -> None:
    ends_all_the_time = "import subprocess\nprint('ready', flush=True)\nwhile True: subprocess.run(['true'])"
    process = ChildProcess([sys.executable, "-c", ends_all_the_time], {"PATH": os.environ["PATH"]})
    try:
        next(iter(process.output()))
        assert [abandoned_scratch() for _ in range(300)] == [[]] * 300
    finally:
        process.stop()
        process.wait()


def test_doctor_names_strays_and_removes_them_on_request(
    tmp_path: Path, temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_checkout(tmp_path, "ok")
    work = session(tmp_path)
    left = work.settings.cache / ".unseen-01234567"
    left.mkdir(parents=True)
    doctor.examine(work.builder, NoGpus(), work.screen)
    said = " ".join(capsys.readouterr().out.split())
    assert f"stray folder {left}: of a call that was killed" in said
    assert "`invoke doctor --remove-strays` removes what a killed call has left" in said
    assert left.exists()
    doctor.remove_strays(work.builder, work.screen)
    said = " ".join(capsys.readouterr().out.split())
    assert f"removed folder {left}: of a call that was killed" in said
    assert not left.exists()
    doctor.examine(work.builder, NoGpus(), work.screen)
    assert str(left) not in capsys.readouterr().out
