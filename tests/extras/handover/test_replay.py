"""`invoke replay` as a user calls it: what it measures, what it reports, and what it refuses."""

import json
import shutil
from pathlib import Path

import pytest

from tests.commands.test_tasks import checkout, invoke
from tests.extras.handover.archived import packed, rewritten
from tests.reports import markdown_of, table_of
from tsuishi.results.directory import RunDirectory

ASKED = ("--env", "host", "--within", "none", "--name", "first")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A checkout with a run, and an archive of the run."""
    root = checkout(tmp_path_factory.mktemp("replay"), "ok", "unsupported", "out_of_memory")
    done = invoke(root, "run-suite", *ASKED)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (root / "results").glob("2*")
    packed(root / "handed-over.tsuishi.zip", [RunDirectory(run)])
    return root, root / "handed-over.tsuishi.zip"


def copied(measured: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """The checkout of somebody else, who got the archive and has no run."""
    root = Path(shutil.copytree(measured[0], tmp_path / "other", symlinks=True))
    shutil.rmtree(root / "results")
    return root, Path(shutil.copy(measured[1], tmp_path))


def runs(root: Path) -> list[dict[str, object]]:
    return [json.loads((path / "run.json").read_text()) for path in sorted((root / "results").glob("2*"))]


def test_an_archive_is_measured_again_and_reported_side_by_side(measured: tuple[Path, Path], tmp_path: Path) -> None:
    root, archive = copied(measured, tmp_path)
    done = invoke(root, "replay", str(archive), "--out", "both")
    assert done.returncode == 0, done.stdout + done.stderr
    (original,) = runs(measured[0])
    (again,) = runs(root)
    assert again["replays"]["run_id"] == original["run_id"]  # type: ignore[index]
    assert f"replay of run {original['run_id']}: 3 trials in host, about " in done.stdout
    assert [entry["trial_id"] for entry in again["plan"]] == [entry["trial_id"] for entry in original["plan"]]  # type: ignore[attr-defined]
    assert [entry["settings"] for entry in again["plan"]] == [entry["settings"] for entry in original["plan"]]  # type: ignore[attr-defined]
    page = markdown_of(root / "reports" / "out" / "both")
    assert "host, replayed" in page
    assert "days: 1 there and 1 here; an interval needs 3 on each side" in page
    (row,) = table_of(root / "reports" / "out" / "both", "replayed")
    assert (row["environment"], row["reference"], row["cases"]) == ("host, replayed", "host", "1")
    assert float(row["ratio"]) > 0
    assert row["ratio_low"] == row["ratio_high"] == ""


def test_a_run_is_replayed_by_its_id_and_its_replay_can_be_resumed(measured: tuple[Path, Path], tmp_path: Path) -> None:
    root = Path(shutil.copytree(measured[0], tmp_path / "other", symlinks=True))
    (original,) = (path.name for path in (root / "results").glob("2*"))
    planned = invoke(root, "replay", original, "--plan")
    assert planned.returncode == 0, planned.stderr
    assert len(runs(root)) == 1
    done = invoke(root, "replay", original, "--name", "again")
    assert done.returncode == 0, done.stdout + done.stderr
    resumed = invoke(root, "run-suite", "--resume", "latest")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert "again: 0 trials" in resumed.stdout


def test_within_a_time_questions_of_the_original_get_as_many_trials_as_there_is_time_for(
    measured: tuple[Path, Path], tmp_path: Path
) -> None:
    root, archive = copied(measured, tmp_path)
    done = invoke(root, "replay", str(archive), "--within", "20s")
    assert done.returncode == 0, done.stdout + done.stderr
    (again,) = runs(root)
    assert [question["id"] for question in again["questions"]] == [  # type: ignore[attr-defined]
        question["id"]
        for question in runs(measured[0])[0]["questions"]  # type: ignore[attr-defined]
    ]
    assert {entry["environment"] for entry in again["plan"]} == {"host"}  # type: ignore[attr-defined]


def test_other_workloads_are_named_and_nothing_is_measured(measured: tuple[Path, Path], tmp_path: Path) -> None:
    root, archive = copied(measured, tmp_path)
    with (root / "suites" / "workloads" / "experiments" / "behave.py").open("a") as file:
        file.write("# changed\n")
    refused = invoke(root, "replay", str(archive))
    assert refused.returncode == 1
    assert "was measured with files that differ here: workloads/experiments/behave.py: use the" in refused.stderr
    assert not (root / "results").exists()


def test_a_suite_that_makes_other_trials_is_named(measured: tuple[Path, Path], tmp_path: Path) -> None:
    root, archive = copied(measured, tmp_path)
    suite = root / "suites" / "bench.toml"
    suite.write_text(suite.read_text().replace("[[groups]]", "settings = { measure_s = 9.0 }\n[[groups]]"))
    refused = invoke(root, "replay", str(archive))
    assert refused.returncode == 1
    assert "has a different settings in suites/bench.toml" in refused.stderr


def test_an_archive_that_somebody_altered_is_not_replayed(measured: tuple[Path, Path], tmp_path: Path) -> None:
    root, archive = copied(measured, tmp_path)
    (original,) = runs(measured[0])
    altered = rewritten(archive, {f"runs/{original['run_id']}/samples.csv": b"trial_id\n"})
    refused = invoke(root, "replay", str(altered))
    assert refused.returncode == 1
    assert "`invoke verify --archive" in refused.stderr
    assert not (root / "results").exists()


def test_a_run_that_somebody_altered_is_not_replayed(measured: tuple[Path, Path], tmp_path: Path) -> None:
    root = Path(shutil.copytree(measured[0], tmp_path / "other", symlinks=True))
    (run,) = (root / "results").glob("2*")
    (run / "samples.csv").write_text("trial_id\n")
    refused = invoke(root, "replay", run.name)
    assert refused.returncode == 1
    assert "`invoke verify --run" in refused.stderr
