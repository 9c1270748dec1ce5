"""Errors that the trials of a comparison do not show."""

import math
from collections.abc import Sequence

import pytest

from tsuishi.estimates.contrasts import contrast, ratio
from tsuishi.estimates.intervals import InSession, Round, Term
from tsuishi.estimates.terms import case_terms
from tsuishi.estimates.unseen import OF_DAY, of_few_trials, seen_scatter
from tsuishi.estimates.variances import Pool

QUIET = Pool(0.001**2, 2)


@pytest.mark.parametrize(
    ("trials", "seen", "others", "device", "deviation"),
    [
        (3, 0.0, 0.0, "cpu", 0.05),  # assumed of a CPU
        (3, 0.0, 0.0, "gpu", 0.01),
        (3, 0.3, 0.0, "gpu", 0.3),  # this environment has such modes
        (3, 0.0, 0.5, "gpu", math.hypot(0.01, 0.9)),  # beside a program at full load on half of the cores
        (6, 0.0, 0.5, "cpu", 0.001),  # six trials show modes
        (6, 0.3, 0.5, "cpu", 0.3),  # and not how often each is taken
        (12, 0.3, 0.5, "cpu", 0.001),
    ],
)
def test_few_trials_may_have_missed_a_mode_of_processes(
    trials: int, seen: float, others: float, device: str, deviation: float
) -> None:
    variance = QUIET.variance / trials + of_few_trials(Term(0.0, trials, QUIET), seen**2, others, device)
    assert math.sqrt(variance * trials) == pytest.approx(deviation)


def test_a_case_that_scatters_as_all_others_do_has_nothing_more() -> None:
    assert of_few_trials(Term(0.0, 3, Pool(0.06**2, 12)), 0.06**2) == 0


def test_the_scatter_of_an_environment_is_that_of_all_its_cases() -> None:
    values = {
        ("s", "steady", "a", "step_s"): {"quiet": [1.0, 1.0, 1.0], "modes": [1.0, 1.5, 1.0]},
        ("t", "steady", "a", "step_s"): {"of another suite": [1.0, 1.0], "with a zero": [0.0, 1.0]},
        ("s", "steady", "b", "step_s"): {"quiet": [2.0]},
    }
    squares = math.log(1.5) ** 2 * 2 / 3
    assert seen_scatter(values) == {("a", "step_s"): pytest.approx(squares / (2 + 2 + 1))}


def term(environment: str, days: Sequence[str] = ("monday",), mean: float = 0.0) -> Term:
    rounds = [Round(f"call {day}", number, day) for number, day in enumerate(days)]
    sessions = {each.session: InSession(mean, 1, each.day) for each in rounds}
    walk = dict.fromkeys(rounds, 1 / len(rounds))
    return Term(mean, len(rounds), QUIET, sessions, frozenset(rounds), walk=walk, environment=environment)


def test_environments_of_one_day_differ_from_those_of_other_days() -> None:
    assert ratio(term("a"), term("b")).unseen == pytest.approx(math.sqrt(2) * OF_DAY)
    of_two = ratio(term("a", ("monday", "tuesday")), term("b", ("monday", "tuesday")))
    assert of_two.unseen == pytest.approx(OF_DAY)


def test_the_day_of_an_environment_cancels_between_its_cases() -> None:
    assert ratio(term("a"), term("a")).unseen == 0
    speedups = [(1.0, term("a")), (-1.0, term("a")), (-1.0, term("b")), (1.0, term("b"))]
    assert contrast(speedups).unseen == 0


def test_a_time_that_is_compared_with_nothing_is_of_its_session() -> None:
    assert contrast([(1.0, term("a"))]).unseen == 0


@pytest.mark.parametrize(("days", "freedom"), [("ttt", 2.0), ("twt", 2.0), ("twf", 6.0)])
def test_three_days_count_as_three_trials_of_environments_and_three_calls_of_a_day_do_not(
    days: str, freedom: float
) -> None:
    key = {side: ("s", "steady", side, "step_s") for side in "ab"}
    rounds = [Round(f"call {number}", number, day) for number, day in enumerate(days)]
    slower = {"t": 0.03, "w": -0.01, "f": 0.01}
    values = {
        key["a"]: {"c": [math.exp(slower[day] + 0.001 * (number % 2)) for number, day in enumerate(days)]},
        key["b"]: {"c": [1.0, 1.001, 1.0]},
    }
    terms = case_terms(values, rounds={of: {"c": rounds} for of in values})
    of, to = (terms["c", side, "step_s"]._replace(environment=side) for side in "ab")
    found = ratio(of, to)
    if len({*days}) == 3:
        assert (found.freedom, found.unseen) == (freedom, 0.0)
    else:
        assert found.unseen == pytest.approx(OF_DAY * math.sqrt(2 * sum((days.count(day) / 3) ** 2 for day in {*days})))
