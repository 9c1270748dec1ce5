"""Archives with the software of their runs: images and packages, made and brought back by real engines."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from tests.engine.conftest import tiny_checkout
from tests.engine.test_docker import session
from tests.extras.handover.archived import files_of, remade, rewritten
from tests.extras.handover.engine.test_exchange import another_image, bare, without_images
from tests.extras.handover.test_archived_software import archived
from tests.extras.handover.test_exchange import import_archives
from tests.run.test_runner import trials
from tests.words import WORDS
from tsuishi.artifacts.cache import Cache
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.environments.entry import Ready
from tsuishi.extras.handover.archives import signature
from tsuishi.extras.handover.archives.archive_check import unpacked_runs, verify_archive
from tsuishi.extras.handover.archives.archive_description import environments_of
from tsuishi.extras.handover.incoming import incoming_image
from tsuishi.extras.handover.replay import archived_originals, measure, plan_replay, require_containers
from tsuishi.extras.handover.restoration import restore
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import EnvironmentRecord
from tsuishi.run.new_run import run_suite
from tsuishi.specs.environment import COMPATIBILITY

pytestmark = pytest.mark.engine

# The bench's own workload holds the form of a secret, which no archive takes.
BEHAVE = """
import platform

def run(request, emitter):
    emitter.environment(python=platform.python_version(), versions={})
    with emitter.phase("measure"):
        emitter.sample("measure", 0, 1, 10, 0.5)
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> tuple[Session, RunDirectory]:
    """A run in the tiny environment, and its session."""
    work = checked_out(tmp_path_factory.mktemp("measured"), settings)
    return work, run_suite(work)


