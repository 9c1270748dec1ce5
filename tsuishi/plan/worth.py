"""Which questions a given time is spent on: by what their answers are worth per second. Pure functions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tsuishi.specs.questions import Asked, MatrixCell

# What passes between two trials, in seconds: writing the last one down, starting the next one's telemetry.
BETWEEN_S = 0.3
# Numbers of trials at which a comparison is looked at; the first is the fewest that anything rests on.
LOOKS = (3, 6, 12, 24)
# A plan should leave room for an open comparison to get here, or its questions are too many (docs/method.md).
_WANTED = LOOKS[1]
# How many questions a plan names as its main ones.
MOST_MAIN = 6
_FEWEST_MAIN = 3
# The same question in a further environment is worth so much of what it was worth before.
_AGAIN = 0.5
# What costs less is as good as free, and its worth alone counts.
_LEAST_S = 1.0


@dataclass(frozen=True)
class Costs:
    """Expected seconds: of a trial of each cell, and of building each environment that is not there (else 0).

    `jobs`: how many environments are built at once.
    """

    trial_s: Mapping[MatrixCell, float]
    build_s: Mapping[str, float]
    jobs: int = 1

    def building_s(self, environments: Collection[str]) -> float:
        """Of several environments, as many at once as may be."""
        each = [self.build_s.get(name, 0.0) for name in environments]
        return max(max(each, default=0.0), sum(each) / self.jobs)

    def measuring_s(self, trials: Mapping[MatrixCell, int]) -> float:
        """Of so many trials of each cell."""
        return sum(self.trial_s[cell] * count for cell, count in trials.items())


class QuestionChoice(NamedTuple):
    """The main questions that fit, how many trials a cell of each comparison is given, and what fits beside them."""

    questions: tuple[Asked, ...]
    trials: int
    further: tuple[Asked, ...] = ()


def choose(
    candidates: Sequence[Asked], costs: Costs, left_s: float, environments: Collection[str] = ()
) -> QuestionChoice:
    """The main questions: those worth most per second, few enough that open ones reach six trials.

    Where fewer than three questions fit so, each gets three trials; where none does, one trial, on which no verdict
    rests. `environments`: those that are made in any case. The same arguments give the same answer.
    """
    wanted, least = (
        QuestionChoice(_greedy(candidates, costs, left_s, trials, environments), trials)
        for trials in (_WANTED, LOOKS[0])
    )
    if wanted.questions and len(wanted.questions) >= min(_FEWEST_MAIN, len(least.questions)):
        return wanted._replace(further=_beside(candidates, costs, left_s, wanted, environments))
    if least.questions:
        return least
    return QuestionChoice(_greedy(candidates, costs, left_s, 1, environments), 1)


def _beside(
    candidates: Sequence[Asked], costs: Costs, left_s: float, chosen: QuestionChoice, environments: Collection[str]
) -> tuple[Asked, ...]:
    """What fits beside six main questions, with three trials a cell: its environments are worth building too."""
    if len(chosen.questions) < MOST_MAIN:
        return ()
    counted: dict[MatrixCell, int] = {}
    for question in chosen.questions:
        for cell in question.cells:
            counted[cell] = max(counted.get(cell, 0), _target(question, chosen.trials))
    made = {*environments, *(name for question in chosen.questions for name in question.environments)}
    spent_s = costs.measuring_s(counted)
    rest = [question for question in candidates if question not in chosen.questions]
    return _greedy(rest, costs, left_s - spent_s, LOOKS[0], made, counted, most=len(rest))


def next_ones(
    candidates: Sequence[Asked], costs: Costs, left_s: float, done: Mapping[MatrixCell, int]
) -> tuple[Asked, ...]:
    """Further questions, where those before them are answered: with three trials a cell, of which some are `done`."""
    return _greedy(candidates, costs, left_s, LOOKS[0], (), done)


class Extension(NamedTuple):
    """What becomes possible with so many seconds more: the ids of questions."""

    seconds: float
    questions: tuple[str, ...]


def with_more_time(
    candidates: Sequence[Asked], costs: Costs, spare_s: float, done: Mapping[MatrixCell, int], most: int = 3
) -> list[Extension]:
    """What the next minutes would bring: the next questions by worth per second, each step with the time it takes.

    `spare_s`: what is left of the time as it is. Open questions among the candidates get the trials to their next look.
    """
    extensions: list[Extension] = []
    counted, environments, needed = dict(done), set[str](), -spare_s
    left = list(candidates)
    while left and len(extensions) < most:
        trials = {question.id: _missing(question, counted, _next_look(question, counted)) for question in left}
        priced = {question.id: _price(question, costs, trials[question.id], environments) for question in left}
        best = max(left, key=lambda question: (question.worth / max(priced[question.id], _LEAST_S), question.id))
        left.remove(best)
        needed += priced[best.id]
        environments |= {*best.environments}
        for cell, count in trials[best.id].items():
            counted[cell] = counted.get(cell, 0) + count
        extensions.append(Extension(max(0.0, needed), (best.id,)))
    return extensions


def _greedy(
    candidates: Sequence[Asked],
    costs: Costs,
    left_s: float,
    trials: int,
    environments: Collection[str],
    done: Mapping[MatrixCell, int] | None = None,
    most: int = MOST_MAIN,
) -> tuple[Asked, ...]:
    """One question after the other, the one worth most per second of what it adds, while it fits.

    A question that shares cells or environments with those chosen adds less.
    """
    chosen: list[Asked] = []
    made, counted = set(environments), dict(done or {})
    spent_s = costs.building_s(made)
    left = list(candidates)
    while left and len(chosen) < most and spent_s <= left_s:
        added = {question.id: _missing(question, counted, _target(question, trials)) for question in left}
        priced = {question.id: _price(question, costs, added[question.id], made) for question in left}
        fitting = [question for question in left if spent_s + priced[question.id] <= left_s]
        if not fitting:
            break
        best = max(
            fitting, key=lambda question: (_worth(question, chosen) / max(priced[question.id], _LEAST_S), question.id)
        )
        chosen.append(best)
        left.remove(best)
        spent_s += priced[best.id]
        made |= {*best.environments}
        for cell, count in added[best.id].items():
            counted[cell] = counted.get(cell, 0) + count
    return tuple(chosen)


def _worth(question: Asked, chosen: Sequence[Asked]) -> float:
    """What an answer is worth beside those that are chosen already."""
    return question.worth * _AGAIN ** sum(other.stem == question.stem for other in chosen)


def _target(question: Asked, trials: int) -> int:
    """How many trials a cell of a question gets: only comparisons stay open after the first look."""
    return trials if question.compares else min(trials, LOOKS[0])


def _next_look(question: Asked, done: Mapping[MatrixCell, int]) -> int:
    fewest = min(done.get(cell, 0) for cell in question.cells)
    return next((look for look in LOOKS if look > fewest), fewest)


def _missing(question: Asked, done: Mapping[MatrixCell, int], target: int) -> dict[MatrixCell, int]:
    return {cell: count for cell in question.cells if (count := target - done.get(cell, 0)) > 0}


def _price(question: Asked, costs: Costs, trials: Mapping[MatrixCell, int], made: Collection[str]) -> float:
    """Seconds that a question adds to what is chosen already."""
    building_s = costs.building_s({*made, *question.environments}) - costs.building_s(made)
    return building_s + costs.measuring_s(trials)
