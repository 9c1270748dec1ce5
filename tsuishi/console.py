"""What a person sees while work goes on: live with a terminal, plain lines without one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tsuishi.fetching.artifacts import Momentary
from tsuishi.plan import PlannedBuild, PlannedTrial
from tsuishi.printable import line
from tsuishi.run_progress import LineColumn, RunProgress, run_progress
from tsuishi.units import age as age
from tsuishi.units import duration as duration
from tsuishi.units import megabytes as megabytes

# Columns where output goes to a file or a pipe, so that tables do not fold at 80.
_WIDTH_OF_A_FILE = 200
# Of a line that a build prints, in a file; what else is on its line in a terminal.
_LINE, _BESIDE_NOTE = 160, 36


class Screen:
    """Standard output of one call."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True, emoji=False)
        if not self.console.is_terminal:
            self.console.width = _WIDTH_OF_A_FILE

    def say(self, text: str) -> None:
        """One line."""
        self.console.print(Text(line(text)))

    def table(self, title: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table; columns whose every cell is a number or a size are set right."""
        table = Table(title=Text(line(title), "bold"), title_justify="left", box=None, pad_edge=False)
        for index, header in enumerate(headers):
            numeric = all(isinstance(row[index], int | float) for row in rows)
            table.add_column(Text(line(header)), justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(line(cell)) for cell in row))
        self.console.print(table)

    @contextmanager
    def working(self, doing: str, names: Sequence[str]) -> Iterator[dict[str, "WorkProgress"]]:
        """Show several things being done, a live line each; they may be told of from any thread."""
        with _progress(self.console) as progress:
            yield {name: WorkProgress(self, progress, f"{doing} {name}", name) for name in names}

    @contextmanager
    def fetching(self, name: str) -> Iterator["WorkProgress"]:
        """Show one file being fetched."""
        with self.working("fetching", [name]) as lines:
            lines[name].begins()
            yield lines[name]
            lines[name].ends()

    @contextmanager
    def moving(self, doing: str, size: int) -> Iterator[Callable[[int], None]]:
        """Show so many bytes on their way; gives what is to be told the size of each piece."""
        with _progress(self.console) as progress:
            task = progress.add_task(doing, total=size, note="")
            yield lambda piece: progress.advance(task, piece)

    @contextmanager
    def running(
        self,
        left: Sequence[PlannedTrial],
        total: int,
        after_s: float = 0.0,
        until_s: Callable[[], float] | None = None,
    ) -> Iterator["RunProgress"]:
        """Show trials being run: those left of so many. The report takes `after_s` seconds after the last of them.

        until_s: where time is limited, the seconds that are left of it.
        """
        with run_progress(self.console) as progress:
            shown = RunProgress(self.console, progress, left, total, after_s, until_s)
            try:
                yield shown
            finally:
                shown.sum_up()


class WorkProgress:
    """One environment or file on its way: lines of the build, bytes of the downloads."""

    def __init__(self, screen: Screen, progress: Progress, doing: str, name: str) -> None:
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
            self._progress.update(self._task, note=line(text)[: self._room])
        elif not isinstance(text, Momentary):
            self._screen.say(f"  {self._name}: {text[:_LINE]}")

    def downloaded(self, size: int) -> None:
        self.bytes += size
        self._progress.update(self._task, note=f"{megabytes(self.bytes)} fetched")


def print_builds(screen: Screen, planned: Sequence[PlannedBuild], left_out: dict[str, str]) -> None:
    """The environments of a plan: what is there, what is to be fetched and built, what is left out and why."""
    rows = [
        (
            build.environment.name,
            build.engine,
            "built" if build.built else "to build",
            f"{build.downloads} files, {megabytes(build.download_bytes)}" if build.downloads else "nothing",
            megabytes(build.size_bytes),
            duration(build.expected_s),
        )
        for build in planned
    ]
    screen.table("Environments", ("environment", "engine", "state", "to fetch", "size", "time"), rows)
    for name, reason in left_out.items():
        screen.say(f"left out: {name}: {reason}")


def print_trials(screen: Screen, planned: Sequence[PlannedTrial]) -> None:
    """The trials of a plan, summed up per environment and suite."""
    groups: dict[tuple[str, str, str], list[PlannedTrial]] = {}
    for trial in planned:
        groups.setdefault((trial.environment, trial.case.suite, trial.accelerator), []).append(trial)
    rows = [
        (*key, len({t.case.id for t in trials}), len(trials), duration(sum(t.expected_s for t in trials)))
        for key, trials in sorted(groups.items())
    ]
    screen.table("Trials", ("environment", "suite", "on", "cases", "trials", "time"), rows)


def _progress(console: Console) -> Progress:
    return Progress(
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
