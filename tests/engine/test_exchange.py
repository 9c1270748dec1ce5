"""Environments that travel: exported from one engine, imported into another that has nothing, without a network."""

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.engine.conftest import tiny_checkout
from tests.engine.test_docker import session
from tests.environments.test_exchange import (
    EMPTY,
    blob,
    damaged,
    end_of,
    entry,
    export,
    import_archives,
    manifest,
    sha256,
    tar,
)
from tests.run.test_runner import trials
from tsuishi.artifacts import intake
from tsuishi.artifacts.image_archive import write_archive
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.plan.choice import Choice
from tsuishi.results.directory import RunDirectory
from tsuishi.run.new_run import run_suite
from tsuishi.specs.environment import read_environment

pytestmark = pytest.mark.engine

OTHERS = "the sentence about the parts of others"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> tuple[Path, RunDirectory]:
    """The tiny environment as an archive, and a run in it."""
    root = tmp_path_factory.mktemp("here")
    work = session(tiny_checkout(root, "ok", extra=f'redistribution = "{OTHERS}"'), settings)
    run = run_suite(work)
    (path,) = export(work, root / "exports")
    return path, run


def bare(tmp_path: Path, settings: Settings) -> Settings:
    """Settings of a machine that has, and reaches, nothing."""
    changes: dict[str, Any] = {"cache": tmp_path / "cache", "mirrors": {}, "offline": True}
    return Settings(**{**settings.model_dump(), **changes})


@pytest.fixture
def elsewhere(
    daemon: str, exported: tuple[Path, RunDirectory], monkeypatch: pytest.MonkeyPatch
) -> Iterator["docker.DockerClient"]:
    """From here on, and once there is something to import, that daemon is the engine."""
    monkeypatch.setenv("DOCKER_HOST", daemon)
    client = docker.DockerClient(daemon)
    yield client
    client.close()


def environment_of(run: RunDirectory) -> dict[str, Any]:
    return run.environment(trials(run)["ok"]["environment_record"]).content()


