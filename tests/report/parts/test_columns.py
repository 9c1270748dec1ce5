"""The schema of tables/*.csv: what is written is what is declared."""

import csv
import json
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.house import modules
from tests.report.compared import evidence_of, page_of
from tests.reports import make_report
from tests.synthetic_run import TF, TORCH, SyntheticRun, add_record, conv2d_case, write_example
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.report.parts import declarations
from tsuishi.report.parts.suite_cases import cases_of_suites
from tsuishi.report.sections.page import every_table
from tsuishi.specs.case import Case
from tsuishi.verdicts.evidence import Evidence

PARSED: dict[str, Callable[[str], object]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": {"true": True, "false": False}.__getitem__,
    "datetime": datetime.fromisoformat,
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the report of the example run."""
    base, checkout = tmp_path_factory.mktemp("example"), Checkout()
    make_report([write_example(base / "run")], checkout.published, checkout.templates, base / "out")
    return base / "out" / "tables"


def test_every_table_is_declared_and_has_exactly_its_columns(tables: Path) -> None:
    package = json.loads((tables / "datapackage.json").read_text(encoding="utf-8"))
    declared = {one["path"]: [field["name"] for field in one["schema"]["fields"]] for one in package["resources"]}
    written = {}
    for path in sorted(tables.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            written[path.name] = next(csv.reader(file))
    assert written == declared
    assert len(written) > 15


def test_every_value_is_of_its_columns_type(tables: Path) -> None:
    package = json.loads((tables / "datapackage.json").read_text(encoding="utf-8"))
    parsed = 0
    for resource in package["resources"]:
        types = {field["name"]: PARSED[field["type"]] for field in resource["schema"]["fields"]}
        with (tables / resource["path"]).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                parsed += len([types[name](value) for name, value in row.items() if value])
    assert parsed > 1000


def test_every_column_has_a_description(tables: Path) -> None:
    package = json.loads((tables / "datapackage.json").read_text(encoding="utf-8"))
    assert all(field["description"] for one in package["resources"] for field in one["schema"]["fields"])


def test_text_of_a_run_is_no_formula_in_its_report_and_stays_as_it_is_in_the_run(tmp_path: Path) -> None:
    formula, checkout = "=HYPERLINK(1)", Checkout()
    run = SyntheticRun(tmp_path / "run", engine=formula)
    found = {"name": formula, "packages": {formula: formula}, "versions": {formula: formula}}
    run.environments[TF] = add_record(run.directory, "environment", found)
    run.add(conv2d_case(), TF, status="failed", reason=formula, forced=formula, exit_code=-9)
    make_report([run.finish()], checkout.published, checkout.templates, tmp_path / "out")
    cells = set()
    for path in (tmp_path / "out" / "tables").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            cells |= {cell for row in csv.reader(file) for cell in row}
    assert {"'=HYPERLINK(1)", "-9"} <= cells
    assert [cell for cell in cells if cell[:1] in ("=", "+", "@") or (cell[:1] == "-" and not float(cell))] == []
    assert f",{formula}," in (run.directory.path / "trials.csv").read_text(encoding="utf-8")


def declared(table: str) -> declarations.Columns:
    return declarations.columns_of(Evidence([], (), WORDS), every_table()[table])


def test_every_table_that_a_module_declares_is_in_a_report_and_has_a_name_of_its_own() -> None:
    found = [import_module(f"tsuishi.{name}") for name in modules() if name.startswith(("report.", "extras."))]
    tables = [table for module in found for table in getattr(module, "TABLES", {}).items()]
    assert {name for name, _ in tables} == {*every_table()}
    assert [name for name, columns in tables if every_table()[name] is not columns] == []


def test_cells_are_the_attributes_that_have_the_name_of_a_column() -> None:
    some = SimpleNamespace(device="cpu", value=None, colour="red", precision="fp32")
    assert declarations.cells(every_table()["limits"], some) == {"device": "cpu", "value": None}


def test_a_column_that_is_not_declared_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no such column: colour; declare it among the columns of its table"):
        declarations.filled(declared("memory"), [{"suite": "parity", "colour": "red"}])


def test_what_a_row_lacks_is_empty() -> None:
    table = declarations.filled(declared("limits"), [{"device": "cpu", "value": 1.5}])
    assert list(table.items()) == [
        ("machine_record", [None]),
        ("device", ["cpu"]),
        ("quantity", [None]),
        ("precision", [None]),
        ("value", [1.5]),
        ("low", [None]),
        ("high", [None]),
    ]


def test_a_run_whose_axes_nothing_here_describes_is_reported_by_their_names(tmp_path: Path) -> None:
    """As it comes from a checkout with suites of its own."""
    run = SyntheticRun(tmp_path / "run")
    for size in (7, 9):
        axes = {"suite": "foreign", "protocol": "steady", "colour": "red", "window_size": size}
        run.add(Case(tuple(axes.items())), TORCH, [("slide", place, 1, 0, size / 10) for place in range(4)])
    evidence = evidence_of(run)
    (suite_cases,) = cases_of_suites(evidence)
    assert [suite_cases.name(case_id) for case_id in suite_cases.case_ids] == ["window size 7", "window size 9"]
    assert suite_cases.common == "colour red"
    rows = page_of(evidence).tables["cases"]
    assert [*zip(rows["colour"], rows["window_size"], rows["quantity"], rows["estimate"], strict=True)] == [
        ("red", 7, "slide_s", 0.7),
        ("red", 9, "slide_s", 0.9),
    ]
    head, *trials = (run.directory.path / "trials.csv").read_text(encoding="utf-8").splitlines()
    assert head.endswith(f",{[*WORDS.axes][-1]},colour,window_size"), "after the axes of this checkout"
    assert {line.rpartition(",red,")[2] for line in trials} == {"7", "9"}
