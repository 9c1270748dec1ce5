"""Intervals and what is said with them, against arithmetic by hand and against a known truth."""

import math
import statistics

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tsuishi.estimates.intervals import (
    Contrast,
    Pool,
    Region,
    Term,
    case_terms,
    contrast,
    pool,
    ratio,
    trial_values,
)

# 5 % of 4,000 has a standard error of 0.34 %: a rate that is 5 % is seen between 3.9 and 6.1 %.
RUNS = 4000


def test_the_pooled_variance_is_about_each_groups_own_mean() -> None:
    assert pool([[1.0, 3.0], [10.0, 10.0, 13.0]]) == Pool((2 + 6) / 3, 3)


def test_single_values_say_nothing_about_scatter() -> None:
    assert pool([[1.0], [2.0]]) is None


def test_two_groups_that_are_all_there_is_are_compared_as_by_the_t_test() -> None:
    a, b = [1.0, 2.0, 4.0], [5.0, 5.5, 9.0, 7.0]
    shared = pool([a, b])
    found = contrast([(1, Term(statistics.mean(a), 3, shared)), (-1, Term(statistics.mean(b), 4, shared))])
    expected = stats.ttest_ind(a, b).confidence_interval(0.95)
    assert found.interval() == pytest.approx((expected.low, expected.high))


def test_groups_of_different_scatter_are_compared_as_by_welch() -> None:
    a, b = [1.0, 2.0, 4.0], [5.0, 15.5, 9.0, 7.0]
    found = contrast([(1, Term(statistics.mean(a), 3, pool([a]))), (-1, Term(statistics.mean(b), 4, pool([b])))])
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert found.interval() == pytest.approx((expected.low, expected.high))


def test_the_smallest_level_is_where_the_interval_touches_the_region() -> None:
    found = Contrast(0.1, 0.05, 7)
    inside, outside = found.p_inside(Region(0.0, math.inf)), found.p_outside(Region(-math.inf, 0.0))
    assert inside == pytest.approx(outside)
    touching = found.interval(1 - inside)
    assert touching is not None
    low, _ = touching
    assert low == pytest.approx(0)


def test_without_scatter_there_is_no_interval_and_the_value_decides() -> None:
    found = ratio(Term(math.log(3), 1, None), Term(0.0, 1, None))
    assert found.interval() is None
    assert (found.p_inside(Region(1.0, 1.2)), found.p_outside(Region(1.0, 1.2))) == (0, 1)
    assert (found.p_inside(Region(2.0, 3.0)), found.p_outside(Region(2.0, 3.0))) == (1, 0)


def test_trials_that_agree_to_the_last_digit_have_an_interval_without_width() -> None:
    found = contrast([(1, Term(0.5, 3, Pool(0.0, 2)))])
    assert found.interval() == (0.5, 0.5)
    assert found.p_inside(Region(0.4, 0.6)) == 0


def test_cases_of_a_suite_share_their_scatter_and_environments_do_not() -> None:
    rows = [("c1", "a", 1.0), ("c1", "a", 2.0), ("c2", "a", 8.0), ("c1", "b", 1.0), ("c1", "b", 1.0), ("c3", "a", -1.0)]
    frame = pd.DataFrame(rows, columns=["case_id", "column", "value"]).assign(
        suite="s", protocol="steady", quantity="step_s"
    )
    terms = case_terms(trial_values(frame))
    variance = 2 * (math.log(2) / 2) ** 2
    shared = Pool(pytest.approx(variance), 1)  # type: ignore[arg-type]
    assert terms["c1", "a", "step_s"] == Term(pytest.approx(math.log(2) / 2), 2, shared)  # type: ignore[arg-type]
    assert terms["c2", "a", "step_s"].pool == terms["c1", "a", "step_s"].pool
    assert terms["c1", "b", "step_s"].pool == Pool(0.0, 1)
    assert ("c3", "a", "step_s") not in terms
    assert case_terms(trial_values(frame), logarithmic=False)["c3", "a", "step_s"].mean == -1


@pytest.mark.parametrize("trials", [3, 5, 10])
@pytest.mark.parametrize("cases", [1, 8])
def test_intervals_cover_the_truth_as_often_as_they_say(trials: int, cases: int) -> None:
    """Ratios of two cases among several, trials scattering log-normally: 95 % intervals cover 93 to 97 %."""
    random = np.random.default_rng(trials * 100 + cases)
    covered = 0
    for _ in range(RUNS):
        logs = random.normal(0.0, 0.08, (cases + 1, trials))
        shared = pool(logs.tolist())
        of, to = (Term(float(one.mean()), trials, shared) for one in logs[:2])
        interval = ratio(of, to).interval()
        assert interval is not None
        covered += 0.0 in interval
    assert 0.93 <= covered / RUNS <= 0.97
