"""What a report, a list and a resumption say of the files of a run, without the whole of a verification."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.results import test_verification
from tests.run.test_runner import session
from tests.synthetic_run import write_example
from tests.words import WORDS
from tsuishi.base import seals
from tsuishi.base.screen import Screen
from tsuishi.commands import listing
from tsuishi.results import manifest, trial_folders
from tsuishi.results.assurance import Assurance, assurance, shortened
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import read_runs
from tsuishi.run.resume import resume


def known(run: RunDirectory) -> Assurance:
    """What a report says of a run."""
    (found,) = read_runs([run], WORDS).assurances.values()
    return found


def first_trial(run: RunDirectory) -> Path:
    return run.finished_folders()[0]


def flip(path: Path) -> None:
    """Another last character but one, and the same size."""
    text = path.read_bytes()
    path.write_bytes(text[:-2] + bytes([text[-2] ^ 1]) + text[-1:])


def grow(run: RunDirectory) -> None:
    """Make it larger than a report reads whole."""
    os.truncate(first_trial(run) / "log.txt.gz", 65 << 20)


@pytest.mark.long
def test_a_report_verifies_every_file_of_a_run_that_is_not_large(run: RunDirectory) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    assert known(run) == Assurance("verified", manifest.read(run.path).root, has_tables=True)
    grow(run)
    assert known(run) == Assurance("tables verified", has_tables=True)
    after = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    assert {path for path in after if after[path] != before.get(path)} == {first_trial(run) / "log.txt.gz"}


def test_a_run_without_a_manifest_is_older_than_verification(tmp_path: Path) -> None:
    assert known(write_example(tmp_path / "older")) == Assurance("older than verification")


def lose_a_trial(run: RunDirectory) -> str:
    folder = run.finished_folders()[-1]
    shutil.rmtree(folder)
    return f"trials/{folder.name}/trial.json"


def add_an_attempt(run: RunDirectory) -> str:
    return str(test_verification.add_an_attempt(run).relative_to(run.path))


def add_a_file(run: RunDirectory) -> str:
    (run.path / "more.csv").write_text("a\n")
    return "more.csv"


def flip_a_table(run: RunDirectory) -> str:
    flip(run.path / "samples.csv")
    return "samples.csv"


def lose_a_table(run: RunDirectory) -> str:
    (run.path / "samples.csv").unlink()
    return "samples.csv"


def cut_the_manifest(run: RunDirectory) -> str:
    path = run.path / manifest.ONCE
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    return manifest.ONCE


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize(
    "change", [lose_a_trial, add_an_attempt, add_a_file, flip_a_table, lose_a_table, cut_the_manifest]
)
def test_what_was_altered_is_named(run: RunDirectory, change: Callable[[RunDirectory], str], is_large: bool) -> None:
    if is_large:
        grow(run)
    altered = change(run)
    for found in (known(run), assurance(run, most=0)):
        assert (found.level, found.root) == ("altered", "")
        # With a trial its files are lost, and with the manifest's first line a record's.
        assert altered in found.altered


@pytest.mark.parametrize("name", ["trial.json", "log.txt.gz"])
def test_a_report_names_a_trial_that_was_altered_and_kept_its_size(run: RunDirectory, name: str) -> None:
    path = first_trial(run) / name
    path.write_bytes(path.read_bytes().replace(b"python", b"pythom", 1) if name == "trial.json" else b"x" * 40)
    assert known(run).altered == (f"trials/{path.parent.name}/{name}",)


def test_a_received_run_json_that_was_altered_is_named(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "key_file", lambda: tmp_path / "key")
    path = run.path / "run.json"
    path.write_text(path.read_text().replace("quick", "full"))
    assert known(run).altered == ("run.json",)


def test_a_list_opens_no_trial_of_a_large_run_that_is_as_its_manifest_says(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(run)

    def opened(path: object, *more: object) -> bytes:
        raise AssertionError(f"{path} was opened")

    before = listing.run_row(run.path)
    monkeypatch.setattr(trial_folders, "read", opened)
    assert listing.run_row(run.path) == before
    assert before[3:5] == ("3", "3")


def test_a_list_names_what_was_altered(run: RunDirectory) -> None:
    flip(run.path / "samples.csv")
    assert listing.run_row(run.path)[-1] == "altered, or left by a runner that was killed: samples.csv"


def test_a_resumption_names_tables_that_were_altered_and_gathers_them_anew(
    bench: Path, made: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(made.path / "samples.csv")
    resume(replace(session(bench), screen=Screen()), made.id)
    said = capsys.readouterr().out
    assert "altered, or left by a runner that was killed: samples.csv; `invoke verify` says more" in said
    assert known(made).level == "verified"


def test_long_lists_of_files_are_shortened() -> None:
    assert [shortened(names) for names in (["a"], ["a", "b", "c"], ["a", "b", "c", "d", "e"])] == [
        "a",
        "a, b, c",
        "a, b, c and 2 more",
    ]
