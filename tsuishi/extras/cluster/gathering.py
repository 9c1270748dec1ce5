"""The trials of a run that are with Slurm: watched, brought back, and tried once more where a node was lost."""

import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsuishi.base.files import entries
from tsuishi.extras.cluster import submission
from tsuishi.extras.cluster.arrays import submitted
from tsuishi.extras.cluster.settings import of_cluster
from tsuishi.extras.cluster.slurm import NoAnswer, Slurm, Task, TaskState
from tsuishi.results import schema, trial_folders
from tsuishi.results.records import TrialRecord
from tsuishi.run.executor import Work
from tsuishi.run.outcome import Outcome
from tsuishi.run.trial import TrialEnd, TrialOrder, bury
from tsuishi.run.trial_files import leave_empty
from tsuishi.specs.statuses import FAILED, INTERRUPTED, OUT_OF_MEMORY, TIMEOUT
from tsuishi.specs.trial_id import TrialId

# Seconds between two looks at the folder of trials, and their least length as a multiple of the time of a look.
_TICK_S, _LOOKS = 0.3, 10
# States that are not the trial's fault: it is tried once more in the same session.
_NOT_ITS_FAULT = frozenset({"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED"})


@dataclass
class _Waiting:
    """A trial that is with Slurm. `gone_since`: when its task was first seen to have ended, on the monotonic clock.

    `was_gone`: it had ended when this session first looked, so no watching user has stopped it.
    """

    order: TrialOrder
    task: Task
    state: TaskState | None = None
    has_begun: bool = False
    gone_since: float | None = None
    was_gone: bool = False


