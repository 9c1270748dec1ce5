"""The benchmark of how often reports are wrong, in its short form: no bound is broken, and each planted fault shows."""

import pytest

from benchmarks import truth


@pytest.mark.long
def test_reports_are_wrong_no_more_often_than_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    assert truth.main(300) == 0, capsys.readouterr().out


def test_a_broken_bound_is_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that is wrong half of the time breaks its bound of 5 %; a fault that breaks nothing is counted too."""
    row = truth.Row("half", 0.05, lambda random: bool(random.uniform() < 0.5))
    right = truth.Row("never", 0.05, lambda random: False)
    monkeypatch.setattr(truth, "rows", lambda: iter([row, right]))
    monkeypatch.setattr(truth, "faults", lambda: iter([truth.Fault("nothing", right, ())]))
    assert truth.main(100) == 2
    assert "BROKEN" in capsys.readouterr().out
