"""What a person sees while trials run."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TaskID
from rich.table import Column
from rich.text import Text

from tsuishi.base.printable import line
from tsuishi.base.screen import LineColumn, Screen
from tsuishi.base.units import duration
from tsuishi.plan.trials import PlannedTrial
from tsuishi.specs.statuses import OK, STATUSES, UNSUPPORTED


class RunProgress:
    """A run on its way: a live line for the trial at hand, and a line for each that a person should know of.

    In a terminal those are the trials that did not end well, elsewhere all of them; unsupported cases are summed up.
    """

    def __init__(
        self,
        console: Console,
        progress: Progress,
        left: Sequence[PlannedTrial],
        total: int,
        after_s: float,
        until_s: Callable[[], float] | None = None,
    ) -> None:
        self._console = console
        self._progress = progress
        self._number = total - len(left)
        self._total = total
        self._after_s = after_s
        self._until_s = until_s
        # Seconds expected of the trial at hand, of it and all behind it; when it began.
        self._trial_s = 0.0
        self._trials_s = sum(trial.expected_s for trial in left)
        self._begun = time.monotonic()
        # Reasons by environment and case.
        self._unsupported: dict[str, dict[str, str]] = {}
        self._task: TaskID = progress.add_task("", total=None, phase="", left=self.left)

    def left(self) -> str:
        """The time until the report is there, at most where time is limited.

        Else as expected; a trial takes up at most what was expected of it.
        """
        if self._until_s:
            return f"report in {duration(max(0.0, self._until_s()))} at most"
        seconds = self._trials_s - min(self._trial_s, time.monotonic() - self._begun) + self._after_s
        return f"report in {duration(seconds)}" if self._after_s else f"{duration(seconds)} left"

    def more(self, trials: Sequence[PlannedTrial]) -> None:
        """Trials come to those that were planned before."""
        self._total += len(trials)
        self._trials_s += sum(trial.expected_s for trial in trials)

    def waits(self, why: str) -> None:
        self._console.print(Text(line(why)))

    def trial_begins(self, trial: PlannedTrial, attempt: int) -> None:
        self._number += 1
        self._trial_s, self._begun = trial.expected_s, time.monotonic()
        again = f" (attempt {attempt})" if attempt > 1 else ""
        self._description = f"[{self._number}/{self._total}] {trial.id}{again}"
        self._progress.update(self._task, description=self._description, phase="starts")

    def phase(self, name: str) -> None:
        self._progress.update(self._task, phase=name)

    def trial_ends(self, trial: PlannedTrial, status: str, reason: str, duration_s: float) -> None:
        self._trials_s = max(0.0, self._trials_s - trial.expected_s)
        self._trial_s = 0.0
        if status == UNSUPPORTED:
            self._unsupported.setdefault(trial.environment, {})[trial.case.id] = reason
        elif status != OK or not self._console.is_terminal:
            colour = STATUSES[status].colour if status in STATUSES else "default"
            tail = f" {duration_s:.1f} s: {reason}" if reason else f" {duration_s:.1f} s"
            parts = line(self._description), " ", (line(status), colour), line(tail)
            self._console.print(Text.assemble(*parts))

    def sum_up(self) -> None:
        """A line for each environment with cases that it cannot run, the most frequent reasons first."""
        for environment, reasons in sorted(self._unsupported.items()):
            count = f"{len(reasons)} case{'s' * (len(reasons) > 1)}"
            common = Counter(map(_in_short, reasons.values())).most_common()
            grouped = ", ".join(f"{reason}: {number}" for reason, number in common)
            self._console.print(Text(line(f"unsupported: {count} in {environment} ({grouped})")))


def _in_short(reason: str) -> str:
    """The part of a reason that says what cannot be; why, and what would run, is in the report.

    >>> _in_short("Unsupported: precision 'amp_fp16': PyTorch 1.1.0 has none (1.6 and newer do)")
    "precision 'amp_fp16'"
    """
    return re.split("[:;] ", reason.removeprefix("Unsupported: "), maxsplit=1)[0]


class _LeftColumn(ProgressColumn):
    """The time left, counted down."""

    def render(self, task: Task) -> Text:
        return Text(task.fields["left"](), style="cyan")


@contextmanager
def running(
    screen: Screen,
    left: Sequence[PlannedTrial],
    total: int,
    after_s: float = 0.0,
    until_s: Callable[[], float] | None = None,
) -> Iterator[RunProgress]:
    """Show trials being run: those left of so many. The report takes `after_s` seconds after the last of them.

    until_s: where time is limited, the seconds that are left of it.
    """
    with _progress(screen.console) as progress:
        shown = RunProgress(screen.console, progress, left, total, after_s, until_s)
        try:
            yield shown
        finally:
            shown.sum_up()


def _progress(console: Console) -> Progress:
    """One line as wide as the terminal, in which only the trial's id is cut short."""
    return Progress(
        SpinnerColumn(),
        LineColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        LineColumn("{task.fields[phase]} ·", table_column=Column(no_wrap=True)),
        _LeftColumn(table_column=Column(no_wrap=True)),
        console=console,
        expand=True,
        transient=True,
        redirect_stderr=False,
        disable=not console.is_terminal,
    )
