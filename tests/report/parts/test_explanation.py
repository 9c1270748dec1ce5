"""A suite gets the explanation of its workload, a file beside the suites; a broken explanation loses no report."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.compared import evidence_of, page_of
from tests.reports import KEPT_IN, markdown_of, table_of
from tests.synthetic_run import TF, TORCH, SyntheticRun, conv2d_case, training_case
from tests.words import describe
from tsuishi.base.checkout import Checkout
from tsuishi.report.output.folder import make_report
from tsuishi.report.output.vega import Drawings
from tsuishi.report.parts.blocks import Bullets
from tsuishi.report.parts.explanation import Explanations
from tsuishi.specs.vocabulary import vocabulary
from tsuishi.verdicts.evidence import Evidence

SUITE = 'title = "Mine"\nworkload = "attention"\naxes = { protocol = "literal" }\n'
OF_MY_OWN = """
from tsuishi.report.parts.blocks import Text, View
from tsuishi.report.parts.declarations import WHERE
from tsuishi.report.parts.explanation import Explanation, Headline, OwnChart, Paragraph
from tsuishi.results.schema import Column


class WhyItIsSo(Explanation):
    tables = {"heads": (WHERE, Column("heads", "integer", "of the attention"), Column("devices", "integer", "of it"))}

    def paragraphs(self):
        return {name: [Paragraph("In short", f"{self.suite} in {name}")] for name in self.evidence.environments}

    def opening_views(self, comparison):
        yield View((Text("above the tables"),))

    def charts(self, comparison):
        rows = [{**comparison.where, "heads": 2 * devices, "devices": devices} for devices in (1, 2)]
        x, y = ({"field": name, "type": "quantitative"} for name in ("devices", "heads"))
        yield OwnChart("Heads", "Twice as many.", "heads", rows, {"mark": "line", "encoding": {"x": x, "y": y}})
"""


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    """The folder of a user's suites, with a suite and an empty folder for explanations."""
    folder = tmp_path / "suites"
    describe(folder)
    shutil.copytree(Checkout().workloads / "networks", folder / "workloads" / "networks")
    (folder / "mine.toml").write_text(SUITE, encoding="utf-8")
    (folder / "explanations").mkdir()
    return folder


def ran(path: Path, workload: str, suite: str = "mine", first_s: float = 1.0) -> SyntheticRun:
    run = SyntheticRun(path, workloads={suite: workload})
    run.add(conv2d_case(suite=suite), TF, [("first_run", 0, 1, 840, first_s)])
    return run


def tables(*runs: SyntheticRun, suite: str = "mine") -> set[str]:
    """The tables of the explanation of a suite."""
    return set(Explanations(evidence_of(*runs)).of(suite).tables)


def test_a_suite_of_any_name_has_the_explanation_of_its_workload(tmp_path: Path) -> None:
    found = Explanations(evidence_of(ran(tmp_path / "run", "conv2d"))).of("mine")
    assert found.tables.keys() == {"ratios"}
    assert found.paragraphs()[TF][0].topic == "In short"


@pytest.mark.parametrize("suite", ["mine", "conv2d"])
def test_a_suite_is_not_explained_by_its_name_or_where_its_workload_has_no_explanation(
    tmp_path: Path, suite: str
) -> None:
    assert tables(ran(tmp_path / "run", "probe", suite), suite=suite) == set()


def test_a_suite_that_ran_two_workloads_has_no_explanation(tmp_path: Path) -> None:
    runs = [ran(tmp_path / name, name, first_s=seconds) for name, seconds in (("conv2d", 1.0), ("parity", 2.0))]
    assert tables(*runs) == set()


def test_a_suite_of_which_nothing_ran_yet_has_that_of_the_plan(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(16), TORCH)
    run.add_plan(conv2d_case(suite="mine"), TF)
    run.plan[-1]["workload"] = "conv2d"
    assert tables(run) == {"ratios"}


