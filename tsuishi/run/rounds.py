"""Rounds: the choice of the next trial, as long as there is time.

One question after the other gets its trials up to its next look, in rounds over its cells: that with the most worth for
its seconds first. The main questions come first, each up to the trials that the plan has counted on. Then further
questions are named, and those that are open go on, to 6, 12 and 24 trials. At last all cases of a suite get whole
rounds up to their next look, where an extra asks for them. A question begins only if all of its trials fit, at the pace
of the trials so far; and a trial only if it fits.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from tsuishi.plan.trials import PlannedTrial, in_turn
from tsuishi.plan.worth import BETWEEN_S, Costs, counted_on, next_look, next_questions, rank
from tsuishi.run.tally import Tally
from tsuishi.specs.questions import LAST_LOOK, LOOKS, MatrixCell, PlannedQuestion
from tsuishi.specs.statuses import OK, is_finding
from tsuishi.specs.trial_id import TrialId

# A trial has to fit in the time even if it takes so many times its expected duration.
_MARGIN = 1.1
# The latest trials that show the pace, and the fewest that show one.
_LATEST, _FEWEST = 5, 2
# A look that decides nothing makes a question worth so much less.
_UNDECIDED = 0.5
# The looks at claims that come before other questions.
_LOOKS_OF_CLAIMS = 2


class MeasuringCall(Protocol):
    """The call that measures rounds: what they ask of it, and what they tell it."""

    def left_for_trials_s(self, spent_s: float) -> float:
        """The seconds that are left for trials. spent_s: those of the call's trials."""

    def open_suite(self) -> str:
        """The suite whose cases all need one more look, or nothing."""

    def planned(self, questions: Sequence[PlannedQuestion], trials: Sequence[PlannedTrial]) -> None:
        """Questions and trials are added to the plan, before they are measured."""

    def decided(self, question: PlannedQuestion) -> None:
        """A question has reached a look, and needs no more trials."""

    def dropped(self, question: PlannedQuestion, price_s: float) -> None:
        """A main question, of so many seconds, fits no longer, and has cost nothing."""


