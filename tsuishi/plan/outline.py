"""The outline of a run: its questions, environments and trials, and what is left out, before anything long starts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tsuishi.plan import trials as plan
from tsuishi.plan.choice import Choice
from tsuishi.plan.trials import Matrix, PlannedTrial
from tsuishi.plan.worth import (
    BETWEEN_S,
    LOOKS,
    MOST_MAIN,
    Costs,
    Extension,
    QuestionChoice,
    choose,
    with_more_time,
)
from tsuishi.specs.environment import Environment
from tsuishi.specs.questions import Asked, MatrixCell


@dataclass(frozen=True)
class Outline:
    """What would be measured. `trials`: those that are planned at once; a run with time left adds to them.

    `asked`: the main questions; `others`: those that come after them, of which so many `further` ones should fit.
    `costs` are expected seconds.
    """

    matrix: Matrix
    asked: tuple[Asked, ...]
    others: tuple[Asked, ...]
    trials: tuple[PlannedTrial, ...]
    costs: Costs
    further: int = 0
    more: tuple[Extension, ...] = ()

    @property
    def environments(self) -> tuple[str, ...]:
        """The names of those that its trials need, in the matrix' order."""
        needed = {trial.environment for trial in self.trials}
        names = [possible.environment.name for possible in self.matrix.possible]
        return tuple(name for name in names if name in needed)

    @property
    def measuring_s(self) -> float:
        """Expected seconds of its trials."""
        return sum(trial.expected_s + (0.0 if trial.unsupported else BETWEEN_S) for trial in self.trials)

    @property
    def left_out(self) -> int:
        """How many cells that could be measured are not planned."""
        planned = {plan.cell_of(trial) for trial in self.trials}
        return sum(not trial.unsupported for cell, trial in self.matrix.first.items() if cell not in planned)


def outline(
    choice: Choice,
    matrix: Matrix,
    possible: Sequence[Asked],
    build_s: Mapping[str, float],
    jobs: int,
    left_s: float,
) -> Outline:
    """What to measure in the seconds that are left for building and measuring; all of it where they are infinite.

    possible: every question that could be asked. build_s: of the environments that are not there. Those that the user
    named are made in any case.
    """
    costs = Costs({cell: trial.expected_s + BETWEEN_S for cell, trial in matrix.first.items()}, build_s, jobs)
    # How long a case takes is a main question only where there is no other.
    main = [question for question in possible if question.kind != "measurement"] or possible
    if left_s == math.inf:
        asked = tuple(sorted(main, key=lambda question: (-question.worth, question.id))[:MOST_MAIN])
        rest = tuple(question for question in possible if question not in asked)
        return Outline(matrix, _named(asked), rest, tuple(plan.plan_trials(matrix, choice.seed)), costs)
    chosen = choose(main, costs, left_s, choice.environments)
    asked = _named(chosen.questions)
    rest = tuple(question for question in possible if question not in chosen.questions)
    trials = tuple(_trials(matrix, chosen, choice.seed))
    fitting = (*asked, *chosen.further)
    spent = costs.building_s({*choice.environments, *(name for question in fitting for name in question.environments)})
    spare_s = left_s - spent - sum(costs.trial_s[plan.cell_of(trial)] for trial in trials)
    done = dict.fromkeys((cell for question in chosen.further for cell in question.cells), LOOKS[0])
    done |= {cell: chosen.trials for question in asked for cell in question.cells}
    left = [question for question in rest if question not in chosen.further]
    more = tuple(with_more_time(left, costs, spare_s, done))
    return Outline(matrix, asked, rest, trials, costs, len(chosen.further), more)


def _named(asked: Sequence[Asked]) -> tuple[Asked, ...]:
    return tuple(question.model_copy(update={"main": True}) for question in asked)


def _trials(matrix: Matrix, chosen: QuestionChoice, seed: int) -> list[PlannedTrial]:
    """The trials of the chosen questions, as many as they are given time for."""
    counts: dict[MatrixCell, int] = dict.fromkeys(
        (cell for question in chosen.further for cell in question.cells), LOOKS[0]
    )
    for question in chosen.questions:
        for cell in question.cells:
            counts[cell] = max(
                counts.get(cell, 0), chosen.trials if question.compares else min(chosen.trials, LOOKS[0])
            )
    first = {cell: trial for cell, trial in matrix.first.items() if cell in counts}
    return plan.plan_trials(Matrix(first, counts, ()), seed)


def environments_in(outlined: Outline, chosen: Sequence[Environment]) -> tuple[Environment, ...]:
    """Of the environments that could be made, those that the outline needs."""
    needed = {*outlined.environments}
    return tuple(environment for environment in chosen if environment.name in needed)
