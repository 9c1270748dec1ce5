"""Environments that travel: exported from one engine, imported into another that has nothing, without a network."""

import io
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.engine.conftest import tiny_checkout
from tests.engine.test_docker import session
from tests.extras.handover.test_exchange import (
    EMPTY,
    export,
    import_archives,
    members,
    sha256,
    tar,
)
from tests.run.test_runner import trials
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.extras.handover.incoming import NOTES, write_export
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
    assert "tiny: ready in " not in capsys.readouterr().out, "it was built again"


def test_an_export_says_where_it_is_and_what_may_be_passed_on_and_the_next_is_the_same(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout = tiny_checkout(tmp_path, "ok", extra=f'redistribution = "{OTHERS}"')
    work = session(checkout, settings)
    ready = work.build([read_environment(checkout.images / "tiny.toml")])["tiny"]
    (path,) = export(work, tmp_path / "exports")
    assert path == tmp_path / "exports" / f"tiny-{ready.built.spec_id}.tar.gz"
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
        "tiny: not the environment of this checkout (different: images/tiny.toml): `invoke build` would make a "
        "different image. "
        f"Inputs: tar xf {path} --strip-components 1 tsuishi/images/tiny.toml\n"
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


def without_images(client: "docker.DockerClient") -> None:
    for image in client.images.list():
        client.images.remove(str(image.id), force=True)


def another_image(export: Path, layer: bytes = EMPTY, layers: Sequence[str] = ()) -> Path:
    """The export of another image of the same specification, with a layer more.

    layers: of its record; those of the image without.
    """
    files = members(export)
    (image,) = json.loads(files["manifest.json"])
    config, record = json.loads(files.pop(image["Config"])), json.loads(files["tsuishi/environment.json"])
    config["rootfs"]["diff_ids"].append(sha256(layer))
    config["history"].append({"created_by": "somebody", "created": config["created"]})
    text = json.dumps(config).encode()
    image |= {"Config": f"{sha256(text)[7:]}.json", "Layers": [*image["Layers"], "more/layer.tar"]}
    record["realised_id"] = sha256(text)
    record["image"]["layers"] = [*layers] or config["rootfs"]["diff_ids"]
    files |= {image["Config"]: text, "more/layer.tar": layer, "manifest.json": json.dumps([image]).encode()}
    files["tsuishi/environment.json"] = json.dumps(record).encode()
    notes = {name.removeprefix(NOTES): files.pop(name) for name in [*files] if name.startswith(NOTES)}
    path = export.with_name(f"another-{export.name}")
    write_export(path, notes, [tar(files)])
    return path


def test_another_image_than_its_record_says_does_not_stay(
    tmp_path: Path,
    settings: Settings,
    exported: tuple[Path, RunDirectory],
    elsewhere: "docker.DockerClient",
) -> None:
    image = environment_of(exported[1])["image"]
    hostile = another_image(Path(shutil.copy(exported[0], tmp_path)), layers=image["layers"])
    work = session(tiny_checkout(tmp_path / "checkout", "ok"), bare(tmp_path, settings))
    without_images(elsewhere)
    said = f"^{hostile}: its image has other layers than its record says: altered; "
    with pytest.raises(UserError, match=said):
        import_archives(work, [hostile])
    assert elsewhere.images.list(all=True) == []
    # An image that was there under the name has it again.
    mine, _ = elsewhere.images.build(fileobj=io.BytesIO(b"FROM scratch\nLABEL mine=1\n"), tag=image["tag"])
    with pytest.raises(UserError, match=said):
        import_archives(work, [hostile])
    assert elsewhere.images.get(image["tag"]).id == mine.id
    assert len(elsewhere.images.list(all=True)) == 1


def test_a_file_that_the_engine_refuses_or_that_holds_two_images_brings_nothing(
    tmp_path: Path,
    settings: Settings,
    exported: tuple[Path, RunDirectory],
    elsewhere: "docker.DockerClient",
) -> None:
    files = members(another_image(Path(shutil.copy(exported[0], tmp_path))))
    (image,) = json.loads(files["manifest.json"])
    (first,) = json.loads(members(exported[0])["manifest.json"])
    files[first["Config"]] = members(exported[0])[first["Config"]]
    two = tar({**files, "manifest.json": json.dumps([image, {**first, "RepoTags": ["foreign:1"]}]).encode()})
    damaged = tar({**files, first["Layers"][-1]: EMPTY})
    work = session(tiny_checkout(tmp_path / "checkout", "ok"), bare(tmp_path, settings))
    without_images(elsewhere)
    for number, (content, said) in enumerate(
        ((two, "it holds 2 images"), (damaged, "invalid diffID"), (two[:-99999], "unexpected EOF"))
    ):
        path = tmp_path / f"{number}.tar"
        path.write_bytes(content)
        with pytest.raises(UserError, match=said):
            import_archives(work, [path])
        assert elsewhere.images.list(all=True) == []


def test_what_is_not_built_or_no_image_is_not_exported(tmp_path: Path, settings: Settings) -> None:
    checkout = tiny_checkout(tmp_path, "ok")
    spec = checkout.images / "tiny.toml"
    spec.write_text(spec.read_text().replace('python = "3.11",', 'python = "3.11.99",'))
    with pytest.raises(UserError) as caught:
        export(session(checkout, settings), tmp_path / "exports")
    assert str(caught.value) == (
        "tiny is not built by its present specification: build it first: invoke build --env tiny"
    )
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
