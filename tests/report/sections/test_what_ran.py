"""What a report says of the files of its runs: how far they were verified, on the page and in report.json."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.report.compared import page_of
from tests.synthetic_run import listed, write_example
from tests.words import WORDS
from tsuishi.base.language import speaking
from tsuishi.report.output.json_data import report_json
from tsuishi.report.parts.wording import Table
from tsuishi.results.directory import RunDirectory
from tsuishi.results.verification import verify
from tsuishi.verdicts.evidence import Evidence


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run with a manifest."""
    return listed(write_example(tmp_path / "run"))


def said(run: RunDirectory, column: str, language: str = "en") -> str:
    """The cell of the run in the table of runs."""
    with speaking(language):
        page = page_of(Evidence([run], (), WORDS))
    (cell,) = (
        dict(zip(block.columns, row, strict=True))[column].text
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Table) and column in block.columns and "tsuishi" in block.columns
        for row in block.rows
    )
    return cell


def lose_the_manifest(run: RunDirectory) -> None:
    for path in run.path.glob("*-sha256.txt"):
        path.unlink()


def grow(run: RunDirectory) -> None:
    """Beyond what a report reads whole."""
    path = run.finished_folders()[0] / "log.txt.gz"
    os.truncate(path, 65 << 20)


def add_files(run: RunDirectory) -> None:
    for name in "dcba":
        (run.path / f"{name}.csv").write_text("a\n")


def add_a_file(run: RunDirectory) -> None:
    (run.path / "a.csv").write_text("a\n")


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "english", "japanese"),
    [
        (grow, "tables verified", "表のみ検証済み"),
        (lose_the_manifest, "older than verification", "検証機能より前の実行"),
        (add_a_file, "altered: a.csv", "改変あり：a.csv"),
        (add_files, "altered: a.csv, b.csv and c.csv; 1 more", "改変あり：a.csv、b.csv、c.csv、ほか 1 件"),
    ],
)
def test_the_page_says_how_far_a_run_was_verified(
    run: RunDirectory, change: Callable[[RunDirectory], None], english: str, japanese: str
) -> None:
    change(run)
    assert said(run, "files") == english
    assert said(run, "ファイル", "ja") == japanese


@pytest.mark.long
def test_the_digest_of_a_verified_run_is_on_the_page_and_whole_in_the_data(run: RunDirectory) -> None:
    found = verify(run, WORDS)
    assert found.is_verified, found.faults
    assert said(run, "files") == f"verified, digest {found.root[:16]}…"
    evidence = Evidence([run], (), WORDS)
    (told,) = json.loads(report_json(page_of(evidence), evidence))["runs"]
    assert (told["files"], told["digest"], told["altered"]) == ("verified", found.root, [])
    add_a_file(run)
    evidence = Evidence([run], (), WORDS)
    (told,) = json.loads(report_json(page_of(evidence), evidence))["runs"]
    assert (told["files"], told["digest"], told["altered"]) == ("altered", None, ["a.csv"])
