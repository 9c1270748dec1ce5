"""The benchmark of how often explanations are wrong, in its short form."""

import pytest

from benchmarks import truth_of_explanations


@pytest.mark.long
def test_explanations_are_wrong_no_more_often_than_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    assert truth_of_explanations.main(300) == 0, capsys.readouterr().out
