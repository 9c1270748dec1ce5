"""An archive of a run that was really made: its inputs are all there, and its software where asked for."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.extras.handover.archived import files_of, rewritten
from tests.run.test_runner import DATA_SET
from tests.tiny_venv import tiny_checkout
from tests.words import WORDS
from tsuishi.base.errors import UserError
from tsuishi.base.files import sha256_of
from tsuishi.base.screen import Screen
from tsuishi.commands.chain import Chain
from tsuishi.commands.options import Options
from tsuishi.extras.handover import archive_runs
from tsuishi.extras.handover.archives.archive_check import unpacked_runs, verify_archive
from tsuishi.extras.handover.restoration import restore
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.run.new_run import run_suite


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The session of a run in a virtual environment of two packages, which is named with its engine."""
    checkout, settings = tiny_checkout(tmp_path_factory.mktemp("tiny"))
    session = Session(settings, Choice(environments=("tiny.venv",)), Screen(), checkout, DATA_SET)
    run_suite(session)
    return session


def archived(work: Session, to: Path, **options: Any) -> dict[str, bytes]:
    chain = Chain(("archive",), Options({"to": str(to), **options}))
    chain.__dict__["session"] = work
    archive_runs.archive(chain)
    return files_of(to)


def test_every_input_of_a_run_without_git_is_there_but_suites_and_sources(work: Session, tmp_path: Path) -> None:
    files = archived(work, tmp_path / "a.zip")
    (run_id,) = {name.split("/")[1] for name in files if name.startswith("runs/")}
    inputs = {
        name.removeprefix(f"inputs/{run_id}/"): text for name, text in files.items() if name.startswith("inputs/")
    }
    root = work.checkout.root
    assert {"images/tiny.toml", "images/tiny.lock", "templates/Dockerfile.j2"} <= inputs.keys()
    assert {path.relative_to(root).as_posix() for path in work.checkout.workloads.rglob("*.py")} <= inputs.keys()
    assert all(text == (root / name).read_bytes() for name, text in inputs.items())
    assert not [name for name in files if name.startswith(("artifacts/", "images/"))]
    assert verify_archive(tmp_path / "a.zip", WORDS).faults == []


def test_the_packages_of_its_environment_are_there_where_asked_for(work: Session, tmp_path: Path) -> None:
    files = archived(work, tmp_path / "a.zip", with_artifacts=True)
    packages = {name for name in files if name.startswith("artifacts/")}
    there = {f"artifacts/{path.parent.name}/{path.name}" for path in work.builder.cache.root.glob("*/*.whl")}
    assert len(packages) >= 2
    assert packages <= there
    found = verify_archive(tmp_path / "a.zip", WORDS)
    assert found.faults == []
    name = min(packages)
    assert (
        "another content than the SHA-256 in its name"
        in verify_archive(rewritten(tmp_path / "a.zip", {name: b"another"}), WORDS).faults[0]
    )


def test_from_these_packages_the_environment_is_made_elsewhere_and_another_content_is_refused(
    work: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.zip"
    name = min(name for name in archived(work, path, with_artifacts=True) if name.startswith("artifacts/"))
    runs = unpacked_runs(work, path, tmp_path / "runs").runs
    there = replace(work, settings=work.settings.model_copy(update={"cache": tmp_path / "cache"}))
    kept = there.builder.cache.root
    with pytest.raises(UserError, match="another content than the SHA-256 in its name"):
        restore(there, rewritten(path, {name: b"another"}), runs)
    assert not (kept / name.split("/")[1]).exists()
    assert restore(there, path, runs)["tiny.venv"].built.realised_id
    assert "tiny.venv: built from packages, without network; " in capsys.readouterr().out
    assert [file for file in kept.iterdir() if file.name.startswith(".")] == []


def test_what_the_cache_has_not_and_what_is_no_image_is_said(
    work: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = work.builder.cache.root
    moved = shutil.move(cache, tmp_path / "elsewhere")
    try:
        archived(work, tmp_path / "a.zip", with_artifacts=True, with_images=True)
    finally:
        shutil.rmtree(cache, ignore_errors=True)
        shutil.move(moved, cache)
    said = capsys.readouterr().out
    assert "left out: artifacts of tiny.venv: " in said
    assert "are not in the cache: `invoke fetch`" in said
    assert "left out: images: tiny.venv is no image; --with-artifacts holds its packages" in said


def test_an_anonymous_archive_of_it_names_neither_folder_nor_checkout(work: Session, tmp_path: Path) -> None:
    files = archived(work, tmp_path / "a.zip", anonymous=True)
    assert verify_archive(tmp_path / "a.zip", WORDS).faults == []
    root = str(work.checkout.root).encode()
    assert [name for name, text in files.items() if root in text] == []
    assert sha256_of(tmp_path / "a.zip") == sha256_of(_again(work, tmp_path))


def _again(work: Session, tmp_path: Path) -> Path:
    archived(work, tmp_path / "again.zip", anonymous=True)
    return tmp_path / "again.zip"