class Gathering:
    """The trials of a run that are with Slurm."""

    def __init__(self, work: Work, slurm: Slurm) -> None:
        self._work = work
        self._slurm = slurm
        self._given = of_cluster(work.session.settings)
        self._trials: dict[TrialId, _Waiting] = {}
        self._open: set[str] = set()
        self._again: list[TrialOrder] = []
        # The planned ids of trials that got another attempt in this session.
        self._tried_again: set[TrialId] = set()
        # The trials whose same attempt was submitted again.
        self._sent_again: set[TrialId] = set()
        self._is_cancelled = False
        # Whether waiting trials were cancelled, because time is over.
        self._is_cut = False
        self._has_looked = False
        # Lines that the user has seen, as the same reason holds for many trials and looks.
        self._said: set[str] = set()

    @property
    def waiting(self) -> int:
        """How many trials are with Slurm."""
        return len(self._trials)

    def adopt(self) -> None:
        """Continue with the submissions of earlier sessions."""
        trials = self._work.run.trials
        for given in submission.submissions(self._work.run):
            self._expect(given, lambda order: not (trials / str(order.id)).exists())
        self._close()

    def submit(self, orders: Sequence[TrialOrder]) -> None:
        """Submit orders. Raises UserError where Slurm refuses them, NoAnswer where it does not answer."""
        for made in submitted(self._work, self._slurm, orders):
            self._expect(made)  # also trials that have ended since: no look has seen them

    def ends(self) -> Iterator[TrialEnd]:
        """Every trial that ended, until none is with Slurm."""
        looked_at = -math.inf
        while self._trials:
            begun = time.monotonic()
            yield from self._arrived()
            pause_s = max(_TICK_S, _LOOKS * (time.monotonic() - begun))
            if time.monotonic() - looked_at >= self._given.slurm_poll_s:
                if self._look():
                    self._cut()
                    yield from self._lost()
                looked_at = time.monotonic()
                again, self._again = self._again, []
                self.submit(again)
            self._close()
            if self._trials:
                time.sleep(min(pause_s, self._given.slurm_poll_s))

    def cancel(self) -> None:
        """Cancel every task. Their trials still end, as interrupted ones."""
        self._is_cancelled = True
        submitted = (made.name for made in submission.submissions(self._work.run))  # Slurm may have one unconfirmed
        self._cancel({*self._open, *submitted})

    def _cancel(self, names: Iterable[str], *, only_waiting: bool = False) -> None:
        """Cancel tasks, once Slurm answers."""
        while True:
            try:
                return self._slurm.cancel(sorted(names), only_waiting=only_waiting)
            except NoAnswer as silent:
                self._say(f"Slurm does not answer, waiting: {silent}")
                time.sleep(self._given.slurm_poll_s)

    def _cut(self) -> None:
        """Cancel waiting trials that would end too late: a trial that never began leaves no row."""
        waiting = [one.order.id for one in self._trials.values() if one.state and one.state.name == "PENDING"]
        if waiting and max(map(self._work.expected_s, waiting)) > self._work.session.left_s():
            self._is_cut = True
            self._cancel(self._open, only_waiting=True)
            self._say("time is over: no further trial begins, and those that run go on to their ends")

    def _expect(self, given: submission.Submission, is_new: Callable[[TrialOrder], bool] = lambda order: True) -> None:
        self._open.add(given.name)
        for index, order in enumerate(given.orders):
            if is_new(order):
                self._trials[order.id] = _Waiting(order, Task(given.name, index))

    def _arrived(self) -> Iterator[TrialEnd]:
        """The trials whose folders have their names by now."""
        trials = self._work.run.trials
        names = {name for name, _ in entries(trials)}
        for trial_id in [trial_id for trial_id in self._trials if str(trial_id) in names]:
            for _, record in trial_folders.read([trials / str(trial_id)]):
                yield self._end(trial_id, record)

    def _end(self, trial_id: TrialId, record: TrialRecord) -> TrialEnd:
        self._begins(self._trials.pop(trial_id))
        return TrialEnd(record, record.duration_s or 0.0, None)

    def _look(self) -> bool:
        """Ask Slurm for the states of all tasks. Returns whether it answered."""
        try:
            states = self._slurm.states(sorted(self._open))
        except NoAnswer as silent:
            self._say(f"Slurm does not answer, waiting: {silent}")
            return False
        if any(waiting.task not in states for waiting in self._trials.values()):
            states = {**self._slurm.past_states(sorted(self._open)), **states}
        for waiting in self._trials.values():
            ended = waiting.state if waiting.state and waiting.state.has_ended else None
            waiting.state = state = states.get(waiting.task, ended)  # Slurm forgets a task that has ended
            if state and not state.has_ended:
                waiting.gone_since = None
            elif waiting.gone_since is None:
                waiting.gone_since = time.monotonic()
                waiting.was_gone = not self._has_looked
            if state and state.name in ("RUNNING", "COMPLETING"):
                self._begins(waiting)
        self._has_looked = True
        self._show()
        return True

    def _show(self) -> None:
        states = [waiting.state for waiting in self._trials.values() if waiting.state]
        running = sum(state.name == "RUNNING" for state in states)
        reasons = {state.why for state in states if state.name == "PENDING"} - {"None", "Priority", "Resources"}
        for reason in sorted(reasons - {"Dependency", "JobArrayTaskLimit", "BeginTime"}):
            self._say(f"Slurm: trials wait: {reason}")
        self._work.audience.phase(f"{running} running, {self.waiting - running} waiting")

    def _lost(self) -> Iterator[TrialEnd]:
        """The trials whose tasks have ended, and whose folders do not come, as rows.

        A shared file system may show a folder late, so a task that ran is waited for.
        """
        now = time.monotonic()
        gone = [one for one in self._trials.values() if one.gone_since is not None and self._is_over(one, now)]
        if gone:
            trial_folders.settle(self._work.run.trials)
            yield from self._arrived()
        for waiting in gone:
            order = waiting.order
            if order.id not in self._trials:
                continue
            if self._was_cut(waiting):
                del self._trials[order.id]
                continue
            if self._never_began(waiting):
                del self._trials[order.id]
                self._sent_again.add(order.id)
                self._again.append(order)
                continue
            yield self._end(order.id, self._buried(order, waiting.state))
            if (waiting.was_gone or _deserves_another(waiting.state)) and self._may_try_again(order.id.planned):
                self._tried_again.add(order.id.planned)
                self._again.append(order.renamed(order.id.next_attempt))

    def _never_began(self, waiting: _Waiting) -> bool:
        """Whether Slurm never had a trial, or it never started: the same attempt is submitted again, once."""
        trial_id = waiting.order.id
        is_unknown = waiting.state is None and not self._is_cancelled and not self._partial(trial_id)
        return is_unknown and trial_id not in self._sent_again

    def _was_cut(self, waiting: _Waiting) -> bool:
        """Whether a trial never began, as time was over before."""
        state = waiting.state
        never_ran = state is None or (state.name == "CANCELLED" and not state.node)
        return self._is_cut and never_ran and not waiting.has_begun and not self._partial(waiting.order.id)

    def _is_over(self, waiting: _Waiting, now: float) -> bool:
        never_ran = waiting.state is not None and not waiting.state.node
        return never_ran or now - (waiting.gone_since or now) >= self._given.slurm_lag_s

    def _may_try_again(self, planned: TrialId) -> bool:
        return not (self._is_cancelled or self._is_cut) and planned not in self._tried_again

    def _partial(self, trial_id: TrialId) -> list[Path]:
        return [path for found, path in trial_folders.left_behind(self._work.run.trials) if found == trial_id]

    def _buried(self, order: TrialOrder, state: TaskState | None) -> TrialRecord:
        """Commit a trial that left no record, with the files that it had written.

        Its files are copied: a node that Slurm takes for dead may be alive, and writes to files that it holds open. It
        cannot commit any more, as its folder is gone.
        """
        trials = self._work.run.trials
        place = trial_folders.begin(trials, order.id)
        leave_empty(place)
        for partial in self._partial(order.id):
            if partial != place:
                for name in ("log.txt.gz", *(f"{table}.csv" for table in schema.OF_A_TRIAL)):
                    if (partial / name).is_file():
                        shutil.copyfile(partial / name, place / name)
                shutil.copystat(partial, place)  # the time of its start
                shutil.rmtree(partial, ignore_errors=True)
        return bury(order, place, _outcome_of_job(state))

    def _begins(self, waiting: _Waiting) -> None:
        if not waiting.has_begun:
            waiting.has_begun = True
            self._work.begins(waiting.order.id)

    def _close(self) -> None:
        """Forget the submissions whose trials are all in the run."""
        for name in self._open - {waiting.task.array for waiting in self._trials.values()}:
            submission.close(self._work.run, name)
            self._open.discard(name)

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._work.audience.waits(line)


