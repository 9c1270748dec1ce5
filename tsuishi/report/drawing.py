"""What vl-convert makes: charts as SVG, and the script that draws them in a browser. The same each time, so it is kept.

Charts are drawn while the page is still being made: vl-convert draws in a thread of its own and Python goes on.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

import vl_convert

from tsuishi.report.blocks import Section


class Drawings:
    """SVG of charts by name: `begin` as soon as a section is there, and ask for `finished` when they are needed.

    Drawings are kept in the folder `kept_in`, if there is one.
    """

    def __init__(self, kept_in: Path | None) -> None:
        self._kept_in = kept_in
        # vl-convert draws one chart at a time, however many ask.
        self._hand = ThreadPoolExecutor(max_workers=1)
        self._begun: dict[str, Future[str]] = {}

    def __enter__(self) -> "Drawings":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hand.shutdown(cancel_futures=True)

    def begin(self, section: Section) -> None:
        for chart in section.charts:
            self._begun[chart.name] = self._hand.submit(to_svg, chart.specification, chart.name, self._kept_in)

    def finished(self) -> dict[str, str]:
        """All that were begun; waits for them. Raises whatever a drawing raised."""
        return {name: drawing.result() for name, drawing in self._begun.items()}


def to_svg(specification: dict[str, Any], name: str, kept_in: Path | None = None) -> str:
    """A specification as SVG text. `name` goes in front of its ids, so that several SVGs live in one page."""
    text = json.dumps(specification)
    file = hashlib.sha256(f"{_version()} {text}".encode()).hexdigest() + ".svg"
    svg = kept(kept_in, file, lambda: str(vl_convert.vegalite_to_svg(text)))
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)


def runtime(kept_in: Path | None) -> str:
    """Vega, Vega-Lite and vega-embed as one script; it takes a second to make."""
    return kept(kept_in, f"vega-{_version()}.js", _bundle)


def kept(folder: Path | None, name: str, make: Callable[[], str]) -> str:
    """The text that `make` makes, from `folder` if it is there; a folder that cannot be written keeps nothing."""
    if folder is None:
        return make()
    path = folder / name
    if path.is_file():
        return path.read_text(encoding="utf-8")
    text = make()
    partial = path.with_name(f".{name}.{os.getpid()}")
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8", newline="\n")
        partial.replace(path)
    return text


@cache
def _version() -> str:
    return version("vl-convert-python")


@cache
def _bundle() -> str:
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
