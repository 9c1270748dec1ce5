"""What a trial without a container can reach of this machine: attacks, each tried by a real trial."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.engines.test_subprocesses import said, started, without_bwrap
from tests.pinned import environment
from tsuishi.engines import sandbox
from tsuishi.engines.host import HostEngine
from tsuishi.engines.interface import Built, Launch

PYTHON = sys.executable
ATTACKS = """
import json, os, socket, sys
home, root, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
def write(path):
    with open(path, "a") as file:
        file.write("x")
def connect(address, port):
    socket.create_connection((address, port), timeout=3).close()
attacks = {
    "read a key of the user": lambda: open(home + "/.ssh/id_ed25519").read(),
    "list the user's home": lambda: os.listdir(home),
    "list the runs": lambda: os.listdir(root + "/results"),
    "read the checkout beside its workloads": lambda: open(root + "/secret.toml").read(),
    "write into the runs": lambda: write(root + "/results/trial.json"),
    "write into the workloads": lambda: write(root + "/suites/workloads/new.py"),
    "change a workload": lambda: write(root + "/suites/workloads/run.py"),
    "change the data": lambda: write(root + "/data.tar.gz"),
    "change its interpreter": lambda: write(sys.prefix + "/pyvenv.cfg"),
    "change the system": lambda: write("/usr/new"),
    "write beside it all": lambda: write("/new"),
    "talk to a service of this machine": lambda: connect("127.0.0.1", port),
    "end the runner": lambda: os.kill(int(sys.argv[4]), 0),
    "see the runner": lambda: open("/proc/" + sys.argv[4] + "/environ").read(),
    "become another user": lambda: os.setuid(65534),
}
worked = []
for name, attack in attacks.items():
    try:
        attack()
        worked.append(name)
    except OSError:
        pass
try:
    write(root + "/../new")  # there is a /tmp to write to, but not that of this machine
except OSError:
    pass
print(json.dumps(worked))
"""
# What frameworks need of a machine.
NEEDS = """
import json, multiprocessing, os, socket, sys, tempfile
def meet():
    with socket.socket() as server:
        server.bind(("localhost", 0))
        server.listen()
        socket.create_connection(server.getsockname()).close()
if __name__ == "__main__":
    meet()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    with open("/dev/shm/x", "w"), tempfile.TemporaryFile():
        pass
    assert open(sys.argv[1] + "/suites/workloads/run.py").read() == "pass"
    assert open(sys.argv[1] + "/data.tar.gz").read() == "data"
    assert os.listdir("/sys/devices/system/cpu")
    print(json.dumps([os.getuid(), os.cpu_count(), len(os.sched_getaffinity(0)), socket.gethostname()]))
"""


@pytest.fixture(autouse=True)
def tried_anew() -> Iterator[None]:
    """Whether a sandbox works is not known from another test."""
    sandbox.why_none.cache_clear()
    yield
    sandbox.why_none.cache_clear()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a run, and a user's home beside it."""
    for folder in ("home/.ssh", "root/results", "root/suites/workloads"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "id_ed25519").write_text("hunter2")
    (tmp_path / "root" / "secret.toml").write_text("hunter2")
    (tmp_path / "root" / "data.tar.gz").write_text("data")
    (tmp_path / "root" / "suites" / "workloads" / "run.py").write_text("pass")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def walled() -> None:
    if why := sandbox.why_none(PYTHON):
        missing(why)


def tried(place: Path, code: str, *arguments: str) -> str:
    mounts = dict.fromkeys((place / "root" / "suites" / "workloads", place / "root" / "data.tar.gz"), "")
    return said(started("-c", code, *arguments, mounts=mounts))


def attacked(place: Path) -> set[str]:
    """The attacks that worked."""
    with socket.create_server(("127.0.0.1", 0)) as service:
        port, runner = service.getsockname()[1], os.getpid()
        worked = tried(place, ATTACKS, str(place / "home"), str(place / "root"), str(port), str(runner))
    return set(json.loads(worked))


