"""The tally of a run: what its trials come to so far, and which questions need more of them."""

from pathlib import Path

import pytest

from tests.report.sections.test_highlights import cards, compared, page
from tests.words import WORDS
from tsuishi.run.tally import Judged, Tally


@pytest.mark.parametrize(("apart", "is_open"), [(0.02, False), (2.5, True)])
def test_a_question_is_open_until_the_report_answers_it(tmp_path: Path, apart: float, is_open: bool) -> None:
    made = compared(tmp_path, 0.1, 0.2, apart=apart)
    run = made.finish()
    (asked,) = run.run().questions
    tally = Tally(run, WORDS, Judged(run, WORDS, ()))
    assert tally.is_open(asked) is is_open
    assert bool(cards(page(made))) is not is_open


def test_a_run_is_judged_anew_with_every_trial_and_only_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = compared(tmp_path, 0.1, 0.2).finish()
    (asked,) = run.run().questions
    judged = Judged(run, WORDS, ())
    assert judged(asked)
    monkeypatch.setattr("tsuishi.verdicts.conclusions.conclude", lambda _: pytest.fail("no trial came since"))
    assert judged(asked)
    monkeypatch.undo()
    # One side is left with two trials.
    run.finished_folders()[0].rename(tmp_path / "away")
    assert not judged(asked)
