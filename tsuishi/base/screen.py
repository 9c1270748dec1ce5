"""Output for a person while work goes on: live displays in a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Literal

from rich import progress as rich_progress
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tsuishi.base.errors import EXIT_UNREAD
from tsuishi.base.printable import line
from tsuishi.base.redaction import redacted
from tsuishi.base.typed import as_typed
from tsuishi.base.units import megabytes

# Columns of output to a file or a pipe, so that tables do not fold at 80.
_WIDTH_OF_A_FILE = 200
# Characters of a build's line that go to a file.
_LINE = 160
# Columns that a live line needs beside its note.
_BESIDE_NOTE = 36
# Characters of a word that a table does not break, however narrow it is.
_LONGEST_WORD = 24

Say = Callable[[str], None]
# Called with the bytes that have arrived; negative where some of them are given up again.
Progress = Callable[[int], None]


def safe(value: object) -> str:
    """A text on one line, safe to print though others may have written it, without what has the form of a secret.

    Its commands are as they are typed here.
    """
    return as_typed(line(redacted(str(value))))


class Momentary(str):
    """A line that matters only for the moment: live displays show it, logs leave it out."""


class _UntilUnread(Console):
    """A console that ends the command when its reader is gone, as `head` may be."""

    def on_broken_pipe(self) -> None:
        with suppress(SystemExit):  # with 1, as a mistake has it
            super().on_broken_pipe()
        raise SystemExit(EXIT_UNREAD)


class Screen:
    """The standard output of a command."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or _UntilUnread(highlight=False, soft_wrap=True, emoji=False)
        if not self.console.is_terminal:
            self.console.width = _WIDTH_OF_A_FILE
        elif self.console.is_dumb_terminal:  # it cannot move its cursor (a shell in Emacs): plain lines, as in a file
            file = self.console.file
            self.console = Console(file=file, force_terminal=False, highlight=False, soft_wrap=True, emoji=False)

    def say(self, text: str) -> None:
        """Print one line."""
        self.console.print(Text(safe(text)))

    @property
    def can_ask(self) -> bool:
        """Whether a person sits at a terminal and can answer."""
        return self.console.is_terminal and sys.stdin.isatty()

    def ask(self, text: str) -> str:
        """The line that a person types; empty at the end of input."""
        with suppress(EOFError):
            return self.console.input(Text(safe(text)))
        return ""

    def table(self, title: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table; a column of numbers only is aligned to the right."""
        texts = [[safe(cell) for cell in row] for row in rows]
        table = Table(title=Text(safe(title), "bold"), title_justify="left", box=None, pad_edge=False)
        for index, header in enumerate(headers):
            numeric = all(isinstance(row[index], int | float) for row in rows)
            words = (word for row in texts for word in row[index].split(" "))
            longest = min(_LONGEST_WORD, max(map(len, words), default=0))  # words that long are not broken inside
            justify: Literal["left", "right"] = "right" if numeric else "left"
            table.add_column(Text(safe(header)), justify=justify, overflow="fold", min_width=longest)
        for row in texts:
            table.add_row(*map(Text, row))
        self.console.print(table)

    @contextmanager
    def working(self, doing: str, names: Sequence[str]) -> Iterator[dict[str, "WorkProgress"]]:
        """Show a live line for each name; any thread may update it."""
        with _progress(self.console) as progress:
            yield {name: WorkProgress(self, progress, f"{doing} {name}", name) for name in names}

    @contextmanager
    def fetching(self, name: str) -> Iterator["WorkProgress"]:
        """Show a live line for a file that is fetched."""
        with self.working("fetching", [name]) as lines:
            lines[name].begins()
            yield lines[name]
            lines[name].ends()

    @contextmanager
    def moving(self, doing: str, size: int) -> Iterator[Callable[[int], None]]:
        """Show how far work on `size` bytes is. Gives a function to call with the size of each piece."""
        with _progress(self.console) as progress:
            task = progress.add_task(doing, total=size, note="")
            yield lambda piece: progress.advance(task, piece)


class WorkProgress:
    """The live line of an environment or a file: the last line of its build, the bytes of its downloads."""

    def __init__(self, screen: Screen, progress: rich_progress.Progress, doing: str, name: str) -> None:
        self._screen = screen
        self._progress = progress
        self._name = name
        self.bytes = 0
        self._room = max(10, screen.console.width - len(doing) - _BESIDE_NOTE)
        self._task: TaskID = progress.add_task(doing, start=False, total=None, note="waits")

    def begins(self) -> None:
        self._progress.start_task(self._task)
        self._progress.update(self._task, note="")

    def ends(self) -> None:
        self._progress.remove_task(self._task)
        if self.bytes and not self._screen.console.is_terminal:
            self._screen.say(f"  {self._name}: {megabytes(self.bytes)} fetched")

    def say(self, text: str) -> None:
        if self._screen.console.is_terminal:
            self._progress.update(self._task, note=safe(text)[: self._room])
        elif not isinstance(text, Momentary):
            self._screen.say(f"  {self._name}: {redacted(text)[:_LINE]}")

    def downloaded(self, size: int) -> None:
        self.bytes += size
        self._progress.update(self._task, note=f"{megabytes(self.bytes)} fetched")


class LineColumn(TextColumn):
    """A text as `safe` has it."""

    def render(self, task: Task) -> Text:
        return Text(safe(self.text_format.format(task=task)))


def _progress(console: Console) -> rich_progress.Progress:
    return rich_progress.Progress(
        SpinnerColumn(),
        LineColumn("{task.description}"),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        LineColumn("{task.fields[note]}"),
        console=console,
        transient=True,
        redirect_stderr=False,
        disable=not console.is_terminal,
    )