@pytest.mark.usefixtures("walled")
def test_a_trial_in_a_sandbox_reaches_nothing_of_the_user_and_changes_nothing(place: Path) -> None:
    before = sorted(place.rglob("*"))
    assert attacked(place) == set()
    assert sorted(place.rglob("*")) == before
    assert (place / "root" / "suites" / "workloads" / "run.py").read_text() == "pass"


@pytest.mark.usefixtures("walled")
def test_a_sandbox_has_what_frameworks_need(place: Path) -> None:
    """Loopback, shared memory, processes, the CPU's description, every core, the workloads and the data."""
    found = json.loads(tried(place, NEEDS, str(place / "root")))
    assert found == [os.getuid(), os.cpu_count(), len(os.sched_getaffinity(0)), "localhost"]


@pytest.mark.usefixtures("walled")
def test_packages_that_a_user_has_installed_are_found_and_nothing_else_of_the_home(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `pip install --user`, for the system's interpreter."""
    base = Path(os.path.realpath(PYTHON))
    monkeypatch.setenv("PYTHONUSERBASE", str(place / "home" / ".local"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = place / "home" / ".local" / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    (packages / "mine.py").write_text("print('mine')")
    code = f"import mine, os; print(os.listdir({str(place / 'home')!r}))"
    monkeypatch.setattr("site.USER_BASE", None)
    assert started_by_host(base, code) == "mine\n['.local']\n"


def started_by_host(python: Path, code: str) -> str:
    built = Built(environment(()), "host", "", "", "", (str(python),))
    return said(HostEngine(str(python)).starter.start(built, Launch(("-c", code), {}, "name", {})))  # type: ignore[arg-type]


@pytest.mark.usefixtures("walled")
def test_without_the_setting_nothing_confines_and_the_record_says_so(place: Path) -> None:
    engine = HostEngine(PYTHON, confined=False)
    built = Built(environment(()), "host", "", "", "", (PYTHON,))
    code = f"import os; print(os.path.isdir({str(place / 'home')!r}))"
    launch = Launch(("-c", code), {}, "name", {})
    assert said(engine.starter.start(built, launch)) == "True\n"  # type: ignore[arg-type]
    assert engine.starter.confinement(PYTHON)["sandbox"] == "none wanted"


@pytest.mark.usefixtures("walled")
def test_the_record_says_which_sandbox_there_was() -> None:
    assert sandbox.described(PYTHON).startswith("bubblewrap 0.")


def test_the_record_says_that_there_was_none_and_why(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_bwrap(monkeypatch)
    assert sandbox.described(PYTHON) == "none: bubblewrap (bwrap) is not installed"
    assert "read a key of the user" in attacked(place)


def test_a_sandbox_that_does_not_work_here_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the kernel lets only root make namespaces: bubblewrap is there, and refuses."""
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    why = "bubblewrap does not work here (bwrap: No permissions to create new namespace)"
    assert sandbox.described(PYTHON) == f"none: {why}"
    assert said(started("-c", "print('runs')")) == "runs\n"


@pytest.mark.parametrize(
    ("said", "why", "remedy"),
    [
        (
            "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1",
            "setting up uid map",
            "user namespaces, as root: ",
        ),
        (
            "echo 'bwrap: No permissions to create new namespace' >&2; exit 1",
            "to create new",
            "user namespaces, as root: ",
        ),
        ("exec sleep 60", "it did not end in 0.5 s)", "see what `bwrap"),
        ("seq --separator=x 9999 >&2; exit 1", "1x2x3", "see what `bwrap"),
    ],
    ids=["AppArmor", "kernel", "hangs", "long"],
)
def test_a_sandbox_that_does_not_work_gets_a_line_and_a_remedy_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, why: str, remedy: str
) -> None:
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{said}\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sandbox, "_PATIENCE_S", 0.5)
    reason = sandbox.why_none(PYTHON)
    assert why in reason
    assert len(reason) < 260
    assert remedy in sandbox.remedy_for(reason)
    assert "install" not in sandbox.remedy_for(reason)


def test_a_sandbox_that_is_not_there_is_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    without_bwrap(monkeypatch)
    assert sandbox.remedy_for(sandbox.described(PYTHON)) == "install bubblewrap"
