"""Runs from elsewhere: they are reported, and nothing in them is started, followed or removed."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import mutations
from tests.bench import make_checkout
from tests.run.test_runner import session
from tests.words import WORDS
from tsuishi.base import toml
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.commands import listing
from tsuishi.results.directory import RunDirectory, known_runs, open_run, sealed
from tsuishi.results.frames import read_runs
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume
from tsuishi.run.tally import Tally

PAYLOAD = """
import pathlib
pathlib.Path({witness!r}).touch()
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a run of one trial that was made there."""
    root = tmp_path_factory.mktemp("original") / "checkout"
    make_checkout(root, "ok")
    run_suite(session(root))
    return root


@pytest.fixture
def root(original: Path, tmp_path: Path) -> Path:
    """The same checkout and run, to be attacked."""
    return Path(shutil.copytree(original, tmp_path / "checkout", symlinks=True))


def run_of(root: Path) -> RunDirectory:
    return open_run(root / "results")


def content(run: RunDirectory) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    return found


def receive(run: RunDirectory, value: dict[str, Any]) -> None:
    """As somebody else writes it."""
    (run.path / "run.json").write_text(json.dumps(value), encoding="utf-8")


def write_ours(run: RunDirectory, value: dict[str, Any]) -> None:
    """As if it were ours: what is behind the code has to hold on its own."""
    receive(run, sealed(value))


WAYS = pytest.mark.parametrize("write", [receive, write_ours])
Write = Callable[[RunDirectory, dict[str, Any]], None]


def refused(root: Path) -> str:
    """The one line in which the run is not resumed."""
    with pytest.raises(UserError) as caught:
        resume(session(root))
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def empty(run: RunDirectory) -> None:
    """Leave all its trials to be measured."""
    for path in run.trials.iterdir():
        shutil.rmtree(path)


@pytest.mark.long
def test_our_own_run_is_resumed(root: Path) -> None:
    run = run_of(root)
    empty(run)
    resume(session(root))
    assert [trial.status for _, trial in run.finished()] == ["ok"]
    assert run.is_ours(run.run())


@WAYS
def test_a_workload_that_a_run_names_is_not_started(root: Path, tmp_path: Path, write: Write) -> None:
    run, witness = run_of(root), tmp_path / "witness"
    (tmp_path / "received").mkdir()
    (tmp_path / "received" / "payload.py").write_text(PAYLOAD.format(witness=str(witness)))
    empty(run)
    value = content(run)
    value["plan"][0]["workload"] = "../../../../received/payload"
    assert (root / "suites" / "workloads" / "experiments" / f"{value['plan'][0]['workload']}.py").resolve().is_file()
    write(run, value)
    said = refused(root)
    assert not witness.exists()
    assert list(run.trials.iterdir()) == []
    if write is write_ours:
        trial = value["plan"][0]["trial_id"]
        expected = f"{run.path}: trial {trial} has a different workload in suites/bench.toml: "
        assert said == f"{expected}restore the suite, or start a new run"
    else:
        assert said == (
            f"run {run.id} cannot be resumed by you: it was received, renamed or changed, or made by an earlier "
            f"tsuishi; report it with `invoke report --run {run.id}`, or start a new run"
        )


@WAYS
@pytest.mark.parametrize("name", ["x/../../victim", "/tmp", "..", "x\ny", "x" * 300])
def test_no_folder_outside_a_run_is_removed_by_a_planned_name(root: Path, write: Write, name: str) -> None:
    run = run_of(root)
    empty(run)
    victim = run.path / "victim.a1"
    victim.mkdir()
    (victim / "precious").touch()
    (run.trials / ".partial-x").mkdir()
    value = content(run)
    value["plan"][0]["trial_id"] = name
    write(run, value)
    refused(root)
    assert (victim / "precious").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("settings", {"seed": 1}),
        ("case_id", "0" * 12),
        ("environment", "../host"),
        ("environment", "elsewhere"),
        ("accelerator", "cuda"),
        ("accelerator", "../x"),
        ("repetition", 0),
        ("repetition", 10**30),
        ("case", {"suite": "bench", "protocol": "steady", "devices": 99}),
    ],
)
def test_a_planned_trial_that_the_suites_here_do_not_make_is_refused(root: Path, key: str, value: Any) -> None:
    run = run_of(root)
    empty(run)
    write_ours(run, {**content(run), "plan": [{**content(run)["plan"][0], key: value}]})
    refused(root)
    assert list(run.trials.iterdir()) == []


def test_a_trial_of_a_suite_that_has_changed_is_refused_by_name(root: Path) -> None:
    run = run_of(root)
    empty(run)
    suite = root / "suites" / "bench.toml"
    suite.write_text(suite.read_text().replace("devices = [1]", "devices = [2]"))
    trial = content(run)["plan"][0]["trial_id"]
    assert refused(root) == (
        f"{run.path}: trial {trial} is not made by the suites here: restore suites/, or start a new run"
    )


@pytest.mark.parametrize("planned", [1e9, "forever"])
def test_a_time_out_is_that_of_the_suites_here(root: Path, planned: Any) -> None:
    run = run_of(root)
    empty(run)
    value = content(run)
    value["plan"][0]["timeout_s"] = planned
    write_ours(run, value)
    resume(session(root))
    ((_, trial),) = run.finished()
    assert trial.timeout_s == 600.0


def test_mirrors_are_this_machines_settings_and_never_a_runs(root: Path) -> None:
    run = run_of(root)
    empty(run)
    value = content(run)
    value["arguments"]["mirrors"] = "docker.io=evil.example"
    write_ours(run, value)
    work = session(root)
    resume(work)
    assert work.settings.mirrors == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [("engine", "../x"), ("gpus", "all; x"), ("accelerator", 1), ("suite", "a\nb"), ("profile", "a\nb")],
)
def test_an_argument_of_a_run_that_is_none_is_refused(root: Path, name: str, value: Any) -> None:
    run = run_of(root)
    given = content(run)
    (given if name == "profile" else given["arguments"])[name] = value
    write_ours(run, given)
    assert refused(root).startswith(f"{run.path / 'run.json'}: ")


def test_a_run_of_ours_under_another_name_is_reported_and_not_resumed(root: Path) -> None:
    run = run_of(root)
    copied = Path(shutil.copytree(run.path, run.path.with_name("29990101-000000-copied")))
    assert "cannot be resumed by you" in refused(root)
    assert len(read_runs([RunDirectory(copied)], WORDS).trials) == 1


def test_a_run_that_was_made_before_runs_were_marked_is_reported_and_not_resumed(root: Path) -> None:
    run = run_of(root)
    receive(run, {name: value for name, value in content(run).items() if name != "mac"})
    assert "made by an earlier tsuishi" in refused(root)
    assert len(read_runs([run], WORDS).trials) == 1


Reader = Callable[[RunDirectory], object]
READS: dict[str, Reader] = {
    "finished": lambda run: list(run.finished()),
    "report": lambda run: read_runs([run], WORDS),
    "gather": lambda run: run.gather(WORDS),
}
READERS = pytest.mark.parametrize("read", READS.values(), ids=READS)


@READERS
@pytest.mark.parametrize("which", ["trial", "trials", "records"])
def test_a_link_out_of_a_run_is_refused_by_name(root: Path, tmp_path: Path, read: Reader, which: str) -> None:
    run = run_of(root)
    (trial,) = run.finished_folders()
    linked = {"trial": trial, "trials": run.trials, "records": run.records}[which]
    linked.rename(tmp_path / "outside")
    linked.symlink_to(tmp_path / "outside")
    if which == "records":
        read = READS["report"]  # only a report looks through all of them
    with pytest.raises(UserError) as caught:
        read(run)
    assert str(linked) in str(caught.value)


@READERS
@pytest.mark.parametrize("attempt", [2, 3, 999, 10**30])
@pytest.mark.parametrize("consistent", [True, False])
def test_a_forged_attempt_does_not_win(root: Path, read: Reader, attempt: int, consistent: bool) -> None:
    run = run_of(root)
    (trial,) = run.finished_folders()
    forged = trial.with_name(f"{trial.name.rpartition('.')[0]}.a{attempt}")
    shutil.copytree(trial, forged)
    if consistent:
        said = json.loads((forged / "trial.json").read_text())
        (forged / "trial.json").write_text(json.dumps({**said, "attempt": attempt, "trial_id": forged.name}))
    if consistent and attempt == 2:
        read(run)  # a second attempt is what it says
        return
    with pytest.raises(UserError, match=forged.name[:20]):
        read(run)


@READERS
def test_a_trial_that_is_there_under_two_names_is_refused(root: Path, read: Reader) -> None:
    run = run_of(root)
    (trial,) = run.finished_folders()
    double = trial.with_name(f"other-{trial.name}")
    shutil.copytree(trial, double)
    said = json.loads((double / "trial.json").read_text())
    (double / "trial.json").write_text(json.dumps({**said, "trial_id": double.name}))
    with pytest.raises(UserError, match="the same trial is there under another name"):
        read(run)


def test_a_record_whose_content_is_not_that_of_its_name_is_refused(root: Path) -> None:
    run = run_of(root)
    record = next(path for path in run.record_files() if path.name.startswith("environment"))
    record.write_text(record.read_text().replace("host", "tsoh"))
    with pytest.raises(UserError) as caught:
        read_runs([run], WORDS)
    assert str(caught.value) == (
        f"{record}: its content is not that of its name; copy the run again, or remove what is wrong"
    )


@pytest.mark.parametrize("wrong", [10**30, [1], {"a": "b"}], ids=["number", "numbers", "object"])
def test_what_a_record_says_of_another_type_is_refused(root: Path, wrong: Any) -> None:
    run = run_of(root)
    record = next(path for path in run.record_files() if path.name.startswith("environment"))
    said = {**json.loads(record.read_text()), "variables": wrong}
    altered = record.with_name(f"environment-{toml.digest(said)}.json")
    altered.write_text(json.dumps(said))
    with pytest.raises(UserError, match=rf"^{altered}: key 'variables.*; copy the run again, or remove what is wrong$"):
        read_runs([run], WORDS)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [_fifo, _endless, _folder, lambda path: path.write_text("{"), Path.unlink])
@pytest.mark.parametrize("file", ["run.json", "trial.json"])
def test_a_bad_run_is_listed_with_its_reason_beside_the_good_ones(
    root: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], object], file: str
) -> None:
    run = run_of(root)
    for name in ("20000101-000000-bad", "29990101-000000-received"):
        shutil.copytree(run.path, run.path.with_name(name))
    bad = RunDirectory(run.path.with_name("20000101-000000-bad"))
    path = bad.path / file if file == "run.json" else bad.finished_folders()[0] / file
    damage(path)
    listing.show(replace(session(root), screen=Screen()), whole=True)
    said = capsys.readouterr().out
    rows = {line.split()[0]: line.rstrip() for line in said.splitlines() if line[:2] in ("20", "29")}
    assert "quick" in rows[run.id]
    assert "received" not in rows[run.id]
    assert rows["29990101-000000-received"].endswith("received")
    if path.name != "run.json" or os.path.lexists(path):
        # A long cell is folded.
        assert f"{path}:" in "".join(said.split())


def test_a_table_without_numbers_is_said_by_a_resumption(root: Path) -> None:
    run = run_of(root)
    (trial,) = run.finished_folders()
    with (trial / "samples.csv").open("a") as file:
        file.write("measure,9e999,x,1,-1\n")
    with pytest.raises(UserError, match=r"a table of it holds no numbers: .*; remove the trial"):
        Tally(run, WORDS)


def test_the_latest_run_that_is_bad_is_said_in_one_line(root: Path) -> None:
    bad = run_of(root).path.with_name("29990101-000000-bad")
    bad.mkdir()
    os.mkfifo(bad / "run.json")
    assert list(known_runs(root / "results"))[-1] == bad.name
    assert refused(root) == f"{bad / 'run.json'}: no regular file (a link, a pipe, a device): remove it, or its run"


@pytest.mark.long
def test_altered_files_are_read_or_refused_in_a_line(tmp_path: Path) -> None:
    """The short form of benchmarks/mutations.py."""
    work = mutations.prepared(tmp_path)
    found: list[object] = []
    some = mutations.chosen([mutations.measured(work)], 20, seed=0)
    counts, _ = mutations.tried(work, some, tmp_path / "altered", lambda *told: found.append(told))
    assert not found
    assert {kind for _, kind in counts} == {"read", "refused"}
