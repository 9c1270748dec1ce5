"""Measures a search for the release that changed a value: rounds of trials, each wanted release once, in turns.

Environments are built when the search first needs them. A round counts only if it is complete.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from tsuishi.base.errors import UserError
from tsuishi.environments.entry import Ready
from tsuishi.environments.self_check import SelfCheckFailed
from tsuishi.extras.releases.bisection import Bisection
from tsuishi.extras.releases.release_question import ReleaseQuestion
from tsuishi.extras.releases.survey import Survey
from tsuishi.plan import trials
from tsuishi.plan.outline import Outline
from tsuishi.plan.planning import Plan
from tsuishi.plan.session import Session
from tsuishi.plan.trials import Matrix, PlannedTrial, in_turn
from tsuishi.plan.worth import BETWEEN_S
from tsuishi.results import trial_folders
from tsuishi.results.directory import RunDirectory
from tsuishi.run.executor import LOCAL
from tsuishi.run.ledger import create
from tsuishi.run.measuring import Measuring, check_forced, prepared
from tsuishi.run.resume import own_run, refuse_other_environments
from tsuishi.run.tally import Tally
from tsuishi.specs.case import SUITE
from tsuishi.specs.questions import MatrixCell
from tsuishi.specs.statuses import INTERRUPTED, OK
from tsuishi.specs.trial_spec import Trial, Value

ReleaseSearch = Bisection | Survey


@dataclass
class SearchedReleases:
    """The measurements and the result of a search.

    values: of each release, by trial. reasons: why releases cannot run the case. others: of each other quantity the
    values of each release, by trial.
    """

    run: RunDirectory
    search: ReleaseSearch
    values: dict[str, list[float]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    others: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    trials: int = 0

    @property
    def counted(self) -> dict[str, dict[str, int]]:
        """By quantity, the whole number that all trials of a release gave, for each release that gave one."""
        return {
            quantity: {
                name: int(values[0]) for name, values in of.items() if len({*values}) == 1 and values[0].is_integer()
            }
            for quantity, of in self.others.items()
        }


def least_search(session: Session, question: ReleaseQuestion, *, every: bool) -> tuple[int, float]:
    """The trials of a search that finds a change as early as it can, and the seconds that they are expected to take."""
    count, first = _search(question, every=every).fewest_trials, _matrix(session, question).first
    cells = [MatrixCell(question.case.id, release.name) for release in question.releases]
    return count, count * (fmean(first[cell].expected_s for cell in cells) + BETWEEN_S)


def _search(question: ReleaseQuestion, *, every: bool) -> ReleaseSearch:
    names = tuple(each.name for each in question.releases)
    return Survey(names) if every else Bisection(names)


def _matrix(session: Session, question: ReleaseQuestion) -> Matrix:
    """The cases of the search's suite in its releases."""
    choice = replace(session.choice, environments=tuple(each.name for each in question.releases))
    given = (session.nvml, session.history, session.data_record)
    return trials.matrix(choice, session.checkout, question.releases, *given)


def measure_search(
    session: Session, question: ReleaseQuestion, *, every: bool, name: str = "", resumed: RunDirectory | None = None
) -> SearchedReleases:
    """Make a run, and measure rounds until the search or the time ends.

    every: all releases are visited, and not only those that a bisection needs. resumed: the run of the same search that
    ended before it was done; its complete rounds count, and the search goes on with the next.

    Raises UserError where an end of the search cannot run the case, and where the run is of another search.
    """
    search, matrix = _search(question, every=every), _matrix(session, question)
    plan = Plan(question.releases, 0.0, Outline(matrix))
    with prepared(LOCAL, session, {}, ()):
        run = resumed or create(session, name or "find", plan, {}, search=_options(question, every=every))
        with run.alone():
            recorded = own_run(run)
            if (recorded.profile, recorded.seed) != (session.choice.profile, session.choice.seed):
                raise _another_search(run)
            trial_folders.settle(run.trials)
            measured = SearchedReleases(run, search)
            rounds = _SearchRounds(session, question, matrix, measured)
            rounds.repeat(recorded.plan)
            Measuring(session, run, rounds.ready).rounds(rounds.wanted())
    return measured


def _options(question: ReleaseQuestion, *, every: bool) -> dict[str, Value]:
    """The options that only a search has, in run.json."""
    case = ",".join(f"{axis}={value}" for axis, value in question.case.axes.items() if axis != SUITE)
    ends = {"from": question.releases[0].name, "to": question.releases[-1].name}
    return {"case": case, "quantity": question.quantity, **ends, "all": every}


def _another_search(run: RunDirectory) -> UserError:
    """The error that a run is of another search than the options ask for."""
    return UserError(f"run {run.id} is of another search: give the options that it began with")