class Rounds:
    """The trials of a run with a limited time, each chosen when the trial before it has ended.

    spent_s: the seconds of this session's trials, of each as often as it has nodes.

    first: a trial of every cell that may be measured.
    """

    def __init__(
        self,
        tally: Tally,
        first: Mapping[MatrixCell, PlannedTrial],
        asked: Sequence[PlannedQuestion],
        others: Sequence[PlannedQuestion],
        seed: int,
        call: MeasuringCall,
        repetitions: int | None = None,
    ) -> None:
        self.tally = tally
        self.asked = list(asked)
        self._first = first
        # The questions for which there was no time yet.
        self.others = list(others)
        self._seed = seed
        self._call = call
        self._repetitions = repetitions or 0
        # Of the trials of this session: their durations by cell; by environment, these divided by the expected ones.
        self._took: dict[MatrixCell, list[float]] = {}
        self._pace: dict[str, list[float]] = {}
        self._run_here = 0
        self.spent_s = 0.0
        self._known: set[TrialId] = set()
        # The ids of questions that were dropped, and of those whose step measured nothing.
        self._named: set[str] = set()
        self._stuck: set[str] = set()

    def __iter__(self) -> Iterator[PlannedTrial]:
        """The trials to run. The caller runs each trial before it asks for the next."""
        for look, questions, is_whole in self._steps():
            yield from self._to(look, questions, is_whole)

    def batches(self, left_s: Callable[[], float]) -> Iterator[list[PlannedTrial]]:
        """The trials to run, in batches. The caller runs all of a batch before it asks for the next.

        left_s: gives the seconds in which a trial may begin; the seconds for all trials are those of many at once.
        """
        for look, questions, is_whole in self._steps(at_once=True):
            self._plan(look, questions)
            for numbers in ([1], range(2, look + 1)):  # the first tells which cells have no numbers, and the pace
                reachable = questions if 1 in numbers else self._fitting(questions, lambda question: look)  # noqa: B023
                batch = self._batch(reachable if is_whole else questions, numbers, left_s())
                if batch:
                    yield batch
                for trial in batch:
                    self._learn(trial)

    def _batch(
        self, questions: Sequence[PlannedQuestion], numbers: Iterable[int], longest_s: float
    ) -> list[PlannedTrial]:
        """The trials of these rounds that fit, each and all together."""
        batch, left_s = list[PlannedTrial](), self._left_s()
        for number in numbers:
            for trial in self._round(self._answerable(questions), number):
                expected_s = self.expected_s(trial) * _MARGIN
                if not self.tally.of[trial.cell].is_dead and expected_s <= min(longest_s, left_s / trial.case.nodes):
                    batch.append(trial)
                    left_s -= expected_s * trial.case.nodes
        return batch

    def _steps(self, at_once: bool = False) -> Iterator[tuple[int, Sequence[PlannedQuestion], bool]]:
        """The looks to reach, with their questions, and whether a look counts only as a whole.

        The caller runs the trials of each before it asks for the next. at_once: of all questions that fit; else of a
        single one.
        """
        while step := self._next(at_once):
            before = self._run_here
            yield *step, True
            if self._run_here == before:
                self._stuck |= {question.id for question in step[1]}
        waiting = [question for question in self._open() if self.tally.fewest(question) < question.first_look]
        # Where no look fits, the trials that fit still show something.
        if begun := [question for question in waiting if self._has_begun(question)] or self._alone(waiting):
            yield max(question.first_look for question in begun), begun, False
        if self._repetitions > LOOKS[0]:
            yield self._repetitions, self.asked, False
        yield from self._whole_looks()

    def _left_s(self) -> float:
        return self._call.left_for_trials_s(self.spent_s)

    def _alone(self, questions: Sequence[PlannedQuestion]) -> list[PlannedQuestion]:
        """The question of the highest rank, where this session has measured nothing."""
        counted = self.tally.counts()
        priced = {each.id: self._price(each, counted, each.first_look) for each in questions}
        ordered = sorted(questions, key=lambda each: rank(each, priced[each.id]))
        return [] if self._run_here else ordered[-1:]

    def _next(self, at_once: bool) -> tuple[int, Sequence[PlannedQuestion]] | None:
        """The next look, with its questions; None where no question fits.

        Of the main questions as long as the plan has counted on it; then of all, with further questions.
        """
        counted_on_now = [question for question in self._open() if self._is_counted_on(question)]
        if step := self._best(counted_on_now, at_once):
            return step
        has_more = all(question.main for question in self.asked) and self._name_further()
        while True:
            if step := self._best(self._open(), at_once):
                return step
            if not (has_more or self._name_further()):
                return None
            has_more = False

    def _open(self) -> list[PlannedQuestion]:
        return [question for question in self.open_questions() if question.id not in self._stuck]

    def _is_counted_on(self, question: PlannedQuestion) -> bool:
        return question.main and self._next_look(question) <= counted_on(question)

    def _best(
        self, questions: Sequence[PlannedQuestion], at_once: bool
    ) -> tuple[int, Sequence[PlannedQuestion]] | None:
        """The next look of the question of the highest rank that fits; at_once: with all that fit beside it.

        What single cases of a suite take is one comparison to its readers: these are measured together.
        """
        counted = self.tally.counts()
        looks = {question.id: self._next_look(question) for question in questions}
        priced = {question.id: self._price(question, counted, looks[question.id]) for question in questions}

        def order(question: PlannedQuestion) -> tuple[bool, bool, float, str]:
            undecided = sum(look < looks[question.id] for look in LOOKS)
            is_claim, worth, name = rank(question, priced[question.id])
            comes_first = question.main and not undecided, is_claim and undecided < _LOOKS_OF_CLAIMS
            return *comes_first, worth * _UNDECIDED**undecided, name

        ordered = sorted(questions, key=order, reverse=True)
        fitting = self._fitting(ordered, lambda question: looks[question.id])
        self._drop((question for question in ordered if question not in fitting), priced)
        if not fitting:
            return None
        first = fitting[0]
        look = looks[first.id]
        return look, [
            question
            for question in fitting
            if question is first
            or (looks[question.id] == look and (at_once or question.kind == first.kind == "measurement"))
        ]

    def _drop(self, questions: Iterable[PlannedQuestion], priced: Mapping[str, float]) -> None:
        """Name the main questions that have no trial and fit no longer, each once."""
        for question in questions:
            too_long = priced[question.id] * _MARGIN > self._left_s()
            if question.main and too_long and not self._has_begun(question) and question.id not in self._named:
                self._named.add(question.id)
                self._call.dropped(question, priced[question.id])

    def _has_begun(self, question: PlannedQuestion) -> bool:
        return any(self.tally.of[cell].trials for cell in question.cells)

    def _name_further(self) -> bool:
        """Add the next questions for which there is time to the plan; whether there are any."""
        left_s = self._left_s() / _MARGIN
        chosen = next_questions(self.others, self.costs(), left_s, self.tally.counts(), self.asked)
        self.others = [question for question in self.others if question not in chosen]
        more = [question for question in chosen if not self.tally.is_dead(question)]
        if more:
            self.asked += more
            self._call.planned(more, ())
        return bool(more)

    def _whole_looks(self) -> Iterator[tuple[int, Sequence[PlannedQuestion], bool]]:
        """The further looks at all cases of the open suite, as long as there is time for all of them."""
        for look in (each for each in LOOKS[1:] if each <= LAST_LOOK):
            suite = self._call.open_suite()
            cells = {cell for cell, trial in self._first.items() if trial.case.suite == suite}
            questions = [question for question in self.asked if cells.intersection(question.cells)]
            if not questions or len(self._fitting(questions, lambda question: look)) < len(questions):  # noqa: B023
                return
            yield look, questions, False

    def expected_s(self, trial: PlannedTrial) -> float:
        """The seconds that a trial will take: as its cell did in this session, or at this session's pace."""
        if trial.unsupported:
            return 0.0
        if took := self._took.get(trial.cell):
            return statistics.median(took) + BETWEEN_S
        everywhere = [pace for of_environment in self._pace.values() for pace in of_environment[-_LATEST:]]
        here = self._pace.get(trial.environment, [])[-_LATEST:]
        known = next((paces for paces in (here, everywhere) if len(paces) >= _FEWEST), [1.0])
        return trial.expected_s * statistics.median(known) + BETWEEN_S

    def open_questions(self) -> list[PlannedQuestion]:
        """The questions that more trials could answer."""
        return [
            question for question in self.asked if {*question.cells} <= {*self._first} and self.tally.is_open(question)
        ]

    def costs(self) -> Costs:
        """The costs of trials at this session's pace; environments cost nothing, as all of them are built."""
        return Costs({cell: self.expected_s(trial) for cell, trial in self._first.items()}, {})

    def _to(self, look: int, questions: Sequence[PlannedQuestion], is_whole: bool) -> Iterator[PlannedTrial]:
        """The trials of rounds over the cells of these questions, until each cell has `look` trials.

        is_whole: they end where the look is out of reach by now, as others may fit; else each trial is run that fits.
        """
        self._plan(look, questions)
        for number in range(1, look + 1):
            for trial in self._round(self._answerable(questions), number):
                if is_whole and not any(self._reaches(question, look) for question in questions):
                    return
                expected_s = self.expected_s(trial)
                fits = not expected_s or expected_s * _MARGIN <= self._left_s()
                if fits and not self.tally.of[trial.cell].is_dead:
                    yield trial
                    self._learn(trial)

    def _reaches(self, question: PlannedQuestion, look: int) -> bool:
        if self.tally.is_dead(question):
            return False
        return self.tally.fewest(question) >= look or bool(self._fitting([question], lambda question: look))

    def _answerable(self, questions: Sequence[PlannedQuestion]) -> list[PlannedQuestion]:
        """The questions without those that have no ratio, whatever their trials."""
        return [question for question in questions if not self.tally.has_no_ratio(question)]

    def _plan(self, look: int, questions: Sequence[PlannedQuestion]) -> None:
        """Add the trials up to a look to the plan."""
        rounds = range(1, look + 1)
        new = [trial for number in rounds for trial in self._round(questions, number) if trial.id not in self._known]
        self._known |= {trial.id for trial in new}
        self._call.planned(questions, new)

    def _fitting(
        self, questions: Sequence[PlannedQuestion], look_of: Callable[[PlannedQuestion], int]
    ) -> list[PlannedQuestion]:
        """The questions that can reach their look, each in the time that the questions before it leave."""
        counted, left_s, fitting = self.tally.counts(), self._left_s(), []
        for question in questions:
            look = look_of(question)
            price_s = self._price(question, counted, look) * _MARGIN
            if price_s <= left_s:
                left_s -= price_s
                counted |= {cell: max(look, counted.get(cell, 0)) for cell in question.cells}
                fitting.append(question)
        return fitting

    def _round(self, questions: Sequence[PlannedQuestion], number: int) -> list[PlannedTrial]:
        """The trials of a round that did not run yet, in the order of `in_turn`."""
        named = dict.fromkeys(cell for question in questions for cell in question.cells if cell in self._first)
        cells = in_turn(named, self._seed, number)
        trials = [self._first[cell] for cell in cells if number not in self.tally.of[cell].statuses]
        trials = [trial.renamed(trial.id.repeated(number)) for trial in trials]
        return [trial for trial in trials if number == 1 or not trial.unsupported]

    def _learn(self, trial: PlannedTrial) -> None:
        """Count a trial that has ended, and say which questions it has decided."""
        self._run_here += 1
        record = self.tally.read(trial.id)
        if record and is_finding(record.status) and record.duration_s:
            self._took.setdefault(trial.cell, []).append(record.duration_s)
            if trial.expected_s and record.status == OK:
                self._pace.setdefault(trial.environment, []).append(record.duration_s / trial.expected_s)
        self.spent_s += (record.duration_s or 0.0) * trial.case.nodes if record else 0.0
        for question in self.asked:
            if self._reaches_a_look(question, trial.cell) and not self.tally.is_open(question):
                self._call.decided(question)

    def _reaches_a_look(self, question: PlannedQuestion, cell: MatrixCell) -> bool:
        """Whether the trial that this cell has just had was the last that a question needed for a look."""
        return (
            cell in question.cells
            and (self.tally.of[cell].is_dead or self.tally.of[cell].trials == self.tally.fewest(question))
            and self.tally.fewest(question) in (question.first_look, *LOOKS)
            and (bool(question.claim) or not self.tally.is_dead(question))
        )

    def _next_look(self, question: PlannedQuestion) -> int:
        return next_look(question, self.tally.fewest(question))

    def _price(self, question: PlannedQuestion, counted: Mapping[MatrixCell, int], look: int) -> float:
        """The seconds until each cell of a question that can have more trials has `look` trials."""
        cells = [cell for cell in self.tally.live(question) if cell in self._first]
        return sum(self.expected_s(self._first[cell]) * max(0, look - counted.get(cell, 0)) for cell in cells)