def test_a_suite_with_a_chart_of_its_own_is_two_files(tmp_path: Path, suites: Path) -> None:
    """The chart has a drawing, a text for who cannot see it, a table, a CSV file and its data."""
    (suites / "explanations" / "attention.py").write_text(OF_MY_OWN, encoding="utf-8")
    run, out, checkout = ran(tmp_path / "run", "attention").finish(), tmp_path / "out", Checkout()
    with Drawings(Path(os.environ[KEPT_IN])) as drawings:
        make_report([run], checkout.published, vocabulary(suites), checkout.templates, out, drawings)
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    (section,) = [section for section in report["sections"] if section["title"] == "mine"]
    (chart,) = [block for block in section["blocks"] if block["block"] == "chart"]
    rows = [{"suite": "mine", "protocol": "literal", "heads": heads, "devices": heads // 2} for heads in (2, 4)]
    assert (chart["title"], chart["caption"], chart["values"]) == ("Heads", "Twice as many.", {"rows": rows})
    assert "<path" in (out / "charts" / f"{chart['name']}.svg").read_text(encoding="utf-8")
    text = markdown_of(out)
    assert "![Heads](charts/mine-literal-heads-1.svg)" in text
    assert 'aria-label="Heads. Twice as many."' in (out / "index.html").read_text(encoding="utf-8")
    assert "| heads | devices |" in text
    order = ["above the tables", "Twice as many.", "What explains it", f"mine in {TF}"]
    assert sorted(order, key=text.rindex) == order
    assert table_of(out, "heads") == [{name: str(value) for name, value in row.items()} for row in rows]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return evidence_of(ran(tmp_path_factory.mktemp("measured") / "run", "attention"))


BROKEN = {
    "class A(": "SyntaxError: '(' was never closed (attention.py, line 1)",
    "A = 1": "ValueError: suites/explanations/attention.py: no explanation in it: add a subclass of Explanation",
    "raise SystemExit(0)": "suites/explanations/attention.py, line 1: SystemExit: 0",
    "from tsuishi import nothing": "explanations/attention.py, line 1: ImportError: cannot import name 'nothing' ",
    "tables = {'cases': ()}": "a table called cases is there already: choose another name",
    "compared_by = ('step_s',)": "Input should be a valid tuple",
    "def __init__(self, evidence, suite): 1 / 0": "line 6: ZeroDivisionError: division by zero",
    "def paragraphs(self): return {'a': ['text']}": "Expected `Paragraph`",
    "def headline(self, e): return Headline('', '', True, 0.0, 3, 's', '', (), '')": "`times` is a ratio above",
    "def headline(self, e): return Headline('', '', True, 2.0, 3, 's', '', ({'x': 1},), '')": "lacks high, low, ser",
    "def covered(self, comparison): return self.nothing": "line 6: AttributeError: ",
    "def opening_views(self, comparison): yield View((Text(5),))": "Expected `str`",
    "def closing_views(self, comparison): yield View((), {'other': [{}]})": "no table 'other': declare its columns",
    "tables = {'a': ()}\n    def closing_views(self, c): yield View((), {'a': [{'x': 1}]})": "no such column: x; ",
    "tables = {'a': ()}\n    def charts(self, c): yield OwnChart('', '', 'a', [], {'x': {1}})": "not JSON serializable",
    "def charts(self, c): yield OwnChart('', '', 'a', [], {})": "no table 'a': declare its columns",
}
IMPORTS = """from tsuishi.report.parts.blocks import Text, View
from tsuishi.report.parts.explanation import Explanation, Headline, OwnChart


class A(Explanation):
    """


@pytest.mark.parametrize(("code", "why"), BROKEN.items())
def test_a_broken_explanation_is_a_note_in_its_suites_section(
    tmp_path: Path, suites: Path, measured: Evidence, code: str, why: str
) -> None:
    text = IMPORTS + code if code.startswith(("def", "tables", "compared")) else code
    (suites / "explanations" / "attention.py").write_text(text, encoding="utf-8")
    measured.words = replace(measured.words, folder=suites)
    page = page_of(measured)
    (section,) = [section for section in page.sections if section.title == "mine"]
    first = next(section.blocks)
    assert isinstance(first, Bullets)
    assert first.items[-1].startswith("The explanation of this suite failed, so that parts of it are missing here: ")
    assert why in first.items[-1]
    assert str(tmp_path) not in first.items[-1]
    assert page.tables["cases"]["estimate"] == [1.0]


@pytest.mark.parametrize("workload", ["attention", "../../run/inputs/suites/explanations/attention"])
def test_no_explanation_in_the_inputs_of_a_run_runs(tmp_path: Path, suites: Path, workload: str) -> None:
    run = ran(tmp_path / "run", workload)
    inputs = tmp_path / "run" / "inputs" / "suites" / "explanations"
    inputs.mkdir(parents=True)
    (inputs / "attention.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')\n", encoding="utf-8")
    page_of(Evidence([run.finish()], (), vocabulary(suites)))
    assert not (tmp_path / "was_run").exists()
