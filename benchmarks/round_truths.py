"""Truths about rounds, sessions and device limits for benchmarks/truth.py: as benchmarks/known_truths.py has them."""

import math

import numpy as np

from benchmarks.known_truths import Draw, Random
from tsuishi.estimates import roofline
from tsuishi.estimates.intervals import ratio
from tsuishi.estimates.terms import Round, Terms, case_terms
from tsuishi.verdicts import family

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
        low, high = limits.intervals["flops_per_s", "fp32"]
        return not low <= 1 <= high

    return draw


def found_in_slow_rounds(true_ratio: float, trials: int) -> Draw:
    """The first of six main questions finds a true ratio, where rounds scatter by 3 % and trials by 1 %."""

    def draw(random: Random) -> bool:
        terms = drawn(random, trials, 0.03)
        logarithm = ratio(terms["0", "a", "step_s"], terms["0", "b", "step_s"])
        moved = logarithm._replace(value=logarithm.value + math.log(true_ratio))
        interval = moved.interval(1 - family.MAIN / 6 * family.share_of_look(trials))
        return interval is not None and 0.0 not in interval

    return draw
