"""What vl-convert makes: charts as SVG, and the script that draws them in a browser. The same each time, so it is kept.

Processes of their own draw (draw.py), while the page is still being made.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

from tsuishi.report.blocks import Section

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


class Drawings:
    """SVG of charts by name, and the script that draws them in a browser, made while the page still is.

    `begin` as soon as a section is there, and ask for `finished` and `runtime` when they are needed. What is made is
    kept in the folder `kept_in`, if there is one, and taken from there.
    """

    def __init__(self, kept_in: Path | None) -> None:
        self._kept_in = kept_in
        # vl-convert draws one chart at a time in a process; the script takes as long as a dozen charts.
        self._charts, self._script = Hand(), Hand()
        self._begun: dict[str, Future[str]] = {}
        self._runtime = self._script.begin(runtime, kept_in, self._script)

    def __enter__(self) -> "Drawings":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._charts.end()
        self._script.end()

    def begin(self, section: Section) -> None:
        for chart in section.charts:
            asked = chart.specification, chart.name, self._kept_in, self._charts
            self._begun[chart.name] = self._charts.begin(to_svg, *asked)

    def finished(self) -> dict[str, str]:
        """All that were begun; waits for them. Raises whatever a drawing raised."""
        return {name: drawing.result() for name, drawing in self._begun.items()}

    @property
    def runtime(self) -> str:
        """Vega, Vega-Lite and vega-embed as one script."""
        return self._runtime.result()


class Hand:
    """One thing after the other, by a process of its own (draw.py), which is started when it is first needed."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._process: subprocess.Popen[str] | None = None

    def begin(self, make: Callable[..., str], *arguments: Any) -> "Future[str]":
        return self._thread.submit(make, *arguments)

    def __call__(self, **asked: str) -> str:
        """What draw.py answers. Raises ValueError where it cannot be drawn."""
        if self._process is None:
            command = [sys.executable, "-m", "tsuishi.report.draw"]
            root = Path(__file__).parents[2]
            self._process = subprocess.Popen(
                command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
        assert self._process.stdin
        assert self._process.stdout
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the process that draws has ended"}')
        if "error" in answer:
            raise ValueError(answer["error"])
        return str(answer["text"])

    def end(self) -> None:
        """Whatever was begun and is not under way is dropped."""
        self._thread.shutdown(cancel_futures=True)
        if self._process:
            self._process.kill()
            with suppress(BrokenPipeError):
                self._process.communicate()


def here(**asked: str) -> str:
    """Drawn in this process."""
    from tsuishi.report import draw

    return draw.made(**asked)


def to_svg(
    specification: dict[str, Any], name: str, kept_in: Path | None = None, draw: Callable[..., str] = here
) -> str:
    """A specification as SVG text. `name` goes in front of its ids, so that several SVGs live in one page."""
    text = json.dumps(specification)
    file = hashlib.sha256(f"{_version()} {text}".encode()).hexdigest() + ".svg"
    svg = kept(kept_in, file, lambda: draw(draw=text))
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)


def runtime(kept_in: Path | None, draw: Callable[..., str] = here) -> str:
    """Vega, Vega-Lite and vega-embed as one script; it takes a second to make."""
    return kept(kept_in, f"vega-{_version()}.js", lambda: draw(bundle=_SNIPPET))


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
