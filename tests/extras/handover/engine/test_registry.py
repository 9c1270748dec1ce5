"""Environments shared through a real registry, or a folder: filled by one engine, used by another."""

import base64
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.engine.conftest import tiny_checkout
from tests.engine.registries import registry
from tests.engine.test_docker import session
from tests.extras.handover.engine.test_exchange import another_image, without_images
from tsuishi.base.budget import Clock
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.environments.builder import Builder
from tsuishi.extras.handover import exchange, images
from tsuishi.extras.handover.images import SharedPlace
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
    images.export(work.builder, work.screen, ("tiny",), "registry")
    return work


@pytest.fixture(scope="module")
def exported(maker: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same environment as a file, by the name that an export has."""
    (path,) = exchange.export(maker.builder, maker.screen, ("tiny",), tmp_path_factory.mktemp("exports"))
    return path


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
        foreign = folder / f"{tags[1].rpartition('/')[2].replace(':', '-')}.tar.gz"
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


REFUSED = 'Get "http://127.0.0.1:9/v2/": dial tcp 127.0.0.1:9: connect: connection refused'


def test_without_it_there_and_out_of_reach_it_is_said_and_built(
    maker: Session, place: str, tmp_path: Path, daemon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", daemon)
    elsewhere, gone = f"{place}/elsewhere", "http://127.0.0.1:9/site"
    for address, said in (
        (elsewhere, f"not in {elsewhere}: built here"),
        (str(tmp_path), f"not in {tmp_path}: built here"),
        (gone, f"not taken from {gone}: {REFUSED}; built here"),
    ):
        work = empty_session(tmp_path / Path(address).name, maker, registry=address)
        assert SharedPlace(work.builder).receive(tiny(work), silent, silent) == (None, said)
    offline = empty_session(tmp_path / "offline", maker, registry=place, offline=True)
    assert not SharedPlace(offline.builder).is_asked_for(tiny(offline))


def altered(folder: Path, client: "docker.DockerClient", address: str, tag: str) -> str:
    """Change a byte of the layer that no other image of these tests has, in the middle of it."""
    blob = max(folder.rglob("data"), key=lambda path: path.stat().st_size)
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1
    blob.write_bytes(content)
    return "filesystem layer verification failed for digest sha256:"


def another_specification(folder: Path, client: "docker.DockerClient", address: str, tag: str) -> str:
    """Put the image of another specification in its place."""
    built, _ = client.images.build(fileobj=io.BytesIO(f"FROM {tag}\nLABEL io.tsuishi.spec-id=other".encode()))
    repository = f"{address}/{tag.removeprefix('tsuishi/').partition(':')[0]}"
    built.tag(repository, tag.rpartition(":")[2])
    client.images.push(repository, tag.rpartition(":")[2])
    client.images.remove(str(built.id), force=True)
    return f"its image was made for spec id other, and {tag.rpartition(':')[2]} was asked for; built here"


@pytest.mark.parametrize("attack", [altered, another_specification])
def test_what_was_altered_there_is_refused_and_nothing_of_it_stays(
    attack: Callable[[Path, "docker.DockerClient", str, str], str],
    maker: Session,
    daemon: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tag = maker.builder.engines.docker.store.tag(tiny(maker))
    (tmp_path / "registry").mkdir()
    with registry(tmp_path / "registry") as address, closing(docker.from_env()) as client:
        SharedPlace(with_place(maker, address)).put(maker.screen, ("tiny",))
        said = attack(tmp_path / "registry", client, address, tag)
        monkeypatch.setenv("DOCKER_HOST", daemon)
        with closing(docker.DockerClient(daemon)) as user:
            without_images(user)
            line = taken(empty_session(tmp_path / "user", maker, registry=address))
            assert line.startswith(f"not taken from {address}: ")
            assert said in line
            assert user.images.list(all=True) == []


def with_place(work: Session, address: str) -> Builder:
    """The builder of a session, with another place."""
    return Builder(work.settings.model_copy(update={"registry": address}), work.checkout)


def test_a_registry_gets_the_password_of_docker_login_and_without_it_the_remedy_is_said(
    maker: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "htpasswd").write_text(PASSWORDS)
    more = f'auth: {{ htpasswd: {{ realm: "here", path: "{tmp_path}/htpasswd" }} }}'
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with registry(tmp_path, more) as address:
        for login, why in (("", "no basic auth credentials"), (WRONG, "unauthorized: authentication required")):
            logins = {address: {"auth": login}} if login else {}
            (tmp_path / "config.json").write_text(json.dumps({"auths": logins}))
            place = SharedPlace(with_place(maker, address))
            with pytest.raises(UserError) as caught:
                place.put(maker.screen, ("tiny",))
            assert str(caught.value) == f"{address}: {why}; `docker login {address}`"
            ready, line = place.receive(tiny(maker), silent, silent)
            assert ready is None
            assert line.endswith(f"{why}; `docker login {address}`; built here")
        (tmp_path / "config.json").write_text(json.dumps({"auths": {address: {"auth": LOGIN}}}))
        place = SharedPlace(with_place(maker, address))
        place.put(maker.screen, ("tiny",))
        ready, line = place.receive(tiny(maker), silent, silent)
        assert ready is not None
        assert line == f"taken from {address}, image {ready.built.realised_id}"


# `ada:secret` as htpasswd writes it (bcrypt), and logins as `docker login` leaves them.
PASSWORDS = "ada:$2b$04$Qsv1dHIh3meexOHDbdpKaekWlvOUh/cNbKcbKi.VqYgtRRZWmZRLK\n"
LOGIN, WRONG = (base64.b64encode(login).decode() for login in (b"ada:secret", b"ada:wrong"))


def test_what_may_not_go_to_everybody_goes_only_where_the_site_alone_can_read(
    settings: Settings, tmp_path: Path, place: str
) -> None:
    checkout = tiny_checkout(tmp_path, "ok", extra='redistribution = "parts of nobody"')
    for changes, said in (
        ({}, f"{place} counts as a public registry, and may not get tiny (parts of nobody): read "
        "docs/redistribution.md; where only your own site can read it, set tsuishi.registry_readers to site"),
        # With "site" the next check is reached.
        ({"registry_readers": "site", "engine": "venv"},
        "engine venv: only images can be exported: leave --engine out"),
        ({"offline": True}, f"offline, and {place} is a registry: leave out --offline, or export to a folder"),
        ({"registry": ""}, "--to registry needs a place: set tsuishi.registry to a registry or a folder"),
    ):  # fmt: skip
        work = session(checkout, settings, **{"registry": place, **changes})
        with pytest.raises(UserError) as caught:
            images.export(work.builder, work.screen, ("tiny",), "registry")
        assert str(caught.value) == said


def silent(what: object) -> None:
    """Say nothing."""
