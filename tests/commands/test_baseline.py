"""`invoke report --baseline` as CI calls it: exit codes, archives, and mistakes in a line."""

from pathlib import Path

import pytest

from tests.job import invoke
from tests.report.sections.test_against_baseline import of_a_script, session
from tests.synthetic_run import TORCH, SyntheticRun, training_case

THEN = "20261101-080000-quick,20261102-080000-quick,20261103-080000-quick"
NOW = "20261111-080000-quick,20261112-080000-quick,20261113-080000-quick"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, and three that took a third longer."""
    folder = tmp_path_factory.mktemp("baseline")
    for day in (1, 2, 3):
        session(folder / "results", day)
        session(folder / "results", 10 + day, times=1.33)
    return folder


def test_a_slower_node_ends_with_4_and_leaves_files_for_ci(folder: Path) -> None:
    result = invoke(folder, "report", "--run", NOW, "--baseline", THEN, "--fail-on", "slower:1.05", "--out", "now")
    assert result.returncode == 4, result.stderr
    assert result.stdout.count("\nslower: ") == 3
    assert "3 slower, 0 not slower, 0 open, 0 lost, 0 without a match" in result.stdout
    assert {"junit.xml", "baseline.md"} <= {path.name for path in (folder / "reports" / "now").iterdir()}


def test_a_case_that_does_not_run_any_more_ends_with_4(folder: Path) -> None:
    run = SyntheticRun(folder / "results" / "20261115-080000-quick", created_at="2026-11-15T08:00:00Z")
    run.started_at = "2026-11-15T08:00:01Z"
    run.add(training_case(32), TORCH, status="out_of_memory", reason="no more")
    run.finish()
    result = invoke(folder, "report", "--run", run.directory.id, "--baseline", THEN, "--fail-on", "slower:1.05")
    assert result.returncode == 4, result.stderr
    assert "\nlost: multi_gpu_scaling, " in result.stdout
    assert ": ok then, out of memory now\n" in result.stdout


@pytest.mark.long
def test_a_threshold_above_what_it_takes_longer_ends_with_0(folder: Path) -> None:
    result = invoke(folder, "report", "--run", NOW, "--baseline", THEN, "--fail-on", "slower:1.5", "--out", "now")
    assert (result.returncode, result.stderr) == (0, "")
    assert "0 slower, 3 not slower" in result.stdout


@pytest.mark.long
def test_without_fail_on_what_is_slower_is_said_and_fails_nothing(folder: Path) -> None:
    result = invoke(folder, "report", "--run", NOW, "--baseline", THEN, "--out", "now")
    assert (result.returncode, result.stderr) == (0, "")
    assert "by a threshold of 1: 3 slower" in result.stdout


@pytest.mark.long
def test_a_baseline_of_a_single_session_decides_nothing(folder: Path) -> None:
    single = str(folder / "results" / "20261101-080000-quick")
    result = invoke(folder, "report", "--run", NOW, "--baseline", single, "--fail-on", "slower", "--out", "folder")
    assert (result.returncode, result.stderr) == (5, "")
    assert "0 slower, 0 not slower, 3 open" in result.stdout
    assert "--fail-on slower: every case is open: it needs 3 days on each side\n" in result.stdout
    assert "days: 1 then, 3 now" in (folder / "reports" / "folder" / "junit.xml").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize(
    ("runs", "baseline", "days"),
    [
        ((), THEN, (1, 3)),
        ((), THEN.partition(",")[0], (1, 1)),
        (("--run", NOW), THEN.rpartition(",")[0], (4, 2)),
        (("--run", f"latest,{NOW.partition(',')[0]}"), THEN, (2, 3)),
    ],
)
def test_a_job_whose_gate_cannot_be_decided_ends_before_it_measures(
    folder: Path, runs: tuple[str, ...], baseline: str, days: tuple[int, int]
) -> None:
    """A job of one run against one run ended with 5 after it had measured for ten minutes, always."""
    before = {*(folder / "results").iterdir()}
    job = ("run-suite", "report", "--env", "nowhere", "--baseline", baseline, "--fail-on", "slower:1.05")
    result = invoke(folder, *job, *runs)
    assert (result.returncode, result.stdout) == (5, "")
    assert result.stderr.startswith(
        f"error: --fail-on slower takes 3 days on each side; with today the runs have {days[0]}, their baseline has "
        f"{days[1]}: nothing is measured. "
    )
    assert "--baseline D,E,F --fail-on slower:1.05`, or leave --fail-on out" in result.stderr
    assert {*(folder / "results").iterdir()} == before


@pytest.mark.long
def test_a_job_with_two_earlier_days_is_measured(folder: Path) -> None:
    """It gets as far as the environment, which is a mistake here."""
    for named, gates in ((NOW.rpartition(",")[0], "slower"), (NOW.partition(",")[0], "contradicted,slower")):
        job = ("run-suite", "report", "--env", "nowhere", "--baseline", THEN, "--fail-on", gates)
        result = invoke(folder, *job, "--run", named)
        assert result.returncode == 1, "a gate of claims is measured whatever the days"
        assert "unknown environment 'nowhere'" in result.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--fail-on", "slower"), "error: --fail-on slower needs --baseline: "),
        (
            ("--baseline", THEN, "--fail-on", "slower:0.9"),
            "error: --fail-on slower:<times> takes a number from 1, as slower:1.05; given: slower:0.9",
        ),
        (("--baseline", THEN, "--fail-on", "slower:nan"), "takes a number from 1"),
        (("--baseline", THEN, "--fail-on", "slow"), "error: unknown verdict 'slow'; did you mean 'slower'? known: "),
        (("--baseline", "20250101"), "error: unknown run '20250101'; "),
        (("--baseline", NOW), "error: the baseline has 27 of the trials that are held against it"),
    ],
)
def test_mistakes_are_a_line(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    result = invoke(folder, "report", "--run", NOW, *arguments)
    assert result.returncode == 1
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.long
def test_a_gate_over_nothing_ends_with_a_code_of_its_own_and_says_which(folder: Path) -> None:
    """No case of the baseline is one of these, and on this machine no claim of a source can be tested."""
    for day in (1, 2, 3):
        of_a_script(folder / "results", 20 + day, step_s=0.1)
    other = ",".join(f"2026112{day}-080000-quick" for day in (1, 2, 3))
    gates = "slower:1.05,contradicted"
    result = invoke(folder, "report", "--run", NOW, "--baseline", other, "--fail-on", gates, "--out", "nothing")
    assert result.returncode == 5, result.stdout + result.stderr
    assert "--fail-on slower: no case was compared with the baseline\n" in result.stdout
    assert "--fail-on contradicted: no claim was tested\n" in result.stdout
    assert (folder / "reports" / "nothing" / "junit.xml").read_text(encoding="utf-8").count("<skipped ") == 4
