"""Executors run the trials of a run. The executor here runs them on this machine, each after the other."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tsuishi.base.errors import UserError
from tsuishi.base.option_table import options_of
from tsuishi.base.screen import Say
from tsuishi.base.settings import CLUSTER, Settings, of_executor
from tsuishi.environments.entry import Ready
from tsuishi.machine.busy import await_idle
from tsuishi.machine.gpus import Gpu
from tsuishi.plan.session import Session
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

    trials: those that were ordered so far, by their planned ids.
    """

    session: Session
    run: RunDirectory
    ready: Mapping[str, Ready]
    audience: Audience
    trials: Mapping[TrialId, PlannedTrial]

    @property
    def data(self) -> Path | None:
        """The file of the data set; None where it is not at hand."""
        return self.session.data.path if self.session.data else None

    def begins(self, trial_id: TrialId) -> None:
        """Tell the audience that a trial starts."""
        self.audience.trial_begins(self.trials[trial_id.planned], trial_id.attempt)

    def expected_s(self, trial_id: TrialId) -> float:
        """The expected seconds of a trial."""
        return self.trials[trial_id.planned].expected_s

    def run_here(self, order: TrialOrder) -> TrialEnd:
        """Run a trial on this machine. Raises OSError where a file cannot be written."""
        bench = Bench(self.ready[order.environment], self.session.checkout.workloads, self.session.nvml, self.data)
        self.begins(order.id)
        return run_trial(order, self.run.trials, bench, self.audience.phase)


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
                try:
                    await_gpus(work.session, order.gpus, work.audience.waits)
                except UserError as busy:
                    raise RunStopped(work.run, str(busy)) from busy
            yield (end := work.run_here(order))
            if end.stood_still and work.expected_s(order.id) <= work.session.left_s():
                yield work.run_here(order.renamed(order.id.next_attempt))


LOCAL = Local()


def executor_of(settings: Settings) -> Executor:
    """The executor that the settings name. Raises UserError for an unknown name."""
    if settings.runs_here:
        return LOCAL
    executor: Executor = of_executor("EXECUTORS", settings)()
    return executor


def await_gpus(session: Session, gpus: Collection[Gpu], say: Say) -> None:
    """Wait until no other process uses these GPUs, while there is time. Raises UserError where they stay in use."""
    settings = session.settings
    wait_s = min(settings.gpu_wait_s, max(0.0, session.left_s()))
    await_idle(session.nvml, gpus, settings.busy_gpu, wait_s, say)
