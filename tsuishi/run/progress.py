"""The display of progress while trials run."""

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
from tsuishi.specs.trial_id import TrialId


class RunProgress:
    """The progress of a run: a live line for the current trial, and lasting lines for trials that ended.

    A terminal gets lasting lines for trials that did not end well, other outputs for all trials. Unsupported cases have
    a line per environment at the end.
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
        # Expected seconds of the current trial, and of all trials that have not ended; when the current trial began.
        self._trial_s = 0.0
        self._trials_s = sum(trial.expected_s for trial in left)
        self._begun = time.monotonic()
        # The number and the description of each trial that has begun, by its planned id.
        self._numbers: dict[TrialId, int] = {}
        self._described: dict[TrialId, str] = {}
        # Reasons of unsupported cases, by environment and case.
        self._unsupported: dict[str, dict[str, str]] = {}
        self._task: TaskID = progress.add_task("", total=None, phase="", left=self.left)

    def left(self) -> str:
        """The time until the report, in words: the limit, if time is limited, else the expected time.

        The current trial reduces the expected time by at most its own expected duration.
        """
        if self._until_s:
            limit = duration(max(0.0, self._until_s()))
            return f"report in {limit} at most" if self._after_s else f"{limit} left at most"
        seconds = self._trials_s - min(self._trial_s, time.monotonic() - self._begun) + self._after_s
        return f"report in {duration(seconds)}" if self._after_s else f"{duration(seconds)} left"

    def more(self, trials: Sequence[PlannedTrial]) -> None:
        """Count further trials, which were added to the plan."""
        self._total += len(trials)
        self._trials_s += sum(trial.expected_s for trial in trials)

    def waits(self, why: str) -> None:
        self._console.print(Text(line(why)))

    def trial_begins(self, trial: PlannedTrial, attempt: int) -> None:
        if trial.id not in self._numbers:
            self._number += 1
        number = self._numbers.setdefault(trial.id, self._number)
        self._trial_s, self._begun = trial.expected_s, time.monotonic()
        again = f" (attempt {attempt})" if attempt > 1 else ""
        self._described[trial.id] = description = f"[{number}/{self._total}] {trial.id}{again}"
        self._progress.update(self._task, description=description, phase="starts")

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
            parts = line(self._described[trial.id]), " ", (line(status), colour), line(tail)
            self._console.print(Text.assemble(*parts))

    def sum_up(self) -> None:
        """Print a line for each environment with unsupported cases, the most frequent reasons first."""
        for environment, reasons in sorted(self._unsupported.items()):
            count = f"{len(reasons)} case{'s' * (len(reasons) > 1)}"
            common = Counter(map(_in_short, reasons.values())).most_common()
            grouped = ", ".join(f"{reason}: {number}" for reason, number in common)
            self._console.print(Text(line(f"unsupported: {count} in {environment} ({grouped})")))


def _in_short(reason: str) -> str:
    """The first part of a reason: what is unsupported. The report has the rest.

    >>> _in_short("Unsupported: precision 'amp_fp16': PyTorch 1.1.0 has none (1.6 and newer do)")
    "precision 'amp_fp16'"
    """
    return re.split("[:;] ", reason.removeprefix("Unsupported: "), maxsplit=1)[0]


class _LeftColumn(ProgressColumn):
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
    """Show the progress of trials. left: the trials to run, of `total` planned trials.

    after_s: seconds that the report takes after the last trial. until_s: gives the seconds that are left, if time is
    limited.
    """
    with _progress(screen.console) as progress:
        shown = RunProgress(screen.console, progress, left, total, after_s, until_s)
        try:
            yield shown
        finally:
            shown.sum_up()


def _progress(console: Console) -> Progress:
    """A line as wide as the terminal, in which only the trial's id is shortened."""
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
