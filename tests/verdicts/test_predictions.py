"""Totals that are predicted have the error of predictions in every comparison."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.report.compared import evidence_of
from tests.synthetic_run import TF, TORCH, SyntheticRun, training_case
from tests.words import WORDS
from tsuishi.estimates.contrasts import ratio
from tsuishi.estimates.intervals import Term


def terms(tmp_path: Path, epochs: int) -> tuple[Term, Term]:
    """The terms of the totals of two environments, in three trials each of so many epochs that hardly scatter."""
    run = SyntheticRun(tmp_path / f"run-{epochs}")
    case = training_case(128, protocol="literal")
    for number in range(1, 4):
        trial: dict[str, Any] = {"repetition": number, "started_at": f"2026-07-0{number}T10:00:00Z"}
        for environment, seconds in ((TF, 6.0), (TORCH, 5.0)):
            taken = [("epoch", index, 391, 50_000, seconds + 0.001 * number) for index in range(epochs)]
            run.add(case, environment, taken, **trial)
    known = evidence_of(run, published=True).terms
    return known[case.id, TF, "total_s"], known[case.id, TORCH, "total_s"]


def test_a_predicted_total_has_the_error_of_predictions_and_a_full_total_has_not(tmp_path: Path) -> None:
    described = WORDS.quantity("total_s")
    predicted = ratio(*terms(tmp_path, 5)).error
    assert described.prediction_error > 0
    assert predicted is not None
    assert predicted == pytest.approx(math.sqrt(2) * described.prediction_error, rel=0.01)
    full = ratio(*terms(tmp_path, 100)).error
    assert full is not None
    assert full < 0.01 * predicted
