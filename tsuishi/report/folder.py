"""The report: runs and published numbers as one page, one Markdown file, charts and tables.

A pure function of run directories, reports/published and templates: the same inputs give the same bytes, on any day
and in any directory.
"""

import csv
import gc
import io
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from tsuishi.analysis.evidence import Evidence
from tsuishi.errors import UserError
from tsuishi.published import read_sources
from tsuishi.report import columns, data
from tsuishi.report.drawing import Drawings, runtime
from tsuishi.report.page import Page
from tsuishi.report.tables import exact
from tsuishi.report.typeset import as_html, as_markdown
from tsuishi.store import RunDirectory

_MEMBERS = {"index.html", "report.md", "report.json", data.SCHEMA_FILE, "charts", "tables"}


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the collector of cycles: there are none worth it, and to look for them takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_uncollected()
def make_report(
    runs: Sequence[RunDirectory], published: Path, templates: Path, out: Path, cache: Path | None = None
) -> Path:
    """Write index.html, report.md, charts/ and tables/ of these runs into `out`; returns index.html.

    Whatever was in `out` is replaced once the new report is complete, and stays if it cannot be made. What is slow to
    make and the same each time is kept in `cache`, if there is one. Raises UserError where there are no runs, a file is
    unreadable, or `out` holds something that is no report.
    """
    if not runs:
        raise UserError("no run to report on: make one with `invoke run-suite`")
    if out.exists() and not (out.is_dir() and {path.name for path in out.iterdir()} <= _MEMBERS):
        raise UserError(f"{out} holds something that is no report, which would be lost; give another directory")
    evidence = Evidence(runs, read_sources(published))
    kept_in = cache and cache / "report"
    with Drawings(kept_in) as drawings, _replacing(out) as fresh:
        page = Page(evidence, drawings.begin)
        for name in ("charts", "tables"):
            (fresh / name).mkdir()
        for name, frame in page.tables.items():
            _write(fresh / "tables" / f"{name}.csv", _csv(frame))
        _write(fresh / "tables" / "datapackage.json", columns.data_package(evidence))
        _write(fresh / "report.json", data.report_json(page, evidence))
        _write(fresh / data.SCHEMA_FILE, data.report_schema())
        _write(fresh / "report.md", as_markdown(page, templates))
        svg = drawings.finished()
        for name, drawing in svg.items():
            _write(fresh / "charts" / f"{name}.svg", _standalone(drawing))
        _write(fresh / "index.html", as_html(page, svg, templates, runtime(kept_in)))
    return out / "index.html"


def _standalone(svg: str) -> str:
    """An SVG with a colour of its own, for where no page gives it one."""
    style = "<style>svg{color:#333}@media(prefers-color-scheme:dark){svg{color:#ddd}}</style>"
    return svg.replace(">", ">" + style, 1)


def _csv(frame: pd.DataFrame, as_it_is: frozenset[type] = frozenset({int, float, str, type(None)})) -> str:
    """A frame as tables have it; what is of these types, the writer writes so anyway."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(frame.columns)
    columns = (frame[name].astype("object").where(frame[name].notna(), None).tolist() for name in frame)
    values = ([value if type(value) in as_it_is else exact(value) for value in column] for column in columns)
    writer.writerows(zip(*values, strict=True))
    text = file.getvalue()
    # A text's carriage returns are ends of lines (see csv_value): one by one, where there are any.
    return _csv(frame, as_it_is - {str}) if "\r" in text and str in as_it_is else text


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """A fresh directory beside `out` that takes its place when the block ends well, and vanishes when it does not."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial, old = (out.with_name(f".{out.name}.{word}-{os.getpid()}") for word in ("partial", "old"))
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        if out.exists():
            out.rename(old)
        partial.rename(out)
    finally:
        if old.exists() and not out.exists():
            old.rename(out)
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
