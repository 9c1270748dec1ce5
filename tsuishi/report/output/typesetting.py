"""The page, set by templates: as one HTML file that holds all it needs, and as Markdown."""

import html
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, get_args

import jinja2
from markupsafe import Markup

from tsuishi.base.language import active, t
from tsuishi.report.output import interactive
from tsuishi.report.parts.blocks import Block, Page


def as_html(page: Page, drawings: dict[str, str], templates: Path, vega: str) -> str:
    """The page with its style, scripts and charts; its policy names the style and the scripts by their digests."""
    style, controls = ((templates / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    template = _environment(templates).get_template("report.html.j2")
    return template.render(
        page=page,
        svg={name: Markup(text) for name, text in drawings.items()},  # noqa: S704  vl-convert escapes its text
        charts={
            chart.name: interactive.live(chart.specification) for section in page.sections for chart in section.charts
        },
        style=Markup(style),  # noqa: S704  ours
        scripts=[Markup(vega), Markup(controls)],  # noqa: S704  Vega's and ours
        style_digest=interactive.digest(style),
        script_digests=" ".join(map(interactive.digest, (vega, controls))),
    )


def as_markdown(page: Page, templates: Path) -> str:
    """The page as it looks right on a code forge, with charts/ beside it."""
    text = _environment(templates, markdown).get_template("report.md.j2").render(page=page)
    return re.sub(r"\n{3,}", "\n\n", text)


def _environment(templates: Path, finalize: Callable[[Any], Any] | None = None) -> jinja2.Environment:
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
    environment.filters["as_is"] = Markup
    environment.tests |= {kind.__name__.lower(): partial(_is_a, kind) for kind in get_args(Block)}
    environment.filters |= {
        "embedded": interactive.embedded,
        "packed": interactive.packed,
        "explorer": interactive.explorer,
    }
    environment.globals |= {"t": t, "language": active()}
    return environment


def _is_a(kind: type, block: object) -> bool:
    return isinstance(block, kind)


def markdown(value: Any) -> str:
    """Text that stands for itself in Markdown, in a table too; what is Markup stays as it is."""
    return value if isinstance(value, Markup) else _escaped(str(value))


# Most of what tables say they say many times.
@cache
def _escaped(text: str) -> Markup:
    text = html.escape(" ".join(text.split()), quote=False)
    return Markup(re.sub(r"([\\`*_\[\]|~#])", r"\\\1", text))  # noqa: S704  escaped in this line