@pytest.mark.usefixtures("elsewhere")
def test_an_imported_environment_is_the_same_environment(
    tmp_path: Path,
    settings: Settings,
    exported: tuple[Path, RunDirectory],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, run = exported
    work = session(tiny_checkout(tmp_path, "ok"), bare(tmp_path, settings))
    import_archives(work, [path])
    before = environment_of(run)
    assert f"tiny: imported as {before['image']['tag']}, image {before['realised_id']}\n" in capsys.readouterr().out
    again = run_suite(work)
    assert trials(again)["ok"]["status"] == "ok"
    assert environment_of(again) == before
    assert "tiny: built already, nothing to do" in capsys.readouterr().out


def test_an_export_says_where_it_is_and_what_may_be_passed_on_and_the_next_is_the_same(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout = tiny_checkout(tmp_path, "ok", extra=f'redistribution = "{OTHERS}"')
    work = session(checkout, settings)
    ready = work.build([read_environment(checkout.images / "tiny.toml")])["tiny"]
    (path,) = export(work, tmp_path / "exports")
    assert path == tmp_path / "exports" / f"tiny-{ready.built.spec_id}.oci.tar"
    said = capsys.readouterr().out
    assert f"tiny: exported to {path}, " in said
    assert f", image {ready.built.realised_id}\n" in said
    assert f"before you pass it on, read docs/redistribution.md ({OTHERS})\n" in said
    (again,) = export(work, tmp_path / "again")
    assert again.read_bytes() == path.read_bytes()


def test_an_image_that_had_the_name_makes_room(
    tmp_path: Path,
    settings: Settings,
    exported: tuple[Path, RunDirectory],
    elsewhere: "docker.DockerClient",
) -> None:
    path, run = exported
    work = session(tiny_checkout(tmp_path, "ok"), bare(tmp_path, settings))
    import_archives(work, [path])
    tag = environment_of(run)["image"]["tag"]
    container = elsewhere.containers.create(tag)
    other = container.commit(*tag.split(":"))
    container.remove()
    assert elsewhere.images.get(tag).id == other.id
    import_archives(work, [path])
    assert [image.id for image in elsewhere.images.list(all=True)] == [environment_of(run)["realised_id"]]


@pytest.mark.usefixtures("elsewhere")
def test_a_checkout_that_asks_for_another_environment_says_what_differs_and_what_to_do(
    tmp_path: Path,
    settings: Settings,
    exported: tuple[Path, RunDirectory],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, run = exported
    checkout = tiny_checkout(tmp_path, "ok", extra=f'redistribution = "{OTHERS}"')
    spec = checkout.images / "tiny.toml"
    asked = spec.read_text()
    spec.write_text(asked.replace('python = "3.11",', 'python = "3",'))
    work = session(checkout, bare(tmp_path, settings))
    import_archives(work, [path])
    assert (
        "tiny: not what this checkout asks for (different: images/tiny.toml): `invoke build` would make another. "
        f"What it was made with: tar xf {path} --strip-components 1 tsuishi/images/tiny.toml\n"
    ) in capsys.readouterr().out
    assert work.builder.find(read_environment(spec)) is None
    spec.write_text(asked)
    again = run_suite(session(checkout, bare(tmp_path, settings)))
    assert environment_of(again)["realised_id"] == environment_of(run)["realised_id"]


@pytest.mark.usefixtures("elsewhere")
def test_the_command_to_paste_is_quoted(
    tmp_path: Path,
    settings: Settings,
    exported: tuple[Path, RunDirectory],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "a $(touch b).tar"
    shutil.copy(exported[0], path)
    checkout = tiny_checkout(tmp_path / "checkout", "ok")
    (checkout.images / "tiny.toml").unlink()
    import_archives(session(checkout, bare(tmp_path, settings)), [path])
    assert f"tar xf '{path}' --strip-components 1 tsuishi/images/tiny.toml\n" in capsys.readouterr().out


def test_an_image_of_another_id_than_the_archive_has_does_not_stay(
    tmp_path: Path,
    settings: Settings,
    exported: tuple[Path, RunDirectory],
    elsewhere: "docker.DockerClient",
) -> None:
    path, run = exported
    image, tag = intake.read_archive(path), environment_of(run)["image"]["tag"]
    engine = session(tiny_checkout(tmp_path, "ok"), bare(tmp_path, settings)).builder.engines.docker

    def load() -> None:
        with path.open("rb") as file:
            engine.store.load(image.packed(file), tag, (f"sha256:{'0' * 64}",))

    without_images(elsewhere)
    said = f"{tag}: the engine made another image of the archive than is in it: all is as it was before; "
    with pytest.raises(UserError, match=re.escape(said)):
        load()
    assert elsewhere.images.list(all=True) == []
    # One that was there under the name has it again.
    dockerfile = io.BytesIO(b"FROM scratch\nLABEL mine=1\n")
    mine, _ = elsewhere.images.build(fileobj=dockerfile, tag=tag)
    with pytest.raises(UserError, match=re.escape(said)):
        load()
    assert elsewhere.images.get(tag).id == mine.id
    assert len(elsewhere.images.list(all=True)) == 1


def without_images(client: "docker.DockerClient") -> None:
    for image in client.images.list():
        client.images.remove(str(image.id), force=True)


def another_image(export: Path, layer: bytes = EMPTY) -> Path:
    """The export of another image of the same specification, with a layer more: no part contradicts another part."""
    image = intake.read_archive(export)
    content, root = export.read_bytes(), [*image.diff_ids, sha256(layer)]
    before = json.loads(image.config)
    more = {"created_by": "somebody", "created": before["created"]}
    changes = {"rootfs": {"type": "layers", "diff_ids": root}, "history": [*before["history"], more]}
    config = json.dumps({**before, **changes}).encode()
    layers = {part.name: content[part.offset : part.offset + part.size] for part in image.layers}
    layers[blob(layer)] = layer
    saved = tar({**layers, blob(config): config, "manifest.json": manifest(blob(config), list(layers))})

    def notes(image_id: str) -> dict[str, bytes]:
        record = json.loads(image.notes["environment.json"])
        record |= {"realised_id": image_id, "image": {**record["image"], "layers": root}}
        return {**image.notes, "environment.json": json.dumps(record).encode()}

    path = export.with_name(f"another-{export.name}")
    assert write_archive(path, [saved], image.tag, notes) != image.id
    return path


FOREIGN = "tsuishi/foreign:0123456789abcdef"


def with_a_second_manifest(content: bytes) -> bytes:
    """An archive with a foreign image behind an entry at which Python's tarfile takes it to have ended."""
    with tarfile.open(fileobj=io.BytesIO(content)) as entries:
        manifest = json.loads(entries.extractfile("manifest.json").read())  # type: ignore[union-attr]
        layer = gzip.decompress(entries.extractfile(manifest[0]["Layers"][-1]).read())  # type: ignore[union-attr]
    root = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": root}).encode()
    name = f"blobs/sha256/{hashlib.sha256(config).hexdigest()}"
    second = {"Config": name, "RepoTags": [FOREIGN], "Layers": manifest[0]["Layers"][-1:]}
    behind = damaged(entry("odd", b"")) + entry(name, config)
    behind += entry("manifest.json", json.dumps([*manifest, second]).encode())
    hostile = content[: end_of(content)] + behind + bytes(1024)
    with tarfile.open(fileobj=io.BytesIO(hostile)) as seen, tarfile.open(fileobj=io.BytesIO(content)) as whole:
        assert seen.getnames() == whole.getnames()
    return hostile


def test_a_second_manifest_that_the_engine_would_read_is_refused(
    tmp_path: Path,
    settings: Settings,
    exported: tuple[Path, RunDirectory],
    elsewhere: "docker.DockerClient",
) -> None:
    """What this engine makes of the file itself is the attack; its checksum beside it says that all is well."""
    hostile = tmp_path / exported[0].name
    hostile.write_bytes(with_a_second_manifest(exported[0].read_bytes()))
    checksum = hashlib.sha256(hostile.read_bytes()).hexdigest()
    hostile.with_name(f"{hostile.name}.sha256").write_text(f"{checksum}  {hostile.name}\n")
    without_images(elsewhere)
    with hostile.open("rb") as file:
        elsewhere.images.load(file)
    assert elsewhere.images.get(FOREIGN)
    without_images(elsewhere)
    work = session(tiny_checkout(tmp_path / "checkout", "ok"), bare(tmp_path, settings))
    with pytest.raises(UserError) as caught:
        import_archives(work, [hostile])
    assert str(caught.value) == (
        f"{hostile}: no archive of an image, or not the whole of one: a header is damaged: invalid header"
    )
    assert elsewhere.images.list(all=True) == []


def test_an_archive_that_changes_once_it_was_checked_brings_nothing(
    tmp_path: Path,
    settings: Settings,
    exported: tuple[Path, RunDirectory],
    elsewhere: "docker.DockerClient",
) -> None:
    path = tmp_path / exported[0].name
    shutil.copy(exported[0], path)
    without_images(elsewhere)
    work = session(tiny_checkout(tmp_path / "checkout", "ok"), bare(tmp_path, settings))
    image = intake.read_archive(path)
    last = image.layers[-1]
    engine = work.builder.engines.docker

    def sent() -> Iterator[bytes]:
        with path.open("r+b") as file:
            pieces = image.packed(file)
            yield next(pieces)
            with path.open("r+b") as altered:
                altered.seek(last.offset + last.size - 100)
                altered.write(b"another")
            yield from pieces

    with pytest.raises(UserError, match=f"^{last.name} has changed since it was checked: "):
        engine.store.load(sent(), image.tag, image.ids)
    assert elsewhere.images.list(all=True) == []


def test_what_is_not_built_or_no_image_is_not_exported(tmp_path: Path, settings: Settings) -> None:
    checkout = tiny_checkout(tmp_path, "ok")
    spec = checkout.images / "tiny.toml"
    spec.write_text(spec.read_text().replace('python = "3.11",', 'python = "3.11.99",'))
    with pytest.raises(UserError) as caught:
        export(session(checkout, settings), tmp_path / "exports")
    assert str(caught.value) == ("tiny is not built as it is asked for now: build it first: invoke build --env tiny")
    host = replace(session(checkout, settings), choice=Choice(environments=("host",)))
    with pytest.raises(UserError) as caught:
        export(host, tmp_path / "exports")
    assert str(caught.value) == "host is an interpreter of this machine, and no image: it cannot be exported"
    assert not (tmp_path / "exports").exists()


def test_podman_imports_what_docker_exported(
    tmp_path: Path,
    settings: Settings,
    exported: tuple[Path, RunDirectory],
    podman: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, run = exported
    monkeypatch.setenv("DOCKER_HOST", podman)
    work = session(tiny_checkout(tmp_path, "ok"), bare(tmp_path, settings))
    import_archives(work, [path])
    again = run_suite(work)
    assert trials(again)["ok"]["status"] == "ok"
    assert environment_of(again)["realised_id"] == environment_of(run)["realised_id"]
    assert environment_of(run)["spec_id"] in [kept.spec_id for kept in work.builder.engines.docker.store.kept()]
    (back,) = export(work, tmp_path / "exports")
    assert (tmp_path / "exports" / path.name) == back
