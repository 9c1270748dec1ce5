"""The docker engine against a real daemon: what it builds, what a trial's container may not do, how it ends."""

import csv
import io
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker
import psutil
import pytest

from tests.engine.conftest import linked_cache, output_of, tiny_checkout
from tests.job import REAL
from tests.run.test_runner import (
    DATA_SET,
    SMALL,
    log_of,
    samples_written,
    trials,
    wait_for,
)
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.files import sha256_of
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings, mirrored
from tsuishi.engines.docker.containers import hardening
from tsuishi.engines.docker.daemon import identify
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.engines.interface import Artefacts, ResourceLimits
from tsuishi.environments.builder import Builder
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.results import directory
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume
from tsuishi.specs.environment import read_environment

if TYPE_CHECKING:
    from docker.models.containers import Container

pytestmark = pytest.mark.engine

# What Docker and Podman call the end of a container's being.
GONE = ("destroy", "remove")


@pytest.fixture(autouse=True, params=["docker", "podman"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which engine answers: every test here runs on both."""
    name = str(request.param)
    if name == "podman":
        monkeypatch.setenv("DOCKER_HOST", request.getfixturevalue("podman"))
    return name


@pytest.fixture
def client(engine: str, settings: Settings) -> Iterator["docker.DockerClient"]:
    connection = docker.from_env()
    yield connection
    connection.close()


def session(checkout: Checkout, settings: Settings, **changes: Any) -> Session:
    given = Settings(**{**settings.model_dump(), "results": checkout.root / "results", **changes})
    return Session(given, Choice(environments=("tiny",)), Screen(), checkout)


def containers(client: "docker.DockerClient", root: Path) -> list[tuple["Container", str]]:
    """The containers of the one run there, running or not, and what each is."""
    (run,) = (root / "results").iterdir()
    found = client.containers.list(all=True, filters={"label": f"io.tsuishi.run={run.name}"}, ignore_removed=True)
    return [(one, one.status) for one in found]


def metrics(run: directory.RunDirectory, trial: dict[str, Any]) -> dict[str, float]:
    with (run.trials / trial["trial_id"] / "metrics.csv").open() as file:
        return {row["name"]: float(row["value"]) for row in csv.DictReader(file)}


def test_a_container_can_neither_reach_out_nor_write_nor_become_root(tmp_path: Path, settings: Settings) -> None:
    run = run_suite(session(tiny_checkout(tmp_path, "escapes"), settings))
    trial = trials(run)["escapes"]
    assert trial["status"] == "ok", trial["reason"]
    measured = metrics(run, trial)
    refused = {name: value for name, value in measured.items() if name.startswith("refused_")}
    assert refused == {"refused_network": 1, "refused_write": 1, "refused_root": 1, "refused_mount": 1}
    assert measured["capabilities"] == 0
    assert measured["no_new_privileges"] == 1
    assert measured["user"] != 0


def test_a_data_set_is_there_to_be_read_and_its_place_on_this_machine_is_not_told(
    tmp_path: Path, settings: Settings
) -> None:
    checkout = tiny_checkout(tmp_path, "tells_what_was_asked")
    file = tmp_path / "of-ada" / "mine.tgz"
    file.parent.mkdir()
    file.write_bytes(SMALL)
    given = Settings(**{**settings.model_dump(), "results": tmp_path / "results", "data": file})
    run = run_suite(Session(given, Choice(environments=("tiny",)), Screen(), checkout, DATA_SET))
    trial = trials(run)["tells_what_was_asked"]
    assert trial["status"] == "ok", trial["reason"]
    assert metrics(run, trial)["data_bytes"] == len(SMALL)
    log = log_of(run, trial).decode()
    assert f'"file":"/data/{DATA_SET.file}"' in log
    assert "of-ada" not in log


def test_a_health_check_of_an_image_does_not_run_beside_a_trial(
    settings: Settings, client: "docker.DockerClient"
) -> None:
    base = read_environment(REAL.images / "tf2-cpu.toml").base
    assert base is not None
    dockerfile = f"FROM {mirrored(base.reference, settings.mirrors)}\nHEALTHCHECK CMD {secrets.token_hex(4)}\n"
    image, _ = client.images.build(fileobj=io.BytesIO(dockerfile.encode()), rm=True)

    def health(**given: Any) -> str:
        """What the engine says of the health of a running container."""
        container = client.containers.run(str(image.id), ["sleep", "60"], detach=True, **given)
        try:
            container.reload()
            return str((container.attrs["State"].get("Health") or {}).get("Status", ""))
        finally:
            container.remove(force=True)

    try:
        assert health(**identify(client).needs) == "starting"
        assert health(**identify(client).needs, **hardening(ResourceLimits(pids=64), {})) == ""
    finally:
        client.images.remove(str(image.id))


def test_inspect_shows_the_hardening(
    tmp_path: Path, settings: Settings, client: "docker.DockerClient", engine: str
) -> None:
    checkout = tiny_checkout(tmp_path, "sleeps", profile="timeout_s = 30.0")
    child = runner_process(checkout, settings)
    try:
        wait_for(lambda: samples_written(tmp_path))
        ((container, _),) = containers(client, tmp_path)
        host = container.attrs["HostConfig"]
        assert host["NetworkMode"] == "none"
        assert host["ReadonlyRootfs"] is True
        # Podman keeps two more folders in memory, and names capabilities one by one.
        assert sorted(host["Tmpfs"]) == (["/tmp"] if engine == "docker" else ["/run", "/tmp", "/var/tmp"])
        assert host["CapDrop"] == ["ALL"] if engine == "docker" else "SETUID" in host["CapDrop"]
        assert host["SecurityOpt"] == ["no-new-privileges"]
        assert host["PidsLimit"] == settings.pids
        assert host["Memory"] == host["MemorySwap"] > 0
        assert host["LogConfig"]["Type"] == "none"
        assert not host["Privileged"]
        assert [mount["RW"] for mount in container.attrs["Mounts"]] == [False]
        assert container.attrs["Config"]["User"].split(":")[0] not in ("", "0", "root")
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)
    assert not containers(client, tmp_path)


def test_a_trial_over_its_memory_limit_is_out_of_memory(tmp_path: Path, settings: Settings) -> None:
    checkout = tiny_checkout(tmp_path, "takes_memory", "ok")
    run = run_suite(session(checkout, settings, memory_gib=0.25))
    trial = trials(run)["takes_memory"]
    assert trial["status"] == "out_of_memory"
    assert trial["reason"] == "the kernel ended it at its memory limit of 0.2 GiB"
    assert trial["exit_code"] == 137
    assert trials(run)["ok"]["status"] == "ok"


def test_a_workload_silent_for_longer_than_the_api_timeout_is_heard_out(tmp_path: Path, settings: Settings) -> None:
    """The workload says nothing for 8 s."""
    checkout = tiny_checkout(tmp_path, "silent_for_long")
    session(checkout, settings).build([read_environment(checkout.images / "tiny.toml")])
    run = run_suite(session(checkout, settings, engine_timeout_s=5.0))
    assert trials(run)["silent_for_long"]["status"] == "ok"


def test_noise_on_both_streams_spoils_nothing(tmp_path: Path, settings: Settings) -> None:
    run = run_suite(session(tiny_checkout(tmp_path, "garbage", "half_an_event", "binary", "dies"), settings))
    found = trials(run)
    assert {name: trial["status"] for name, trial in found.items()} == {
        "garbage": "ok",
        "half_an_event": "failed",
        "binary": "ok",
        "dies": "failed",
    }
    assert "ended by SIGSEGV" in found["dies"]["reason"]
    assert found["garbage"]["events_garbled"] == 3


def test_a_container_that_cannot_start_is_a_row_and_does_not_stay(
    tmp_path: Path, settings: Settings, client: "docker.DockerClient", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that is not there is found out between creating and starting the container, by Docker."""
    given = hardening

    def with_a_device(limits: ResourceLimits, mounts: Mapping[Path, str]) -> dict[str, Any]:
        return given(limits, mounts) | ({"devices": ["/dev/nvidia999"]} if limits.memory_bytes else {})

    monkeypatch.setattr("tsuishi.engines.docker.containers.hardening", with_a_device)
    run = run_suite(session(tiny_checkout(tmp_path, "ok"), settings))
    trial = trials(run)["ok"]
    assert trial["status"] == "failed"
    assert trial["reason"].startswith("the engine refused: ")
    assert "/dev/nvidia999" in trial["reason"]
    assert not containers(client, tmp_path)


def test_a_killed_runner_leaves_a_container_that_resume_ends(
    tmp_path: Path, settings: Settings, client: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path, "ok", "sleeps", profile="timeout_s = 5.0")
    child = runner_process(checkout, settings)
    wait_for(lambda: samples_written(tmp_path) and containers(client, tmp_path))
    wait_for(lambda: samples_written(tmp_path, "sleeps"))
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    ((orphan, status),) = containers(client, tmp_path)
    assert status == "running"
    run = resume(session(checkout, settings))
    assert orphan.id not in [container.id for container in client.containers.list(all=True, ignore_removed=True)]
    assert {name: trial["status"] for name, trial in trials(run).items()} == {"ok": "ok", "sleeps": "timeout"}
    assert trials(run)["sleeps"]["attempt"] == 2


def test_an_image_says_what_it_is(
    tmp_path: Path, settings: Settings, client: "docker.DockerClient", engine: str
) -> None:
    checkout = tiny_checkout(tmp_path, "ok")
    work = session(checkout, settings)
    environment = read_environment(checkout.images / "tiny.toml")
    ready = work.build([environment])["tiny"]
    labels = client.images.get(ready.built.realised_id).labels
    assert labels["org.opencontainers.image.title"] == "tsuishi tiny: as little as possible"
    assert labels["org.opencontainers.image.version"]
    assert labels["org.opencontainers.image.revision"]
    assert environment.base is not None
    assert labels["org.opencontainers.image.base.name"] == environment.base.reference
    assert labels["io.tsuishi.lock-sha256"] == environment.lock_sha256
    assert labels["io.tsuishi.spec-id"] == ready.built.spec_id
    if settings.mirrors:
        assert ready.record.content()["substitutions"] == [
            {"asked": ready.record.content()["base"]["reference"], "used": ready.record.content()["base"]["used"]}
        ]
    assert ready.record.content()["base"]["digest"] == "unpinned"
    assert ready.record.content()["engine_version"].startswith("Podman ") == (engine == "podman")
    assert ready.built.realised_id in [kept.realised_id for kept in work.builder.engines.docker.store.kept()]
    assert set(ready.record.content()["packages"]) >= {"pip", "typing-extensions"}


def test_building_again_does_nothing(tmp_path: Path, settings: Settings) -> None:
    checkout = tiny_checkout(tmp_path, "ok")
    environment = read_environment(checkout.images / "tiny.toml")
    first = session(checkout, settings).build([environment])["tiny"]
    lines: list[str] = []
    builder = Builder(settings, checkout)
    again = builder.ensure(environment, lines.append)
    assert again.built.realised_id == first.built.realised_id
    assert lines == []


def test_a_build_has_no_network(tmp_path: Path, settings: Settings) -> None:
    checkout = tiny_checkout(tmp_path, "ok")
    show = "import socket; print('interfaces', [name for _, name in socket.if_nameindex()])"
    look = f'RUN python3.11 -c "{show}  # {time.time_ns()}"\n'  # a line that was seen before is not run
    template = tmp_path / "Dockerfile.j2"
    template.write_text(checkout.dockerfile.read_text().replace("FROM base AS build\n", f"FROM base AS build\n{look}"))
    engine = DockerEngine(template, settings.mirrors, tmp_path / "temporary")
    environment = read_environment(checkout.images / "tiny.toml")
    said: list[str] = []
    fetcher = Builder(settings, checkout).fetcher(said.append)
    artefacts = Artefacts(fetcher.fetch(environment), ())
    built = engine.maker.build(environment, artefacts, said.append, fetcher.progress)
    engine.maker.discard(built)
    assert [line for line in said if line.startswith("interfaces")] == ["interfaces ['lo']"]


def test_a_broken_promise_fails_the_build_and_leaves_no_image(tmp_path: Path, settings: Settings) -> None:
    checkout = tiny_checkout(tmp_path, "ok")
    spec = checkout.images / "tiny.toml"
    spec.write_text(spec.read_text().replace('python = "3.11",', 'python = "3.11.99",'))
    environment = read_environment(spec)
    builder = Builder(settings, checkout)
    with pytest.raises(
        BuildError, match=r"tiny does not report what it promises: python is 3\.11\.\d+, promised 3\.11\.99"
    ):
        builder.ensure(environment, lambda line: None)
    assert builder.engines.docker.find(environment) is None


def test_a_base_nobody_has_is_one_line_with_the_remedy(tmp_path: Path, settings: Settings) -> None:
    checkout = tiny_checkout(tmp_path, "ok")
    environment = read_environment(checkout.images / "tiny.toml")
    engine = DockerEngine(checkout.dockerfile, {environment.base.reference: "localhost:1/none:1"}, tmp_path)  # type: ignore[union-attr]
    with pytest.raises(BuildError, match=r"cannot pull localhost:1/none:1: .* name a copy of it in tsuishi.mirrors"):
        engine.maker.build(environment, Artefacts((), ()), lambda line: None, lambda size: None)


def test_a_debian_package_is_an_artefact_like_a_wheel(
    tmp_path: Path, settings: Settings, client: "docker.DockerClient"
) -> None:
    subprocess.run(["apt-get", "download", "hostname"], cwd=tmp_path, check=True, capture_output=True)
    (deb,) = tmp_path.glob("hostname_*.deb")
    extra = f'[apt]\npackages = ["hostname"]\n[apt.repositories.debian]\nuris = ["{tmp_path.as_uri()}"]'
    checkout = tiny_checkout(tmp_path / "checkout", "ok", extra=extra)
    locked = f"hostname={deb.name.split('_')[1]} --hash=sha256:{sha256_of(deb)} --from=debian/{deb.name}\n"
    (checkout.images / "tiny.apt.lock").write_text(locked, encoding="utf-8")
    ready = session(checkout, settings).build([read_environment(checkout.images / "tiny.toml")])["tiny"]
    said = output_of(client, ready.built.realised_id, "hostname", "--version", **identify(client).needs)
    assert said.startswith("hostname ")


@pytest.mark.parametrize("engine", ["docker"], indirect=True)
def test_a_daemon_on_another_machine_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    with pytest.raises(
        UserError,
        match=r"DOCKER_HOST=tcp://192\.0\.2\.1:2375 is another machine, and telemetry would watch this machine",
    ):
        Builder(settings, Checkout()).engines.docker.availability()


def runner_process(checkout: Checkout, settings: Settings, first: str = "") -> "subprocess.Popen[str]":
    """A runner of its own in the tiny environment, to be killed."""
    code = f"""
{first}
import sys
from pathlib import Path
from tests.engine.test_docker import session
from tsuishi.base.checkout import Checkout
from tsuishi.results.verification import verify
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume
from tsuishi.base.settings import Settings
try:
    work = session(Checkout(Path({str(checkout.root)!r})), Settings(**{settings.model_dump(mode="json")!r}))
    run_suite(work)
except KeyboardInterrupt:
    sys.exit(130)
"""
    return subprocess.Popen([sys.executable, "-c", code], text=True)


LOCK = """
import sys
from pathlib import Path
from tsuishi.environments.builder import Builder
from tsuishi.specs.environment import read_environment
from tsuishi.base.checkout import Checkout
from tsuishi.base.settings import Settings
engine = Builder(Settings(**{settings!r}), Checkout(Path({root!r}))).engines.docker
with engine.base_container(read_environment(Path({root!r}) / "images" / "tiny.toml"), print) as container:
    print("container", container.id, flush=True)
    sys.stdin.read()
"""


def test_a_container_that_a_killed_lock_left_ends_with_the_next(
    tmp_path: Path, settings: Settings, client: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path)
    engine = Builder(settings, checkout).engines.docker
    code = LOCK.format(settings=settings.model_dump(mode="json"), root=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        left = next(line.split()[1] for line in child.stdout if line.startswith("container "))
        child.kill()
    assert client.containers.get(left).status == "running"
    with engine.base_container(read_environment(checkout.images / "tiny.toml"), print) as container:
        assert left not in ids(client)
        assert container.id in ids(client)
    assert container.id not in ids(client)


def ids(client: "docker.DockerClient") -> list[str]:
    """Of the containers there are, running or not."""
    return [found["Id"] for found in client.api.containers(all=True)]


def cpu_s(container: "Container") -> float:
    """Seconds of CPU time that all it has started took so far."""
    container.reload()
    process = psutil.Process(container.attrs["State"]["Pid"])
    return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))


def burning(root: Path, client: "docker.DockerClient") -> "Container":
    """The container of the run there, once it runs."""
    wait_for(lambda: any(root.glob("results/*/trials/.partial-*")))
    wait_for(lambda: [status for _, status in containers(client, root)] == ["running"])
    ((container, _),) = containers(client, root)
    return container


def ends_and_begins(
    client: "docker.DockerClient", begun: float, container: "Container", run_id: str
) -> tuple[list[int], list[int]]:
    """Of what the engine did to containers since then: the numbers of what ended this one, and of what a run's had."""
    events = client.events(since=int(begun), until=int(time.time()) + 1, filters={"type": "container"}, decode=True)
    told = [(each["Action"], each["Actor"]) for each in events]
    trial = {"io.tsuishi.run": run_id}.items()
    ends = [at for at, (action, of) in enumerate(told) if action in GONE and of["ID"] == container.id]
    return ends, [at for at, (_, of) in enumerate(told) if of["Attributes"].items() >= trial]


def test_what_a_killed_runner_left_burning_is_gone_before_a_run_of_another_cache_measures(
    tmp_path: Path, settings: Settings, client: "docker.DockerClient"
) -> None:
    """And it stays as long as its runner lives: builds go on beside it."""
    checkout, other = tiny_checkout(tmp_path / "one", "burns"), tiny_checkout(tmp_path / "other", "ok")
    elsewhere = linked_cache(settings.cache, tmp_path / "cache")
    session(checkout, settings).build([read_environment(checkout.images / "tiny.toml")])
    child = runner_process(checkout, settings)
    container = burning(tmp_path / "one", client)
    Builder(settings, other).engines.sweep()
    assert container.id in ids(client)
    child.kill()  # nobody has asked yet how it ended
    before, begun = cpu_s(container), time.time()
    wait_for(lambda: cpu_s(container) > before + 0.3)
    run = run_suite(session(other, settings, cache=elsewhere))
    assert trials(run)["ok"]["status"] == "ok"
    assert container.id not in ids(client)
    child.wait()
    # An engine writes its journal a moment after what happens.
    wait_for(lambda: all(ends_and_begins(client, begun, container, run.id)))
    ends, begins = ends_and_begins(client, begun, container, run.id)
    assert ends[0] < begins[0]


def test_what_a_killed_runner_left_burning_ends_by_itself(
    tmp_path: Path, settings: Settings, client: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path, "burns", profile="timeout_s = 3.0")
    child = runner_process(
        checkout, settings, "from tsuishi.engines.docker import containers; containers.GRACE_S = 1.0"
    )
    container = burning(tmp_path, client)
    child.kill()
    child.wait()
    assert container.status == "running"
    assert container.wait(timeout=60)["StatusCode"] == 128 + signal.SIGKILL
    Builder(settings, checkout).engines.sweep()
    assert container.id not in ids(client)
