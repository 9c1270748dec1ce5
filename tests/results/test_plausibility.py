"""What cannot be is a fault, also of a run whose digests fit: whoever made it wrote them anew."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.synthetic_run import listed
from tests.words import WORDS
from tsuishi.results import manifest
from tsuishi.results.directory import RunDirectory
from tsuishi.results.verification import verify


def of_status(run: RunDirectory, status: str) -> Path:
    """The folder of the trial with a status."""
    return next(folder for folder, trial in run.finished() if trial.status == status)


def say(folder: Path, **said: Any) -> None:
    """Change trial.json; the digests of the trial's files are made to fit."""
    record = json.loads((folder / "trial.json").read_text())
    files = {path.name: manifest.about(path).content() for path in folder.iterdir() if path.name != "trial.json"}
    (folder / "trial.json").write_text(json.dumps({**record, **said, "files": files}))


def faults(run: RunDirectory) -> list[str]:
    """The faults of a run after its tables and its manifest were made anew, without the folder of runs."""
    run.gather(WORDS)
    listed(run)
    return [fault.removeprefix(f"{run.trials}/") for fault in verify(run, WORDS).faults]


def phase(name: str, begin_s: float, end_s: float | None) -> dict[str, Any]:
    return {"name": name, "begin_s": begin_s, "end_s": end_s}


@pytest.mark.long
def test_a_forged_manifest_alone_is_no_fault(run: RunDirectory) -> None:
    assert faults(run) == []


LATE = [phase("measure", 0.5, 9.0)]
CROSSED = [phase("measure", 0.5, 0.6), phase("warm_up", 0.4, 0.7)]
BACK = [phase("measure", 0.5, 0.4)]
OPEN = [phase("measure", 9.0, None)]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"phases": LATE}, "its phase measure is not within its 1.0 s"),
        ({"phases": OPEN}, "its phase measure is not within its 1.0 s"),
        ({"phases": CROSSED}, "its phase warm_up begins before the phase in front of it"),
        ({"phases": BACK}, "its phase measure ends before it begins"),
        ({"startup_s": 1.5}, "its first event came after 1.5 s, and it lasted 1.0 s"),
    ],
)
def test_times_outside_of_their_trial_are_faults(run: RunDirectory, said: dict[str, Any], why: str) -> None:
    folder = of_status(run, "failed")
    say(folder, **{"phases": [], "startup_s": 0.1, "duration_s": 1.0, **said})
    assert faults(run) == [f"{folder.name}: {why}"]


def test_phases_within_their_trial_are_none(run: RunDirectory) -> None:
    phases = [phase("warm_up", 0.0, 0.5), phase("measure", 0.5, 1.0), phase("evaluate", 0.6, None)]
    say(of_status(run, "failed"), phases=phases, startup_s=0.1, duration_s=1.0)
    assert faults(run) == []


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"exit_code": 1}, "it is ok, and its exit code is 1"),
        ({"events_missing": 2}, "it is ok, and 2 of its events are missing"),
    ],
)
def test_a_trial_cannot_be_ok_with_a_bad_end(run: RunDirectory, said: dict[str, Any], why: str) -> None:
    folder = of_status(run, "ok")
    say(folder, **said)
    assert faults(run) == [f"{folder.name}: {why}"]


def test_another_python_than_that_of_the_environment_is_a_fault_unless_the_trial_failed_by_it(
    run: RunDirectory,
) -> None:
    for status in ("ok", "failed"):
        folder = of_status(run, status)
        reported = json.loads((folder / "trial.json").read_text())["reported"]
        say(folder, reported={**reported, "python": "3.6.15"})
    (record,) = (path for path in run.record_files() if path.name.startswith("environment"))
    has = json.loads(record.read_text())["python"]
    assert faults(run) == [f"{of_status(run, 'ok').name}: it saw python 3.6.15, and host has {has}"]


