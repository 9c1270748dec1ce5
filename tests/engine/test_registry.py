"""Environments shared through a real registry, or a folder: filled by one engine, used by another, never trusted."""

import hashlib
import io
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.engine.conftest import tiny_checkout
from tests.engine.registries import registry
from tests.engine.test_docker import session
from tests.engine.test_exchange import another_image, without_images
from tsuishi.artifacts import intake
from tsuishi.artifacts.network import Network
from tsuishi.artifacts.oci_registry import Registry
from tsuishi.artifacts.registry_images import fetch_image, put_image
from tsuishi.base.budget import Clock
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.environments import sharing
from tsuishi.environments.sharing import SharedPlace
from tsuishi.plan.session import Session
from tsuishi.specs.environment import Environment, read_environment

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a registry with nothing in it."""
    with registry(tmp_path_factory.mktemp("registry")) as address:
        yield f"http://{address}/site"


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory, settings: Settings, place: str) -> Session:
    """The session of the machine that builds, and puts what it built into the registry."""
    work = sharing_session(tmp_path_factory.mktemp("maker"), settings, registry=place)
    work.build([tiny(work)])
    sharing.export(work.builder, work.screen, ("tiny",), "registry")
    return work


@pytest.fixture(scope="module")
def exported(maker: Session, place: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same environment as a file, by the name that an export has."""
    folder = tmp_path_factory.mktemp("exports")
    spec_id = maker.builder.engines.docker.store.spec_id(tiny(maker))
    path = fetch_image(Registry(place, Network()), "tiny", spec_id, folder, silent, silent)
    assert path is not None
    return path.rename(folder / f"tiny-{spec_id}.oci.tar")