def _outcome_of_job(state: TaskState | None) -> Outcome:
    """The outcome of a trial whose job ended in this state. None: Slurm does not know the job any more."""
    if state is None:
        return Outcome(INTERRUPTED, "its job is gone, and Slurm does not know any more how it ended")
    on = f" on {state.node}" if state.node else ""
    match state.name:
        case "TIMEOUT" | "DEADLINE":
            return Outcome(TIMEOUT, f"Slurm ended its job{on} at the job's time limit; allow more with --time")
        case "OUT_OF_MEMORY":
            return Outcome(OUT_OF_MEMORY, f"Slurm ended its job{on} at the job's memory limit")
        case "NODE_FAIL" | "BOOT_FAIL":
            return Outcome(FAILED, f"node {state.node or 'unknown'} failed ({state.name})")
        case "PREEMPTED":
            return Outcome(INTERRUPTED, f"its job was preempted{on}")
        case "CANCELLED":
            return Outcome(INTERRUPTED, f"its job was cancelled{on or ' before it started'}")
    return Outcome(FAILED, f"its job{on} ended ({state.name}) and left no trial")


def _deserves_another(state: TaskState | None) -> bool:
    """Whether a trial whose job ended in this state is tried once more automatically."""
    return state is None or state.name in _NOT_ITS_FAULT
