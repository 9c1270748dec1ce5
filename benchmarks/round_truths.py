"""Truths about rounds, sessions and device limits for benchmarks/truth.py: as benchmarks/known_truths.py has them."""

import math
from typing import NamedTuple

import numpy as np

from benchmarks.known_truths import Draw, Random
from tsuishi.estimates import roofline, unseen
from tsuishi.estimates.contrasts import ratio
from tsuishi.estimates.intervals import Round
from tsuishi.estimates.steadiness import SessionChange, TrialTime, session_changes
from tsuishi.estimates.terms import Terms, case_terms
from tsuishi.verdicts.fit_checks import _fitted

CASES = 8
SCATTER = 0.01


def drawn(
    random: Random, trials: int, of_round: float = 0.0, of_session: float = 0.0, sessions: int = 1, apart: bool = False
) -> Terms:
    """CASES cases in environments a and b, which differ in nothing; trials scatter by SCATTER.

    of_round: the scatter of what all trials of a round share. of_session: of what all trials of an environment and
    session share. apart: each environment has sessions of its own.
    """
    shared = random.normal(0, of_round, sessions * trials)
    values, rounds = {}, {}
    for side in "ab":
        key = ("s", "steady", side, "step_s")
        known = [Round(f"{side if apart else ''}{day}", number) for day in range(sessions) for number in range(trials)]
        of_side = shared + np.repeat(random.normal(0, of_session, sessions), trials)
        cases = random.normal(of_side, SCATTER, (CASES, len(known)))
        values[key] = {str(case): np.exp(logs).tolist() for case, logs in enumerate(cases)}
        rounds[key] = {str(case): known for case in range(CASES)}
    return case_terms(values, rounds=rounds)


def slow_rounds_missed(trials: int, of_round: float, level: float = 0.05) -> Draw:
    """The interval of an A/A ratio does not have 1, where rounds share some of their time."""

    def draw(random: Random) -> bool:
        terms = drawn(random, trials, of_round)
        interval = ratio(terms["0", "a", "step_s"], terms["0", "b", "step_s"]).interval(1 - level)
        return interval is None or 0.0 not in interval

    return draw


def slow_sessions_missed(of_session: float, apart: bool) -> Draw:
    """The same over three sessions of five trials, in each of which an environment is slower or faster."""

    def draw(random: Random) -> bool:
        terms = drawn(random, 5, SCATTER, of_session, sessions=3, apart=apart)
        interval = ratio(terms["0", "a", "step_s"], terms["0", "b", "step_s"]).interval()
        return interval is None or 0.0 not in interval

    return draw


def one_session_apart_decided() -> Draw:
    """Environments that were measured in a session of their own, which scatter by 3 %, are said to differ."""

    def draw(random: Random) -> bool:
        terms = drawn(random, 10, 0.0, 0.03, sessions=1, apart=True)
        interval = ratio(terms["0", "a", "step_s"], terms["0", "b", "step_s"]).interval()
        return interval is not None and 0.0 not in interval

    return draw


class Warming(NamedTuple):
    """A session of three rounds over CASES cases in two environments, six seconds a trial in a shuffled order."""

    terms: Terms
    changes: list[SessionChange]


