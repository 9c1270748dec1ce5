"""Virtual environments as pip makes them: one lock gives one id, and nothing altered is measured in."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_venv import PYTHON, tiny_checkout
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.screen import Screen
from tsuishi.commands import listing
from tsuishi.engines.interface import Kept
from tsuishi.environments import inventory
from tsuishi.environments.builder import Builder
from tsuishi.environments.entry import Ready
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.results.facts import Facts
from tsuishi.results.records import EnvironmentRecord, other_versions
from tsuishi.run import measuring
from tsuishi.run.new_run import run_suite
from tsuishi.specs.environment import Environment, read_environment

pytestmark = pytest.mark.long

EVIL = f"lib/python{PYTHON}/site-packages/evil.pth"
SETS_A_VERSION = "import tiny; tiny.__version__ = '9.9.9'\n"


class Made:
    """A checkout with the environment `tiny`."""

    def __init__(self, root: Path, odd: str = "") -> None:
        root.mkdir(exist_ok=True)
        self.checkout, self.settings = tiny_checkout(root, odd)
        self.said: list[str] = []

    @property
    def environment(self) -> Environment:
        return read_environment(self.checkout.images / "tiny.toml")

    def builder(self) -> Builder:
        return Builder(self.settings, self.checkout)

    def session(self) -> Session:
        return Session(self.settings, Choice(environments=("tiny",)), Screen(), self.checkout)

    def find(self) -> Ready | None:
        return self.builder().find(self.environment)

    def build(self) -> Ready:
        builder = self.builder()
        return builder.ensure(self.environment, self.said.append)

    def kept(self) -> Kept:
        (kept,) = self.builder().engines.venv.store.kept()
        return kept

    def altered(self) -> str:
        return self.builder().engines.venv.inspector.altered(self.kept(), whole=True)

    @property
    def folder(self) -> Path:
        return Path(self.kept().name)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Built once; a test that alters it mends it."""
    made = Made(tmp_path_factory.mktemp("venv"))
    made.build()
    return made


def test_one_lock_gives_one_id_in_any_folder(made: Made, tmp_path: Path) -> None:
    """Also where the folder's name is too long for the first line of a script."""
    other = Made(tmp_path / ("long" * 40))
    other.build()
    assert (other.folder / "bin" / "tiny").read_bytes().startswith(b"#!/bin/sh\n'''exec' ")
    assert (made.altered(), other.altered()) == ("", "")
    assert other.kept().realised_id == made.kept().realised_id


def test_tidying_removes_what_an_unfinished_build_left_and_nothing_else(made: Made) -> None:
    unfinished = made.folder.with_name("tiny-0123456789abcdef")
    (unfinished / "bin").mkdir(parents=True)
    made.builder().engines.venv.maker.tidy()
    assert not unfinished.exists()
    assert made.find() is not None