class _SearchRounds:
    """The rounds of a search in a run."""

    def __init__(self, session: Session, question: ReleaseQuestion, matrix: Matrix, measured: SearchedReleases) -> None:
        self._session = session
        self._question = question
        self._matrix = matrix
        self._measured = measured
        self._tally = Tally(measured.run, session.words)
        # Of each release that the search has needed.
        self.ready: dict[str, Ready] = {}
        self._number = 0
        # The trials of each release that were planned, measured or not.
        self._planned: Counter[str] = Counter()

    def repeat(self, plan: Sequence[Trial]) -> None:
        """Give the search the whole rounds of an earlier session; a round that was interrupted does not count.

        The search asks for the same rounds again, because their values alone decide it. Raises UserError where the
        plan is of another search, or where an environment is another build.
        """
        search, run = self._measured.search, self._measured.run
        if measured := {entry.environment for entry in plan}:
            self._build([each.name for each in self._question.releases if each.name in measured])
            refuse_other_environments(run, self.ready)
        while plan and (wanted := search.wanted()):
            batch, plan = plan[: len(wanted)], plan[len(wanted) :]
            asked = {(self._question.case.id, name) for name in wanted}
            if {(entry.case_id, entry.environment) for entry in batch} != asked:
                raise _another_search(run)
            self._number += 1
            for entry in batch:
                self._planned[entry.environment] = entry.repetition
            ended = {entry.environment: self._tally.read(entry.id) for entry in batch}
            if all(record and record.status != INTERRUPTED for record in ended.values()):
                self._measured.trials += len(batch)
                self._take(batch)

    def wanted(self) -> Iterator[Sequence[PlannedTrial]]:
        """The rounds until the search or the time ends. The caller measures each before it asks for the next."""
        search = self._measured.search
        while wanted := search.wanted():
            self._build(wanted)
            batch = self._round(wanted)
            if sum(trial.expected_s + BETWEEN_S for trial in batch) > self._session.left_for_trials_s():
                self._session.screen.say("the time is over: the search ends here")
                return
            yield batch
            self._measured.trials += len(batch)
            self._take(batch)

    def _take(self, batch: Sequence[Trial]) -> None:
        """Give the search the values of a round."""
        values = {entry.environment: self._value(entry) for entry in batch}
        try:
            self._measured.search.add(values)
        except ValueError as end:
            why = self._measured.reasons[str(end)]
            raise UserError(f"{end}, an end of the search, cannot run the case: {why}") from end

    def _build(self, names: Sequence[str]) -> None:
        """Make the named environments ready, where they are not ready yet."""
        new = [each for each in self._question.releases if each.name in names and each.name not in self.ready]
        if new:
            self.ready |= self._session.build(new)
            for release in new:
                self._check(release.name)

    def _check(self, name: str) -> None:
        """Refuse the trials of a release whose code is not native to the GPUs here, where it fails its self-check."""
        cell = MatrixCell(self._question.case.id, name)
        try:
            check_forced(self._session, self.ready, [self._matrix.first[cell]])
        except SelfCheckFailed as failed:
            self._matrix.first[cell] = self._matrix.first[cell].model_copy(update={"unsupported": str(failed)})

    def _round(self, names: Sequence[str]) -> list[PlannedTrial]:
        """A trial of each environment, in the order of `in_turn`."""
        self._number += 1
        batch = []
        cells = (MatrixCell(self._question.case.id, name) for name in names)
        for cell in in_turn(cells, self._session.choice.seed, self._number):
            self._planned[cell.environment] += 1
            first = self._matrix.first[cell]
            batch.append(first.renamed(first.id.repeated(self._planned[cell.environment])))
        return batch

    def _value(self, entry: Trial) -> float | None:
        """The logarithm of a trial's value; None where it has no value, and then the reason is kept."""
        record = self._tally.read(entry.id)
        if record is None or record.status != OK:
            status = record.status if record else "no trial"
            self._measured.reasons[entry.environment] = f"{status}: {(record and record.reason) or 'see its log'}"
            return None
        quantity = self._question.quantity
        of_cell = self._tally.of[entry.cell].values
        value = of_cell.get(quantity, {}).get(entry.repetition)
        if value is not None and value <= 0:
            raise UserError(f"a trial of this case gives {value:g} as {quantity}: a ratio takes numbers above 0")
        if value is None:
            known = ", ".join(sorted(name for name, values in of_cell.items() if entry.repetition in values))
            raise UserError(f"a trial of this case gives no {quantity}; it gives {known or 'no quantity'}")
        self._measured.values.setdefault(entry.environment, []).append(value)
        for name, values in of_cell.items():
            if name != quantity and entry.repetition in values:
                self._measured.others[name][entry.environment].append(values[entry.repetition])
        return math.log(value)
