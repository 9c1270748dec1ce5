"""Answers to a run's questions, on runs with a known truth."""

import math
import random

from tsuishi.verdicts.answers import is_decided, ratio_of

REPEATS = 2000
LEVEL = 0.05


def trials(truth: float, scatter: float, count: int, numbers: random.Random) -> list[float]:
    return [truth * numbers.lognormvariate(0, scatter) for _ in range(count)]


def test_a_ratio_is_that_of_geometric_means() -> None:
    found = ratio_of([[2.0, 8.0, 4.0]], [[1.0, 4.0, 2.0]])
    assert found is not None
    assert math.isclose(math.exp(found.value), 2.0)


def test_several_cases_a_side_are_averaged() -> None:
    found = ratio_of([[2.0], [8.0]], [[1.0], [1.0]])
    assert found is not None
    assert math.isclose(math.exp(found.value), 4.0)
    assert found.error is None, "single trials have no scatter"


def test_nothing_is_decided_by_single_trials_or_by_none() -> None:
    assert not is_decided(ratio_of([[2.0]], [[1.0]]), LEVEL)
    assert ratio_of([[]], [[1.0]]) is None
    assert not is_decided(None, LEVEL)


def test_two_that_are_the_same_are_told_apart_in_about_5_percent_of_single_looks() -> None:
    """Three standard errors of 2,000 looks are 1.5 %; Welch with three trials is on the careful side."""
    numbers = random.Random(7)  # noqa: S311
    for count in (3, 6):
        wrong = 0
        for _ in range(REPEATS):
            found = ratio_of([trials(1, 0.5, count, numbers)], [trials(1, 0.5, count, numbers)])
            wrong += is_decided(found, LEVEL)
        assert wrong / REPEATS < 0.05 + 3 * math.sqrt(0.05 * 0.95 / REPEATS)


def test_a_clear_difference_is_found_and_no_difference_is_called_so() -> None:
    numbers = random.Random(8)  # noqa: S311
    clear = ratio_of([trials(1.3, 0.01, 3, numbers)], [trials(1, 0.01, 3, numbers)])
    same = ratio_of([trials(1.0, 0.005, 6, numbers)], [trials(1, 0.005, 6, numbers)])
    assert is_decided(clear, LEVEL)
    assert is_decided(same, LEVEL)
    assert not is_decided(clear, 0.0), "before the first look there is no error to spend"