@pytest.fixture(scope="module")
def archive(measured: tuple[Session, RunDirectory], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run as an archive with its software."""
    path = tmp_path_factory.mktemp("archive") / "a.zip"
    archived(measured[0], path, with_images=True, with_artifacts=True)
    return path


@pytest.fixture
def elsewhere(daemon: str, archive: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["docker.DockerClient"]:
    """From here on, and once there is an archive, another daemon is the engine; it has no image."""
    monkeypatch.setenv("DOCKER_HOST", daemon)
    client = docker.DockerClient(daemon)
    without_images(client)
    yield client
    client.close()


def checked_out(root: Path, settings: Settings) -> Session:
    """The session of a checkout with the tiny environment, whose workload holds no secret."""
    checkout = tiny_checkout(root, "ok")
    (checkout.workloads / "experiments" / "behave.py").write_text(BEHAVE)
    return session(checkout, settings)


def software(archive: Path, *folders: str) -> list[str]:
    """The names of the files in these folders of an archive."""
    return [name for name in files_of(archive) if name.startswith(folders)]


def made_folder(path: Path) -> Path:
    path.mkdir()
    return path


def environment(run: RunDirectory) -> EnvironmentRecord:
    (record,) = environments_of([run])
    return record


def restored(work: Session, path: Path, folder: Path) -> Ready:
    """The environment of the one run of an archive, brought back."""
    return restore(work, path, unpacked_runs(work, path, folder).runs)["tiny"]


def another_export(archive: Path, folder: Path) -> Path:
    """The export of another image than the archive holds."""
    (name,) = software(archive, "images/")
    (folder / "tiny.tar.gz").write_bytes(files_of(archive)[name])
    return another_image(folder / "tiny.tar.gz")


def test_an_archive_holds_image_and_packages_and_is_the_same_twice(
    measured: tuple[Session, RunDirectory], archive: Path, tmp_path: Path
) -> None:
    work, run = measured
    files = files_of(archive)
    assert verify_archive(archive, WORDS).faults == []
    (image,) = software(archive, "images/")
    assert image == f"images/tiny-{environment(run).spec_id}.tar.gz"
    (tmp_path / "tiny.tar.gz").write_bytes(files[image])
    incoming = incoming_image(work.checkout, tmp_path / "tiny.tar.gz")
    assert incoming.record.realised_id == environment(run).realised_id
    packages = {name.rpartition("/")[2].partition("-")[0] for name in software(archive, "artifacts/")}
    assert packages == {"pip", "typing_extensions"}
    archived(work, tmp_path / "b.zip", with_images=True, with_artifacts=True)
    assert (tmp_path / "b.zip").read_bytes() == archive.read_bytes()


def test_from_the_image_in_an_archive_the_environment_is_the_very_same_and_a_replay_goes_in_it(
    measured: tuple[Session, RunDirectory],
    archive: Path,
    elsewhere: "docker.DockerClient",
    tmp_path: Path,
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
) -> None:
    work = checked_out(tmp_path / "there", bare(tmp_path, settings))
    (name,) = software(archive, "images/")
    # Another image of the same specification is here: it stays, unless the archive has the image of its runs.
    import_archives(work, [another_export(archive, tmp_path)])
    (other,) = elsewhere.images.list(all=True)
    found = restored(work, remade(archive, {name: None}), tmp_path / "without")
    assert found.built.realised_id == other.id
    built_again = "not the same build as in the runs: it was built again"
    assert f"tiny: it was here already; {built_again}\n" in capsys.readouterr().out
    found = restored(work, archive, tmp_path / "runs")
    assert found.built.realised_id == environment(measured[1]).realised_id
    assert "tiny: from the image in the archive; the same as in the runs\n" in capsys.readouterr().out
    original = unpacked_runs(work, archive, tmp_path / "original")
    planned = plan_replay(work, original.runs[0], original.roots[0])
    again = measure(planned, {"tiny": found}, "replay")
    assert again.run().replays == planned.original
    assert trials(again)["ok"]["status"] == "ok"
    assert environment(again) == environment(measured[1])
    restored(work, archive, tmp_path / "again")
    assert "tiny: it was here already; the same as in the runs\n" in capsys.readouterr().out
    assert [image.id for image in elsewhere.images.list(all=True)] == [found.built.realised_id]


def test_without_an_image_it_is_built_from_the_packages_in_the_archive_without_network(
    measured: tuple[Session, RunDirectory],
    archive: Path,
    tmp_path: Path,
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
) -> None:
    without = remade(archive, dict.fromkeys(software(archive, "images/")))
    client = docker.from_env()
    tag = f"tsuishi/tiny:{environment(measured[1]).spec_id}"
    client.images.remove(tag, force=True)
    changes = {"cache": tmp_path / "cache", "offline": True}
    work = checked_out(tmp_path / "there", Settings(**{**settings.model_dump(), **changes}))
    restored(work, without, tmp_path / "runs")
    assert "tiny: built from packages, without network; the same as in the runs\n" in capsys.readouterr().out
    kept = sorted(path.name.partition("-")[0] for path in Cache(work.settings.cache).root.glob("*/*"))
    assert kept == ["pip", "typing_extensions"]


@pytest.mark.usefixtures("elsewhere")
def test_offline_it_is_said_what_neither_archive_nor_cache_has(
    archive: Path, tmp_path: Path, settings: Settings
) -> None:
    without = remade(archive, {name: None for name in files_of(archive) if name.startswith(("images/", "artifacts/"))})
    work = checked_out(tmp_path / "there", bare(tmp_path, settings))
    with pytest.raises(UserError) as caught:
        restored(work, without, tmp_path / "runs")
    said = str(caught.value)
    assert said.startswith(f"{without}: tiny cannot be made offline: no image of it for this engine is in the archive")
    assert "neither archive nor cache has pip==" in said
    assert said.endswith("leave --offline out, or `invoke fetch --env tiny` where there is a network")


def test_another_image_than_that_of_the_runs_reaches_no_engine(
    archive: Path, elsewhere: "docker.DockerClient", tmp_path: Path, settings: Settings
) -> None:
    """The archive is verified, and its maker put the export of another image of the same specification into it."""
    (name,) = software(archive, "images/")
    foreign = rewritten(archive, {name: another_export(archive, tmp_path).read_bytes()})
    assert verify_archive(foreign, WORDS).faults == []
    work = checked_out(tmp_path / "there", bare(tmp_path, settings))
    with pytest.raises(UserError, match=r"and its runs were measured in sha256:[0-9a-f]{64}: do not use the archive"):
        restored(work, foreign, tmp_path / "runs")
    assert elsewhere.images.list(all=True) == []


def test_a_checkout_with_another_specification_builds_nothing(
    archive: Path, tmp_path: Path, settings: Settings
) -> None:
    work = checked_out(tmp_path / "there", settings)
    spec = work.checkout.images / "tiny.toml"
    spec.write_text(spec.read_text().replace('python = "3.11",', 'python = "3",'))
    with pytest.raises(UserError, match=r"its runs used tiny of another specification \(spec id [0-9a-f]{16}\)"):
        restored(work, archive, tmp_path / "runs")
    spec.unlink()
    with pytest.raises(UserError, match="its runs used tiny, which this checkout does not have: "):
        restored(work, archive, tmp_path / "runs again")


def signed_with_code(archive: Path, run: RunDirectory, checkout: Checkout, folder: Path) -> tuple[Path, Path]:
    """The archive with the code of its run, signed; and the public key."""
    folder.mkdir()
    inputs = f"inputs/{run.id}/"
    code = {
        inputs + path.relative_to(checkout.root).as_posix(): path.read_bytes()
        for pattern in ("suites/**/*", "images/*")
        for path in checkout.root.glob(pattern)
        if path.is_file() and path.name != COMPATIBILITY
    }
    path = Path(shutil.move(remade(archive, code), folder))
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "ada"], check=True)
    signature.sign(path, verify_archive(path, WORDS).root, folder / "ada")
    return path, folder / "ada.pub"


def test_the_code_of_an_archive_is_run_in_a_container_where_somebody_trusted_signed_it(
    measured: tuple[Session, RunDirectory], archive: Path, tmp_path: Path, settings: Settings
) -> None:
    path, key = signed_with_code(archive, measured[1], measured[0].checkout, tmp_path / "signed")
    work = checked_out(tmp_path / "there", settings)
    (work.checkout.workloads / "experiments" / "behave.py").write_text("raise SystemExit\n")
    (work.checkout.suites / "bench.toml").unlink()
    ours = unpacked_runs(work, path, tmp_path / "ours")
    with pytest.raises(UserError, match=r"files that differ here: workloads/experiments/behave\.py"):
        plan_replay(work, ours.runs[0], ours.roots[0])
    (original,) = archived_originals(work, path, str(key), made_folder(tmp_path / "theirs"))
    planned = plan_replay(original.session, original.run, original.root)
    require_containers(planned)
    again = measure(planned, restore(planned.session, path, [original.run]), "replay")
    assert trials(again)["ok"]["status"] == "ok"
    assert environment(again).engine == "docker"


def test_the_code_of_an_archive_is_not_run_for_others_keys_engines_or_where_it_is_incomplete(
    measured: tuple[Session, RunDirectory], archive: Path, tmp_path: Path, settings: Settings
) -> None:
    work, run = measured
    path, key = signed_with_code(archive, run, work.checkout, tmp_path / "signed")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "bob"], check=True)
    with pytest.raises(UserError, match="no signer in"):
        archived_originals(work, path, str(tmp_path / "bob.pub"), made_folder(tmp_path / "1"))
    in_venv = replace(work, settings=settings.model_copy(update={"engine": "venv"}))
    with pytest.raises(UserError, match="runs in containers only, not with --engine venv"):
        archived_originals(in_venv, path, str(key), made_folder(tmp_path / "2"))
    without = remade(path, {f"inputs/{run.id}/suites/axes.toml": None})
    signature.sign(without, verify_archive(without, WORDS).root, key.with_suffix(""))
    with pytest.raises(UserError, match=r"does not hold the code of run .* \(suites/axes\.toml\)"):
        archived_originals(work, without, str(key), made_folder(tmp_path / "3"))
