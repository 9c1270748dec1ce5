"""How far apart losses are between environments."""

from pathlib import Path

import pytest

from suites.explanations.parity import largest_difference, loss_distances
from tests.report.compared import compared, tables, texts
from tests.synthetic_run import TF, TORCH, SyntheticRun
from tests.words import WORDS
from tsuishi.report.parts.blocks import View

CASE = WORDS.case({"suite": "parity", "protocol": "steady", "model": "cnn10", "strategy": "none", "devices": 1})


def test_the_largest_difference_of_a_loss_is_relative_to_the_largest() -> None:
    assert largest_difference({"a": 2.0, "b": 1.9, "c": 1.95}) == pytest.approx(0.05)
    assert largest_difference({"a": 0.0, "b": 0.0}) == 0.0
    assert largest_difference({"a": 2.0}) is None


def test_losses_are_compared_between_environments(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for environment, loss in ((TF, 2.5), (TORCH, 2.4)):
        run.add(CASE, environment, [], metrics=[("loss", loss, "1")])
    view = loss_distances(compared(run, suite="parity"))
    assert texts(tables(view)["The loss, between environments"]) == [["the only case", "2", "0.0400"]]
    assert [(row["model"], row["largest_loss_difference"]) for row in view.rows["parity"]] == [
        ("cnn10", pytest.approx(0.04))
    ]


def test_a_loss_in_one_environment_is_compared_with_nothing(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(CASE, TF, [], metrics=[("loss", 2.5, "1")])
    assert loss_distances(compared(run, suite="parity")) == View((), {"parity": []})
