"""Rounds: which trial comes next, as long as there is time.

Every chosen case once, then again up to three trials; then what is still open, each question to its next look at 6, 12
and 24 trials; then further questions. Time runs out between trials, never inside a trial.
"""

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tsuishi.base.errors import UserError
from tsuishi.base.files import read_json, read_rows
from tsuishi.base.statuses import OK, is_finding
from tsuishi.plan.trials import PlannedTrial, cell_of, repeated
from tsuishi.plan.worth import BETWEEN_S, LOOKS, Costs, next_ones
from tsuishi.results.directory import RunDirectory
from tsuishi.results.run_files import read_trials
from tsuishi.specs.case import BATCH_SIZE, SUITE
from tsuishi.specs.questions import Asked, MatrixCell
from tsuishi.specs.source import Epochs, Source, epochs_of
from tsuishi.specs.trial_id import TrialId
from tsuishi.specs.vocabulary import Vocabulary

# An expected duration may be exceeded by so much before a trial no longer fits.
_MARGIN = 1.1
_TABLES = ("samples", "metrics")


@dataclass
class CellFindings:
    """What the trials of one cell came to, repetition by repetition: statuses, and values by quantity."""

    statuses: dict[int, str] = field(default_factory=dict)
    values: dict[str, dict[int, float]] = field(default_factory=dict)

    @property
    def trials(self) -> int:
        return len(self.statuses)

    @property
    def is_dead(self) -> bool:
        """Whether more trials would bring no number: its last one brought none."""
        return bool(self.statuses) and self.statuses[max(self.statuses)] != OK


class Findings:
    """What every cell of a run came to so far, read from its trials as they are committed.

    `judged` says whether the run so far has a verdict on a claim; `sources`, what a whole training is. What an earlier
    session left unfinished is as good as not tried.
    """

    def __init__(
        self,
        run: RunDirectory,
        words: Vocabulary,
        judged: Callable[[Asked], bool] = lambda asked: True,
        sources: Sequence[Source] = (),
    ) -> None:
        self._run = run
        self._words = words
        self._sources = sources
        self._judged = judged
        # By question, and by the number of trials at which it was looked at.
        self._verdicts: dict[tuple[str, int], bool] = {}
        self.of: dict[MatrixCell, CellFindings] = {}
        for path, trial in run.finished():
            if is_finding(trial["status"]):
                self._take(path, trial)

    def read(self, trial: PlannedTrial) -> dict[str, Any] | None:
        """Take in a trial that has just ended; its trial.json, None where there is none."""
        ids = (replace(trial.id, attempt=number) for number in itertools.count(1))
        attempts = itertools.takewhile(Path.exists, (self._run.trials / str(trial_id) for trial_id in ids))
        for path, ended in read_trials([*attempts][-1:], read_json):
            self._take(path, ended)
            return ended
        return None

    def trials(self, cell: MatrixCell) -> int:
        return self.of[cell].trials if cell in self.of else 0

    def counts(self) -> dict[MatrixCell, int]:
        """The number of trials of every cell."""
        return {cell: findings.trials for cell, findings in self.of.items()}

    def fewest(self, asked: Asked) -> int:
        """The number of trials of the question's cell that has the fewest."""
        return min(self.trials(cell) for cell in asked.cells)

    def is_dead(self, asked: Asked) -> bool:
        """Whether a question cannot be answered, as a cell of it brings no number."""
        return any(cell in self.of and self.of[cell].is_dead for cell in asked.cells)

    def is_open(self, asked: Asked) -> bool:
        """Whether more trials could answer a question that those so far do not."""
        fewest = self.fewest(asked)
        if self.is_dead(asked) or fewest >= LOOKS[-1]:
            return False
        if fewest < LOOKS[0]:
            return True
        if asked.compares:
            return not self.is_decided(asked)
        return bool(asked.claim) and not self._has_verdict(asked, fewest)

    def is_decided(self, asked: Asked) -> bool:
        """Whether the trials so far tell the two sides of a comparison apart, or find them alike."""
        from tsuishi.verdicts.answers import is_decided, ratio_of

        def values(side: Sequence[MatrixCell]) -> list[list[float]]:
            return [list(self.of[cell].values.get(asked.quantity, {}).values()) for cell in side if cell in self.of]

        return is_decided(ratio_of(values(asked.of), values(asked.to)))

    def _has_verdict(self, asked: Asked, trials: int) -> bool:
        key = asked.id, trials
        if key not in self._verdicts:
            self._verdicts[key] = self._judged(asked)
        return self._verdicts[key]

    def _take(self, path: Path, trial: Mapping[str, Any]) -> None:
        findings = self.of.setdefault(MatrixCell(trial["case_id"], trial["environment"]), CellFindings())
        findings.statuses[trial["repetition"]] = trial["status"]
        if trial["status"] == OK:
            axes = self._run.record(trial["case_record"])
            try:
                values = _values(path, axes, self._words, epochs_of(self._sources, axes))
            except (KeyError, TypeError, ValueError, ArithmeticError) as error:
                raise UserError(f"{path}: a table of it holds no numbers: {error}; remove the trial") from error
            for quantity, value in values.items():
                findings.values.setdefault(quantity, {})[trial["repetition"]] = value


