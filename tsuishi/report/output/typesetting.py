"""The page, set by templates: as one HTML file that holds all it needs, and as Markdown."""

import re
from collections.abc import Callable, Container, Iterator
from functools import cache, wraps
from operator import attrgetter
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from tsuishi.base.language import active, t
from tsuishi.base.typed import as_typed
from tsuishi.report.output import interactive
from tsuishi.report.parts.blocks import Chart, Page
from tsuishi.report.parts.wording import Table

BASELINE = "baseline.md"
# What stands for the characters that mean something in Markdown.
_MARKDOWN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {sign: f"\\{sign}" for sign in "\\`*_[]|~#"})
# A command in a text, set as code in both formats. Texts of runs may contain any command: it has no sign of a format.
_COMMAND = re.compile(r"(`(?:[^`<>&|\\\s]*/)?(?:invoke|inv|tsuishi) [^`<>&|\\\n]+`)")
# What templates show of a cell.
_SHOWN = attrgetter("kind", "best", "tone", "exact", "text", "notes")


def as_html(page: Page, drawings: dict[str, str], templates: Path, vega: str) -> str:
    """The page with its style, scripts and charts; its policy names the style and the scripts by their digests."""
    style, controls = ((templates / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    template = _environment(templates, html).get_template("report.html.j2")
    return template.render(
        page=page,
        svg={name: Markup(text) for name, text in drawings.items()},  # noqa: S704  vl-convert escapes its text
        charts={
            block.name: _live(block)
            for section in page.sections
            for block in section.blocks
            if isinstance(block, Chart)
        },
        style=Markup(style),  # noqa: S704  ours
        scripts=[Markup(vega), Markup(controls)],  # noqa: S704  Vega's and ours
        style_digest=interactive.policy_digest(style),
        script_digests=" ".join(map(interactive.policy_digest, (vega, controls))),
    )


def _live(chart: Chart) -> dict[str, Any]:
    """A chart that answers; unchanged where an explanation draws it in another form."""
    try:
        return interactive.live(chart.specification)
    except (AttributeError, KeyError, TypeError):
        return chart.specification


def as_markdown(page: Page, templates: Path, drawn: Container[str]) -> dict[str, str]:
    """The page as it looks right on a code forge, with charts/ beside it, by the name of the file.

    report.md has what the page shows unopened, details.md the rest. BASELINE has the section of a baseline by itself,
    without charts: what CI shows beside a job. drawn: the charts that are in charts/.
    """
    environment = _environment(templates, markdown)
    template = environment.get_template("report.md.j2")
    parts = {"report.md": False, "details.md": True}
    texts = {name: template.render(page=page, folded=folded, drawn=drawn) for name, folded in parts.items()}
    if page.baseline:
        section = next(section for section in page.sections if section.anchor == page.baseline.anchor)
        texts[BASELINE] = environment.get_template("report.section.md.j2").render(section=section)
    return {name: re.sub(r"\n{3,}", "\n\n", text) for name, text in texts.items()}


def _environment(templates: Path, finalize: Callable[[Any], str]) -> jinja2.Environment:
    """What templates can use; everything they show is escaped for the format, unless it is Markup."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        autoescape=True,
        finalize=finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = interactive.JSON
    environment.filters |= {
        "as_is": Markup,
        "as_typed": as_typed,
        "cells": _cells,
        "with_code": with_code,
        "packed": interactive.packed_json,
        "explorer": interactive.explorer,
    }
    environment.globals |= {"t": t, "language": active()}
    return environment


def _cells(table: Table) -> Iterator[list[tuple[Any, ...]]]:
    """The cells of every row, as tuples, which templates take apart faster than they ask for attributes.

    Of each: whether it is its row's head, whether its column is set flush right and begins a group, and the cell's own.
    """
    columns = [(index == 0, *column) for index, column in enumerate(zip(table.numeric, table.begins, strict=True))]
    for row in table.rows:
        yield [(*column, *_SHOWN(cell)) for column, cell in zip(columns, row, strict=True)]


def _escaping(escape_text: Callable[[str], Markup]) -> Callable[[Any], Markup]:
    """A function of any value: Markup stays unchanged. Tables repeat most of their texts, so each is escaped once."""
    escaped = cache(escape_text)

    @wraps(escape_text)
    def shown(value: Any) -> Markup:
        return value if isinstance(value, Markup) else escaped(str(value))

    return shown


@_escaping
def html(text: str) -> Markup:
    """Text, escaped for HTML."""
    return escape(as_typed(text))


@_escaping
def with_code(text: str) -> Markup:
    """Text as by `html`, with its commands as code."""
    return Markup(_COMMAND.sub(lambda found: f"<code>{found[0].strip('`')}</code>", html(text)))  # noqa: S704  escaped


@_escaping
def markdown(text: str) -> Markup:
    """Text, escaped for Markdown, also for tables."""
    parts = _COMMAND.split(as_typed(" ".join(text.split())))
    parts[::2] = [part.translate(_MARKDOWN) for part in parts[::2]]
    return Markup("".join(parts))  # noqa: S704  escaped in the line before
