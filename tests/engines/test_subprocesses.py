"""What a workload without a container is started with, and that nothing it starts outlives it, however it ends."""

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.conftest import missing
from tests.pinned import environment
from tsuishi.base import owner
from tsuishi.engines import sandbox
from tsuishi.engines.interface import Built, Launch, ResourceLimits
from tsuishi.engines.subprocesses import ChildProcess, ProcessStarter, abandoned_programs, end_abandoned
from tsuishi.machine.gpus import Gpu
from tsuishi.stream.listener import Timeout, Transcript, listen

PYTHON = sys.executable
BUILT = Built(environment(()), "host", "", "", "", (PYTHON,))
SHOW = "import os\nfor name, value in os.environ.items(): print(name, value)"
# What users have, by its kind: credentials, sockets, what changes a measurement, what belongs to another Python.
OF_A_USER = {
    **dict.fromkeys(("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HF_TOKEN", "MY_OWN_PASSWORD"), "hunter2"),
    **dict.fromkeys(("HTTPS_PROXY", "http_proxy"), "http://ada:hunter2@proxy.example"),
    **dict.fromkeys(("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS"), "/run/hunter2"),
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_XLA_FLAGS", "XLA_FLAGS", "LD_PRELOAD"), ""),
    **dict.fromkeys(("PYTHONPATH", "PYTHONSTARTUP", "VIRTUAL_ENV", "CONDA_PREFIX", "LC_ALL"), "hunter2"),
}


def without_bwrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """PATH as it is on a machine without bubblewrap."""
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.fixture(autouse=True)
def tried_anew() -> Iterator[None]:
    """Whether a sandbox works is not known from another test."""
    sandbox.why_none.cache_clear()
    yield
    sandbox.why_none.cache_clear()


@pytest.fixture(params=["sandbox", "no_sandbox"])
def walls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether trials run in a sandbox."""
    if request.param == "no_sandbox":
        without_bwrap(monkeypatch)
    elif why := sandbox.why_none(PYTHON):
        missing(why)
    return bool(request.param == "sandbox")


def started(
    *arguments: str,
    limits: ResourceLimits = ResourceLimits(),  # noqa: B008
    mounts: dict[Path, str] | None = None,
) -> ChildProcess:
    process = ProcessStarter().start(BUILT, Launch(arguments, mounts or {}, "name", {}, limits))
    assert isinstance(process, ChildProcess)
    return process


def said(process: ChildProcess, timeout_s: float = 20) -> str:
    log = bytearray()
    listen(process, Transcript(), time.monotonic(), timeout_s, lambda event: None, log.extend)
    return log.decode()


def variables(limits: ResourceLimits = ResourceLimits()) -> dict[str, str]:  # noqa: B008
    """The variables a workload sees."""
    return dict(line.split(" ", 1) for line in said(started("-c", SHOW, limits=limits)).splitlines())


def test_a_workload_sees_its_gpus_by_uuid_and_counts_them_as_nvml_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA alone numbers the fastest first, and telemetry would watch another GPU than the one that works."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    found = variables(ResourceLimits(gpus=(Gpu(0, "GPU-a"), Gpu(3, "GPU-b"))))
    assert (found["CUDA_VISIBLE_DEVICES"], found["CUDA_DEVICE_ORDER"]) == ("GPU-a,GPU-b", "PCI_BUS_ID")


def test_of_the_users_variables_a_workload_gets_those_that_say_where_cuda_is(
    walls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64", "CUDA_HOME": "/usr/local/cuda", "CUDA_VISIBLE_DEVICES": "1"}
    for name in ("CUDA_PATH", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**OF_A_USER, **needed}.items():
        monkeypatch.setenv(name, value)
    found = variables()
    ours = {"PATH", "HOME", "TMPDIR", "LANG", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "TSUISHI_TRIAL"}
    assert found.keys() - {"PWD", "LC_CTYPE"} == ours | needed.keys()  # bubblewrap and Python set two of their own
    assert {name: found[name] for name in needed} == needed
    assert found["PATH"] == f"{Path(PYTHON).parent}:/usr/local/bin:/usr/bin:/bin"
    recorded = ProcessStarter().confinement(PYTHON)
    assert recorded["variables"] == sorted(needed, key=[*needed].index)
    digest = hashlib.sha256(b"/usr/local/cuda/lib64").hexdigest()[:12]
    assert (recorded["folders"].keys(), recorded["folders"]["LD_LIBRARY_PATH"]) == (
        {*needed} - {"CUDA_VISIBLE_DEVICES"},
        digest,
    )


def test_without_a_sandbox_a_workload_has_a_home_of_its_own_for_as_long_as_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_bwrap(monkeypatch)
    code = (
        "import os, stat; home = os.environ['HOME']; open(home + '/x', 'w').close(); print(home, os.stat(home).st_mode)"
    )
    home, mode = said(started("-c", code)).split()
    assert Path(home).parent == Path(tempfile.gettempdir())
    assert int(mode) & 0o777 == 0o700
    assert not Path(home).exists()


def test_what_cannot_be_started_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        ChildProcess(["/no/such/python"], {})
    assert caught.value.filename == "/no/such/python"


# Leaves session and parent, drops its variables, ignores what can be ignored, and works without end; {token} tells it
# from others.
DAEMON = """
import os, signal, subprocess, sys, time
code = "import signal\\nfor one in (1, 2, 15): signal.signal(one, signal.SIG_IGN)\\nwhile True: pass"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c", code, "{token}"], {{}})
    os._exit(0)
