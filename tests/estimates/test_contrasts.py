"""Intervals and what is said with them, against arithmetic by hand and against a known truth."""

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from tsuishi.estimates.contrasts import contrast, ratio
from tsuishi.estimates.intervals import Contrast, Region, Term
from tsuishi.estimates.variances import Pool, moderated, pool

# 5 % of 4,000 has a standard error of 0.34 %: a rate that is 5 % is seen between 3.9 and 6.1 %.
RUNS = 4000


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


@pytest.mark.parametrize("unseen", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("rounding", [0.0, 0.03])
@pytest.mark.parametrize("error", [0.0, 0.05])
@pytest.mark.parametrize("level", [0.05, 0.0021, 1e-6])
def test_the_interval_of_every_level_touches_what_this_level_decides(
    error: float, unseen: float, rounding: float, level: float
) -> None:
    found = Contrast(0.4, error, 3, unseen, rounding)
    interval = found.interval(1 - level)
    assert interval is not None
    for nudge, is_decided in ((-1e-6, True), (1e-6, False)):
        assert (found.p_outside(Region(-math.inf, interval.low + nudge)) <= level) == is_decided
        assert (found.p_inside(Region(interval.low + nudge, interval.high - nudge)) <= level) == is_decided


def test_errors_that_trials_do_not_show_never_make_an_interval_shorter() -> None:
    """By Satterthwaite's degrees of freedom they did: two degrees of freedom of three trials became a dozen."""
    alone = Contrast(0.0, 0.034, 2.1).interval(0.997)
    beside = Contrast(0.0, 0.034, 2.1, 0.04).interval(0.997)
    assert alone is not None
    assert beside is not None
    assert beside.high > alone.high


def test_rounded_values_have_an_interval_of_at_least_half_a_unit_of_each() -> None:
    """2.4 and 2.4 s, three times each: 2.35 to 2.45 s both."""
    rounded = Term(math.log(2.4), 3, Pool(0.0, 2), rounding=0.05 / 2.4)
    interval = ratio(rounded, rounded).interval()
    assert interval is not None
    assert interval.high == pytest.approx(2 * 0.05 / 2.4)


def test_without_scatter_there_is_no_interval_and_the_value_decides() -> None:
    found = ratio(Term(math.log(3), 1, None), Term(0.0, 1, None))
    assert found.interval() is None
    assert (found.p_inside(Region(1.0, 1.2)), found.p_outside(Region(1.0, 1.2))) == (0, 1)
    assert (found.p_inside(Region(2.0, 3.0)), found.p_outside(Region(2.0, 3.0))) == (1, 0)


def test_trials_that_agree_to_the_last_digit_have_an_interval_without_width() -> None:
    found = contrast([(1, Term(0.5, 3, Pool(0.0, 2)))])
    assert found.interval() == (0.5, 0.5)
    assert found.p_inside(Region(0.4, 0.6)) == 0


def test_sums_of_variances_of_a_family_have_no_more_degrees_of_freedom_than_its_trials() -> None:
    # By Satterthwaite, four equal variances of 6 degrees of freedom have 24; the trials of the family have 8.
    terms = [(1.0, Term(0.0, 3, Pool(0.01 + place / 1e9, 6, "family", 8))) for place in range(4)]
    assert contrast(terms).freedom == 8
    apart = [(1.0, Term(0.0, 3, Pool(0.01, 6, place, 8))) for place in range(4)]
    assert contrast(apart).freedom == pytest.approx(24)


@pytest.mark.parametrize("cases", [1, 8])
def test_intervals_cover_the_truth_as_often_as_they_say(cases: int) -> None:
    """Ratios of a case in two environments, one case or eight that scatter alike: 95 % intervals cover 94 to 98.5 %.

    They cover more than 95 % as a case that scatters more than the others by chance keeps its own variance.
    """
    trials = 3
    random = np.random.default_rng(trials * 100 + cases)
    covered = 0
    for _ in range(RUNS):
        sides = []
        for side in "ab":
            logs = {str(case): row for case, row in enumerate(random.normal(0.0, 0.08, (cases, trials)).tolist())}
            sides.append(Term(math.fsum(logs["0"]) / trials, trials, moderated(logs, side)["0"]))
        interval = ratio(*sides).interval()
        assert interval is not None
        covered += 0.0 in interval
    assert 0.94 <= covered / RUNS <= 0.985


def test_what_is_detectable_is_found_in_four_of_five_runs() -> None:
    random, found = np.random.default_rng(5), 0
    away = Contrast(0.0, 0.05 * math.sqrt(2 / 6), 10).detectable(0.0125)
    for _ in range(RUNS):
        sides = random.normal([[away], [0.0]], 0.05, (2, 6))
        shared = pool(sides.tolist())
        difference = ratio(*(Term(float(side.mean()), 6, shared) for side in sides))
        found += difference.p_outside(Region(0.0, 0.0)) <= 0.0125
    assert 0.75 <= found / RUNS <= 0.85
    assert Contrast(0.0, None, math.inf).detectable(0.05) == math.inf
