"""A run as tsuishi archived it once: it is read, verified and reported, and a new schema has to say that it is not."""

import zipfile
from pathlib import Path

import pytest

from tests.job import invoke
from tests.words import WORDS
from tsuishi.results.directory import RunDirectory
from tsuishi.results.run_record import SCHEMA_VERSION
from tsuishi.results.verification import verify

KEPT = Path(__file__).with_name("kept.zip")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    with zipfile.ZipFile(KEPT) as archive:
        archive.extractall(tmp_path, [name for name in archive.namelist() if name.startswith("runs/")])
    (path,) = (tmp_path / "runs").iterdir()
    return RunDirectory(path)


def test_a_kept_run_is_read_verified_and_reported(run: RunDirectory, tmp_path: Path) -> None:
    recorded = run.run()
    assert (recorded.schema_version, recorded.task) == (SCHEMA_VERSION, "check")
    assert [trial.trial_id for trial in recorded.plan] == [str(trial.id.planned) for _, trial in run.finished()]
    assert verify(run, WORDS).faults == ()
    reported = invoke(tmp_path, "report", "--run", str(run.path))
    assert (reported.returncode, reported.stderr) == (0, "")
    assert run.id in reported.stdout
