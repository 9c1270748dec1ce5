"""The tally of a run: what its trials come to so far, and which questions need more of them."""

from pathlib import Path

import pytest

from tests.report.sections.test_highlights import cards, compared, page
from tests.synthetic_run import TORCH, training_case
from tests.words import WORDS
from tsuishi.run.tally import Judged, Tally
from tsuishi.specs.questions import LOOKS, MatrixCell


@pytest.mark.parametrize(("apart", "is_open"), [(0.02, False), (2.5, True)])
def test_a_question_is_open_until_the_report_answers_it(tmp_path: Path, apart: float, is_open: bool) -> None:
    made = compared(tmp_path, 0.1, 0.2, apart=apart)
    run = made.finish()
    (asked,) = run.run().questions
    tally = Tally(run, WORDS, Judged(run, WORDS, ()))
    assert tally.is_open(asked) is is_open
    assert bool(cards(page(made))) is not is_open


def test_a_further_question_is_judged_though_no_trial_came_since(tmp_path: Path) -> None:
    made = compared(tmp_path, 0.1, 0.2, apart=2.5)
    run = made.finish()
    judged = Judged(run, WORDS, ())
    (asked,) = run.run().questions
    assert not judged(asked)
    further = asked.model_copy(update={"id": "suite/further", "plan": 2, "main": False})
    run.write_run(run.run().model_copy(update={"questions": (asked, further)}))
    assert not judged(further)


def test_cases_that_no_trial_can_add_to_cost_nothing_more(tmp_path: Path) -> None:
    made = compared(tmp_path, 0.1, 0.2)
    case = training_case(256)
    made.add(case, TORCH, [], status="out_of_memory")
    counts = Tally(made.finish(), WORDS).counts()
    assert counts[MatrixCell(case.id, TORCH)] == LOOKS[-1]
    assert sorted(counts.values())[:2] == [3, 3]


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
