"""Truths about machines that are not normal, for benchmarks/truth.py: as benchmarks/known_truths.py has them.

Processes with modes, neighbours, environments that differ by session and day, rounded numbers, and rare stalls.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.known_truths import Draw, Random, Trials, difference, terms_of
from tsuishi.base.checkout import Checkout
from tsuishi.estimates.contrasts import ratio
from tsuishi.estimates.intervals import Round, Term
from tsuishi.estimates.samples import _rounding
from tsuishi.estimates.timed_blocks import TimedBlock, mean_step_s
from tsuishi.specs.questions import MAIN
from tsuishi.verdicts import baseline, family
from tsuishi.verdicts.family import Hypothesis

sys.path.insert(0, str(Checkout().workloads))
from common import timing

QUESTIONS = 6
LOOKS = (3, 6, 12)
SIDES = "ab"


def said(terms: Mapping[str, Mapping[str, Term]], trials: int) -> bool:
    """Whether one of the questions, a case each in two environments, says that they differ."""
    of, to = (terms[side] for side in SIDES)
    return any(
        each.against for each in family.decide([difference([of[case]], [to[case]], trials) for case in of], MAIN)
    )


def false_word(
    trials: Callable[[Random, int], Mapping[str, Trials]], looks: Sequence[int] = LOOKS, suites: bool = False
) -> Draw:
    """At some look at a growing run, one of QUESTIONS says that two equal environments differ.

    trials: draws the values of so many trials of each case. suites: each question is of its own suite.
    """

    def draw(random: Random) -> bool:
        grown = trials(random, looks[-1])
        return any(
            said(
                terms_of(
                    {side: {case: of[:look] for case, of in grown[side].items()} for side in SIDES}, suites=suites
                ),
                look,
            )
            for look in looks
        )

    return draw


def modes(apart: float) -> Callable[[Random, int], dict[str, dict[str, list[float]]]]:
    """Half of the processes take `apart` longer than the others; trials scatter by 0.5 % beside that."""

    def trials(random: Random, count: int) -> dict[str, dict[str, list[float]]]:
        return {
            side: {
                str(case): np.exp(
                    random.integers(0, 2, count) * math.log1p(apart) + random.normal(0, 0.005, count)
                ).tolist()
                for case in range(QUESTIONS)
            }
            for side in SIDES
        }

    return trials


def neighbour(random: Random, count: int) -> dict[str, dict[str, list[float]]]:
    """A neighbour that is there for 30 s and away for 30 s makes steps 1.5 times as long; a trial takes 6 s.

    Questions are measured one after the other up to each look, in shuffled order within rounds. Trials scatter by 1 %.
    """
    values: dict[str, dict[str, list[float]]] = {side: {str(case): [] for case in range(QUESTIONS)} for side in SIDES}
    now_s, before = random.uniform(0, 60), 0
    for look in LOOKS:
        for case in map(str, range(QUESTIONS)):
            for _ in range(before, min(look, count)):
                for side in random.permutation([*SIDES]).tolist():
                    beside_s = sum(1 for tick in np.arange(now_s, now_s + 6, 0.5) if tick % 60 < 30) / 12
                    values[side][case].append(math.exp(random.normal(0, 0.01)) * (1 + 0.5 * beside_s))
                    now_s += 6.0
        before = look
    return values


def noisier(random: Random, count: int) -> dict[str, dict[str, list[float]]]:
    """The trials of one environment scatter by 10 %, those of the other by 1 %."""
    return {
        side: {str(case): np.exp(random.normal(0, scatter, count)).tolist() for case in range(QUESTIONS)}
        for side, scatter in zip(SIDES, (0.1, 0.01), strict=True)
    }


def by_session(of_session: float) -> Callable[[Random, int], dict[str, dict[str, list[float]]]]:
    """Each environment is slower or faster in this session, in all of its cases alike; trials scatter by 1 %."""

    def trials(random: Random, count: int) -> dict[str, dict[str, list[float]]]:
        return {
            side: {str(case): np.exp(of_side + random.normal(0, 0.01, count)).tolist() for case in range(QUESTIONS)}
            for side, of_side in zip(SIDES, random.normal(0, of_session, 2), strict=True)
        }

    return trials


def slow_on_days(of_day: float, days: int = 3, trials: int = 3) -> Draw:
    """One of QUESTIONS says that two environments differ that were measured together on so many days.

    On each day each environment is slower or faster in all of its cases.
    """
    rounds = [Round(str(day), day * trials + number) for day in range(days) for number in range(trials)]

    def draw(random: Random) -> bool:
        values = {}
        for side in SIDES:
            of_days = np.repeat(random.normal(0, of_day, days), trials)
            values[side] = {
                str(case): np.exp(of_days + random.normal(0, 0.01, len(of_days))).tolist() for case in range(QUESTIONS)
            }
        return said(terms_of(values, rounds), days * trials)

    return draw


def slower_than_baseline(of_day: float, days: int, calls: int = 1, modes: float = 0.0) -> Draw:
    """A baseline says of one of ten equal cases that it became slower; on each day all cases are slower or faster.

    calls: that measure one after the other on each day. modes: half of the processes take so much longer.
    """

    def side(random: Random, name: str) -> dict[str, Term]:
        rounds: list[Round] = []
        of_calls: list[float] = []
        for day, shift in enumerate(random.normal(0, of_day, days)):
            rounds += [Round(f"{name} {day} {call}", len(rounds) + call, f"{name} {day}") for call in range(calls)]
            of_calls += [shift] * calls
        values = {
            str(case): np.exp(
                random.normal(of_calls, 0.003) + random.integers(0, 2, len(of_calls)) * math.log1p(modes)
            ).tolist()
            for case in range(10)
        }
        return terms_of({"a": values}, rounds)["a"]

    def draw(random: Random) -> bool:
        then, now = side(random, "then"), side(random, "now")
        measured = [(baseline.CaseQuantity(case, "a", "step_s"), then[case], now[case], False) for case in then]
        return any(pace.standing == "slower" for pace in baseline.decided(measured, 1.0))

    return draw


def rounded_missed(true: tuple[float, float], step: float, trials: int) -> Draw:
    """The interval of a ratio of two times does not have the true ratio, as the times were printed in such steps.

    Trials scatter by 1 %.
    """

    def draw(random: Random) -> bool:
        values = {
            side: {
                "0": [
                    round(round(value * math.exp(error) / step) * step, 9) for error in random.normal(0, 0.01, trials)
                ]
            }
            for side, value in zip(SIDES, true, strict=True)
        }
        terms = terms_of(values)
        of, to = (
            terms[side]["0"]._replace(rounding=-math.log1p(-_rounding(values[side]["0"]) / min(values[side]["0"])))
            for side in SIDES
        )
        interval = ratio(of, to).interval()
        return interval is None or not interval.low <= math.log(true[0] / true[1]) <= interval.high

    return draw


def stall_missed(trials: int, one_of: int) -> Draw:
    """The interval of two cases of the same mean step does not have 1: the steps of one stall once in so many.

    A step takes 50 ms, and stalls take a tenth of the time; a trial has blocks of 8 steps for 3.2 s, as in `quick`.
    """
    settings = {"min_blocks": 8, "measure_s": 3.2, "max_s": 12.0}
    stall_s = 0.005 * one_of

    def trial(random: Random, stalls: bool) -> float:
        blocks: list[float] = []
        while not timing._enough(blocks, sum(blocks), settings):
            steps = random.normal(0.05 if stalls else 0.055, 0.0005, 8)
            stalled = int((random.uniform(size=8) < 1 / one_of).sum()) if stalls else 0
            blocks.append(float(steps.sum()) + stall_s * stalled)
        return mean_step_s([TimedBlock(8, 8, seconds) for seconds in blocks])

    def draw(random: Random) -> bool:
        values = {side: [trial(random, side == "a") for _ in range(trials)] for side in SIDES}
        terms = terms_of({"one environment": values})["one environment"]
        interval = ratio(terms["a"], terms["b"]).interval()
        return interval is None or 0.0 not in interval

    return draw


def alike_by_few(trials: int, longer: float = 2.6) -> Draw:
    """Two programs are said to be alike, of which one takes 2.6 times as long in one of ten trials."""

    def draw(random: Random) -> bool:
        logs = {side: random.normal(0, 0.01, trials) for side in SIDES}
        logs["a"] += (random.uniform(size=trials) < 0.1) * math.log(longer)
        terms = terms_of({side: {"0": np.exp(of).tolist()} for side, of in logs.items()})
        asked: Hypothesis = difference([terms["a"]["0"]], [terms["b"]["0"]], trials)
        return family.decide([asked], MAIN)[0].holds

    return draw


def nothing(*args: object, **named: object) -> float:
    """A fault: there is no such error."""
    return 0.0


def calls_as_days(term: Term) -> dict[str, list[str]]:
    """A fault: every call is a day."""
    return {session: [session] for session in term.sessions}


def once_blocks_agree(seconds: Sequence[float], elapsed_s: float, settings: Mapping[str, float]) -> bool:
    """A fault: a trial ends once the mean over its blocks is known to 1 %, or after twice the time."""
    is_known = timing._mean_is_known(seconds, 0.01) or elapsed_s >= 2 * settings["measure_s"]
    return len(seconds) >= settings["min_blocks"] and is_known