def _values(trial: Path, axes: Mapping[str, Any], words: Vocabulary, whole: Epochs | None) -> dict[str, float]:
    """The quantities of a finished trial of a case with these axes, as the report reckons them."""
    from tsuishi.estimates.samples import Block, Described, phase_estimates, work_estimates

    rows = {name: read_rows(path) if (path := trial / f"{name}.csv").exists() else [] for name in _TABLES}
    phases: dict[str, list[Block]] = {}
    for row in rows["samples"]:
        block = Block(int(row["steps"]), int(row["images"]), float(row["seconds"]))
        phases.setdefault(row["phase"], []).append(block)
    metrics: dict[str, list[float]] = {}
    for row in rows["metrics"]:
        metrics.setdefault(row["name"], []).append(float(row["value"]))
    described, batch_size = Described(words, str(axes[SUITE])), axes.get(BATCH_SIZE)
    last = {name: values[-1] for name, values in metrics.items()}
    estimates = [*phase_estimates(phases, batch_size, whole, described, from_steps=False)]
    estimates += work_estimates(phases, last, batch_size)
    values = {estimate.quantity: estimate.value for estimate in estimates}
    for name, of_metric in metrics.items():
        values |= described.of_metric(name, of_metric)
    return values


class Rounds:
    """The trials of a run with a budget, one after the other, each chosen when the one before it has ended.

    `first`: a trial of every cell that may be measured, by cell. `left_s` says how many seconds are left for trials.
    `planned` is told what is added to the plan, before it is measured, and of which question.
    """

    def __init__(
        self,
        findings: Findings,
        first: Mapping[MatrixCell, PlannedTrial],
        asked: Sequence[Asked],
        others: Sequence[Asked],
        seed: int,
        left_s: Callable[[], float],
        planned: Callable[[Sequence[Asked], Sequence[PlannedTrial]], None],
    ) -> None:
        self.findings = findings
        self.asked = list(asked)
        self._first = first
        self._others = list(others)
        self._seed = seed
        self._left_s = left_s
        self._planned = planned
        # How much longer than expected the trials of this session took.
        self._pace: list[float] = []
        self._run_here = 0
        self._known: set[TrialId] = set()

    def __iter__(self) -> Iterator[PlannedTrial]:
        """Every trial to be run; whoever takes it has run it when asking for the next."""
        yield from self._to(LOOKS[0], self.asked)
        while True:
            before = self._run_here
            if going := self._affordable():
                yield from self._to(self._next_look(going), going)
            if self._run_here > before:
                continue
            more = self._further()
            if not more:
                return
            self.asked += more
            yield from self._to(LOOKS[0], more)

    def expected_s(self, trial: PlannedTrial) -> float:
        """Seconds that a trial will take, at this session's pace."""
        if trial.unsupported:
            return 0.0
        recent = sorted(self._pace[-5:])
        pace = recent[len(recent) // 2] if len(recent) >= 3 else 1.0
        return trial.expected_s * pace + BETWEEN_S

    def open_questions(self) -> list[Asked]:
        """The questions that more trials could answer."""
        measurable = [question for question in self.asked if {*question.cells} <= {*self._first}]
        return [question for question in measurable if self.findings.is_open(question)]

    def costs(self) -> Costs:
        """What trials cost at this session's pace; all environments are there."""
        return Costs({cell: self.expected_s(trial) for cell, trial in self._first.items()}, {})

    def _to(self, look: int, questions: Sequence[Asked]) -> Iterator[PlannedTrial]:
        """Rounds over the cells of these questions, until each cell has so many trials.

        The first round has all of them; those after it the questions that can still be brought to the look.
        """
        rounds = range(1, look + 1)
        new = [trial for number in rounds for trial in self._round(questions, number) if trial.id not in self._known]
        self._known |= {trial.id for trial in new}
        self._planned(questions, new)
        for number in rounds:
            for trial in self._round(questions if number == 1 else self._within_reach(questions, look), number):
                if self.findings.of.get(cell_of(trial), CellFindings()).is_dead or not self._fits(trial):
                    continue
                yield trial
                self._run_here += 1
                self._learn(trial)

    def _within_reach(self, questions: Sequence[Asked], look: int) -> Sequence[Asked]:
        """The questions whose cells can have so many trials in the time that is left, in their order; all, if none."""
        return self._fitting(questions, lambda question: look) or questions

    def _fitting(self, questions: Sequence[Asked], look_of: Callable[[Asked], int]) -> list[Asked]:
        """Question after question, those that can be brought to their look in what those before them leave."""
        counted, left_s, fitting = self.findings.counts(), self._left_s(), []
        for question in questions:
            look = look_of(question)
            price_s = self._price(question, counted, look) * _MARGIN
            if price_s <= left_s:
                left_s -= price_s
                counted |= {cell: max(look, counted.get(cell, 0)) for cell in question.cells}
                fitting.append(question)
        return fitting

    def _round(self, questions: Sequence[Asked], number: int) -> list[PlannedTrial]:
        """The trials of a round that are not done yet, in an order of their own that the seed decides."""
        cells = list(dict.fromkeys(cell for question in questions for cell in question.cells if cell in self._first))
        done = {cell: self.findings.of[cell].statuses for cell in cells if cell in self.findings.of}
        trials = [repeated(self._first[cell], number) for cell in cells if number not in done.get(cell, {})]
        trials = [trial for trial in trials if number == 1 or not trial.unsupported]
        random.Random(f"{self._seed} {number}").shuffle(trials)  # noqa: S311
        return trials

    def _fits(self, trial: PlannedTrial) -> bool:
        expected_s = self.expected_s(trial)
        return not expected_s or expected_s * _MARGIN <= self._left_s()

    def _learn(self, trial: PlannedTrial) -> None:
        ended = self.findings.read(trial)
        if ended and is_finding(ended["status"]) and ended["duration_s"] and trial.expected_s:
            self._pace.append(ended["duration_s"] / trial.expected_s)

    def _affordable(self) -> list[Asked]:
        """Of the open questions those that can be brought to their next look, by worth per second."""
        counted, open_questions = self.findings.counts(), self.open_questions()
        looks = {question.id: self._next_look([question]) for question in open_questions}
        priced = {question.id: self._price(question, counted, looks[question.id]) for question in open_questions}
        ordered = sorted(
            open_questions, key=lambda question: (-question.worth / max(priced[question.id], 1e-9), question.id)
        )
        chosen = self._fitting(ordered, lambda question: looks[question.id])
        fewest = min((looks[question.id] for question in chosen), default=0)
        return [question for question in chosen if looks[question.id] == fewest]

    def _next_look(self, questions: Sequence[Asked]) -> int:
        fewest = min(self.findings.fewest(question) for question in questions)
        return next((look for look in LOOKS if look > fewest), LOOKS[-1])

    def _price(self, question: Asked, counted: Mapping[MatrixCell, int], look: int) -> float:
        """Seconds until each of its cells has so many trials."""
        cells = [cell for cell in question.cells if cell in self._first]
        return sum(self.expected_s(self._first[cell]) * max(0, look - counted.get(cell, 0)) for cell in cells)

    def _further(self) -> list[Asked]:
        """The questions that come next, where those before them are answered, and fit."""
        chosen = next_ones(self._others, self.costs(), self._left_s() / _MARGIN, self.findings.counts())
        self._others = [question for question in self._others if question not in chosen]
        return [question for question in chosen if not self.findings.is_dead(question)]

    @property
    def others(self) -> list[Asked]:
        """The questions that were not come to."""
        return list(self._others)
