"""Chooses the questions for a given time, by the worth of their answers per second. Pure functions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tsuishi.specs.questions import LOOKS, MatrixCell, PlannedQuestion

# Seconds between two trials, for the record of the first and the start of telemetry for the second.
BETWEEN_S = 0.3
# A plan leaves time for so many trials of each comparison; for more questions it would not (docs/method.md).
_WANTED = LOOKS[1]
# The most main questions of a plan, beside claims that the machine can judge, and the fewest for which it leaves time
# for _WANTED trials.
MOST_MAIN = 6
_FEWEST_MAIN = 3
# The worth of a question is multiplied by this for each environment in which it is chosen already.
_AGAIN = 0.5
# Questions that cost less seconds count as this expensive, so that their worth decides.
_LEAST_S = 1.0


@dataclass(frozen=True)
class Costs:
    """Expected seconds: of a trial of each cell, and of the build of each environment (0 where it is built).

    `jobs`: how many environments are built at once.
    """

    trial_s: Mapping[MatrixCell, float]
    build_s: Mapping[str, float]
    jobs: int = 1

    def building_s(self, environments: Collection[str]) -> float:
        """Expected seconds to build these environments, `jobs` of them at once."""
        each = [self.build_s.get(name, 0.0) for name in environments]
        return max(max(each, default=0.0), sum(each) / self.jobs)

    def measuring_s(self, trials: Mapping[MatrixCell, int]) -> float:
        """Expected seconds of these numbers of trials, by cell."""
        return sum(self.trial_s[cell] * count for cell, count in trials.items())


class QuestionChoice(NamedTuple):
    """The main questions that fit. `trials`: for a cell of a comparison. `further`: questions that fit beside them."""

    questions: tuple[PlannedQuestion, ...]
    trials: int
    further: tuple[PlannedQuestion, ...] = ()

    def counts(self) -> dict[MatrixCell, int]:
        """The number of trials by cell."""
        counts: dict[MatrixCell, int] = {}
        for questions, trials in ((self.further, LOOKS[0]), (self.questions, self.trials)):
            for question in questions:
                for cell in question.cells:
                    counts[cell] = max(counts.get(cell, 0), _target(question, trials))
        return counts


def choose_questions(
    candidates: Sequence[PlannedQuestion], costs: Costs, left_s: float, environments: Collection[str] = ()
) -> QuestionChoice:
    """The main questions: those with the most worth per second, so few that each comparison can have six trials.

    If less than three questions fit in this way, each has three trials. If none fits, each has one trial, which is not
    enough for a verdict. `environments`: those that are built in any case. Equal arguments give equal results.
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
    candidates: Sequence[PlannedQuestion],
    costs: Costs,
    left_s: float,
    chosen: QuestionChoice,
    environments: Collection[str],
) -> tuple[PlannedQuestion, ...]:
    """The questions that fit beside six main questions, with three trials for a cell. Builds for them are worth it."""
    if len(chosen.questions) < MOST_MAIN:
        return ()
    counted = chosen.counts()
    made = {*environments, *(name for question in chosen.questions for name in question.environments)}
    left_s -= costs.measuring_s(counted)
    rest = [question for question in candidates if question not in chosen.questions]
    return _greedy(rest, costs, left_s, LOOKS[0], made, counted, most=len(rest), before=chosen.questions)


def next_questions(
    candidates: Sequence[PlannedQuestion],
    costs: Costs,
    left_s: float,
    done: Mapping[MatrixCell, int],
    asked: Sequence[PlannedQuestion] = (),
) -> tuple[PlannedQuestion, ...]:
    """The next questions after those that are `asked`, with three trials for a cell. `done`: trials so far, by cell."""
    return _greedy(candidates, costs, left_s, LOOKS[0], (), done, before=asked)


class Extension(NamedTuple):
    """A question for which so many more seconds are enough."""

    seconds: float
    question: PlannedQuestion


