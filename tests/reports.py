"""Reports of which no chart is drawn twice: whatever one test drew, another takes from there."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path

from tests.words import WORDS
from tsuishi.report.output import folder
from tsuishi.report.output.vega import Drawings
from tsuishi.results.directory import RunDirectory

# The variable that names the folder of these tests' drawings; conftest.py sets it.
KEPT_IN = "TSUISHI_TESTS_DRAWINGS"


def make_report(runs: Sequence[RunDirectory], published: Path, templates: Path, out: Path) -> Path:
    """As report.folder.make_report does, with drawings that are kept."""
    with Drawings(Path(os.environ[KEPT_IN])) as drawings:
        index = folder.make_report(runs, published, WORDS, templates, out, drawings).file
        assert not drawings.why_undrawn
        return index


def markdown_of(out: Path) -> str:
    """The Markdown of a report, its details too."""
    return "".join((out / name).read_text(encoding="utf-8") for name in ("report.md", "details.md"))


def table_of(out: Path, name: str) -> list[dict[str, str]]:
    """The rows of a table of a report."""
    with (out / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def keep_drawings(cache: Path) -> None:
    """Have `invoke report` with this cache use them too."""
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "report").symlink_to(os.environ[KEPT_IN])
