"""Which engine is used where `docker` was told which: by a variable or by a context."""

import json
import os
import re
import socket
from hashlib import sha256
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.engines.docker.test_devices import Api, Handler
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.engines.docker.daemon import address
from tsuishi.engines.docker.engine import DockerEngine

DESKTOP = "unix:///home/ada/.docker/desktop/docker.sock"


@pytest.fixture(autouse=True)
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of docker's configuration, with the contexts `desktop` and `far`."""
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    for name, host in (("desktop", DESKTOP), ("far", "ssh://ada@example.net")):
        folder = tmp_path / "contexts" / "meta" / sha256(name.encode()).hexdigest()
        folder.mkdir(parents=True)
        (folder / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": {"Host": host}}}))
    return tmp_path / "config.json"


def test_the_context_of_docker_counts_and_its_variables_come_before_it(
    docker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = address()
    docker.write_text('{"currentContext": "desktop"}')
    assert address() == DESKTOP
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert address() == usual
    docker.write_text("not JSON")
    monkeypatch.setenv("DOCKER_CONTEXT", "desktop")
    assert address() == DESKTOP
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/other.sock")
    assert address() == "unix:///run/other.sock"


@pytest.mark.parametrize(
    ("named", "reason"),
    [("far", "is of another machine (ssh://ada@example.net)"), ("none-of-this-name", "does not exist")],
)
def test_a_context_without_an_engine_here_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, reason: str
) -> None:
    monkeypatch.setenv("DOCKER_CONTEXT", named)
    found = DockerEngine(Checkout().dockerfile, {}, tmp_path).availability()
    assert (found.usable, found.reason) == (False, f"the context '{named}' of docker {reason}")
    assert "DOCKER_HOST" in found.remedy


HERE = {"Name": os.uname().nodename, "KernelVersion": os.uname().release}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
@pytest.mark.parametrize(
    ("info", "is_here"),
    [(HERE, True), ({**HERE, "Name": "far"}, False), ({**HERE, "KernelVersion": "4.4.0-WSL1"}, False), ({}, False)],
    ids=["here", "another name", "another kernel", "silent"],
)
def test_an_engine_behind_loopback_is_used_where_it_says_that_it_is_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, info: dict[str, str], is_here: bool
) -> None:
    """As an engine in WSL, or of a job of CI; a tunnel may lead to another machine."""

    class OnIp(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if host == "[::1]" else socket.AF_INET
        api = Api(info=info)

    with OnIp((host.strip("[]"), 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        place = f"tcp://{host}:{server.server_address[1]}"
        monkeypatch.setenv("DOCKER_HOST", place)
        engine = DockerEngine(Checkout().dockerfile, {}, tmp_path)
        if is_here:
            assert engine.availability().usable
        else:
            with pytest.raises(UserError, match=re.escape(f"DOCKER_HOST={place} is another machine, and telemetry")):
                engine.availability()
        server.shutdown()


@pytest.mark.parametrize(
    "place", ["tcp://10.0.0.7:2375", "tcp://127.0.0.1.example.net:2375", "ssh://localhost", "tcp://"]
)
def test_an_engine_elsewhere_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", place)
    with pytest.raises(UserError, match="is another machine"):
        DockerEngine(Checkout().dockerfile, {}, tmp_path).availability()


def test_an_engine_on_loopback_that_does_not_answer_is_not_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    found = DockerEngine(Checkout().dockerfile, {}, tmp_path).availability()
    assert not found.usable
    assert found.reason.startswith("Docker does not answer: ")
