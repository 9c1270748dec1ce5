"""report.json: valid by its schema, the same each time, and with everything the page shows."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.report.compared import evidence_of, page_of
from tests.synthetic_run import SyntheticRun, write_example
from tests.words import WORDS, shipped_sources
from tsuishi.base.language import languages, speaking
from tsuishi.report.output.json_data import report_json, report_schema
from tsuishi.report.parts.blocks import Chart, Page
from tsuishi.report.parts.wording import Table
from tsuishi.verdicts.evidence import Evidence


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return Evidence([write_example(tmp_path_factory.mktemp("example") / "run")], shipped_sources(), WORDS)


@pytest.fixture(scope="module")
def page(evidence: Evidence) -> Page:
    return page_of(evidence)


@pytest.fixture(scope="module")
def report(page: Page, evidence: Evidence) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(report_json(page, evidence))
    return loaded


def blocks(report: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [one for section in report["sections"] for one in section["blocks"] if one["block"] == kind]


def test_it_is_valid_by_the_schema_beside_it(report: dict[str, Any]) -> None:
    import jsonschema  # it takes seconds

    schema = json.loads(report_schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report, schema, cls=jsonschema.Draft202012Validator)
    assert (report["schema_version"], report["language"]) == (1, "en")


@pytest.mark.parametrize("spoilt", [{"schema_version": 2}, {"more": 1}, {"sections": [{"anchor": "a", "title": "b"}]}])
def test_the_schema_refuses_what_is_something_else(report: dict[str, Any], spoilt: dict[str, Any]) -> None:
    import jsonschema

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**report, **spoilt}, json.loads(report_schema()), cls=jsonschema.Draft202012Validator)


def test_every_number_of_every_table_is_in_it_exactly(page: Page, report: dict[str, Any]) -> None:
    shown = [
        [[(cell.text, cell.value, list(cell.notes)) for cell in row] for row in block.rows]
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Table)
    ]
    told = [
        [[(cell["text"], cell["value"], cell["notes"]) for cell in row] for row in table["rows"]]
        for table in blocks(report, "table")
    ]
    assert told == shown
    assert sum(cell[1] is not None for table in told for row in table for cell in row) > 50


def test_charts_are_there_by_the_values_they_draw(page: Page, report: dict[str, Any]) -> None:
    shown = {block.name: block for section in page.sections for block in section.blocks if isinstance(block, Chart)}
    told = {chart["name"]: chart for chart in blocks(report, "chart")}
    assert list(told) == list(shown)
    assert told
    assert all(told[name]["values"] == chart.specification["datasets"] for name, chart in shown.items())


def test_sections_runs_environments_and_tables_are_named(page: Page, report: dict[str, Any]) -> None:
    assert [(one["anchor"], one["title"]) for one in report["sections"]] == [
        (section.anchor, section.title) for section in page.sections
    ]
    assert [run["run_id"] for run in report["runs"]] == ["run"]
    assert [(one["column"], one["realised_id"]) for one in report["environments"]] == [
        ("tf1.13-cpu", "b" * 16),
        ("torch2-cpu", "b" * 16),
    ]
    assert [machine["cpu"] for machine in report["machines"]] == ["Example CPU @ 2.50GHz"]
    assert report["tables"] == {name: f"tables/{name}.csv" for name in sorted(page.tables)}


def test_it_is_the_same_each_time(page: Page, evidence: Evidence) -> None:
    assert report_json(page_of(evidence), evidence) == report_json(page, evidence)
    assert report_schema() == report_schema()


def test_it_says_in_which_language_it_speaks(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    evidence = evidence_of(run)
    for language in languages():
        with speaking(language):
            assert json.loads(report_json(page_of(evidence), evidence))["language"] == language