def with_more_time(
    candidates: Sequence[PlannedQuestion], costs: Costs, spare_s: float, done: Mapping[MatrixCell, int], most: int = 3
) -> list[Extension]:
    """The next questions by worth per second, each with the seconds of it and of those before it; at most `most`.

    `spare_s`: the seconds that are left without more time. A candidate that has trials gets those to its next look.
    """
    extensions: list[Extension] = []
    counted, environments, needed = dict(done), set[str](), -spare_s
    left = list(candidates)
    while left and len(extensions) < most:
        looks = {each.id: next_look(each, min(counted.get(cell, 0) for cell in each.cells)) for each in left}
        trials = {question.id: _missing(question, counted, looks[question.id]) for question in left}
        priced = {question.id: _price(question, costs, trials[question.id], environments) for question in left}
        best = max(left, key=lambda question: rank(question, priced[question.id]))
        left.remove(best)
        needed += priced[best.id]
        environments |= {*best.environments}
        for cell, count in trials[best.id].items():
            counted[cell] = counted.get(cell, 0) + count
        extensions.append(Extension(max(0.0, needed), best))
    return extensions


def _greedy(
    candidates: Sequence[PlannedQuestion],
    costs: Costs,
    left_s: float,
    trials: int,
    environments: Collection[str],
    done: Mapping[MatrixCell, int] | None = None,
    most: int = MOST_MAIN,
    before: Sequence[PlannedQuestion] = (),
) -> tuple[PlannedQuestion, ...]:
    """Chooses question after question, always that of the highest rank, while they fit `left_s`.

    A question that shares cells or environments with the chosen questions adds fewer seconds. `trials`: for a cell of a
    comparison. `environments`: those that are built in any case. `done`: trials so far, by cell. `most`: of questions;
    claims that no question is about yet are chosen beyond it. `before`: the questions that are chosen already.
    """
    chosen: list[PlannedQuestion] = []
    made, counted = set(environments), dict(done or {})
    spent_s = costs.building_s(made)
    left = list(candidates)
    while left and spent_s <= left_s:
        added = {question.id: _missing(question, counted, _target(question, trials)) for question in left}
        priced = {question.id: _price(question, costs, added[question.id], made) for question in left}
        fitting = [question for question in left if spent_s + priced[question.id] <= left_s]
        if not fitting:
            break
        ranks = {question.id: rank(question, priced[question.id], [*before, *chosen]) for question in fitting}
        best = max(fitting, key=lambda question: ranks[question.id])
        is_new_claim, *_ = ranks[best.id]
        if len(chosen) >= most and not is_new_claim:
            break
        chosen.append(best)
        left.remove(best)
        spent_s += priced[best.id]
        made |= {*best.environments}
        for cell, count in added[best.id].items():
            counted[cell] = counted.get(cell, 0) + count
    return tuple(chosen)


def rank(question: PlannedQuestion, price_s: float, before: Iterable[PlannedQuestion] = ()) -> tuple[bool, float, str]:
    """The rank of a question among others, the largest first: claims, which this machine can judge, then others.

    Of each, the question with the most worth for its seconds. before: questions that are chosen already. A question
    that is asked again, of another environment, is worth less, and is no claim that still has to be judged.
    """
    again = sum(other.stem == question.stem for other in before)
    return bool(question.claim) and not again, question.worth * _AGAIN**again / max(price_s, _LEAST_S), question.id


def counted_on(question: PlannedQuestion) -> int:
    """The trials of each cell for which a plan leaves time, where there is enough."""
    return _target(question, _WANTED)


def _target(question: PlannedQuestion, trials: int) -> int:
    """The number of trials for a cell of a question. Only comparisons stay open after the first look."""
    return trials if question.compares else min(trials, question.first_look)


def next_look(question: PlannedQuestion, fewest: int) -> int:
    """The trials of each cell at the next look, from those of the cell with the fewest."""
    return next((look for look in (question.first_look, *LOOKS) if look > fewest), LOOKS[-1])


def _missing(question: PlannedQuestion, done: Mapping[MatrixCell, int], target: int) -> dict[MatrixCell, int]:
    return {cell: count for cell in question.cells if (count := target - done.get(cell, 0)) > 0}


def _price(question: PlannedQuestion, costs: Costs, trials: Mapping[MatrixCell, int], made: Collection[str]) -> float:
    """Seconds that a question adds: `trials` by cell, and builds beside the environments in `made`."""
    building_s = costs.building_s({*made, *question.environments}) - costs.building_s(made)
    return building_s + costs.measuring_s(trials)
