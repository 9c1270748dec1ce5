"""A suite gets the explanation of the workload that its trials ran, and an explanation is a file in a folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.compared import evidence_of, page_of
from tests.synthetic_run import TF, TORCH, SyntheticRun, conv2d_case, training_case
from tsuishi.base.errors import UserError
from tsuishi.report import explanations
from tsuishi.report.explanations.conv2d import SlowAndFastTowers
from tsuishi.report.parts import explanation
from tsuishi.report.parts.explanation import Explanation, Explanations
from tsuishi.verdicts.evidence import Evidence

OF_MY_OWN = """
from tsuishi.report.parts.explanation import Explanation, Paragraph
from tsuishi.report.parts.blocks import Text, View
from tsuishi.results.schema import Column


class WhyItIsSo(Explanation):
    tables = {"heads": (Column("heads", "integer", "of the attention"),)}

    def paragraphs(self):
        return {name: [Paragraph("In short", f"{self.suite} in {name}")] for name in self.evidence.environments}

    def opening_views(self, comparison):
        yield View((Text("above the tables"),), {"heads": [{"heads": 8}]})
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules are explanations too."""
    path = tmp_path / "more"
    path.mkdir()
    monkeypatch.setattr(explanations, "__path__", [*explanations.__path__, str(path)])
    explanation._known.cache_clear()
    explanation._kind.cache_clear()
    yield path
    monkeypatch.undo()
    explanation._known.cache_clear()
    explanation._kind.cache_clear()


def ran(path: Path, workload: str, suite: str = "mine") -> Evidence:
    run = SyntheticRun(path, workloads={suite: workload})
    run.add(conv2d_case(suite=suite), TF, [("first_run", 0, 1, 840, 1.0)])
    return evidence_of(run)


def test_a_suite_of_any_name_has_the_explanation_of_its_workload(tmp_path: Path) -> None:
    found = Explanations(ran(tmp_path / "run", "conv2d"))
    assert isinstance(found.of("mine"), SlowAndFastTowers)
    assert found.of("mine") is found.of("mine")


def test_a_workload_without_an_explanation_has_one_that_says_nothing(tmp_path: Path) -> None:
    explanation = Explanations(ran(tmp_path / "run", "probe")).of("mine")
    assert type(explanation) is Explanation
    assert explanation.paragraphs() == {}


def test_a_suite_of_the_workloads_name_that_ran_another_one_is_not_explained_by_it(tmp_path: Path) -> None:
    found = Explanations(ran(tmp_path / "run", "probe", suite="conv2d"))
    assert type(found.of("conv2d")) is Explanation


def test_a_suite_that_ran_two_workloads_has_no_explanation(tmp_path: Path) -> None:
    runs = [SyntheticRun(tmp_path / name, workloads={"mine": name}) for name in ("conv2d", "training")]
    for run, first_s in zip(runs, (1.0, 2.0), strict=True):
        run.add(conv2d_case(suite="mine"), TF, [("first_run", 0, 1, 840, first_s)])
    assert type(Explanations(evidence_of(*runs)).of("mine")) is Explanation


def test_a_suite_of_which_nothing_ran_yet_has_that_of_the_plan(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TORCH)
    run.add_plan(conv2d_case(suite="mine"), TF)
    run.plan[-1]["workload"] = "conv2d"
    assert isinstance(Explanations(evidence_of(run)).of("mine"), SlowAndFastTowers)


def test_an_explanation_of_my_own_is_a_file(tmp_path: Path, folder: Path) -> None:
    (folder / "attention.py").write_text(OF_MY_OWN)
    page = page_of(ran(tmp_path / "run", "attention"))
    (section,) = [section for section in page.sections if section.title == "mine"]
    said = [getattr(block, "text", "") for block in section.blocks]
    assert said.index("above the tables") < said.index("What explains it") < said.index(f"mine in {TF}")
    assert page.tables["heads"] == {"heads": [8]}
    assert page.tables["diagnosis"]["text"] == [f"mine in {TF}"]


def test_a_file_without_an_explanation_is_refused(tmp_path: Path, folder: Path) -> None:
    (folder / "attention_too.py").write_text("A = 1\n")
    with pytest.raises(UserError, match=r"attention_too\.py: no explanation in it: add a subclass of Explanation$"):
        Explanations(ran(tmp_path / "run", "attention_too")).of("mine")