def test_what_was_altered_is_built_again_before_a_run(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    before = made.kept()
    (made.folder / EVIL).write_text(SETS_A_VERSION)
    assert made.find() is None
    run = run_suite(made.session())
    ((_, trial),) = run.finished()
    assert (trial.status, trial.reported and trial.reported.versions) == ("ok", {"tiny": "1.0"})
    said = f"tiny: altered since it was built ({EVIL}: not there when it was built): it is built again"
    assert said in capsys.readouterr().out
    assert made.kept().realised_id == before.realised_id
    assert made.altered() == "", "a trial writes nothing into its environment"


def test_a_list_says_that_it_compared_no_file(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    (made.folder / EVIL).write_text(SETS_A_VERSION)
    try:
        listing.show(made.session(), whole=True)
        said = capsys.readouterr().out.splitlines()
        assert made.find() is None, "what runs compares all files"
    finally:
        (made.folder / EVIL).unlink()
    (row,) = (line for line in said if line.startswith("tiny "))
    assert " built " in row
    assert "built: the files were not compared; `invoke images` compares their sizes and times" in said


def test_a_trial_that_reports_other_versions_than_its_environment_fails(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is altered when it has been looked at already."""
    evil = made.folder / EVIL
    monkeypatch.setattr(measuring, "await_gpus", lambda *given: evil.write_text(SETS_A_VERSION))
    run = run_suite(made.session())
    evil.unlink()
    ((_, trial),) = run.finished()
    assert (trial.status, trial.reason) == (
        "failed",
        "not what its environment's record says: tiny is 9.9.9, recorded 1.0: "
        "see what was altered with `invoke images --verify`",
    )


def test_versions_are_compared_where_both_are_said() -> None:
    versions = {"torch": "1.1.0", "numpy": "1.16.6"}
    record = EnvironmentRecord(name="e", python="3.6.15", cuda=None, cudnn="7605", versions=versions)
    assert other_versions(record, Facts()) == {}
    same = Facts(python="3.6.15", cuda="10.0", versions={"torch": "1.1.0", "six": "1"})
    assert other_versions(record, same) == {}
    said = {"cudnn": ("8", "7605"), "numpy": ("9.9.9", "1.16.6"), "python": ("3.6.9", "3.6.15")}
    assert other_versions(record, Facts(python="3.6.9", cudnn="8", versions={"numpy": "9.9.9"})) == said


def test_images_are_verified_by_all_they_hold(
    made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    work = made.session()
    inventory.show(work.builder, work.screen, verify=True)
    said = capsys.readouterr().out
    assert "no virtual environment has changed since its build" in said
    manifest = made.kept().realised_id.removeprefix("venv:")[:12]
    assert f"{manifest}: verified" in said
    inventory.show(work.builder, work.screen)
    assert f"{manifest}: sizes and times" in capsys.readouterr().out
    evil = made.folder / EVIL
    evil.write_text(SETS_A_VERSION)
    work = made.session()
    with pytest.raises(UserError) as caught:
        inventory.show(work.builder, work.screen, verify=True)
    evil.unlink()
    assert str(caught.value) == (
        f"not as built: {made.folder}: {EVIL}: not there when it was built: remove the folder, then `invoke build`"
    )
    table = capsys.readouterr().out
    assert f"altered: {EVIL}: not there when it was built" in table
    assert f"{manifest}: altered" in table


def test_what_the_build_of_a_package_leaves_behind_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it sees nothing of its user's environment, nor of where tsuishi was started."""
    told = tmp_path / "told"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    (tmp_path / "pip.py").write_text("raise SystemExit('the pip of somebody else')")
    monkeypatch.chdir(tmp_path)
    does = f"(site / 'evil.pth').write_text(''); Path({str(told)!r}).write_text(repr(dict(os.environ)))"
    made = Made(tmp_path / "checkout", does)
    with pytest.raises(BuildError) as caught:
        made.build()
    assert str(caught.value).startswith(f"{made.settings.cache}/venvs/tiny-")
    assert str(caught.value).endswith(
        f"/{EVIL}: no locked package lists this file: find out which package or program wrote it"
    )
    assert made.find() is None
    assert "'HOME': " in told.read_text()
    assert "hunter2" not in told.read_text()
    assert os.environ["HOME"] + "'" not in told.read_text()


@pytest.mark.parametrize("planted", ['{"python": "3.6.15", "packages": {}}', "no JSON", "[]", '{"packages": []}'])
def test_an_environment_is_asked_again_where_its_record_is_not_what_it_promises(made: Made, planted: str) -> None:
    made.said.clear()
    (record,) = (made.settings.cache / "environments").glob("tiny-venv-*.json")
    record.write_text(planted)
    assert made.find() is None
    assert made.build().record.content()["packages"]["tiny"] == "1.0"
    assert made.said == ["entering it to see what it reports"]
    assert made.find() is not None


def test_the_mark_of_an_earlier_tsuishi_is_none(tmp_path: Path) -> None:
    made = Made(tmp_path)
    folder = made.settings.cache / "venvs" / "tiny-0123456789abcdef"
    folder.mkdir(parents=True)
    (folder / "tsuishi.json").write_text('{"python": "3.6.15", "lock_sha256": "0"}')
    kept: Any = made.kept()
    assert (kept.environment, kept.spec_id, kept.realised_id) == ("tiny", "0123456789abcdef", "")
    assert made.altered() == ""