os.wait()
time.sleep(0.2)
os.write(1, b"ready\\n")
time.sleep({seconds})
"""
# Two of each generation until there were 300, and a line of descendants of which each ends once it has a child.
BOMB = """
import os, time
reading, writing = os.pipe()
os.write(writing, b"x" * 300)
os.set_blocking(reading, False)
os.write(1, b"ready\\n")
if os.fork() == 0:
    while True:
        if os.fork():
            os._exit(0)
try:
    while os.read(reading, 1):
        os.fork()
except BlockingIOError:
    time.sleep(60)
"""
RUNNER = """
import sys
from tests.pinned import environment
from tsuishi.base import owner
from tsuishi.engines.interface import Built, Launch
from tsuishi.engines.subprocesses import ProcessStarter
owner.MARK = "TSUISHI_TRIAL_OF_A_TEST"  # every other run on this machine ends what it finds by the usual variable
built = Built(environment(()), "host", "", "", "", (sys.executable,))
process = ProcessStarter().start(built, Launch(tuple(sys.argv[1:]), {}, "name", {}))
for piece in process.output():
    print("heard", flush=True)
"""


def running(token: str) -> list[psutil.Process]:
    """The processes that have the token among their arguments."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if process.info["status"] != psutil.STATUS_ZOMBIE and token in " ".join(process.info["cmdline"] or ()):
            found.append(process)
    return found


def gone(token: str) -> bool:
    end = time.monotonic() + 10
    while running(token) and time.monotonic() < end:
        time.sleep(0.02)
    return not running(token)


@pytest.fixture
def token(tmp_path: Path) -> Iterator[str]:
    """What the processes of this test have among their arguments; none of them is left behind."""
    yield f"token-of-{tmp_path.parent.name}-{tmp_path.name}"
    for process in running(f"token-of-{tmp_path.parent.name}-{tmp_path.name}"):
        process.kill()


def test_a_daemon_has_ended_when_its_trial_has(walls: bool, token: str) -> None:
    assert said(started("-c", DAEMON.format(token=token, seconds=0))) == "ready\n"
    assert not running(token)


def test_a_daemon_ends_with_a_trial_that_takes_too_long(walls: bool, token: str) -> None:
    with pytest.raises(Timeout):
        said(started("-c", DAEMON.format(token=token, seconds=60)), timeout_s=1)
    assert not running(token)


