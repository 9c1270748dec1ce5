"""A real engine and a tiny environment to try it with."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench import make_checkout
from tests.conftest import missing, shared_folder
from tests.engine import local_bases
from tests.engine import podman as podman_service
from tests.job import JOB, REAL, invoke
from tsuishi.artifacts.cache import Cache
from tsuishi.base.checkout import Checkout
from tsuishi.base.files import sha256_of
from tsuishi.base.settings import Settings, mirrored, read_settings
from tsuishi.environments.builder import Builder
from tsuishi.specs.environment import read_environment

if TYPE_CHECKING:
    import docker


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings of this machine (its mirror map), with an engine that answers.

    What its cache holds is used, but its locks on building and measuring are the worker's own.
    """
    given = read_settings({}, os.environ, {"engine": "docker"})
    answer = Builder(given, REAL).engines.docker.availability()
    if not answer.usable:
        missing(f"no container engine: {answer.reason}")
    return Settings(**{**given.model_dump(), "cache": linked_cache(given.cache, tmp_path_factory.mktemp("cache"))})


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Iterator[str]:
    """The address of a Podman service that has the base image of the tiny environment."""
    base = read_environment(REAL.images / "tf2-cpu.toml").base
    assert base is not None
    if why_not := podman_service.why_not():
        missing(why_not)
    with podman_service.service(tmp_path_factory.mktemp("p"), (mirrored(base.reference, settings.mirrors),)) as address:
        yield address


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Docker daemon with no image at all."""
    root = tmp_path_factory.mktemp("d")
    try:
        yield local_bases.engine(root, f"{root}/docker.sock")
    except local_bases.Failed as failure:
        missing(f"no Docker daemon of its own: {failure}")
    finally:
        local_bases.stop(root)


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory, settings: Settings, environments: None) -> tuple[Path, str]:
    """The main job in containers, smoke profile, once for all tests: its folder and what its last run printed.

    The tests that ask for it are one group (tests/conftest.py), so that one worker runs it.
    """
    folder = tmp_path_factory.mktemp("job")
    for suites, names in JOB:
        build = ("build", "--engine", "docker", "--env", ",".join(names))
        run = ("run-suite", "--suite", ",".join(suites), "--profile", "smoke")
        result = invoke(folder, *build, *run, "report", INVOKE_TSUISHI_CACHE=str(settings.cache))
        assert result.returncode == 0, result.stdout[-4000:] + result.stderr
    return folder, result.stdout


def tiny_checkout(root: Path, *behaviours: str, profile: str = "", extra: str = "") -> Checkout:
    """The bench with an environment `tiny`: Python 3.11, pip and typing-extensions as the shipped locks have them."""
    checkout = make_checkout(root, *behaviours, profile=profile)
    pins = read_environment(REAL.images / "torch2-cpu.toml").pins
    wanted = [pin for pin in pins if pin.name in ("pip", "typing-extensions")]
    base = read_environment(REAL.images / "tf2-cpu.toml").base
    assert base is not None
    (checkout.images / "tiny.lock").write_text(
        "".join(f"{pin.name}=={pin.version} --hash=sha256:{pin.sha256[0]}\n" for pin in wanted), encoding="utf-8"
    )
    version = next(pin.version for pin in wanted if pin.name == "typing-extensions")
    (checkout.images / "tiny.toml").write_text(
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
    return checkout


def output_of(client: "docker.DockerClient", image: str, *command: str, **given: Any) -> str:
    """What *command* prints in a container of *image* without network. Its log is read after its end: to follow it
    (`containers.run`) may wait for ever on Podman where the container ends at once."""
    container = client.containers.create(image, [*command], network_mode="none", **given)
    try:
        container.start()
        assert container.wait(timeout=60)["StatusCode"] == 0, container.logs()
        return str(container.logs(), "utf-8")
    finally:
        container.remove(force=True)


def linked_cache(cache: Path, folder: Path) -> Path:
    """A cache in `folder` that shares what another holds, and none of its locks."""
    folder.mkdir(exist_ok=True)
    for name in ("artifacts", "bases", "environments"):
        (cache / name).mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(cache / name)
    return folder


def add_to_cache(cache: Path, file: Path) -> str:
    """Put a file into the artefact cache, as fetching would; its sha256."""
    sha256 = sha256_of(file)
    part = Cache(cache).part(file.name, [sha256])
    part.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, part)
    Cache(cache).keep(part, file.name, sha256)
    return sha256


@pytest.fixture(scope="session", autouse=True)
def tidy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Leave no image of the tiny environment behind, once no worker needs it any more."""
    import docker

    with (shared_folder(tmp_path_factory) / "tiny.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield
        with contextlib.suppress(BlockingIOError, docker.errors.DockerException):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            client = docker.from_env()
            for image in client.images.list("tsuishi/tiny"):
                client.images.remove(str(image.id), force=True)
