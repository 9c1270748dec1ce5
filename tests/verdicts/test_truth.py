"""The benchmark of how often reports are wrong, in its short form: no bound is broken, and each planted fault shows."""

import pytest

from benchmarks import truth, truth_of_runs, verdict_grid
from benchmarks.bounds import Fault, Row, broken, counted, planted
from benchmarks.known_truths import each_alone


@pytest.mark.long
def test_reports_are_wrong_no_more_often_than_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    assert truth.main(300) == 0, capsys.readouterr().out


@pytest.mark.long
def test_reports_on_run_folders_are_wrong_no_more_often_than_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    """A bound of 0 breaks at the first wrong report; the faults of the other bounds take more reports to show."""
    faults = [fault for fault in truth_of_runs.faults() if not fault.row.bound]
    assert broken(truth_of_runs.rows(), faults, 3, 3, processes=2) == 0, capsys.readouterr().out


@pytest.mark.long
def test_verdicts_at_the_edges_are_false_no_more_often_than_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    """And they would be, if each claim had 5 % of its own."""
    every = list(verdict_grid.rows())
    edge = next(row for row in every if row.name.startswith("a ratio at the edge of its direction, scatter 10 %, 4 "))
    alone = Fault("each claim at 5 %", edge, (("tsuishi.verdicts.family.decide", each_alone),))
    assert broken(every, [alone], 100, 200, processes=2) == 0, capsys.readouterr().out


@pytest.mark.long
def test_a_report_on_copies_would_be_wrong_if_they_counted() -> None:
    (fault,) = (fault for fault in truth_of_runs.faults() if fault.name == "copies are runs of their own")
    assert counted(fault.row, 0, 2).wrong == 0
    assert planted(fault, 2).wrong == 2


def test_a_broken_bound_is_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that is wrong half of the time breaks its bound of 5 %; a fault that breaks nothing is counted too."""
    row = Row("half", 0.05, lambda random: bool(random.uniform() < 0.5))
    right = Row("never", 0.05, lambda random: False)
    monkeypatch.setattr(truth, "rows", lambda: iter([row, right]))
    monkeypatch.setattr(truth, "faults", lambda: iter([Fault("nothing", right, ())]))
    assert truth.main(100) == 2
    assert "BROKEN" in capsys.readouterr().out
