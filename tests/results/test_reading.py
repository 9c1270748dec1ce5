"""A report reads the gathered tables of a run, and its trials where the tables are not theirs."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.synthetic_run import TF, SyntheticRun, listed, training_case
from tests.words import WORDS
from tsuishi.base.errors import UserError
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import read_runs


def filled(path: Path, repetitions: int = 3) -> SyntheticRun:
    """A run of trials that took 0.1, 0.2, … s a step, with its tables and manifest."""
    run = SyntheticRun(path)
    for repetition in range(1, repetitions + 1):
        add(run, repetition)
    listed(run.finish())
    return run


def add(run: SyntheticRun, repetition: int) -> None:
    telemetry = [
        {"elapsed_s": tick, "phase": "measure", "device": "host", "load_1min": 0.5} for tick in range(repetition)
    ]
    samples = [("measure", index, 1, 16, repetition / 10) for index in range(4)]
    run.add(training_case(16), TF, samples, repetition, metrics=[("loss", 1.5, "1")], telemetry=telemetry)


def seconds(run: RunDirectory) -> list[float]:
    """The seconds of all samples, as a report reads them."""
    return sorted(read_runs([run], WORDS).samples["seconds"].tolist())


def opened_for(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The files of trials that reading the tables takes, by their names."""
    opened: set[str] = set()
    real_open = os.open

    def noting(path: str | Path, *arguments: Any, **options: Any) -> int:
        if "/trials/" in str(path):
            opened.add(Path(path).name)
        return real_open(path, *arguments, **options)

    monkeypatch.setattr(os, "open", noting)
    read_runs([run], WORDS)
    monkeypatch.undo()
    return opened


def test_no_trial_of_a_large_run_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = filled(tmp_path / "run").directory
    monkeypatch.setattr("tsuishi.results.assurance._SMALL", 0)
    monkeypatch.setattr("tsuishi.results.assurance.assurance.__defaults__", (0,))
    assert opened_for(run, monkeypatch) == set()
    shutil.rmtree(run.finished_folders()[-1])
    assert "samples.csv" in opened_for(run, monkeypatch)


def test_a_trial_that_wrote_digests_is_refused_once_its_table_is_another(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, status="failed", tables={})
    (folder,) = run.directory.finished_folders()
    with pytest.raises(UserError, match="was changed since its trial wrote it"):
        seconds(run.directory)
    for table in folder.glob("*.csv"):
        table.unlink()
    assert seconds(run.finish()) == []
    (folder / "metrics.csv").write_text("name,value,unit\n")
    with pytest.raises(UserError, match="was changed since its trial wrote it"):
        seconds(run.directory)


def first(run: SyntheticRun) -> Path:
    return run.directory.finished_folders()[0]


def alter_a_table(run: SyntheticRun) -> None:
    table = first(run) / "samples.csv"
    about = table.stat()
    table.write_text(table.read_text().replace(",0.", ",9."))
    os.utime(table, ns=(about.st_atime_ns, about.st_mtime_ns))


def copy_there_and_back(path: Path) -> None:
    away = path.with_name("away")
    shutil.copytree(path, away)
    shutil.rmtree(path)
    away.rename(path)


CHANGES: dict[str, Callable[[SyntheticRun], object]] = {
    "a trial is added": lambda run: add(run, 1 + max(trial.repetition for _, trial in run.directory.finished())),
    "a trial is removed": lambda run: shutil.rmtree(first(run)),
    "a trial's table is removed": lambda run: (first(run) / "telemetry.csv").unlink(missing_ok=True),
    "a trial's table is another of the same size and time": alter_a_table,
    "a gathered table is stale": lambda run: (run.directory.path / "samples.csv").write_text("trial_id,phase\n"),
    "the manifest's end is lost": lambda run: os.truncate(run.directory.path / "manifest-sha256.txt", 100),
    "the run is gathered and listed": lambda run: listed(run.finish()),
    "the run is copied there and back": lambda run: copy_there_and_back(run.directory.path),
}


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(sorted(CHANGES)), max_size=5))
def test_whatever_happens_to_a_run_it_is_read_as_its_trials_are(
    tmp_path_factory: pytest.TempPathFactory, changes: list[str]
) -> None:
    run = filled(tmp_path_factory.mktemp("changes") / "run", 7)
    for change in changes:
        CHANGES[change](run)
    kept = read_runs([run.directory], WORDS)
    for path in run.directory.path.glob("*-sha256.txt"):
        path.unlink()
    of_trials = read_runs([run.directory], WORDS)
    for name in ("trials", "samples", "metrics", "telemetry"):
        assert getattr(kept, name).equals(getattr(of_trials, name)), name
    assert (kept.details, kept.axes) == (of_trials.details, of_trials.axes)


def test_a_report_writes_nothing_into_a_run(tmp_path: Path) -> None:
    run = filled(tmp_path / "run")
    add(run, 9)
    before = {path: path.stat().st_ctime_ns for path in tmp_path.rglob("*")}
    assert 0.9 in seconds(run.directory)
    assert {path: path.stat().st_ctime_ns for path in tmp_path.rglob("*")} == before


FORGED = {
    "status": ("ok", "excellent", "'excellent' is no status"),
    "phases": ("[]", '[{""name"": 1}]', "column 'phases' has"),
    "duration_s": ("9.5", "long", "trials.csv: column 'duration_s' should be of type number"),
}


@pytest.mark.parametrize("column", FORGED)
def test_a_table_that_was_forged_with_its_manifest_is_a_line(tmp_path: Path, column: str) -> None:
    run = filled(tmp_path / "run", 1).directory
    was, forged, why = FORGED[column]
    table = run.path / "trials.csv"
    table.write_text(table.read_text().replace(f",{was},", f',"{forged}",'))
    listed(run)
    with pytest.raises(UserError, match=why):
        [details.phases for details in read_runs([run], WORDS).details]


def test_a_row_of_a_trial_that_is_not_there_is_a_line(tmp_path: Path) -> None:
    run = filled(tmp_path / "run", 1).directory
    table = run.path / "samples.csv"
    table.write_text(table.read_text() + "other.r1.a1,measure,4,1,16,0.1\n")
    listed(run)
    with pytest.raises(UserError, match=r"a row is of 'other\.r1\.a1', which is no trial of the run"):
        read_runs([run], WORDS)
