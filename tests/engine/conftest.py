"""A real engine and a tiny environment to try it with."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import make_rooms
from tests.conftest import missing
from tests.engine import podman as podman_service
from tests.engine.job import REAL, invoke
from tsuishi.builder import Builder
from tsuishi.environment import read_environment
from tsuishi.fetching.artifacts import Cache, sha256_of
from tsuishi.rooms import Rooms
from tsuishi.settings import Settings, mirrored, read_settings


@pytest.fixture(scope="session")
def settings() -> Settings:
    """The settings of this machine (its mirror map, its cache), with an engine that answers."""
    given = read_settings({}, os.environ, {"engine": "docker"})
    answer = Builder(given, REAL).engines["docker"].availability()
    if not answer.usable:
        missing(f"no container engine: {answer.reason}")
    return given


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Iterator[str]:
    """The address of a Podman service that has the base image of the tiny environment."""
    base = read_environment(REAL.images / "torch2-cpu.toml").base
    assert base is not None
    if why_not := podman_service.why_not():
        missing(why_not)
    with podman_service.service(tmp_path_factory.mktemp("p"), (mirrored(base.reference, settings.mirrors),)) as address:
        yield address


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
        default = ["cpu", "cuda"]
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
    sha256 = sha256_of(file)
    part = Cache(cache).part(file.name, [sha256])
    part.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, part)
    Cache(cache).keep(part, file.name, sha256)
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
