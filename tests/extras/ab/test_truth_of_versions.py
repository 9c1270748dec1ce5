"""The benchmark of comparisons of two versions, in its short form: no bound is broken, and each planted fault shows."""

import pytest

from benchmarks import truth_of_versions
from benchmarks.bounds import broken


@pytest.mark.long
def test_comparisons_are_red_no_more_often_than_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row for row in truth_of_versions.rows() if " 20 numbers" not in row.name]
    assert broken(rows, truth_of_versions.faults(), 100, 100) == 0, capsys.readouterr().out
