"""The history of cases: a point for each session on this machine, in the same environments."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.job import invoke
from tests.report.sections.test_against_baseline import BATCHES, session
from tests.reports import table_of
from tests.synthetic_run import machine
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.report.output.folder import make_report
from tsuishi.results.directory import RunDirectory


def history(out: Path, runs: list[RunDirectory], past: list[RunDirectory]) -> list[dict[str, str]]:
    checkout = Checkout()
    make_report(runs, checkout.published, WORDS, checkout.templates, out, None, None, past)
    return rows_of(out)


def rows_of(out: Path) -> list[dict[str, str]]:
    return table_of(out, "history")


def test_each_session_is_a_point_with_its_date_and_the_interval_of_its_trials(tmp_path: Path) -> None:
    runs = [session(tmp_path / "results", day, times=times) for day, times in ((1, 1.0), (2, 1.0), (9, 1.5))]
    rows = history(tmp_path / "out", [runs[0]], runs)
    assert len(rows) == 3 * len(BATCHES)
    of_first = [row for row in rows if row["batch_size"] == "32"]
    assert [row["began_at"] for row in of_first] == [f"2026-11-{day:02}T08:00:01Z" for day in (1, 2, 9)]
    values = [float(row["value"]) for row in of_first]
    assert math.isclose(values[2] / values[0], 1.5 * 1.002 / 1.001, rel_tol=1e-9)
    for row in of_first:
        assert float(row["low"]) < float(row["value"]) < float(row["high"])
        assert row["trials"] == "3"
        # Trials scatter by 1 % within each of three sessions: six degrees of freedom. The third session is far off.
        reach = 2.4469 * 0.01 / math.sqrt(3)
        assert math.isclose(math.log(float(row["high"]) / float(row["value"])), reach, rel_tol=1e-3)
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "History on this machine" in page


@pytest.mark.long
def test_other_machines_are_not_in_the_history(tmp_path: Path) -> None:
    other: dict[str, Any] = {**machine(), "memory_mib": 12345}
    runs = [session(tmp_path / "results", 1), session(tmp_path / "results", 2, machine=other)]
    rows = history(tmp_path / "out", [runs[0]], runs)
    assert {row["session"].split()[0] for row in rows} == {runs[0].id}
    text = (tmp_path / "out" / "details.md").read_text(encoding="utf-8")
    assert "There is no other session in these environments on this machine yet." in text


@pytest.mark.long
def test_the_task_finds_the_runs_of_this_machine(tmp_path: Path) -> None:
    """Also those before an update, which are marked; others are counted, with the fact that makes them others."""
    session(tmp_path / "results", 1, machine={**machine(), "kernel": "5.10.0"})
    session(tmp_path / "results", 2)
    session(tmp_path / "results", 3, machine={**machine(), "memory_mib": 12345})
    result = invoke(tmp_path, "report", "--run", "20261102-080000-quick", "--history", "--out", "now", "--all-charts")
    assert (result.returncode, result.stderr) == (0, "")
    rows = rows_of(tmp_path / "reports" / "now")
    assert {row["session"].split()[0] for row in rows} == {"20261101-080000-quick", "20261102-080000-quick"}
    (chart,) = (tmp_path / "reports" / "now" / "charts").glob("history-*.svg")
    drawn = chart.read_text(encoding="utf-8")
    assert "2026-11-01" in drawn
    assert "date (UTC)" in drawn
    changes = {row["session"].split()[0]: row["changed"] for row in rows}
    assert changes["20261101-080000-quick"] == "kernel: 5.10.0 then, 6.1.0 now"
    assert changes["20261102-080000-quick"] == ""
    text = (tmp_path / "reports" / "now" / "details.md").read_text(encoding="utf-8")
    assert "20261101-080000-quick 0, 2026-11-01: kernel: 5.10.0 then, 6.1.0 now" in text
    assert "Runs of another machine, which are left out: 1; it differs by: memory, MiB." in text


@pytest.mark.long
def test_a_report_without_history_has_an_empty_table(tmp_path: Path) -> None:
    checkout = Checkout()
    make_report([session(tmp_path / "results", 1)], checkout.published, WORDS, checkout.templates, tmp_path / "out")
    assert rows_of(tmp_path / "out") == []
    assert "History on this machine" not in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("language", ["ja"])
def test_it_speaks_the_language_of_the_report(tmp_path: Path, language: str) -> None:
    for day in (1, 2):
        session(tmp_path / "results", day)
    result = invoke(tmp_path, "report", "--history", "--lang", language, "--out", "now")
    assert (result.returncode, result.stderr) == (0, "")
    assert "この機械での履歴" in (tmp_path / "reports" / f"now-{language}" / "index.html").read_text(encoding="utf-8")
