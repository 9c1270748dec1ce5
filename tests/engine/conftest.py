"""A real engine and a tiny environment to try it with."""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import make_rooms
from tests.conftest import missing
from tests.engine.job import REAL, invoke
from tsuishi.artifacts import Cache
from tsuishi.builder import Builder
from tsuishi.environment import read_environment
from tsuishi.rooms import Rooms
from tsuishi.settings import Settings, read_settings


@pytest.fixture(scope="session")
def settings() -> Settings:
    """The settings of this machine (its mirror map, its cache), with an engine that answers."""
    given = read_settings({}, os.environ, {"engine": "docker"})
    answer = Builder(given, REAL).engines["docker"].availability()
    if not answer.usable:
        missing(f"no container engine: {answer.reason}")
    return given


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> tuple[Path, str]:
    """The main job in containers, smoke profile, once for all tests: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("job")
    result = invoke(folder, "build", "--engine", "docker", "run-suite", "--profile", "smoke", "report")
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
    return folder, result.stdout


def tiny_rooms(root: Path, *behaviours: str, profile: str = "", extra: str = "") -> Rooms:
    """The bench with an environment `tiny`: Python 3.11, pip and typing-extensions as the shipped locks have them."""
    rooms = make_rooms(root, *behaviours, profile=profile)
    pins = read_environment(REAL.images / "torch2-cpu.toml").pins
    wanted = [pin for pin in pins if pin.name in ("pip", "typing-extensions")]
    base = read_environment(REAL.images / "torch2-cpu.toml").base
    assert base is not None
    (rooms.images / "tiny.lock").write_text(
        "".join(f"{pin.name}=={pin.version} --hash=sha256:{pin.sha256[0]}\n" for pin in wanted), encoding="utf-8"
    )
    version = next(pin.version for pin in wanted if pin.name == "typing-extensions")
    (rooms.images / "tiny.toml").write_text(
        f"""
        title = "as little as possible"
        framework = "any"
        accelerators = ["cpu"]
        default = true
        python = "3.11"
        base = {{ reference = "{base.reference}" }}
        promises = {{ python = "3.11", typing-extensions = "{version}" }}
        {extra}
        """,
        encoding="utf-8",
    )
    return rooms


def add_to_cache(cache: Path, file: Path) -> str:
    """Put a file into the artefact cache, as fetching would; its sha256."""
    content = file.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    Cache(cache).add([content], file.name, [sha256], "a test")
    return sha256


@pytest.fixture(scope="session", autouse=True)
def tidy() -> Iterator[None]:
    """Leave no image of the tiny environment behind."""
    yield
    import docker

    with contextlib.suppress(docker.errors.DockerException):
        client = docker.from_env()
        for image in client.images.list("tsuishi/tiny"):
            client.images.remove(str(image.id), force=True)
