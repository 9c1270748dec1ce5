"""An engine that dies in the middle of a run: one line, nothing lost, and --resume goes on. On a daemon of its own."""

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.engine import local_bases
from tests.engine.conftest import tiny_checkout
from tests.engine.test_docker import session
from tests.run.test_runner import samples_written, trials, wait_for
from tsuishi.base.settings import Settings
from tsuishi.results import directory
from tsuishi.run.executor import RunStopped
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume

pytestmark = pytest.mark.engine


@pytest.fixture
def daemon(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, settings: Settings):  # type: ignore[no-untyped-def]
    """The data root of a Docker daemon that only this test talks to, with the base images in it."""
    if os.geteuid() != 0 or not settings.mirrors:
        missing("no right to start a Docker daemon of its own, or no local base images")
    root = tmp_path_factory.mktemp("d")
    host = local_bases.engine(root, f"{root}/docker.sock")
    local_bases.bases(host)
    monkeypatch.setenv("DOCKER_HOST", host)
    yield root
    local_bases.stop(root)
    # A daemon that was killed leaves its data root mounted.
    subprocess.run(["umount", "--lazy", str(root)], check=False, capture_output=True)


def test_a_daemon_that_dies_is_one_line_and_resume_goes_on(tmp_path: Path, settings: Settings, daemon: Path) -> None:
    checkout = tiny_checkout(tmp_path, "ok", "sleeps", profile="timeout_s = 15.0")

    def kill_the_daemon() -> None:
        wait_for(lambda: samples_written(tmp_path, "sleeps"))
        os.kill(local_bases.running(daemon / "dockerd.pid", "dockerd") or 0, signal.SIGKILL)

    killer = threading.Thread(target=kill_the_daemon)
    killer.start()
    told = r"docker stopped answering: .*; start it again, then go on with `invoke run-suite --resume "
    with pytest.raises(RunStopped, match=told):
        run_suite(session(checkout, settings))
    killer.join()
    run = directory.open_run(tmp_path / "results")
    before = {name: trial["status"] for name, trial in trials(run).items()}
    assert before["sleeps"] == "failed"
    assert trials(run)["sleeps"]["reason"].startswith("docker stopped answering: ")
    local_bases.engine(daemon, f"{daemon}/docker.sock")
    work = session(checkout, settings)
    resume(work)
    after = trials(run)
    assert after["ok"]["status"] == "ok"
    assert after["ok"]["attempt"] == 1
    assert after["sleeps"]["attempt"] == 2
