"""The outline of a run: its questions, its environments, its trials, and what more time would bring."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tsuishi.plan import trials as plan
from tsuishi.plan.choice import Choice
from tsuishi.plan.trials import Matrix, PlannedTrial
from tsuishi.plan.worth import BETWEEN_S, MOST_MAIN, Costs, Extension, choose_questions, rank, with_more_time
from tsuishi.specs.environment import Environment
from tsuishi.specs.questions import MatrixCell, PlannedQuestion


@dataclass(frozen=True)
class Outline:
    """What a run would measure. `trials` are planned at once; a run that has time left adds trials.

    `asked`: the main questions. `others`: the questions after them; `further` is the number of these that should fit.
    `costs`: expected seconds. `more`: what more time would bring.
    """

    matrix: Matrix = field(default_factory=lambda: Matrix({}, {}, ()))
    asked: tuple[PlannedQuestion, ...] = ()
    others: tuple[PlannedQuestion, ...] = ()
    trials: tuple[PlannedTrial, ...] = ()
    costs: Costs = field(default_factory=lambda: Costs({}, {}))
    further: int = 0
    more: tuple[Extension, ...] = ()

    @cached_property
    def counts(self) -> Counter[MatrixCell]:
        """How many trials of each cell are planned at once."""
        return Counter(trial.cell for trial in self.trials)

    @property
    def environments(self) -> tuple[str, ...]:
        """The names of the environments that its trials need, in the order of the matrix."""
        needed = {trial.environment for trial in self.trials}
        names = [possible.environment.name for possible in self.matrix.possible]
        return tuple(name for name in names if name in needed)

    @property
    def measuring_s(self) -> float:
        """Expected seconds of its trials."""
        return sum(trial.expected_s + (0.0 if trial.unsupported else BETWEEN_S) for trial in self.trials)

    @property
    def first_answer_s(self) -> float:
        """Expected seconds of the trials of the main question that a run within a time measures first."""
        first_look = {
            each.id: each.first_look * sum(map(self.costs.trial_s.__getitem__, each.cells)) for each in self.asked
        }
        first = max(self.asked, key=lambda each: rank(each, first_look[each.id]), default=None)
        return first_look[first.id] if first else 0.0

    @property
    def left_out(self) -> int:
        """How many cells that could be measured are not planned."""
        planned = {trial.cell for trial in self.trials}
        return sum(not trial.unsupported for cell, trial in self.matrix.first.items() if cell not in planned)


def outline(
    choice: Choice,
    matrix: Matrix,
    possible: Sequence[PlannedQuestion],
    build_s: Mapping[str, float],
    jobs: int,
    left_s: float,
) -> Outline:
    """What to measure in the seconds that are left for building and measuring; everything where they are infinite.

    possible: every question that could be asked. build_s: expected seconds, by environment, of builds that are still to
    be done. jobs: how many environments are built at once. Environments that the user named are built in any case.
    """
    costs = Costs({cell: trial.expected_s + BETWEEN_S for cell, trial in matrix.first.items()}, build_s, jobs)
    # The question how long a case takes is a main question only where there is no other question.
    main = [question for question in possible if question.kind != "measurement"] or possible
    if left_s == math.inf:
        asked = tuple(sorted(main, key=lambda question: (-question.worth, question.id))[:MOST_MAIN])
        rest = tuple(question for question in possible if question not in asked)
        return Outline(matrix, _named(asked), rest, tuple(plan.plan_trials(matrix, choice.seed)), costs)
    chosen = choose_questions(main, costs, left_s, choice.environments)
    asked = _named(chosen.questions)
    rest = tuple(question for question in possible if question not in chosen.questions)
    first = {cell: trial for cell, trial in matrix.first.items() if cell in chosen.counts}
    trials = tuple(plan.plan_trials(Matrix(first, chosen.counts, ()), choice.seed))
    left = [question for question in rest if question not in chosen.further]
    built = {name for question in (*asked, *chosen.further) for name in question.environments}
    more = tuple(with_more_time(left, costs, left_s - chosen.seconds, chosen.counts, {*built, *choice.environments}))
    return Outline(matrix, asked, rest, trials, costs, len(chosen.further), more)


def _named(asked: Sequence[PlannedQuestion]) -> tuple[PlannedQuestion, ...]:
    return tuple(question.model_copy(update={"main": True}) for question in asked)


def environments_in(outlined: Outline, chosen: Sequence[Environment]) -> tuple[Environment, ...]:
    """The environments, of those in `chosen`, that the outline needs."""
    needed = {*outlined.environments}
    return tuple(environment for environment in chosen if environment.name in needed)
