"""The run directory: a trial is whole or not there, nothing is overwritten, tables can be rebuilt at any time."""

import csv
import functools
import io
import json
import math
import os
import re
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.synthetic_run import add_record, run_record
from tests.words import WORDS, case
from tsuishi.base import toml
from tsuishi.base.errors import UserError
from tsuishi.base.files import read_json, write_json
from tsuishi.base.printable import visible
from tsuishi.results import schema, trial_folders
from tsuishi.results.directory import RunDirectory, known_runs, new_run_id, open_run
from tsuishi.results.records import CaseRecord, MachineRecord, TrialRecord
from tsuishi.results.schema import csv_value, csv_writer
from tsuishi.specs.statuses import RECORDED, STATUSES, is_finding
from tsuishi.specs.trial_id import TrialId

CASE = case(suite="s", protocol="steady", devices=2, batch_size=16)
HOSTILE = 'a "quoted", reason\r\nwith\rlines\n; = +1 \t é 日本 \u2028 \x00 ...'


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    name = "20260101-000000-quick"
    return RunDirectory.create(tmp_path / "results" / name, run_record(name))


def trial_of(repetition: int) -> TrialId:
    return TrialId(f"s-{CASE.id[:6]}", "host", repetition, attempt=1)


def id_of(repetition: int) -> str:
    return str(trial_of(repetition))


def record(run: RunDirectory, repetition: int, **more: Any) -> TrialRecord:
    case = {"case_id": CASE.id, "case_record": run.add(CaseRecord(CASE.axes))}
    which = {"environment": "host", "repetition": repetition, "attempt": 1, "status": "ok"}
    return TrialRecord.model_validate({"trial_id": id_of(repetition), **case, **which, **more})


