"""What vl-convert makes: charts as SVG, and the script that draws them in a browser. The same each time, so it is kept.

A process of its own draws (vega_process.py), while the page is still being made.
"""

import hashlib
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsuishi.base import seals
from tsuishi.base.errors import UserError
from tsuishi.base.language import ENGLISH, active

if TYPE_CHECKING:
    from tsuishi.report.parts.blocks import Section

_ROOT = Path(__file__).parents[3]
_NO_FONTS = Path(__file__).with_name("fonts.conf")
# The script, where ./invoke has made it with the virtual environment.
MADE = Path(sys.prefix) / "vega.js"
# Of a piece that is kept; the script has a million.
_MOST_BYTES = 32 << 20
# Seconds in which a process ends that has closed its output.
_ENDS_IN_S = 5.0


class Drawings:
    """SVG of charts by name, and the script that draws them in a browser, made while the page still is.

    `begin` as soon as a section is there, and ask for `finished` and `runtime` when they are needed. What is made is
    kept in the folder `kept_in`, if there is one, and taken from there. The language is the active language. `at_once`:
    what draws starts now, and not when a piece has to be made: for charts that were never drawn. `every`: also the
    charts of folded sections, which the page draws itself.
    """

    def __init__(self, kept_in: Path | None, at_once: bool = False, every: bool = False) -> None:
        self._every = every
        self._kept_in = kept_in
        # Why a chart, or the script, could not be made; empty where all could.
        self.why_undrawn = ""
        self._renderer = Renderer(active())
        if at_once:
            self._renderer.start()
        self._begun: dict[str, Future[str]] = {}
        self._runtime = self._renderer.begin(runtime, kept_in, self._renderer)

    def __enter__(self) -> "Drawings":
        return self

    def __exit__(self, *error: object) -> None:
        self._renderer.end()

    def begin(self, section: "Section") -> None:
        """Begin the charts that a page shows unopened; all charts, if `every`."""
        for chart in section.charts if self._every or not section.folded else ():
            asked = chart.specification, chart.name, self._kept_in, self._renderer
            self._begun[chart.name] = self._renderer.begin(to_svg, *asked)

    def finished(self) -> dict[str, str]:
        """All that were begun and could be drawn; waits for them."""
        drawn = {name: self._result(drawing) for name, drawing in self._begun.items()}
        return {name: svg for name, svg in drawn.items() if svg}

    @property
    def runtime(self) -> str:
        """Vega, Vega-Lite and vega-embed as a single script; empty where it cannot be made."""
        return self._result(self._runtime)

    def _result(self, drawing: "Future[str]") -> str:
        try:
            return drawing.result()
        except (OSError, ValueError) as error:
            self.why_undrawn = str(error)
            return ""


class Renderer:
    """A process that draws (vega_process.py), a chart at a time.

    It starts when something has to be drawn, or by `start`: that takes a second, in which the process that asks has
    other things to do. No pool of multiprocessing or concurrent.futures: these leave a process behind until the program
    ends, and their workers outlive a program that was killed.

    In English charts are set in the font that vl-convert has in itself: they are the same on every machine. It lacks
    the letters of other languages, so these are measured with the machine's fonts; that takes twice as long.
    """

    def __init__(self, language: str = ENGLISH) -> None:
        fonts = {"FONTCONFIG_FILE": str(_NO_FONTS)} if language == ENGLISH else {}
        self._environ = {**os.environ, **fonts}
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._process: subprocess.Popen[str] | None = None
        # What the process prints beside its answers: it matters where it has ended.
        self._complaints = os.fdopen(os.memfd_create("complaints"), "r+b")

    def start(self) -> None:
        """Start the process, where the machine has room for it now."""
        with suppress(OSError):
            self._started()

    def _started(self) -> "subprocess.Popen[str]":
        if self._process is None:
            # Ctrl-C does not reach it: this process ends it. It stays in this session, because a session of its own
            # would get a full share of the processors at any nice value (sched(7), autogroup).
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tsuishi.report.output.vega_process"],
                cwd=_ROOT,
                env=self._environ,
                process_group=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                encoding="utf-8",
            )
        return self._process

    def begin(self, make: Callable[..., str], *arguments: Any, **asked: str) -> "Future[str]":
        return self._thread.submit(make, *arguments, **asked)

    def __call__(self, **asked: str) -> str:
        """What the process answers. Raises ValueError where it cannot be drawn."""
        process = self._started()
        assert process.stdin
        assert process.stdout
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
        answer = json.loads(process.stdout.readline() or json.dumps({"error": self._end_of(process)}))
        if "error" in answer:
            raise ValueError(answer["error"])
        return str(answer["text"])

    def _end_of(self, process: "subprocess.Popen[str]") -> str:
        """Why a process has ended, in words."""
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_ENDS_IN_S)
        self._complaints.seek(0)
        lines = [text.strip(" #.") for text in self._complaints.read().decode(errors="replace").splitlines()]
        said = next(filter(None, lines), "it says nothing")
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        limited = (
            f"; `ulimit -v` leaves it {limit >> 30} GiB of addresses, and it needs hundreds, of which few are used"
        )
        why = f"the process that draws has ended (exit code {process.returncode}): {said}"
        return why + (limited if limit != resource.RLIM_INFINITY else "")

    def end(self) -> None:
        """Whatever was begun is dropped, also a drawing under way."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._process:
            self._process.kill()
        # The thread may have started the process meanwhile.
        self._thread.shutdown()
        if self._process:
            self._process.kill()
            with suppress(BrokenPipeError):
                self._process.communicate()
        self._complaints.close()


def here(**asked: str) -> str:
    """Drawn in this process."""
    from tsuishi.report.output import vega_process

    return vega_process.drawn(**asked)


def to_svg(
    specification: dict[str, Any], name: str, kept_in: Path | None = None, draw: Callable[..., str] = here
) -> str:
    """A specification as SVG text. `name` goes in front of its ids, so that a page can have several SVGs."""
    text = json.dumps(specification)
    file = hashlib.sha256(f"{_version()} {text}".encode()).hexdigest() + ".svg"
    svg = kept_piece(kept_in, file, lambda: draw(draw=text))
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)


def runtime(kept_in: Path | None, draw: Callable[..., str] = here) -> str:
    """Vega, Vega-Lite and vega-embed as a single script; it takes a second to make."""
    with suppress(OSError):
        return MADE.read_text(encoding="utf-8")
    return kept_piece(kept_in, f"vega-{_version()}.js", lambda: draw())


def kept_piece(folder: Path | None, name: str, make: Callable[[], str]) -> str:
    """The text that `make` makes, from `folder` if this user kept it there: it goes into the page as it is.

    A folder that cannot be written keeps nothing, and neither does a user who can have no key.
    """
    if folder is None:
        return make()
    path, purpose = folder / name, f"report/{name}"
    with suppress(UserError):
        if (content := seals.read(path, purpose, _MOST_BYTES)) is not None:
            return content.decode()
    text = make()
    with suppress(OSError, UserError):
        folder.mkdir(parents=True, exist_ok=True)
        seals.write(path, text.encode(), purpose)
    return text


@cache
def _version() -> str:
    return version("vl-convert-python")
