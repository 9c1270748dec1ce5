"""Verification: of a run that a runner really made, every altered, lost or added file is named."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bit_flips import is_found
from tests.bench import make_checkout
from tests.job import invoke
from tests.run.test_runner import session
from tests.synthetic_run import write_example
from tests.words import WORDS
from tsuishi.base import seals
from tsuishi.base.errors import UserError
from tsuishi.results import manifest
from tsuishi.results.assurance import UNLISTED
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import EnvironmentRecord
from tsuishi.results.verification import Verification, verify
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume

FLIPS = 300


@pytest.fixture
def somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "key_file", lambda: tmp_path / "key")


def files_of(run: RunDirectory) -> list[Path]:
    return sorted(path for path in run.path.rglob("*") if path.is_file())


def verified(run: RunDirectory) -> Verification:
    return verify(run, WORDS)


def test_a_run_is_what_its_runner_wrote(made: RunDirectory, run: RunDirectory) -> None:
    size = sum(path.stat().st_size for path in files_of(run) if path.name not in UNLISTED)
    found = verified(run)
    assert (found.faults, found.trials, found.bytes, found.is_verified) == ((), 3, size, True)
    assert found.root == manifest.read(made.path).root


@pytest.mark.long
def test_sha256sum_finds_every_file_as_it_was_also_after_a_trial_was_removed_and_measured_again(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "unsupported")
    run = run_suite(session(tmp_path))
    shutil.rmtree(first_trial(run))
    resume(session(tmp_path), run.id)
    command = ["sha256sum", "--check", "--strict", manifest.ANEW, manifest.ONCE]
    done = subprocess.run(command, cwd=run.path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    checked = {line.removesuffix(": OK") for line in done.stdout.splitlines()}
    assert checked == {str(path.relative_to(run.path)) for path in files_of(run) if path.name not in UNLISTED}


def test_a_run_may_lie_in_a_folder_of_another_name(run: RunDirectory, tmp_path: Path) -> None:
    found = verified(RunDirectory(run.path.rename(tmp_path / "from a colleague")))
    assert (found.faults, found.trials) == ((), 3)


def test_every_flipped_bit_is_found(run: RunDirectory, somebody_else: None) -> None:
    """In every file of the run, its manifest included."""
    chance, paths = np.random.default_rng(20261124), files_of(run)
    flipped = [paths[number % len(paths)] for number in range(FLIPS)]
    assert [path for path in flipped if not is_found(run, path, chance, WORDS)] == []
    assert verified(run).is_verified


def first_trial(run: RunDirectory) -> Path:
    return run.finished_folders()[0]


def lose_a_trial(run: RunDirectory) -> Path:
    shutil.rmtree(first_trial(run))
    return run.trials


def lose_a_log(run: RunDirectory) -> Path:
    (path := first_trial(run) / "log.txt.gz").unlink()
    return path


def lose_a_record(run: RunDirectory) -> Path:
    (path := run.record_files()[0]).unlink()
    return path


def add_a_file_to_a_trial(run: RunDirectory) -> Path:
    (path := first_trial(run) / "more.csv").write_text("a\n")
    return path


def add_a_file(run: RunDirectory) -> Path:
    (path := run.path / "more.csv").write_text("a\n")
    return path


def add_an_attempt(run: RunDirectory) -> Path:
    folder = first_trial(run)
    other = folder.with_name(folder.name.removesuffix("1") + "2")
    shutil.copytree(folder, other)
    record = json.loads((other / "trial.json").read_text())
    (other / "trial.json").write_text(json.dumps({**record, "trial_id": other.name, "attempt": 2}))
    return other / "trial.json"


def alter_a_table_and_its_digest(run: RunDirectory) -> Path:
    folder = first_trial(run)
    record = json.loads((folder / "trial.json").read_text())
    (folder / "metrics.csv").write_text("name,value,unit\nanswer,43,1\n")
    record["files"]["metrics.csv"] = manifest.about(folder / "metrics.csv").content()
    (folder / "trial.json").write_text(json.dumps(record))
    return folder / "trial.json"


def alter_run_json(run: RunDirectory) -> Path:
    path = run.path / "run.json"
    path.write_text(path.read_text().replace("quick", "full"))
    return path


def link_a_file(run: RunDirectory) -> Path:
    path = first_trial(run) / "samples.csv"
    target = run.path.parent / "samples.csv"
    path.rename(target)
    path.symlink_to(target)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lose_a_trial, lose_a_log, lose_a_record, add_a_file_to_a_trial, add_a_file, add_an_attempt,
        alter_a_table_and_its_digest, alter_run_json, link_a_file,
    ],
)  # fmt: skip
def test_what_is_lost_added_or_altered_is_named(
    run: RunDirectory, change: Callable[[RunDirectory], Path], somebody_else: None
) -> None:
    changed = change(run)
    found = verified(run)
    assert not found.is_verified
    assert any(str(changed) in fault for fault in found.faults), found.faults


def test_a_table_that_the_trials_do_not_give_is_a_fault_even_where_its_digest_is_right(run: RunDirectory) -> None:
    path = run.path / "samples.csv"
    path.write_text(path.read_text().replace(",0.5\n", ",0.4\n"))
    manifest.write_anew(run.path, ["samples.csv"])
    (fault,) = verified(run).faults
    assert fault.startswith(f"{path}: not what the trials give")


def test_a_run_without_a_manifest_is_not_verified(tmp_path: Path) -> None:
    run = write_example(tmp_path / "older")
    found = verified(run)
    assert not found.is_verified
    assert "made before there was verification" in found.faults[0]


def lines(run: RunDirectory, name: str = manifest.ONCE) -> list[str]:
    return (run.path / name).read_text().splitlines(keepends=True)


def cut_before_trial(run: RunDirectory, number: int, rest: str = "") -> None:
    """As if the runner had been killed before it listed a trial, which the folder has."""
    places = [place for place, line in enumerate(lines(run)) if line.endswith("/trial.json\n")]
    (run.path / manifest.ONCE).write_text("".join(lines(run)[: places[number - 1] + 1]) + rest)


@pytest.mark.parametrize(
    ("name", "cut", "why"),
    [
        (manifest.ONCE, lambda text: [*text, "{}\n"], "line [0-9]+ is not as tsuishi writes it"),
        (manifest.ONCE, lambda text: [*text, text[-1][:20]], "its last line is not whole"),
        (manifest.ONCE, lambda text: [*text, "0" * 64 + text[0][64:]], "line [0-9]+: .* has another digest before"),
        (manifest.ONCE, lambda text: [text[0].replace("records", "..")], "line 1 is not as tsuishi writes it"),
    ],
)
def test_a_manifest_that_nobody_wrote_so_is_refused(
    run: RunDirectory, name: str, cut: Callable[[list[str]], list[str]], why: str
) -> None:
    (run.path / name).write_text("".join(cut(lines(run, name))))
    with pytest.raises(UserError, match=why):
        manifest.read(run.path)


def test_a_manifest_that_lost_its_end_names_the_trials_after_it(run: RunDirectory) -> None:
    (run.path / manifest.ONCE).write_text("".join(lines(run)[:2]))
    assert any("trial.json: not in the manifest" in fault for fault in verified(run).faults)


@pytest.mark.long
def test_a_resumed_run_lists_the_trial_that_its_runner_had_only_committed(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "unsupported")
    run = run_suite(session(tmp_path))
    # In the middle of a line.
    cut_before_trial(run, -1, rest="0123456789abcdef")
    assert not verified(run).is_verified
    resume(session(tmp_path), run.id)
    assert verified(run).faults == ()


@pytest.mark.long
def test_a_trial_that_was_removed_and_measured_again_is_counted(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "unsupported")
    run = run_suite(session(tmp_path))
    for folder in run.finished_folders():
        shutil.rmtree(folder)
    assert not verified(run).is_verified
    resume(session(tmp_path), run.id)
    found = verified(run)
    assert (found.faults, found.removed, found.trials) == ((), 2, 2)


@pytest.mark.long
@pytest.mark.parametrize("name", ["trial.json", "samples.csv", "log.txt.gz", "record"])
def test_a_run_whose_files_were_altered_is_not_resumed_until_they_are_restored(tmp_path: Path, name: str) -> None:
    make_checkout(tmp_path, "ok", "unsupported")
    run = run_suite(session(tmp_path))
    path = run.record_files()[0] if name == "record" else first_trial(run) / name
    whole = path.read_bytes()
    path.write_bytes(whole + b" ")
    with pytest.raises(UserError) as caught:
        resume(session(tmp_path), run.id)
    assert str(caught.value).startswith(
        f"run {run.id} was altered since it was measured: {path.relative_to(run.path)}: restore what was altered, or"
    )
    path.write_bytes(whole)
    resume(session(tmp_path), run.id)
    assert verified(run).faults == ()


@pytest.mark.long
def test_trials_that_came_from_elsewhere_are_not_taken_into_the_manifest(tmp_path: Path) -> None:
    make_checkout(tmp_path, "ok", "unsupported", "skipped", "raises")
    run = run_suite(session(tmp_path))
    cut_before_trial(run, 1)
    with pytest.raises(UserError, match="3 trials are not in its manifest"):
        resume(session(tmp_path), run.id)


def test_versions_that_differ_from_the_environment_are_a_fault(run: RunDirectory) -> None:
    folder = first_trial(run)
    record = json.loads((folder / "trial.json").read_text())
    name = run.add(EnvironmentRecord(name="host", versions={"numpy": "1.26.4", "scipy": "1.11.4"}))
    reported = {**record["reported"], "versions": {"numpy": "1.26.4", "scipy": "1.17.0", "torch": "2.13.0"}}
    (folder / "trial.json").write_text(json.dumps({**record, "environment_record": name, "reported": reported}))
    assert f"{folder}: it saw scipy 1.17.0, and host has 1.11.4" in verified(run).faults


@pytest.mark.long
def test_the_command_says_what_it_found(made: RunDirectory, run: RunDirectory) -> None:
    found = verified(run)
    size = f"{round(found.bytes / 1000)} kB"
    done = invoke(run.path.parent, "verify", "--run", str(run.path))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0,
        f"run {run.id} is verified: 3 trials, {size}; digest {found.root}",
    ), done.stderr
    os.truncate(run.path / "trials.csv", 10)
    done = invoke(run.path.parent, "verify", "--run", str(run.path))
    assert done.returncode == 1
    assert f"{run.path}/trials.csv: altered: its 10 bytes are not what the runner wrote" in done.stdout
    assert re.fullmatch(rf"run {run.id} is NOT verified: 3 trials, \d+ kB; faults: 1", done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "name", [".DS_Store", "Thumbs.db", "desktop.ini", "._trial.json", ".nfs00000000012a", ".directory"]
)
def test_what_a_file_manager_leaves_is_no_part_of_a_run(made: RunDirectory, run: RunDirectory, name: str) -> None:
    for folder in (run.path, run.records, run.trials, first_trial(run)):
        (folder / name).write_bytes(b"\0")
    found = verified(run)
    assert (found.faults, found.root) == ((), manifest.read(made.path).root)
    assert [path.name for path in run.record_files()] == [path.name for path in made.record_files()]
