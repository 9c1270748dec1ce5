"""Measures trials of a run in environments that are ready: all planned trials, or as many as the time allows."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property

from tsuishi.base.errors import UserError
from tsuishi.base.screen import Say
from tsuishi.base.units import duration
from tsuishi.environments.entry import Ready
from tsuishi.environments.heating import heat
from tsuishi.environments.self_check import SelfCheckFailed, self_check
from tsuishi.machine.gpus import Gpu
from tsuishi.plan.lines import brief
from tsuishi.plan.planning import published_sources
from tsuishi.plan.session import Session
from tsuishi.plan.trials import Matrix, PlannedTrial, gpus_for, history_kinds, history_name
from tsuishi.results.attempts import last_attempts
from tsuishi.results.directory import RunDirectory
from tsuishi.run.executor import LOCAL, Executor, await_gpus
from tsuishi.run.ledger import Ledger, learn_scatter
from tsuishi.run.progress import RunProgress, running
from tsuishi.run.rounds import Rounds
from tsuishi.run.runner import Runner
from tsuishi.run.tally import Tally
from tsuishi.specs.questions import PlannedQuestion
from tsuishi.specs.source import Source
from tsuishi.specs.statuses import is_finding
from tsuishi.specs.suite import select_suites
from tsuishi.specs.trial_id import TrialId


@dataclass
class _WatchedCall:
    """The call that measures a run, as its trials and its rounds see it: see Audience and MeasuringCall.

    It enters what happens in the ledger and in the history, and shows it.
    """

    session: Session
    run: RunDirectory
    ledger: Ledger
    progress: RunProgress
    # The questions whose answers were said.
    _said: set[str] = field(default_factory=set)

    def waits(self, why: str) -> None:
        self.progress.waits(why)

    def phase(self, name: str) -> None:
        self.progress.phase(name)

    def trial_begins(self, trial: PlannedTrial, attempt: int) -> None:
        """Show a trial; with the first that something is started for, the clock starts if it stood."""
        if not trial.unsupported and (queued_s := self.session.clock.start()) is not None:
            self.ledger.took("queued_s", queued_s)
            self.progress.waits(f"the first job began after {duration(queued_s)} of building and queueing")
        self.ledger.measures()
        self.progress.trial_begins(trial, attempt)

    def trial_ends(self, trial: PlannedTrial, status: str, reason: str, duration_s: float) -> None:
        if is_finding(status) and not trial.unsupported:
            name = history_name(trial, self.session.data_record)
            self.session.history.learn(name, duration_s, trial.guess_s, history_kinds(trial))
        self.progress.trial_ends(trial, status, reason, duration_s)

    def left_for_trials_s(self, spent_s: float) -> float:
        return self.session.left_for_trials_s(spent_s)

    def open_suite(self) -> str:
        return self.session.open_suite(self.run.path)

    def planned(self, questions: Sequence[PlannedQuestion], trials: Sequence[PlannedTrial]) -> None:
        self.progress.more(self.ledger.add(questions, trials))

    def decided(self, question: PlannedQuestion) -> None:
        """Say its answer, and those of others that are new."""
        with suppress(UserError):  # a report says which trial has no numbers
            for name, sentence in self.session.decided(self.run.path).items():
                if name not in self._said:
                    self.progress.waits(f"{duration(self.session.clock.spent_s)}: {sentence}")
                self._said.add(name)

    def dropped(self, question: PlannedQuestion, price_s: float) -> None:
        self.progress.waits(f"no time is left for {brief(question)}: about {duration(price_s)}")


@dataclass(frozen=True)
class Measuring:
    """A call that measures trials of a run."""

    session: Session
    run: RunDirectory
    ready: Mapping[str, Ready]
    # Planned seconds of the whole call; 0 for a call without a plan.
    expected_s: float = 0.0
    # The planned ids of trials that are measured again, as a report excludes them.
    excluded: frozenset[TrialId] = frozenset()
    executor: Executor = LOCAL

    def finish(self, planned: Sequence[PlannedTrial], left: Sequence[PlannedTrial]) -> None:
        """Measure the trials of the plan that are `left`: they have no finding yet."""
        expected_s = sum(trial.expected_s for trial in left)
        self.session.screen.say(
            f"run {self.run.id}: {len(left)} trials, about {duration(expected_s)}, in {self.run.path}"
        )
        self._ledger.begin(self.session.clock, self.expected_s)
        self._heat(left)
        with self._watched(len(planned), left) as call:
            self._measure(planned, [left], call)
        if any(trial.id.repetition > 1 for trial in planned):
            with suppress(UserError):  # a report says which trial has no numbers
                self._learn_scatter(Tally(self.run, self.session.words, sources=self._sources))

    def deepen(
        self,
        matrix: Matrix,
        asked: Sequence[PlannedQuestion],
        others: Sequence[PlannedQuestion],
        planned: Sequence[PlannedTrial] = (),
        left: Sequence[PlannedTrial] = (),
    ) -> None:
        """Measure rounds of trials as long as there is time. left: trials of the plan without a finding."""
        session = self.session
        tally = Tally(self.run, session.words, sources=self._sources, excluded=self.excluded)
        self._ledger.begin(session.clock, self.expected_s)
        chosen = [matrix.first[cell] for question in asked for cell in question.cells if cell in matrix.first]
        self._heat([*left, *chosen])
        session.screen.say(f"run {self.run.id}: {self._limits()}, in {self.run.path}")
        with self._watched(len(planned), left) as call:
            repetitions = session.choice.repetitions
            rounds = Rounds(tally, matrix.first, asked, others, self.run.run().seed, call, repetitions)
            batches = [rounds] if self.executor.is_local else rounds.batches(session.left_s)
            try:
                self._measure(planned, batches, call)
            finally:
                self._ledger.end(rounds, session.beside_trials_s)
                self._learn_scatter(tally)

    def rounds(self, chosen: Iterable[Sequence[PlannedTrial]]) -> None:
        """Measure rounds that the caller chooses, each when the round before has ended; `ready` may grow with them."""
        self._ledger.begin(self.session.clock, self.expected_s)
        with self._watched(0, ()) as call:
            self._measure((), self._added(chosen, call), call)

    def _added(self, chosen: Iterable[Sequence[PlannedTrial]], call: _WatchedCall) -> Iterator[Sequence[PlannedTrial]]:
        """The rounds, each added to the plan before it is measured."""
        for batch in chosen:
            call.planned((), batch)
            yield batch
            self.session.history.keep()

    def _limits(self) -> str:
        """The time left for trials, in words."""
        session = self.session
        if self.executor.is_local:
            return f"{duration(max(0.0, session.left_for_trials_s()))} for trials"
        time_left = [duration(session.left_s())] if session.clock.within_s is not None else []
        hours = [f"{session.choice.gpu_hours:g} GPU-hours"] if session.choice.gpu_hours else []
        given = " and ".join(time_left + hours)
        return f"{given} for trials, from the first start of a job, up to {session.at_once} at once"

    def _learn_scatter(self, tally: Tally) -> None:
        """Keep for later plans how the trials scatter, of every quantity that questions of the suites compare."""
        session = self.session
        suites = select_suites(session.checkout.suites, session.choice.suites)
        quantities = {question.quantity for suite in suites for question in suite.questions}
        learn_scatter(session.history, self.run, tally, quantities)
        session.history.keep()

    def _heat(self, trials: Sequence[PlannedTrial]) -> None:
        """Heat the devices of the trials, by the environment of the first trial on a GPU, or of the first trial."""
        session = self.session
        able = [trial for trial in trials if not trial.unsupported]
        first = next((trial for trial in able if trial.accelerator == "cuda"), next(iter(able), None))
        if first is None or not self.executor.is_local:
            return
        if heat_s := session.heat_s(first.accelerator):
            ready, gpus, say = self.ready[first.environment], _gpus_of(session, able), session.screen.say
            self._ledger.took("heated_s", heat(ready, session.checkout, first.accelerator, gpus, heat_s, say))

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self.run)

    @cached_property
    def _sources(self) -> tuple[Source, ...]:
        return published_sources(self.session)

    @contextmanager
    def _watched(self, total: int, left: Sequence[PlannedTrial]) -> Iterator[_WatchedCall]:
        """While this block measures, its progress is shown; then what came of it. left: trials to measure at least."""
        session, begun = self.session, time.monotonic()
        until_s = None if session.clock.within_s is None else lambda: session.clock.left_s
        try:
            with running(session.screen, left, total, session.report_s, until_s) as progress:
                yield _WatchedCall(session, self.run, self._ledger, progress)
            self._ledger.ended()
        finally:
            session.history.keep()
        last = last_attempts(self.run)
        counts = Counter(last[each.id].status if each.id in last else "not run" for each in self.run.run().plan)
        summary = ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "no trial"
        session.screen.say(f"run {self.run.id}: {summary}; took {duration(time.monotonic() - begun)}")

    def _measure(
        self, planned: Sequence[PlannedTrial], batches: Iterable[Iterable[PlannedTrial]], call: _WatchedCall
    ) -> None:
        """Measure batches of trials, each to its end before the next is asked for."""
        measured = Runner(self.session, self.run, self.ready, call, self.executor)
        with _not_stopped(call.waits) if self.executor.is_local else nullcontext():
            measured.run(planned, batches)


@contextmanager
def _not_stopped(say: Say) -> Iterator[None]:
    """While this block runs, Ctrl-Z stops nothing, as a trial would compute on alone."""

    def refuse(number: int, frame: object) -> None:
        say("Ctrl-Z does not stop a run, whose trial would go on alone: Ctrl-C ends it, and --resume goes on with it")

    is_heard = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTSTP, refuse) if is_heard else None
    try:
        yield
    finally:
        if is_heard:
            signal.signal(signal.SIGTSTP, before)


@contextmanager
def prepared(
    executor: Executor, session: Session, ready: Mapping[str, Ready], planned: Sequence[PlannedTrial]
) -> Iterator[dict[str, dict[str, float]]]:
    """While this block measures on this machine, no other run of any user does; its GPUs are free when it begins.

    Leftovers of earlier runs are ended first. Gives the errors of the self-checks, as `check_forced` does. Does nothing
    where trials run elsewhere. Raises SelfCheckFailed as `check_forced` does, and where a trial elsewhere needs it.
    """
    if not executor.is_local:
        for trial in planned:
            if trial.forced:
                why = f"{trial.forced}: it needs a self-check on the GPU before anything is measured: not on a cluster"
                raise SelfCheckFailed(trial.environment, why)
        yield {}
        return
    scripts = {trial.environment: trial.case.suite for trial in planned if trial.script}
    said = (ready[environment].without_walls(f"the script of suite {suite}") for environment, suite in scripts.items())
    if first := next(filter(None, said), ""):
        session.screen.say(first)
    with session.machine_alone():
        session.builder.engines.sweep()
        await_gpus(session, _gpus_of(session, planned), session.screen.say)
        yield check_forced(session, ready, planned)


def count_from_first_job(session: Session) -> None:
    """Stop the clock of a session whose trials run elsewhere until the first begins: builds and queues do not count."""
    if not session.settings.runs_here:
        session.clock.stop()


def _gpus_of(session: Session, planned: Iterable[PlannedTrial]) -> list[Gpu]:
    """The GPUs that these trials get."""
    return list(dict.fromkeys(gpu for trial in planned for gpu in gpus_for(trial, session.nvml.gpus)))


def check_forced(
    session: Session, ready: Mapping[str, Ready], planned: Sequence[PlannedTrial]
) -> dict[str, dict[str, float]]:
    """Run the numerical self-check of environments whose code is not native to the GPUs, on all that their trials get.

    Returns the errors, by environment. Raises SelfCheckFailed where an environment does not pass.
    """
    errors = {}
    for name, reason in {trial.environment: trial.forced for trial in planned if trial.forced}.items():
        session.screen.say(f"{name}: {reason}")
        gpus = _gpus_of(session, (trial for trial in planned if trial.environment == name))
        errors[name] = self_check(ready[name], session.checkout, "cuda", tuple(gpus), session.screen.say)
    return errors