def commit(run: RunDirectory, repetition: int = 1, samples: int = 2, **more: Any) -> Path:
    """One trial as the runner writes it."""
    partial = trial_folders.begin(run.trials, trial_of(repetition))
    with (partial / "samples.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv_writer("samples", file)
        for index in range(samples):
            writer.writerow({"phase": "measure", "index": index, "steps": 1, "images": 16, "seconds": 0.25})
    return trial_folders.commit(partial, record(run, repetition, **more))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tables(run: RunDirectory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.path.iterdir() if path.suffix in (".csv", ".json")}


def test_a_run_is_never_made_over_another(run: RunDirectory) -> None:
    before = tables(run)
    with pytest.raises(UserError) as caught:
        RunDirectory.create(run.path, run_record(run.id))
    assert str(caught.value) == f"{run.path} exists; results are never overwritten: give another name"
    assert tables(run) == before


def test_runs_that_begin_in_one_second_are_numbered_in_their_order(tmp_path: Path) -> None:
    now = time.gmtime(0)
    for _ in range(3):
        run_id = new_run_id(tmp_path, now, "quick")
        RunDirectory.create(tmp_path / run_id, run_record(run_id))
    first = "19700101-000000-quick"
    assert list(known_runs(tmp_path)) == [first, f"{first}-2", f"{first}-3"]


def test_a_run_of_another_schema_is_refused(run: RunDirectory) -> None:
    known = read_json(run.path / "run.json")
    for version in (99, 10**30, 2, 0, -1, "3", True, 3.0, None):
        write_json(run.path / "run.json", {**known, "schema_version": version})
        with pytest.raises(UserError) as caught:
            run.run()
        why = f"run schema {version}, and this tsuishi reads 3: the tsuishi that made it reads it"
        assert str(caught.value) == f"{run.path}: {why}"


def test_a_trial_being_written_is_no_part_of_the_run_until_it_is_whole(run: RunDirectory) -> None:
    commit(run, 1)
    partial = trial_folders.begin(run.trials, trial_of(2))
    (partial / "samples.csv").write_text("phase,index\n")
    write_json(partial / "trial.json", {"trial_id": id_of(2)})
    assert [path.name for path, _ in run.finished()] == [id_of(1)]
    assert trial_folders.left_behind(run.trials) == [(trial_of(2), partial)]
    run.gather(WORDS)
    assert [row["trial_id"] for row in rows(run.path / "trials.csv")] == [id_of(1)]
    trial_folders.commit(partial, record(run, 2))
    assert [path.name for path, _ in run.finished()] == [id_of(1), id_of(2)]
    assert trial_folders.left_behind(run.trials) == []


def test_a_partial_trial_of_the_same_name_is_begun_afresh(run: RunDirectory) -> None:
    (trial_folders.begin(run.trials, trial_of(1)) / "old").write_text("x")
    assert list(trial_folders.begin(run.trials, trial_of(1)).iterdir()) == []


def test_what_a_second_writer_of_a_trial_leaves_is_removed(run: RunDirectory) -> None:
    second = trial_folders.begin(run.trials, trial_of(1), "job2")
    commit(run, 1)
    with pytest.raises(OSError, match="not empty"):
        trial_folders.commit(second, record(run, 1, status="failed"))
    trial_folders.settle(run.trials)
    assert trial_folders.left_behind(run.trials) == []
    assert [trial.status for _, trial in run.finished()] == ["ok"]


def test_a_finished_trial_is_not_overwritten(run: RunDirectory) -> None:
    final = commit(run, 1, status="ok")
    with pytest.raises(OSError, match="not empty"):
        commit(run, 1, status="failed")
    assert read_json(final / "trial.json")["status"] == "ok"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to the disk, in its order."""
    noted: list[str] = []

    fsync, rename, replace = os.fsync, os.rename, os.replace

    def synced(descriptor: int) -> None:
        noted.append(f"fsync {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        fsync(descriptor)

    def renamed(function: Callable[[Path, Path], None], source: Path, target: Path) -> None:
        noted.append(f"rename {source.name} {target.name}")
        function(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    for function in (rename, replace):
        monkeypatch.setattr(os, function.__name__, functools.partial(renamed, function))
    return noted


def test_all_of_a_trial_is_on_the_disk_before_its_trial_json_commits_it(run: RunDirectory, calls: list[str]) -> None:
    name = id_of(1)
    partial = trial_folders.begin(run.trials, trial_of(1))
    (partial / "samples.csv").touch()
    trial = record(run, 1)
    calls.clear()
    trial_folders.commit(partial, trial)
    assert calls == [
        "fsync samples.csv",
        f"fsync .partial-{name}",
        "fsync .trial.json.new",
        "rename .trial.json.new trial.json",
        f"fsync .partial-{name}",
        f"rename .partial-{name} {name}",
        "fsync trials",
    ]


def test_a_new_run_has_its_name_on_the_disk_once_it_has_a_run_json(tmp_path: Path, calls: list[str]) -> None:
    RunDirectory.create(tmp_path / "results" / "1", run_record("1"))
    *before, renamed, synced = calls
    assert before[-2] == "rename .run.json.new run.json"
    assert renamed.startswith("rename .run-")
    assert (renamed[-2:], synced) == (" 1", "fsync results")


def test_a_folder_in_the_place_of_a_table_is_said_in_a_line(run: RunDirectory) -> None:
    (run.path / "samples.csv").mkdir()
    with pytest.raises(UserError, match=r"samples\.csv: a folder is in its place: remove it$"):
        run.gather(WORDS)


def test_a_committed_trial_gets_its_name_from_the_next_call(run: RunDirectory) -> None:
    committed, other = commit(run), trial_folders.begin(run.trials, trial_of(2))
    kept = {path.name: path.read_bytes() for path in committed.iterdir()}
    committed.rename(run.trials / f".partial-{committed.name}")
    trial_folders.settle(run.trials)
    assert {path.name: path.read_bytes() for path in committed.iterdir()} == kept
    assert trial_folders.left_behind(run.trials) == [(trial_of(2), other)]


def test_a_record_is_written_once_under_the_hash_of_its_content(run: RunDirectory) -> None:
    first = add_record(run, "machine", {"os": "x"})
    path = run.records / f"{first}.json"
    written = path.stat().st_mtime_ns, path.stat().st_ino
    assert add_record(run, "machine", {"os": "x"}) == first
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == written
    assert first == f"machine-{toml.digest({'os': 'x'})}"
    assert add_record(run, "machine", {"os": "y"}) != first
    assert run.record(first) == MachineRecord(os="x")


def test_gathering_again_gives_the_same_bytes(run: RunDirectory) -> None:
    for repetition in (1, 2, 3):
        commit(run, repetition, status="ok", duration_s=1 / 3, reason=HOSTILE)
    run.gather(WORDS)
    first = tables(run)
    run.gather(WORDS)
    assert tables(run) == first
    for name in first:
        if name != "run.json":
            (run.path / name).unlink()
    run.gather(WORDS)
    assert tables(run) == first
    assert sorted(first) == [
        "datapackage.json",
        "metrics.csv",
        "run.json",
        "samples.csv",
        "telemetry.csv",
        "trials.csv",
    ]


def test_every_sample_of_every_trial_is_gathered_with_its_trial(run: RunDirectory) -> None:
    commit(run, 1, samples=2)
    commit(run, 2, samples=3)
    run.gather(WORDS)
    found = rows(run.path / "samples.csv")
    assert [(row["trial_id"], row["index"]) for row in found] == [
        (id_of(1), "0"),
        (id_of(1), "1"),
        (id_of(2), "0"),
        (id_of(2), "1"),
        (id_of(2), "2"),
    ]
    assert {row["seconds"] for row in found} == {"0.25"}


def test_the_last_line_a_killed_runner_half_wrote_does_not_break_the_tables(run: RunDirectory) -> None:
    final = commit(run, 1, samples=1)
    with (final / "samples.csv").open("a") as file:
        file.write("measure,1,1")
    run.gather(WORDS)
    assert [row["index"] for row in rows(run.path / "samples.csv")] == ["0", "1"]
    assert rows(run.path / "samples.csv")[1]["seconds"] == ""


def test_hostile_text_in_a_reason_stays_in_its_cell(run: RunDirectory) -> None:
    commit(run, 1, reason=HOSTILE, status="failed")
    commit(run, 2, reason="fine", status="ok")
    run.gather(WORDS)
    found = rows(run.path / "trials.csv")
    assert [row["status"] for row in found] == ["failed", "ok"]
    assert found[0]["reason"] == visible(HOSTILE.replace("\r\n", "\n").replace("\r", "\n"))
    assert read_json(run.trials / id_of(1) / "trial.json")["reason"] == HOSTILE


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_any_text_written_to_a_table_is_read_back_but_for_the_kind_of_line_end(texts: list[str]) -> None:
    file = io.StringIO(newline="")
    writer = csv_writer("metrics", file)
    for text in texts:
        writer.writerow({"name": csv_value(text), "value": 1, "unit": csv_value(text)})
    file.seek(0)
    expected = [text.replace("\r\n", "\n").replace("\r", "\n") for text in texts]
    assert [row["name"] for row in csv.DictReader(file)] == expected


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_a_float_in_a_table_keeps_twelve_digits(value: float) -> None:
    assert math.isclose(float(str(csv_value(value))), value, rel_tol=5e-12)


def test_a_year_of_an_energy_counter_keeps_its_millijoules() -> None:
    assert csv_value(123_456_789.123) == 123_456_789.123


@pytest.mark.parametrize(
    ("value", "cell"), [(None, ""), (True, "true"), (False, "false"), (0, 0), (0.0, 0.0), ("", "")]
)
def test_cells(value: object, cell: object) -> None:
    assert csv_value(value) == cell
    assert type(csv_value(value)) is type(cell)


# Table Schema v1: what a cell of a type looks like.
CELL = {
    "string": lambda cell: True,
    "integer": lambda cell: re.fullmatch(r"-?\d+", cell) is not None,
    "number": lambda cell: math.isfinite(float(cell)),
    "boolean": lambda cell: cell in ("true", "false"),
    "datetime": lambda cell: datetime.fromisoformat(cell).tzinfo is not None,
}


def test_the_data_package_describes_every_column_of_every_table(run: RunDirectory) -> None:
    commit(
        run,
        status="ok",
        simulated=False,
        synthetic=True,
        started_at="2026-01-01T00:00:00Z",
        duration_s=1.5,
        exit_code=-9,
        reason=HOSTILE,
    )
    run.gather(WORDS)
    package = read_json(run.path / "datapackage.json")
    assert re.fullmatch(r"[-a-z0-9._/]+", package["name"])
    assert [resource["path"] for resource in package["resources"]] == [
        f"{name}.csv" for name in ("trials", *schema.OF_A_TRIAL)
    ]
    for resource in package["resources"]:
        fields = resource["schema"]["fields"]
        path = run.path / resource["path"]
        with path.open(encoding="utf-8", newline="") as file:
            assert next(csv.reader(file)) == [field["name"] for field in fields]
        for row in rows(path):
            for field in fields:
                cell = row[field["name"]]
                assert cell in resource["schema"]["missingValues"] or CELL[field["type"]](cell), (field["name"], cell)
        assert all(field["description"] for field in fields)


def test_the_shipped_columns_are_those_of_the_cases_and_are_named_once() -> None:
    trials = (*schema.TRIALS, *map(schema.axis_column, WORDS.axes.values()))
    for columns in (trials, *schema.OF_A_TRIAL.values()):
        names = [column.name for column in columns]
        assert len(names) == len(set(names))
    assert [column.name for column in trials if column.name in WORDS.axes] == list(WORDS.axes)
    types = {column.name: column.type for column in trials}
    for name, axis in WORDS.axes.items():
        assert types[name] == ("string" if axis.problem(1) else "integer"), name


def test_json_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": "é"})
    assert path.read_text(encoding="utf-8") == '{\n  "a": "é"\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"big": list(range(9999)), "a": math.nan})
    assert read_json(path) == {"a": "é"}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[]", "expected a JSON object"),
        (b"{", "cannot be read: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"\xff", "cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ],
)
def test_json_that_is_none_is_said_with_its_file(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text)
    with pytest.raises(UserError) as caught:
        read_json(path)
    assert str(caught.value) == f"{path}: {said}"


def test_runs_are_found_by_id_by_path_and_as_the_latest(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        open_run(tmp_path)
    assert str(caught.value) == f"there is no run in {tmp_path}/ yet: make one with `invoke run-suite`"
    for name in ("20260102-000000-b", "20260101-000000-a"):
        RunDirectory.create(tmp_path / name, run_record(name))
    (tmp_path / "notes").mkdir()
    assert list(known_runs(tmp_path)) == ["20260101-000000-a", "20260102-000000-b"]
    assert open_run(tmp_path).id == "20260102-000000-b"
    assert open_run(tmp_path, "20260101-000000-a").path == tmp_path / "20260101-000000-a"
    assert open_run(tmp_path / "other", str(tmp_path / "20260101-000000-a")).id == "20260101-000000-a"
    with pytest.raises(UserError) as caught:
        open_run(tmp_path, "20260101-000000-b")
    assert str(caught.value).startswith("unknown run '20260101-000000-b'; did you mean '")
    assert str(caught.value).endswith("known: 20260101-000000-a, 20260102-000000-b")


def test_statuses_are_either_final_or_run_again() -> None:
    assert [name for name in STATUSES if is_finding(name)] == ["ok", "out_of_memory", "unsupported", "skipped"]
    assert [name for name in RECORDED if not is_finding(name)] == ["timeout", "failed", "interrupted"]
    (status,) = [column for column in schema.TRIALS if column.name == "status"]
    assert all(name in status.description for name in RECORDED)
    assert json.dumps(schema.data_package("x", schema.OF_A_TRIAL))