ROWS = {"samples.csv": "phase,index,steps,images,seconds\n", "telemetry.csv": "elapsed_s,phase,device\n"}


@pytest.mark.parametrize(
    ("name", "rows", "why"),
    [
        ("telemetry.csv", "0.2,,host\n0.1,,host\n", "a row is of a time before the row in front of it"),
        ("telemetry.csv", "0.2,,host\n1.5,,host\n", "a row is of a time after its 1.0 s"),
        ("samples.csv", "warm_up,0,1,1,0.5\n", "it had no phase warm_up"),
        ("samples.csv", "measure,0,1,1,0.5\nmeasure,2,1,1,0.5\n", "row 2: its index is not its place in its phase"),
        ("samples.csv", "measure,1,1,1,0.5\nmeasure,0,1,1,0.5\n", "row 1: its index is not its place in its phase"),
        ("samples.csv", "measure,0,1,1,0\n", "row 1: seconds is not above 0 and finite"),
        ("samples.csv", "measure,0,1,1,-0.5\n", "row 1: seconds is not above 0 and finite"),
        ("samples.csv", "measure,0,0,1,0.5\n", "row 1: steps is not 1 or more"),
    ],
)
def test_rows_that_cannot_be_are_faults(run: RunDirectory, name: str, rows: str, why: str) -> None:
    folder = of_status(run, "ok")
    (folder / name).write_text(ROWS[name] + rows)
    other = next(file for file in ROWS if file != name)
    (folder / other).write_text(ROWS[other])
    say(folder, duration_s=1.0, startup_s=0.1, phases=[phase("measure", 0.1, 0.9)])
    assert faults(run) in ([f"{folder.name}: {name}: {why}"], [f"{folder.name}/{name}: {why}"])


def test_rows_of_several_devices_at_one_time_are_none(run: RunDirectory) -> None:
    folder = of_status(run, "ok")
    (folder / "telemetry.csv").write_text(ROWS["telemetry.csv"] + "0.2,,host\n0.2,,gpu0\n1.0,,host\n1.0,,gpu0\n")
    say(folder, duration_s=1.0, startup_s=0.1, phases=[phase("measure", 0.1, 0.9)])
    assert faults(run) == []


def test_a_trial_in_the_folder_of_another_is_a_fault(run: RunDirectory) -> None:
    folder = of_status(run, "ok")
    other = of_status(run, "failed")
    for name in ("trial.json", "samples.csv"):
        shutil.copy(other / name, folder / name)
    for name in ("trial.json", "samples.csv"):
        path = run.path / manifest.ONCE
        digest = manifest.about(folder / name).sha256
        path.write_text(re.sub(rf"[0-9a-f]{{64}}(?=  trials/{folder.name}/{name})", digest, path.read_text()))
    assert any("it is of another trial than its folder" in fault for fault in verify(run, WORDS).faults)


def measured_again(folder: Path) -> Path:
    """Another attempt, with the same files."""
    again = folder.with_name(folder.name.removesuffix("1") + "2")
    shutil.copytree(folder, again)
    say(again, trial_id=again.name, attempt=2)
    return again


@pytest.mark.parametrize("status", ["ok", "unsupported"])
def test_a_final_finding_that_was_measured_again_is_a_fault(run: RunDirectory, status: str) -> None:
    folder = of_status(run, status)
    measured_again(folder)
    assert faults(run) == [f"{folder.name}: it is {status}, which is final, and was measured again"]


def test_what_failed_or_was_excluded_is_measured_again(run: RunDirectory) -> None:
    measured_again(of_status(run, "failed"))
    folder = of_status(run, "ok")
    say(folder, phases=[phase("measure", 0.0, 0.0)], startup_s=0.0)
    measured_again(folder)
    (folder / "samples.csv").write_text(ROWS["samples.csv"] + "measure,1,1,1,0.5\n")
    say(folder)
    assert faults(run) == []
