"""Rounds: the choice of the next trial, as long as there is time.

First every chosen case gets a trial, then more, up to three. Then each open question gets trials up to its next look,
at 6, 12 and 24 trials. Then further questions follow. At last all cases of a suite get whole rounds up to their next
look, where an extra asks for them. A run ends between trials: a trial starts only if it fits.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tsuishi.plan.trials import PlannedTrial
from tsuishi.plan.worth import BETWEEN_S, Costs, next_questions
from tsuishi.run.tally import CellTally, Tally
from tsuishi.specs.questions import LOOKS, MatrixCell, PlannedQuestion
from tsuishi.specs.statuses import is_finding
from tsuishi.specs.trial_id import TrialId

# A trial has to fit in the time even if it takes so many times its expected duration.
_MARGIN = 1.1


class Rounds:
    """The trials of a run with a limited time, each chosen when the trial before it has ended.

    spent_s: the seconds of this session's trials, of each as often as it has nodes.

    first: a trial of every cell that may be measured. left_s: gives the seconds that are left for trials. planned: gets
    questions and trials that are added to the plan, before they are measured. decided: gets a question when it has
    reached a look and needs no more trials. open_suite: gives the suite whose cases all need one more look, or nothing.
    """

    def __init__(
        self,
        tally: Tally,
        first: Mapping[MatrixCell, PlannedTrial],
        asked: Sequence[PlannedQuestion],
        others: Sequence[PlannedQuestion],
        seed: int,
        left_s: Callable[[], float],
        planned: Callable[[Sequence[PlannedQuestion], Sequence[PlannedTrial]], None],
        decided: Callable[[PlannedQuestion], None] = lambda asked: None,
        repetitions: int | None = None,
        open_suite: Callable[[], str] = lambda: "",
    ) -> None:
        self.tally = tally
        self.asked = list(asked)
        self._first = first
        self._others = list(others)
        self._seed = seed
        self._left_s = left_s
        self._planned = planned
        self._decided = decided
        self._repetitions = repetitions or 0
        self._open_suite = open_suite
        # The duration of every trial of this session, divided by its expected duration.
        self._pace: list[float] = []
        self._run_here = 0
        self.spent_s = 0.0
        self._known: set[TrialId] = set()

    def __iter__(self) -> Iterator[PlannedTrial]:
        """The trials to run. The caller runs each trial before it asks for the next."""
        for look, questions in self._steps():
            yield from self._to(look, questions)

    def batches(self, left_s: Callable[[], float]) -> Iterator[list[PlannedTrial]]:
        """The trials to run, in batches. The caller runs all of a batch before it asks for the next.

        left_s: gives the seconds in which a trial may begin; the seconds for all trials are those of many at once.
        """
        for look, questions in self._steps():
            self._plan(look, questions)
            for numbers in ([1], range(2, look + 1)):  # the first tells which cells have no numbers
                batch = self._batch(questions, look, numbers, left_s())
                if batch:
                    yield batch
                for trial in batch:
                    self._run_here += 1
                    self._learn(trial)

    def _batch(
        self, questions: Sequence[PlannedQuestion], look: int, numbers: Iterable[int], longest_s: float
    ) -> list[PlannedTrial]:
        """The trials of these rounds that fit, each and all together."""
        batch, left_s = list[PlannedTrial](), self._left_s()
        for number in numbers:
            reachable = questions if number == 1 else self._fitting(questions, lambda question: look) or questions
            for trial in self._round(self._answerable(reachable), number):
                expected_s = self.expected_s(trial) * _MARGIN
                if not self._is_dead(trial) and expected_s <= min(longest_s, left_s / trial.case.nodes):
                    batch.append(trial)
                    left_s -= expected_s * trial.case.nodes
        return batch

    def _steps(self) -> Iterator[tuple[int, Sequence[PlannedQuestion]]]:
        """The looks to reach, with their questions. The caller runs the trials of each before it asks for the next."""
        yield LOOKS[0], self.asked
        while True:
            before = self._run_here
            if going := self._affordable():
                yield self._next_look(going), going
            if self._run_here > before:
                continue
            more = self._further()
            if not more:
                if self._repetitions > LOOKS[0]:
                    yield self._repetitions, self.asked
                yield from self._whole_looks()
                return
            self.asked += more
            yield LOOKS[0], more

    def _whole_looks(self) -> Iterator[tuple[int, Sequence[PlannedQuestion]]]:
        """The further looks at all cases of the open suite, as long as there is time for all of them."""
        for look in LOOKS[1:]:
            suite = self._open_suite()
            cells = {cell for cell, trial in self._first.items() if trial.case.suite == suite}
            questions = [question for question in self.asked if cells.intersection(question.cells)]
            if not questions or len(self._fitting(questions, lambda question: look)) < len(questions):  # noqa: B023
                return
            yield look, questions

    def expected_s(self, trial: PlannedTrial) -> float:
        """The seconds that a trial will take, at this session's pace."""
        if trial.unsupported:
            return 0.0
        recent = sorted(self._pace[-5:])
        pace = recent[len(recent) // 2] if len(recent) >= 3 else 1.0
        return trial.expected_s * pace + BETWEEN_S

    def open_questions(self) -> list[PlannedQuestion]:
        """The questions that more trials could answer."""
        return [
            question for question in self.asked if {*question.cells} <= {*self._first} and self.tally.is_open(question)
        ]

    def costs(self) -> Costs:
        """The costs of trials at this session's pace; environments cost nothing, as all of them are built."""
        return Costs({cell: self.expected_s(trial) for cell, trial in self._first.items()}, {})

    def _to(self, look: int, questions: Sequence[PlannedQuestion]) -> Iterator[PlannedTrial]:
        """The trials of rounds over the cells of these questions, until each cell has `look` trials.

        The first round has all questions; later rounds have the questions that can reach the look in time, or all
        questions, if none can.
        """
        self._plan(look, questions)
        for number in range(1, look + 1):
            reachable = questions if number == 1 else self._fitting(questions, lambda question: look) or questions
            for trial in self._round(self._answerable(reachable), number):
                if self._is_dead(trial) or not self._fits(trial):
                    continue
                yield trial
                self._run_here += 1
                self._learn(trial)

    def _answerable(self, questions: Sequence[PlannedQuestion]) -> list[PlannedQuestion]:
        """The questions without those that have no ratio, whatever their trials."""
        return [question for question in questions if not self.tally.has_no_ratio(question)]

    def _plan(self, look: int, questions: Sequence[PlannedQuestion]) -> None:
        """Add the trials up to a look to the plan."""
        rounds = range(1, look + 1)
        new = [trial for number in rounds for trial in self._round(questions, number) if trial.id not in self._known]
        self._known |= {trial.id for trial in new}
        self._planned(questions, new)

    def _is_dead(self, trial: PlannedTrial) -> bool:
        return self.tally.of.get(trial.cell, CellTally()).is_dead

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
        """The trials of a round that did not run yet, shuffled by the seed and the round's number."""
        cells = list(dict.fromkeys(cell for question in questions for cell in question.cells if cell in self._first))
        done = {cell: self.tally.of[cell].statuses for cell in cells if cell in self.tally.of}
        trials = [self._first[cell] for cell in cells if number not in done.get(cell, {})]
        trials = [trial.renamed(trial.id.repeated(number)) for trial in trials]
        trials = [trial for trial in trials if number == 1 or not trial.unsupported]
        random.Random(f"{self._seed} {number}").shuffle(trials)  # noqa: S311
        return trials

    def _fits(self, trial: PlannedTrial) -> bool:
        expected_s = self.expected_s(trial)
        return not expected_s or expected_s * _MARGIN <= self._left_s()

    def _learn(self, trial: PlannedTrial) -> None:
        record = self.tally.read(trial.id)
        if record and is_finding(record.status) and record.duration_s and trial.expected_s:
            self._pace.append(record.duration_s / trial.expected_s)
        self.spent_s += (record.duration_s or 0.0) * trial.case.nodes if record else 0.0
        for question in self.asked:
            if self._reaches_a_look(question, trial.cell) and not self.tally.is_open(question):
                self._decided(question)

    def _reaches_a_look(self, question: PlannedQuestion, cell: MatrixCell) -> bool:
        """Whether the trial that this cell has just had was the last that a question needed for a look."""
        return (
            cell in question.cells
            and self.tally.trials(cell) == self.tally.fewest(question)
            and self.tally.fewest(question) in LOOKS
            and not self.tally.is_dead(question)
        )

    def _affordable(self) -> list[PlannedQuestion]:
        """The open questions that can reach the nearest next look in time, by worth per second."""
        counted, open_questions = self.tally.counts(), self.open_questions()
        looks = {question.id: self._next_look([question]) for question in open_questions}
        priced = {question.id: self._price(question, counted, looks[question.id]) for question in open_questions}
        ordered = sorted(
            open_questions, key=lambda question: (-question.worth / max(priced[question.id], 1e-9), question.id)
        )
        chosen = self._fitting(ordered, lambda question: looks[question.id])
        fewest = min((looks[question.id] for question in chosen), default=0)
        return [question for question in chosen if looks[question.id] == fewest]

    def _next_look(self, questions: Sequence[PlannedQuestion]) -> int:
        fewest = min(self.tally.fewest(question) for question in questions)
        return next((look for look in LOOKS if look > fewest), LOOKS[-1])

    def _price(self, question: PlannedQuestion, counted: Mapping[MatrixCell, int], look: int) -> float:
        """The seconds until each cell of a question has `look` trials."""
        cells = [cell for cell in question.cells if cell in self._first]
        return sum(self.expected_s(self._first[cell]) * max(0, look - counted.get(cell, 0)) for cell in cells)

    def _further(self) -> list[PlannedQuestion]:
        """The next questions for which there is time, when no open question is left that more trials could answer."""
        chosen = next_questions(self._others, self.costs(), self._left_s() / _MARGIN, self.tally.counts())
        self._others = [question for question in self._others if question not in chosen]
        return [question for question in chosen if not self.tally.is_dead(question)]

    @property
    def others(self) -> list[PlannedQuestion]:
        """The questions for which there was no time."""
        return list(self._others)
