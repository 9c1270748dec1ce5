"""Tables as CSV files. A process of its own writes them, while the page is being set: a large run's take a second.

Nothing heavy is imported here, so that it is ready before it is needed.
"""

import pickle
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tsuishi.base import processes
from tsuishi.results.schema import exact

# Where text would begin a formula in a spreadsheet, also in one that takes semicolons or tabs to separate cells.
_FORMULA = re.compile(r"""(?:^|(?<=[;\t\n]))(?=[\s"']*[=+\-@＝＋－＠])""")
# By name: the values of a table, which are None where there is nothing.
Columns = Mapping[str, Sequence[Any]]


class CsvFiles:
    """What is written, to be used in a `with`: its end waits for every file, and raises what writing one raised."""

    def __init__(self) -> None:
        module = "tsuishi.report.output.csv_files"
        self._process = processes.start(module, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._sent: list[Future[None]] = []

    def write(self, path: Path, columns: Columns) -> None:
        """Begin to write a file."""
        self._sent.append(self._thread.submit(self._send, path.absolute(), columns))

    def _send(self, path: Path, columns: Columns) -> None:
        assert self._process.stdin
        with suppress(BrokenPipeError):
            pickle.dump((path, columns), self._process.stdin, protocol=5)

    def __enter__(self) -> "CsvFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._wait()
        finally:
            self._process.kill()
            self._thread.shutdown(cancel_futures=True)
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe
                with suppress(BrokenPipeError):
                    pipe.close()
            self._process.wait()

    def _wait(self) -> None:
        assert self._process.stdin
        for one in self._sent:
            one.result()
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        processes.answer(self._process, "writes tables")


def text(columns: Columns) -> str:
    """A table as CSV. By columns, as csv.writer takes thrice as long for a large run's estimates."""
    cells = [[_cell(name), *_cells(values)] for name, values in columns.items()]
    return "\n".join([*map(",".join, zip(*cells, strict=True)), ""])


def _cells(values: Sequence[Any]) -> list[str]:
    kinds = set(map(type, values))
    if kinds == {float}:
        return ["" if text == "nan" else text for text in map(repr, values)]
    kinds -= {type(None)}
    if kinds <= {float, int}:
        return ["" if value is None or value != value else repr(value) for value in values]
    # Of the others there are few that are the same, and 1 is the same as True.
    if kinds in ({str}, {bool}):
        known = {value: _cell(value) for value in set(values)}
        return list(map(known.__getitem__, values))
    return list(map(_cell, values))


def _cell(value: Any) -> str:
    """A value as tables have it, in quotes where it has to be. Text is no formula; a number stays one."""
    text = "" if value is None or value != value else str(exact(value))
    if isinstance(value, str):
        text = _FORMULA.sub("'", text)
    return '"' + text.replace('"', '""') + '"' if any(special in text for special in ',"\n') else text


def _serve() -> None:
    """Write what comes on standard input until it ends."""
    try:
        while True:
            path, columns = pickle.load(sys.stdin.buffer)  # noqa: S301  from our own process
            path.write_text(text(columns), encoding="utf-8", newline="\n")
    except EOFError:
        processes.reply(None)
    except OSError as error:
        processes.reply(error)


if __name__ == "__main__":
    _serve()