def test_many_that_start_many_are_ended(walls: bool, token: str) -> None:
    process = started("-c", BOMB, token)
    output = process.output()
    next(output)
    time.sleep(0.2)
    assert running(token)
    process.stop()
    for _ in output:
        """Of those that are being ended, some say that they could not fork."""
    assert process.wait().code in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert not running(token)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_a_daemon_ends_with_the_runner(walls: bool, token: str, stop: signal.Signals) -> None:
    with subprocess.Popen(
        [PYTHON, "-c", RUNNER, "-c", DAEMON.format(token=token, seconds=60)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    ) as runner:
        assert runner.stdout
        assert runner.stdout.readline() == b"heard\n"
        assert running(token)
        runner.send_signal(stop)
    assert gone(token)


def supervisor_of(process: ChildProcess) -> psutil.Process:
    found = psutil.Process(process.pids()[0]).parent()
    assert found is not None
    return found


def test_a_daemon_ends_with_a_supervisor_that_somebody_kills(walls: bool, token: str) -> None:
    process = started("-c", DAEMON.format(token=token, seconds=60))
    for _ in process.output():
        assert running(token)
        supervisor_of(process).kill()
    assert process.wait().code == -signal.SIGKILL
    assert gone(token)


def test_a_stopped_supervisor_does_not_hold_up_the_end(walls: bool, token: str) -> None:
    process = started("-c", DAEMON.format(token=token, seconds=60))
    supervisor_of(process).suspend()
    with pytest.raises(Timeout):
        said(process, timeout_s=1)
    assert gone(token)


def test_a_process_whose_runner_is_on_another_machine_is_left_alone(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_bwrap(monkeypatch)
    process = started("-c", f"import time; print('{token}', flush=True); time.sleep(60)")
    try:
        next(iter(process.output()))
        monkeypatch.setattr(owner, "_boot", lambda: "0" * 36)
        end_abandoned()
        assert psutil.pid_exists(process.pids()[0])
        assert abandoned_programs() == []
    finally:
        process.stop()
        process.wait()


def test_what_outlived_runner_and_supervisor_is_ended_before_the_next_run(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only without a sandbox can anything do so; and a trial whose runner lives is left alone.

    It is found by its variables: docs/faults.md says so.
    """
    without_bwrap(monkeypatch)
    monkeypatch.setattr(owner, "MARK", "TSUISHI_TRIAL_OF_A_TEST")
    daemon = DAEMON.format(token=token, seconds=60).replace("], {})", "], os.environ)")
    with subprocess.Popen(
        [PYTHON, "-c", RUNNER, "-c", daemon],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as runner:
        assert runner.stdout
        runner.stdout.readline()
        end_abandoned()
        assert running(token)
        (supervisor,) = psutil.Process(runner.pid).children()
        supervisor.suspend()
        runner.kill()
        runner.wait()
        supervisor.kill()
    assert [process for process in running(token) if "while True" in process.info["cmdline"][2]]
    end_abandoned()
    assert not running(token)


def test_what_cuda_compiles_outlives_a_trial_on_a_gpu(walls: bool, tmp_path: Path) -> None:
    """A sandbox is read-only but for this folder."""
    code = """if True:
        import os, pathlib
        kept = pathlib.Path(os.environ["CUDA_CACHE_PATH"], "kernel")
        print(kept.exists())
        kept.touch()
    """
    built = replace(BUILT, cuda_cache=tmp_path / "kernels")
    limits = ResourceLimits(gpus=(Gpu(0, "GPU-0"),))
    said = []
    for _ in range(2):
        process = ProcessStarter().start(built, Launch(("-c", code), {}, "t", {}, limits))
        said.append(b"".join(chunk for _, chunk in process.output()).decode().strip())
        assert process.wait().code == 0
    assert said == ["False", "True"]


def test_no_callback_of_fork_runs_where_python_would_lose_ctrl_c() -> None:
    """An exception in such a callback is printed and ignored, also the KeyboardInterrupt of a signal."""
    called: list[int] = []
    os.register_at_fork(after_in_parent=lambda: called.append(1))
    assert said(started("-c", "print('started')")) == "started\n"
    assert called == []
