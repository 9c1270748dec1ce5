"""What a report says of the files of its runs: how far they were verified, on the page and in report.json."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.report.compared import page_of
from tests.synthetic_run import write_example
from tests.words import WORDS
from tsuishi.base.language import speaking
from tsuishi.report.output.json_data import report_json
from tsuishi.report.parts.wording import Table
from tsuishi.results.directory import RunDirectory
from tsuishi.results.hash_chain import HashChain
from tsuishi.results.verification import verify
from tsuishi.verdicts.evidence import Evidence


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run with a chain."""
    run = write_example(tmp_path / "run")
    run.gather(WORDS)
    HashChain(run.path).add([*run.files(), *(f"trials/{folder.name}/trial.json" for folder in run.finished_folders())])
    return run


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


def nothing(run: RunDirectory) -> None:
    pass


def lose_the_chain(run: RunDirectory) -> None:
    (run.path / "chain.jsonl").unlink()


def add_files(run: RunDirectory) -> None:
    for name in "dcba":
        (run.path / f"{name}.csv").write_text("a\n")


def add_a_file(run: RunDirectory) -> None:
    (run.path / "a.csv").write_text("a\n")


@pytest.mark.parametrize(
    ("change", "english", "japanese"),
    [
        (nothing, "tables verified", "表のみ検証済み"),
        (lose_the_chain, "older than verification", "検証機能より前の実行"),
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
