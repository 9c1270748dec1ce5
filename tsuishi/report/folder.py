"""The report: runs and published numbers as one page, one Markdown file, charts and tables.

A pure function of run directories, reports/published and templates: the same inputs give the same bytes, on any day
and in any directory.
"""

import csv
import html
import io
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args

import jinja2
import pandas as pd
from markupsafe import Markup

from tsuishi.analysis.evidence import Evidence
from tsuishi.errors import UserError
from tsuishi.published import read_sources
from tsuishi.report.blocks import Block
from tsuishi.report.charts import to_svg
from tsuishi.report.language import active, t
from tsuishi.report.page import Page
from tsuishi.report.tables import exact
from tsuishi.store import RunDirectory

_MEMBERS = {"index.html", "report.md", "charts", "tables"}


def make_report(runs: Sequence[RunDirectory], published: Path, templates: Path, out: Path) -> Path:
    """Write index.html, report.md, charts/ and tables/ of these runs into `out`; returns index.html.

    Whatever was in `out` is replaced once the new report is complete, and stays if it cannot be made. Raises UserError
    where there are no runs, a file is unreadable, or `out` holds something that is no report.
    """
    if not runs:
        raise UserError("no run to report on: make one with `invoke run-suite`")
    if out.exists() and not (out.is_dir() and {path.name for path in out.iterdir()} <= _MEMBERS):
        raise UserError(f"{out} holds something that is no report, which would be lost; give another directory")
    page = Page(Evidence(runs, read_sources(published)))
    with _replacing(out) as fresh:
        for name in ("charts", "tables"):
            (fresh / name).mkdir()
        drawings = {chart.name: to_svg(chart.specification, chart.name) for chart in page.charts}
        for name, svg in drawings.items():
            _write(fresh / "charts" / f"{name}.svg", _standalone(svg))
        for name, frame in page.tables.items():
            _write(fresh / "tables" / f"{name}.csv", _csv(frame))
        for name in ("index.html", "report.md"):
            _write(fresh / name, _render(page, drawings, templates, name))
    return out / "index.html"


def _render(page: Page, drawings: dict[str, str], templates: Path, name: str) -> str:
    """The page as HTML or Markdown; everything in it is escaped for the format, unless it is Markup."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        autoescape=True,
        finalize=markdown if name.endswith(".md") else None,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["as_is"] = Markup
    environment.tests |= {kind.__name__.lower(): partial(_is_a, kind) for kind in get_args(Block)}
    svg = {name: Markup(text) for name, text in drawings.items()}  # noqa: S704  vl-convert escapes its text
    template = environment.get_template(f"report{Path(name).suffix}.j2")
    return template.render(page=page, svg=svg, t=t, language=active())


def _is_a(kind: type, block: object) -> bool:
    return isinstance(block, kind)


def markdown(value: Any) -> str:
    """Text that stands for itself in Markdown, in a table too; what is Markup stays as it is."""
    if isinstance(value, Markup):
        return value
    text = html.escape(" ".join(str(value).split()), quote=False)
    return Markup(re.sub(r"([\\`*_\[\]|~#])", r"\\\1", text))  # noqa: S704  escaped in this line


def _standalone(svg: str) -> str:
    """An SVG with a colour of its own, for where no page gives it one."""
    style = "<style>svg{color:#333}@media(prefers-color-scheme:dark){svg{color:#ddd}}</style>"
    return svg.replace(">", ">" + style, 1)


def _csv(frame: pd.DataFrame) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(frame.columns)
    for row in frame.itertuples(index=False):
        writer.writerow(["" if pd.isna(value) else exact(value) for value in row])
    return file.getvalue()


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
