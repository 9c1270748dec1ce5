"""Chooses the questions for a given time, by the worth of their answers per second. Pure functions."""

import math
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
    """The main questions that fit. `trials`: for a cell of a comparison. `further`: questions that fit beside them.

    `counts`: the trials of all of these, by cell; `seconds`: those of their builds and trials.
    """

    questions: tuple[PlannedQuestion, ...]
    trials: int
    further: tuple[PlannedQuestion, ...]
    counts: dict[MatrixCell, int]
    seconds: float


class _Basket:
    """Takes questions one after the other: each adds only the builds and trials that those before it did not bring.

    environments: those that are built in any case. done: trials so far, by cell. before: questions chosen already.
    """

    def __init__(
        self,
        candidates: Iterable[PlannedQuestion],
        costs: Costs,
        environments: Iterable[str] = (),
        done: Mapping[MatrixCell, int] | None = None,
        before: Iterable[PlannedQuestion] = (),
    ) -> None:
        self.left = list(candidates)
        self.taken: list[PlannedQuestion] = []
        self._before = [*before]
        self._costs = costs
        self._environments = {*environments}
        self.counts = dict(done or {})
        self.seconds = costs.building_s(self._environments)

    def price_s(self, question: PlannedQuestion, trials: int) -> float:
        """Seconds that a question adds, with so many trials of each of its cells."""
        made, counts = self._environments, self.counts
        building_s = self._costs.building_s({*made, *question.environments}) - self._costs.building_s(made)
        missing = {cell: trials - counts.get(cell, 0) for cell in question.cells if trials > counts.get(cell, 0)}
        return building_s + self._costs.measuring_s(missing)

    def take(self, question: PlannedQuestion, trials: int) -> None:
        """Take a question, with so many trials of each of its cells."""
        self.seconds += self.price_s(question, trials)
        self.left.remove(question)
        self.taken.append(question)
        self._environments |= {*question.environments}
        self.counts |= {cell: max(trials, self.counts.get(cell, 0)) for cell in question.cells}

    def fill(self, left_s: float, trials: int, most: float = MOST_MAIN) -> None:
        """Take question after question, always that of the highest rank of those that fit `left_s`.

        trials: for a cell of a comparison. most: of questions; claims that no question is about yet come beyond it.
        """
        while self.seconds <= left_s:
            prices = {question.id: self.price_s(question, _target(question, trials)) for question in self.left}
            fitting = [question for question in self.left if self.seconds + prices[question.id] <= left_s]
            if not fitting:
                break
            before = [*self._before, *self.taken]
            ranks = {question.id: rank(question, prices[question.id], before) for question in fitting}
            best = max(fitting, key=lambda question: ranks[question.id])
            is_new_claim, *_ = ranks[best.id]
            if len(self.taken) >= most and not is_new_claim:
                break
            self.take(best, _target(best, trials))


def choose_questions(
    candidates: Sequence[PlannedQuestion], costs: Costs, left_s: float, environments: Collection[str] = ()
) -> QuestionChoice:
    """The main questions: those with the most worth per second, so few that each comparison can have six trials.

    If six fit in this way, further questions fit beside them, with three trials for a cell; builds for them are worth
    it. If less than three questions fit, each has three trials. If none fits, each has one trial, which is not enough
    for a verdict. `environments`: those that are built in any case. Equal arguments give equal results.
    """

    def filled(trials: int) -> _Basket:
        basket = _Basket(candidates, costs, environments)
        basket.fill(left_s, trials)
        return basket

    trials, basket, least = _WANTED, filled(_WANTED), filled(LOOKS[0])
    if not basket.taken or len(basket.taken) < min(_FEWEST_MAIN, len(least.taken)):
        trials, basket = (LOOKS[0], least) if least.taken else (1, filled(1))
    main = tuple(basket.taken)
    if trials == _WANTED and len(main) >= MOST_MAIN:
        basket.fill(left_s, LOOKS[0], math.inf)
    return QuestionChoice(main, trials, tuple(basket.taken[len(main) :]), basket.counts, basket.seconds)


def next_questions(
    candidates: Sequence[PlannedQuestion],
    costs: Costs,
    left_s: float,
    done: Mapping[MatrixCell, int],
    asked: Sequence[PlannedQuestion] = (),
) -> tuple[PlannedQuestion, ...]:
    """The next questions after those that are `asked`, with three trials for a cell. `done`: trials so far, by cell."""
    basket = _Basket(candidates, costs, done=done, before=asked)
    basket.fill(left_s, LOOKS[0])
    return tuple(basket.taken)


class Extension(NamedTuple):
    """A question for which so many more seconds are enough."""

    seconds: float
    question: PlannedQuestion


def with_more_time(
    candidates: Sequence[PlannedQuestion],
    costs: Costs,
    spare_s: float,
    done: Mapping[MatrixCell, int],
    environments: Iterable[str] = (),
    most: int = 3,
) -> list[Extension]:
    """The next questions by worth per second, each with the seconds of it and of those before it; at most `most`.

    `spare_s`: the seconds that are left without more time. A candidate that has trials gets those to its next look.
    `environments`: those that are built before.
    """
    extensions: list[Extension] = []
    basket = _Basket(candidates, costs, environments, done)
    spare_s += basket.seconds
    while basket.left and len(extensions) < most:
        fewest = {each.id: min(basket.counts.get(cell, 0) for cell in each.cells) for each in basket.left}
        looks = {each.id: next_look(each, fewest[each.id]) for each in basket.left}
        best = max(basket.left, key=lambda question: rank(question, basket.price_s(question, looks[question.id])))
        basket.take(best, looks[best.id])
        extensions.append(Extension(max(0.0, basket.seconds - spare_s), best))
    return extensions


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
