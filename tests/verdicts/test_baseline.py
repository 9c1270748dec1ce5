"""Which cases are slower than their baseline: on numbers with a known truth."""

import math
import random
from collections.abc import Sequence

import pytest

from tsuishi.estimates.intervals import InSession, Term
from tsuishi.estimates.variances import pool
from tsuishi.verdicts.baseline import CaseQuantity, Pace, decided

REPEATS = 400
CASES = 6


def term(means: Sequence[float], name: str) -> Term:
    """A term of sessions with three trials each. means: the logarithms of their values."""
    sessions = {f"{name} {number}": InSession(mean, 3) for number, mean in enumerate(means)}
    return Term(math.fsum(means) / len(means), 3 * len(means), pool([means]), sessions)


def drawn(
    ratio: float, scatter: float, sessions: int, numbers: random.Random
) -> list[tuple[CaseQuantity, Term, Term, bool]]:
    """Cases that share what differs between sessions, as those of an environment do."""
    sides = [[numbers.gauss(0, scatter) for _ in range(sessions)] for _ in range(2)]
    return [
        (
            CaseQuantity(f"case {case}", "environment", "step_s"),
            term([day + numbers.gauss(0, scatter / 4) for day in sides[0]], "then"),
            term([math.log(ratio) + day + numbers.gauss(0, scatter / 4) for day in sides[1]], "now"),
            False,
        )
        for case in range(CASES)
    ]


def standings(paces: Sequence[Pace]) -> set[str]:
    return {pace.standing for pace in paces}


def test_at_the_threshold_at_most_5_of_100_comparisons_name_a_case() -> None:
    """Neither word is true of a ratio at the threshold; three standard errors of 400 draws are 3.3 %."""
    numbers = random.Random(3)  # noqa: S311
    wrong = sum(standings(decided(drawn(1.05, 0.02, 3, numbers), 1.05)) != {"open"} for _ in range(REPEATS))
    assert wrong / REPEATS <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / REPEATS)


@pytest.mark.long
def test_looking_after_every_session_spends_no_more() -> None:
    numbers = random.Random(4)  # noqa: S311
    wrong = 0
    for _ in range(REPEATS):
        measured = drawn(1.05, 0.02, 12, numbers)
        looks = [
            [(place, cut(then, n), cut(now, n), rate) for place, then, now, rate in measured] for n in range(2, 13)
        ]
        wrong += any("slower" in standings(decided(look, 1.05)) for look in looks)
    assert wrong / REPEATS <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / REPEATS)


def cut(term: Term, count: int) -> Term:
    return term._replace(sessions=dict([*term.sessions.items()][:count]))


def test_what_is_clear_is_found() -> None:
    numbers = random.Random(5)  # noqa: S311
    assert standings(decided(drawn(1.5, 0.01, 3, numbers), 1.05)) == {"slower"}
    assert standings(decided(drawn(1.0, 0.001, 3, numbers), 1.05)) == {"not slower"}
    assert standings(decided(drawn(1.12, 0.01, 12, numbers), 1.05)) == {"slower"}


def test_of_a_rate_more_is_faster() -> None:
    numbers = random.Random(6)  # noqa: S311
    rates = [(place, then, now, True) for place, then, now, _ in drawn(1.5, 0.01, 3, numbers)]
    assert standings(decided(rates, 1.05)) == {"not slower"}
    turned = [(place, now, then, True) for place, then, now, _ in rates]
    assert standings(decided(turned, 1.05)) == {"slower"}


def test_the_interval_that_decides_has_the_level_of_the_decision() -> None:
    numbers = random.Random(7)  # noqa: S311
    for pace in decided(drawn(1.2, 0.02, 3, numbers), 1.05):
        interval = pace.ratio.interval(1 - pace.decision.level)
        assert interval is not None
        assert (pace.standing == "slower") == (interval.low > math.log(1.05))
        assert (pace.standing == "not slower") == (interval.high < math.log(1.05))


def test_sessions_of_one_day_are_one() -> None:
    """A machine is as fast all day as it is once: six calls in a row say nothing of its other days."""
    numbers = random.Random(9)  # noqa: S311
    of_one_day = [
        (place, on_one_day(then), on_one_day(now), rate) for place, then, now, rate in drawn(9.0, 0.001, 6, numbers)
    ]
    (pace, *_) = decided(of_one_day, 1.0)
    assert (pace.standing, pace.days) == ("open", (1, 1))


def on_one_day(term: Term) -> Term:
    return term._replace(sessions={name: part._replace(day="monday") for name, part in term.sessions.items()})


def test_two_sessions_on_a_side_decide_nothing() -> None:
    numbers = random.Random(8)  # noqa: S311
    (pace, *_) = decided(drawn(9.0, 0.001, 2, numbers), 1.0)
    assert pace.standing == "open"
    assert pace.decision.level == 0