@pytest.fixture
def user(daemon: str, maker: Session, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """The session of a machine that has nothing: an empty cache, another engine without images, no mirror."""
    monkeypatch.setenv("DOCKER_HOST", daemon)
    client = docker.DockerClient(daemon)
    without_images(client)
    yield empty_session(tmp_path, maker, registry=place)
    client.close()


def sharing_session(root: Path, settings: Settings, **changes: Any) -> Session:
    return session(tiny_checkout(root, "ok"), settings, **changes)


def empty_session(root: Path, maker: Session, **changes: Any) -> Session:
    given = {"cache": root / "cache", "mirrors": {}, "indexes": ("http://127.0.0.1:9/",), **changes}
    return sharing_session(root / "checkout", maker.settings, **given)


def tiny(work: Session) -> Environment:
    return read_environment(work.checkout.images / "tiny.toml")


def taken(work: Session) -> str:
    """What is said of the environment, if it is not taken."""
    ready, line = SharedPlace(work.builder).receive(tiny(work), silent, silent)
    assert ready is None
    assert work.builder.find(tiny(work)) is None
    return line


def put(path: Path, address: str) -> None:
    """Put the image of an archive into a registry, as anybody can who may write there."""
    put_image(Registry(address, Network()), path, intake.read_archive(path), silent)


def test_an_environment_that_one_machine_put_there_is_used_by_another_without_a_build(
    maker: Session, user: Session, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # Packages are fetched before the time of a measurement begins, unless the image is there.
    ready = replace(user, clock=Clock(600.0)).build([tiny(user)])["tiny"]
    said = capsys.readouterr().out
    assert said.count(f"tiny: taken from {place}, image {ready.built.realised_id}\n") == 1
    assert "\nfetched " not in said
    assert ready.record.packages
    assert "typing-extensions" in ready.record.packages
    assert not (user.settings.cache / "artifacts").exists()
    # Engines pull it by the name that was printed.
    repository = f"{place.removeprefix('http://')}/tiny"
    with user.builder.engines.docker.client() as client:
        assert client.images.pull(repository, tag=ready.built.spec_id).id == ready.built.realised_id
    user.build([tiny(user)])
    assert "tiny: built already, nothing to do\n" in capsys.readouterr().out


def test_what_a_folder_of_exports_has_is_used_offline_unless_it_is_something_else(
    user: Session, maker: Session, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    work = empty_session(tmp_path / "offline", maker, registry=str(folder), offline=True)
    there = folder / exported.name
    with user.builder.engines.docker.client() as client:
        # Another environment under this name.
        other = empty_session(tmp_path / "other", maker, registry=str(folder), offline=True)
        spec = other.checkout.images / "tiny.toml"
        spec.write_text(spec.read_text().replace('python = "3.11",', 'python = "3",'))
        tags = [session.builder.engines.docker.store.tag(tiny(session)) for session in (work, other)]
        foreign = folder / f"{tags[1].rpartition('/')[2].replace(':', '-')}.oci.tar"
        shutil.copy(exported, foreign)
        is_, asked = (tag.removeprefix("tsuishi/") for tag in tags)
        assert taken(other) == f"not taken from {folder}: it is {is_}, and {asked} was asked for; built here"
        # The right specification, and the promised package is gone.
        broken = another_image(Path(shutil.copy(exported, tmp_path)), whiteout(tiny(work)))
        shutil.move(broken, there)
        assert "tiny does not report what it promises: typing-extensions" in taken(work)
        assert client.images.list(all=True) == []
    shutil.copy(exported, there)
    ready = work.build([tiny(work)])["tiny"]
    assert f"tiny: taken from {folder}, image {ready.built.realised_id}\n" in capsys.readouterr().out


def whiteout(environment: Environment) -> bytes:
    """A layer that removes what the environment promises."""
    version = next(pin.version for pin in environment.pins if pin.name == "typing-extensions")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as layer:
        site = "opt/environment/lib/python3.11/site-packages"
        layer.addfile(tarfile.TarInfo(f"{site}/.wh.typing_extensions-{version}.dist-info"))
    return out.getvalue()


def test_without_it_there_and_out_of_reach_it_is_said_and_built(
    maker: Session, place: str, tmp_path: Path, daemon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", daemon)
    elsewhere, gone = f"{place}/elsewhere", "http://127.0.0.1:9/site"
    for address, said in (
        (elsewhere, f"not in {elsewhere}: built here"),
        (str(tmp_path), f"not in {tmp_path}: built here"),
        (gone, f"not taken from {gone}: [Errno 111] Connection refused; built here"),
    ):
        work = empty_session(tmp_path / Path(address).name, maker, registry=address)
        assert SharedPlace(work.builder).receive(tiny(work), silent, silent) == (None, said)
    offline = empty_session(tmp_path / "offline", maker, registry=place, offline=True)
    assert not SharedPlace(offline.builder).is_asked_for(tiny(offline))


def test_what_was_altered_there_is_refused_and_then_built(
    exported: Path, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "registry").mkdir()
    with registry(tmp_path / "registry") as address:
        put(exported, f"http://{address}")
        altered = max((tmp_path / "registry").rglob("data"), key=lambda path: path.stat().st_size)
        content = bytearray(altered.read_bytes())
        content[len(content) // 2] ^= 1
        altered.write_bytes(content)
        work = sharing_session(tmp_path / "user", settings, registry=f"http://{address}")
        docker.from_env().images.remove(work.builder.engines.docker.store.tag(tiny(work)), force=True)
        ready = work.build([tiny(work)])["tiny"]
    layer = f"http://{address}/v2/tiny/blobs/sha256:{altered.parent.name}"
    actual = hashlib.sha256(content).hexdigest()
    assert (
        f"tiny: not taken from http://{address}: {layer}: sha256 is {actual}, expected {altered.parent.name}: that is "
        "another file; built here\n"
    ) in capsys.readouterr().out
    assert ready.record.packages


def test_what_may_not_go_to_everybody_goes_only_where_the_site_alone_can_read(
    settings: Settings, tmp_path: Path, place: str
) -> None:
    checkout = tiny_checkout(tmp_path, "ok", extra='redistribution = "parts of nobody"')
    for changes, said in (
        ({}, f"{place} counts as a registry that anybody can read, and may not get tiny (parts of nobody): read "
        "docs/redistribution.md; where only your own site can read it, set tsuishi.registry_readers to site"),
        # With "site" the next check is reached.
        ({"registry_readers": "site", "engine": "venv"},
        "engine venv: only images can be exported: leave --engine out"),
        ({"offline": True}, f"offline, and {place} is a registry: leave out --offline, or export to a folder"),
        ({"registry": ""}, "--to registry needs a place: set tsuishi.registry to a registry or a folder"),
    ):  # fmt: skip
        work = session(checkout, settings, **{"registry": place, **changes})
        with pytest.raises(UserError) as caught:
            sharing.export(work.builder, work.screen, ("tiny",), "registry")
        assert str(caught.value) == said


def silent(what: object) -> None:
    """Say nothing."""
