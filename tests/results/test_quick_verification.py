"""The quick form of verification, and how long a full one counts: in the state of files that it read, and no other."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.results import test_verification
from tests.run.test_runner import session
from tests.synthetic_run import write_example
from tests.words import WORDS
from tsuishi.base import seals
from tsuishi.base.screen import Screen
from tsuishi.commands import listing
from tsuishi.results import hash_chain, trial_folders
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import read_runs
from tsuishi.results.quick_verification import MARK, Assurance, assurance, shortened, sizes
from tsuishi.results.verification import verify
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


def test_tables_are_verified_until_everything_is(run: RunDirectory) -> None:
    assert known(run) == Assurance("tables verified")
    found = verify(run, WORDS)
    assert (known(run), found.is_verified) == (Assurance("verified", found.root), True)
    assert known(run) == Assurance("verified", found.root), "reading changes nothing"


def test_a_run_without_a_chain_is_older_than_verification(tmp_path: Path) -> None:
    assert known(write_example(tmp_path / "older")) == Assurance("older than verification")


def lose_a_trial(run: RunDirectory) -> str:
    folder = run.finished_folders()[-1]
    shutil.rmtree(folder)
    return f"trials/{folder.name}/trial.json"


def add_an_attempt(run: RunDirectory) -> str:
    return str(test_verification.add_an_attempt(run).relative_to(run.path))


def grow_a_trial(run: RunDirectory) -> str:
    path = first_trial(run) / "trial.json"
    path.write_text(path.read_text() + " ")
    return f"trials/{path.parent.name}/trial.json"


def add_a_file(run: RunDirectory) -> str:
    (run.path / "more.csv").write_text("a\n")
    return "more.csv"


def flip_a_table(run: RunDirectory) -> str:
    flip(run.path / "samples.csv")
    return "samples.csv"


def lose_a_table(run: RunDirectory) -> str:
    (run.path / "samples.csv").unlink()
    return "samples.csv"


def cut_the_chain(run: RunDirectory) -> str:
    path = run.path / hash_chain.FILE
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    return hash_chain.FILE


CHANGES = [lose_a_trial, add_an_attempt, grow_a_trial, add_a_file, flip_a_table, lose_a_table, cut_the_chain]


@pytest.mark.parametrize("is_marked", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_altered_is_named_also_after_a_verification(
    run: RunDirectory, change: Callable[[RunDirectory], str], is_marked: bool
) -> None:
    if is_marked:
        assert verify(run, WORDS).is_verified
    altered = change(run)
    assert known(run) == Assurance("altered", altered=(altered,))
    by_sizes = assurance(run, sizes(run, run.finished_folders()))
    assert by_sizes == Assurance("altered", altered=(altered,))


def test_a_received_run_json_that_was_altered_is_named(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "key_file", lambda: tmp_path / "key")
    path = run.path / "run.json"
    path.write_text(path.read_text().replace("quick", "full"))
    assert known(run) == Assurance("altered", altered=("run.json",))


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_report_names_a_trial_that_was_altered_and_kept_its_size(run: RunDirectory, is_marked: bool) -> None:
    if is_marked:
        assert verify(run, WORDS).is_verified
    path = first_trial(run) / "trial.json"
    path.write_bytes(path.read_bytes().replace(b"python", b"pythom", 1))
    assert known(run) == Assurance("altered", altered=(f"trials/{path.parent.name}/trial.json",))


@pytest.mark.parametrize("name", ["trial.json", "samples.csv"])
def test_a_change_inside_a_trial_ends_that_everything_is_verified(run: RunDirectory, name: str) -> None:
    """Also where the size is the same, and the time of the last writing is set back."""
    verify(run, WORDS)
    path = first_trial(run) / name
    about = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert known(run) == Assurance("tables verified")


def test_what_a_full_verification_found_altered_is_named_by_the_next_report(run: RunDirectory) -> None:
    """A log, which no report reads."""
    path = first_trial(run) / "log.txt.gz"
    flip(path)
    assert known(run) == Assurance("tables verified")
    assert not verify(run, WORDS).is_verified
    assert known(run) == Assurance("altered", altered=(f"trials/{path.parent.name}/log.txt.gz",))
    flip(path)
    root = verify(run, WORDS).root
    assert known(run) == Assurance("verified", root)


def test_a_verification_leaves_no_mark_where_a_file_changes_meanwhile(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    gather = RunDirectory.gather

    def gather_late(self: RunDirectory, *given: Any, **more: Any) -> None:
        gather(self, *given, **more)
        (path := first_trial(run) / "samples.csv").write_bytes(path.read_bytes())

    monkeypatch.setattr(RunDirectory, "gather", gather_late)
    assert verify(run, WORDS).is_verified
    monkeypatch.undo()
    assert known(run) == Assurance("tables verified")


def test_a_mark_counts_for_the_user_and_the_files_that_it_was_made_for(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify(run, WORDS)
    copy = RunDirectory(tmp_path / "copy" / run.id)
    shutil.copytree(run.path, copy.path)
    assert (copy.path / MARK).exists()
    assert known(copy) == Assurance("tables verified"), "another run may have come with that mark"
    monkeypatch.setattr(seals, "key_file", lambda: tmp_path / "key")
    assert known(run) == Assurance("tables verified"), "somebody else verified it"


def test_a_forged_mark_is_not_believed(run: RunDirectory) -> None:
    verify(run, WORDS)
    path = run.path / MARK
    path.write_bytes(path.read_bytes().replace(b'"verified"', b'"VERIFIED"'))
    assert known(run) == Assurance("tables verified")


def test_a_look_writes_nothing_into_a_run_that_was_received(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "key_file", lambda: tmp_path / "key")
    before = {*run.path.iterdir()}
    assert known(run) == Assurance("tables verified")
    assert {*run.path.iterdir()} == before
    root = verify(run, WORDS).root
    assert known(run) == Assurance("verified", root), "who verifies it leaves a mark"


def test_a_list_opens_no_trial_of_a_run_whose_tables_are_verified(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(path: object, *more: object) -> bytes:
        raise AssertionError(f"{path} was opened")

    before = listing.run_row(run.path)
    monkeypatch.setattr(trial_folders, "read", opened)
    assert listing.run_row(run.path) == before
    assert before[3:5] == ("3", "3")


def test_a_list_names_what_was_altered(run: RunDirectory) -> None:
    flip(run.path / "samples.csv")
    assert listing.run_row(run.path)[-1] == "altered, or left by a runner that was killed: samples.csv"


def test_a_resumption_names_what_was_altered(
    bench: Path, made: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(made.path / "samples.csv")
    resume(replace(session(bench), screen=Screen()), made.id)
    said = capsys.readouterr().out
    assert "altered, or left by a runner that was killed: samples.csv; `invoke verify` says more" in said
    assert known(made) == Assurance("tables verified"), "the resumption gathered them anew"


def test_long_lists_of_files_are_shortened() -> None:
    assert [shortened(names) for names in (["a"], ["a", "b", "c"], ["a", "b", "c", "d", "e"])] == [
        "a",
        "a, b, c",
        "a, b, c and 2 more",
    ]
