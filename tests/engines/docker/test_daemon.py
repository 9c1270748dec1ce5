"""Which engine is used where `docker` was told which: by a variable or by a context."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from tsuishi.base.checkout import Checkout
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
