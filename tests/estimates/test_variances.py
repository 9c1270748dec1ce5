"""Variances between trials, by hand and where the truth is known."""

import math

import numpy as np
import pytest

from tsuishi.estimates.contrasts import ratio
from tsuishi.estimates.intervals import Term
from tsuishi.estimates.variances import Pool, moderated, pool

# 5 % of 3,000 has a standard error of 0.4 %.
RUNS = 3000


def test_the_pooled_variance_is_about_each_groups_own_mean() -> None:
    assert pool([[1.0, 3.0], [10.0, 10.0, 13.0]]) == Pool((2 + 6) / 3, 3)


def test_single_values_say_nothing_about_scatter() -> None:
    assert pool([[1.0], [2.0]]) is None
    assert moderated({"a": [1.0], "b": [2.0]}, "family") == {"a": None, "b": None}


def test_a_case_alone_has_its_own_variance() -> None:
    assert moderated({"a": [1.0, 3.0], "b": [7.0]}, "f") == {"a": Pool(2.0, 1, "f", 1), "b": None}


def test_variances_that_differ_as_equal_ones_do_are_drawn_to_their_mean() -> None:
    found = moderated({"a": [0.0, 1.0, 2.0], "b": [0.0, 1.1, 2.2]}, "f")
    # 1 and 1.21: their mean, with the degrees of freedom of both; the larger keeps its own, with its own.
    assert found["a"] == Pool(pytest.approx(1.105), 4, "f", 4)  # type: ignore[arg-type]
    assert found["b"] == Pool(pytest.approx(1.21), 2, "f", 4)  # type: ignore[arg-type]


def test_trials_that_agree_to_the_last_digit_take_the_variance_of_the_others() -> None:
    found = moderated({"a": [1.0, 1.0, 1.0], "b": [0.0, 1.0, 2.0], "c": [0.0, 1.0, 2.1]}, "f")
    assert found["a"]
    assert 0 < found["a"].variance < 1


@pytest.mark.parametrize("cases", [8, 40])
@pytest.mark.parametrize("trials", [3, 10])
def test_a_case_that_scatters_ten_times_as_much_is_covered_and_widens_no_other(cases: int, trials: int) -> None:
    """A/A ratios. With a common variance the interval of the noisy case covers 51 % (8 cases) or 29 % (40)."""
    random = np.random.default_rng(cases + trials)
    scatter = np.full(cases, 0.02)
    scatter[0] = 0.2
    covered, widths = np.zeros(2), list[float]()
    for _ in range(RUNS // 5):
        sides = []
        for side in "ab":
            rows = (random.normal(size=(cases, trials)) * scatter[:, None]).tolist()
            variances = moderated({str(case): row for case, row in enumerate(rows)}, side)
            sides.append([Term(math.fsum(row) / trials, trials, variances[str(case)]) for case, row in enumerate(rows)])
        for place in (0, 1):
            interval = ratio(sides[0][place], sides[1][place]).interval()
            assert interval is not None
            covered[place] += 0.0 in interval
            widths += [interval.high - interval.low] * place
    runs = RUNS // 5
    assert (covered / runs >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)).all()
    # A quiet case alone, by t: its interval is no more than a half wider, and not 3.4 times as wide.
    exact = 2 * {3: 2.776, 10: 2.101}[trials] * 0.02 * math.sqrt(2 / trials)
    assert np.median(widths) < 1.5 * exact