def warming(random: Random, warms: float) -> Warming:
    """warms: by so much steps become slower over the first five minutes."""
    values: dict[str, dict[str, list[float]]] = {side: {str(case): [] for case in range(CASES)} for side in "ab"}
    times, now_s = [], 0.0
    for _ in range(3):
        for place in random.permutation(2 * CASES):
            side, case = "ab"[place % 2], str(place // 2)
            step_s = math.exp(warms * min(1.0, now_s / 300) + random.normal(0, SCATTER))
            values[side][case].append(step_s)
            times.append(TrialTime("1", side, case, now_s, step_s))
            now_s += 6.0
    keys = {side: ("s", "steady", side, "step_s") for side in values}
    rounds = {
        key: {str(case): [Round("1", number) for number in range(3)] for case in range(CASES)} for key in keys.values()
    }
    terms = case_terms({keys[side]: of_side for side, of_side in values.items()}, rounds=rounds)
    return Warming(terms, session_changes(times))


def warming_unsaid() -> Draw:
    """Of a machine that becomes 5 % slower over five minutes, nothing is said in some environment."""

    def draw(random: Random) -> bool:
        changes = warming(random, 0.05).changes
        return len(changes) < 2 or not all(change.matters for change in changes)

    return draw


def steady_called_warming() -> Draw:
    """Of a machine that is steady it is said, in one of two environments, that it is not."""

    def draw(random: Random) -> bool:
        return any(change.matters for change in warming(random, 0.0).changes)

    return draw


def ratio_missed_while_warming() -> Draw:
    """The interval of an A/A ratio does not have 1, on a machine that becomes 5 % slower."""

    def draw(random: Random) -> bool:
        terms = warming(random, 0.05).terms
        interval = ratio(terms["0", "a", "step_s"], terms["0", "b", "step_s"]).interval()
        return interval is None or 0.0 not in interval

    return draw


def in_turn(random: Random, warms: float, over_s: float, questions: int) -> Terms:
    """Questions of two cases, three rounds each, that a session measures one after the other, six seconds a trial.

    warms: by so much steps become slower, evenly over so many seconds. The cases of question 1 are 1a and 1b.
    """
    key, now_s = ("s", "steady", "a", "step_s"), 0.0
    values: dict[str, list[float]] = {}
    rounds: dict[str, list[Round]] = {}
    for number in range(questions):
        for of_question in range(3):
            for case in random.permutation(["a", "b"]).tolist():
                step_s = math.exp(warms * min(1.0, now_s / over_s) + random.normal(0, SCATTER))
                values.setdefault(f"{number}{case}", []).append(step_s)
                rounds.setdefault(f"{number}{case}", []).append(Round("1", 3 * number + of_question))
                now_s += 6.0
    return case_terms({key: values}, rounds={key: rounds})


def ratio_across_questions_missed(warms: float, over_s: float, questions: int) -> Draw:
    """The interval of an A/A ratio of cases of the first and of the last question does not have 1."""

    def draw(random: Random) -> bool:
        terms = in_turn(random, warms, over_s, questions)
        interval = ratio(terms["0a", "a", "step_s"], terms[f"{questions - 1}b", "a", "step_s"]).interval()
        return interval is None or 0.0 not in interval

    return draw


def nested_rounds_missed() -> Draw:
    """The interval of an A/A ratio does not have 1, where a case has rounds before and after those of the other.

    The machine walks as is assumed, and trials scatter by 0.3 %.
    """

    def draw(random: Random) -> bool:
        walked = np.cumsum(random.normal(0, unseen.OF_ROUND, 33))
        numbers = {"a": [0, 1, 2, 30, 31, 32], "b": [15, 16, 17]}
        key = ("s", "steady", "a", "step_s")
        values = {case: np.exp(walked[of] + random.normal(0, 0.003, len(of))).tolist() for case, of in numbers.items()}
        rounds = {case: [Round("1", number) for number in of] for case, of in numbers.items()}
        terms = case_terms({key: values}, rounds={key: rounds})
        interval = ratio(terms["a", "a", "step_s"], terms["b", "a", "step_s"]).interval()
        return interval is None or 0.0 not in interval

    return draw


def lines_across_questions_missed(parameter: str) -> Draw:
    """The interval of an A/A ratio of two lines of four batch sizes, measured 12 rounds apart, does not have 1.

    The machine walks as is assumed, and trials scatter by 0.3 %.
    """
    batch_sizes = (32, 64, 128, 256)

    def draw(random: Random) -> bool:
        walked = np.cumsum(random.normal(0, unseen.OF_ROUND, 15))
        lines = []
        for first in (0, 12):
            of = [first, first + 1, first + 2]
            key = ("s", "steady", str(first), "step_s")
            values = {
                str(size): ((size / 4800 + 0.009) * np.exp(walked[of] + random.normal(0, 0.003, 3))).tolist()
                for size in batch_sizes
            }
            rounds = {str(size): [Round("1", number) for number in of] for size in batch_sizes}
            terms = case_terms({key: values}, rounds={key: rounds})
            points = [(size, terms[str(size), str(first), "step_s"]) for size in batch_sizes]
            lines += [line for line in [_fitted(parameter, points)] if line]
        interval = ratio(*lines).interval()
        return interval is None or 0.0 not in interval

    return draw


def no_walk(terms: object) -> float:
    """The fault that a machine is the same in all rounds."""
    return 0.0


def limit_missed(trials: int) -> Draw:
    """The interval of a device's limit does not have it, where twelve cases reach it."""

    def draw(random: Random) -> bool:
        rows = [
            {
                **{"machine_record": "m", "device": "cpu", "operation": "matmul", "quantity": "flops_per_s"},
                **{"precision": "fp32", "column": "e", "run_id": "r", "case_id": str(case), "repetition": trial},
                "value": math.exp(random.normal(0, 0.03)),
            }
            for case in range(12)
            for trial in range(trials)
        ]
        ((_, limits),) = roofline.measured_limits(rows).items()
        limit = limits["flops_per_s", "fp32"]
        return limit.low is None or limit.high is None or not limit.low <= 1 <= limit.high

    return draw
