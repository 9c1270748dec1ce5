"""Executors run the trials of a run. The executor here runs them on this machine, each after the other."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import EngineLost, UserError
from tsuishi.base.option_table import options_of
from tsuishi.base.settings import CLUSTER, Settings
from tsuishi.environments.entry import Ready
from tsuishi.machine.busy import await_idle
from tsuishi.machine.gpus import Nvml
from tsuishi.plan.trials import PlannedTrial
from tsuishi.results.directory import RunDirectory
from tsuishi.run.trial import Bench, TrialEnd, TrialOrder, run_trial
from tsuishi.specs.trial_id import TrialId


class Audience(Protocol):
    """Watches a run: the display of progress, for instance."""

    def waits(self, why: str) -> None: ...
    def trial_begins(self, trial: PlannedTrial, attempt: int) -> None: ...
    def phase(self, name: str) -> None: ...
    def trial_ends(self, trial: PlannedTrial, status: str, reason: str, duration_s: float) -> None: ...


class RunStopped(Exception):
    """The run cannot go on; its measurements are safe. The message is a line with the reason and the next step."""

    def __init__(self, run: RunDirectory, why: str) -> None:
        record, again = run.run(), "give the same command again"
        if record.is_of_run_suite:
            again = f"go on with `invoke run-suite --resume {run.id}`"
        elif "resume" in {row.name for row in options_of((record.task,))}:
            again = f"give the same command with `--resume {run.id}`"
        super().__init__(f"{why}, then {again}; what was measured is kept")
        self.run = run


@dataclass(frozen=True)
class Work:
    """A run whose trials an executor runs, with all that it may need for them.

    begins: is called when a trial starts. waits: gets a line for the user. phase: gets the state of the work in words.
    left_s: gives the seconds in which trials may still begin. expected_s: gives the expected seconds of a trial.
    """

    run: RunDirectory
    ready: Mapping[str, Ready]
    settings: Settings
    checkout: Checkout
    nvml: Nvml
    data: Path | None
    begins: Callable[[TrialId], None]
    waits: Callable[[str], None]
    phase: Callable[[str], None]
    left_s: Callable[[], float]
    expected_s: Callable[[TrialId], float]

    def bench(self, order: TrialOrder) -> Bench:
        """What this machine offers to a trial."""
        return Bench(self.ready[order.id.environment], self.checkout.workloads, self.nvml, self.data)


class Executor(Protocol):
    """Runs trials from their orders."""

    # Whether trials run on this machine: then it is locked and heated, and trials wait for its GPUs.
    is_local: bool

    def given(self, run: RunDirectory) -> Mapping[TrialId, TrialOrder]:
        """The orders that earlier sessions gave away, by their ids: each may still run, or have run since.

        `ends` goes on with them. Raises UserError where this executor cannot.
        """

    def ends(self, work: Work, orders: Iterable[TrialOrder]) -> Iterator[TrialEnd]:
        """Run the orders. Gives every trial that ended, in the order of the ends; each is committed.

        An order may have more than one end, each of another attempt. The next end is asked for once the end before is
        in the run's manifest. Raises OSError where a file cannot be written, RunStopped where the work cannot go on.
        """


class Local:
    """Runs each trial on this machine, after the trial before has ended; once more where it stood still."""

    is_local = True

    def given(self, run: RunDirectory) -> Mapping[TrialId, TrialOrder]:
        if run.jobs.exists():
            raise UserError(f"trials of run {run.id} are with {CLUSTER.capitalize()}: go on with --executor {CLUSTER}")
        return {}

    def ends(self, work: Work, orders: Iterable[TrialOrder]) -> Iterator[TrialEnd]:
        for order in orders:
            if not order.unsupported:
                _await_gpus(work, order)
            work.begins(order.id)
            yield (end := run_trial(order, work.run.trials, work.bench(order), work.phase))
            if end.stood_still and work.expected_s(order.id) <= work.left_s():
                again = order.renamed(order.id.next_attempt)
                work.begins(again.id)
                yield run_trial(again, work.run.trials, work.bench(again), work.phase)


LOCAL = Local()


def raise_stop(run: RunDirectory, end: TrialEnd) -> None:
    """Raise the exception that has to stop the run after a trial, if there is one."""
    if isinstance(end.stop, EngineLost):
        raise RunStopped(run, f"{end.stop}; start it again")
    if end.stop is not None:
        raise end.stop


def _await_gpus(work: Work, order: TrialOrder) -> None:
    given = work.settings
    try:
        wait_s = min(given.gpu_wait_s, max(0.0, work.left_s()))
        await_idle(work.nvml, order.gpus, given.busy_gpu, wait_s, work.waits)
    except UserError as busy:
        raise RunStopped(work.run, str(busy)) from busy
