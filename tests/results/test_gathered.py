"""The gathered file of a run: it saves reading, and never decides what a report says."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.synthetic_run import TF, SyntheticRun, training_case
from tests.words import WORDS
from tsuishi.base import seals
from tsuishi.base.errors import UserError
from tsuishi.results import gathered
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import read_runs


def filled(path: Path, repetitions: int = 3) -> SyntheticRun:
    """A run of trials that took 0.1, 0.2, … s a step."""
    run = SyntheticRun(path)
    for repetition in range(1, repetitions + 1):
        add(run, repetition)
    run.finish()
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


def assert_as_read_anew(run: RunDirectory) -> None:
    """Both ways to read a run give the same frames."""
    kept = read_runs([run], WORDS)
    (run.path / gathered.FILE).unlink()
    anew = read_runs([run], WORDS)
    for name in ("trials", "samples", "metrics", "telemetry"):
        assert getattr(kept, name).equals(getattr(anew, name)), name
    assert (dict(kept.records), kept.flags, kept.settings) == (dict(anew.records), anew.flags, anew.settings)
    assert (kept.axes, kept.environments, kept.machines, kept.workloads) == (
        anew.axes,
        anew.environments,
        anew.machines,
        anew.workloads,
    )


def test_what_has_not_changed_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = filled(tmp_path / "run").directory
    before = seconds(run)
    opened: list[str] = []
    real_open = os.open

    def noting(path: str | Path, *arguments: Any, **options: Any) -> int:
        opened.append(str(path))
        return real_open(path, *arguments, **options)

    monkeypatch.setattr(os, "open", noting)
    assert seconds(run) == before
    assert str(run.path / gathered.FILE) in opened
    assert not [path for path in opened if "/trials/" in path or "/records/" in path]
    monkeypatch.undo()
    assert_as_read_anew(run)


def test_a_file_that_was_written_over_is_read_again_also_at_the_same_size_and_time(tmp_path: Path) -> None:
    run = filled(tmp_path / "run").directory
    seconds(run)
    table = run.finished_folders()[0] / "samples.csv"
    about = table.stat()
    table.write_text(table.read_text().replace("0.1", "0.9"))
    os.utime(table, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert (table.stat().st_size, table.stat().st_mtime_ns) == (about.st_size, about.st_mtime_ns)
    assert seconds(run) == [0.2] * 4 + [0.3] * 4 + [0.9] * 4


def test_a_trial_that_wrote_digests_is_refused_once_its_table_is_another(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TF, status="failed", tables={})
    run.finish()
    (folder,) = run.directory.finished_folders()
    with pytest.raises(UserError, match="was changed since its trial wrote it"):
        seconds(run.directory)
    for table in folder.glob("*.csv"):
        table.unlink()
    assert seconds(run.directory) == []
    (folder / "metrics.csv").write_text("name,value,unit\n")
    with pytest.raises(UserError, match="was changed since its trial wrote it"):
        seconds(run.directory)


def first(run: SyntheticRun) -> Path:
    return run.directory.finished_folders()[0]


def write_again(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def copy_there_and_back(path: Path) -> None:
    away = path.with_name("away")
    shutil.copytree(path, away)
    shutil.rmtree(path)
    away.rename(path)


CHANGES: dict[str, Callable[[SyntheticRun], None]] = {
    "a trial is added": lambda run: add(run, 1 + max(trial.repetition for _, trial in run.directory.finished())),
    "a trial is removed": lambda run: shutil.rmtree(first(run)),
    "a table is removed": lambda run: (first(run) / "telemetry.csv").unlink(missing_ok=True),
    "a record is written again": lambda run: write_again(run.directory.records / f"{run.machine}.json"),
    "the run is copied there and back": lambda run: copy_there_and_back(run.directory.path),
}


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(sorted(CHANGES)), max_size=5))
def test_whatever_happens_to_a_run_it_is_read_as_if_nothing_were_kept(
    tmp_path_factory: pytest.TempPathFactory, changes: list[str]
) -> None:
    run = filled(tmp_path_factory.mktemp("changes") / "run", 7)
    for change in changes:
        CHANGES[change](run)
        seconds(run.directory)
    assert_as_read_anew(run.directory)


def test_a_file_that_comes_with_a_run_from_elsewhere_is_not_believed_nor_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = filled(tmp_path / "run").directory
    table = run.finished_folders()[0] / "samples.csv"
    whole = table.read_text()
    # The states of files that arrive with a run are as the sender wants them.
    monkeypatch.setattr("tsuishi.results.gathered._states", lambda paths: np.zeros((len(paths), 2), "int64"))
    table.write_text(whole.replace("0.1", "0.9"))
    assert 0.9 in seconds(run)
    table.write_text(whole)
    assert 0.9 in seconds(run), "this user's own file is believed"
    planted = (run.path / gathered.FILE).read_bytes()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another user"))
    assert 0.9 not in seconds(run)
    assert (run.path / gathered.FILE).read_bytes() == planted


@pytest.mark.parametrize("content", [b"", b"no seal", b"0" * 64 + b"\nPK\x03\x04"])
def test_a_damaged_file_is_as_no_file(tmp_path: Path, content: bytes) -> None:
    run = filled(tmp_path / "run").directory
    before = seconds(run)
    (run.path / gathered.FILE).write_bytes(content)
    assert seconds(run) == before
    assert_as_read_anew(run)


def test_a_file_of_another_version_of_the_code_is_as_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = filled(tmp_path / "run").directory
    seconds(run)
    before = (run.path / gathered.FILE).read_bytes()
    monkeypatch.setattr(gathered, "_purpose", lambda: "another version")
    seconds(run)
    assert (run.path / gathered.FILE).read_bytes() != before


def test_a_run_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    run = filled(tmp_path / "run").directory
    (run.path / f".{gathered.FILE}.new").mkdir()
    assert seconds(run) == [0.1] * 4 + [0.2] * 4 + [0.3] * 4


def test_a_user_without_a_key_reads_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = filled(tmp_path / "run").directory
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    (tmp_path / "configuration" / "tsuishi").mkdir(parents=True)
    seals.key_file().write_bytes(b"seen by all")
    assert seconds(run) == [0.1] * 4 + [0.2] * 4 + [0.3] * 4
    assert not (run.path / gathered.FILE).exists()
