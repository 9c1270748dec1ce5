"""Ratios over matched cases and certain bests, against arithmetic done by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.estimates.ratios import MARKS, Best, Ratio, as_ratio, best, marked, mean_ratio
from tsuishi.estimates.variances import Pool

# Trials scatter by 10 %, known from 8 degrees of freedom: t is 2.306.
POOL = Pool(0.01, 8)
T_8 = 2.306004
RUNS = 2000


def term(value: float, trials: int = 3, pool: Pool | None = POOL) -> Term:
    return Term(math.log(value), trials, pool)


def test_the_mean_ratio_is_the_geometric_mean_over_cases_and_its_error_shrinks_with_them() -> None:
    found = mean_ratio([(term(2.0), term(1.0)), (term(8.0), term(1.0))])
    assert math.exp(found.value) == pytest.approx(4.0)
    # Four means of three trials, each with weight 1/2.
    assert found.error == pytest.approx(math.sqrt(4 * 0.25 * 0.01 / 3))


def test_a_ratio_has_the_interval_of_its_logarithm() -> None:
    found = as_ratio(Contrast(math.log(1.5), 0.05, 8))
    assert found == pytest.approx((1.5, 1.5 * math.exp(-T_8 * 0.05), 1.5 * math.exp(T_8 * 0.05)), rel=1e-5)


@pytest.mark.parametrize("contrast", [Contrast(0.0, None, math.inf), Contrast(0.0, math.inf, 1.0)])
def test_where_nothing_is_known_of_the_scatter_there_is_no_interval(contrast: Contrast) -> None:
    assert as_ratio(contrast) == Ratio(1.0, None, None)


def test_the_best_is_ahead_of_every_other_by_the_worst_of_its_comparisons() -> None:
    sides = {"a": term(1.0), "b": term(math.exp(0.2)), "c": term(3.0)}
    found = best(sides, largest=False)
    assert found
    assert found.side == "a"
    # Against b: 0.2 in standard errors of sqrt(2 * 0.01 / 3), two-sided, with 8 degrees of freedom.
    assert found.p == pytest.approx(2 * stats.t.sf(0.2 / math.sqrt(2 * 0.01 / 3), 8))
    most = best(sides, largest=True)
    assert most
    assert most.side == "c"


def test_of_several_alike_at_the_top_the_best_is_no_likelier_than_of_two() -> None:
    """The chance that the largest of k equal sides is clear of the second at 5 % is largest for two sides."""
    random = np.random.default_rng(3)
    for sides in (2, 4, 8):
        clear = 0
        for means in random.normal(0, 0.1 / math.sqrt(3), (RUNS, sides)).tolist():
            pools = [Pool(0.01, 1000, place, 1000) for place in range(sides)]
            found = best({str(place): Term(mean, 3, pools[place]) for place, mean in enumerate(means)}, largest=True)
            assert found
            clear += found.p <= 0.05
        assert clear / RUNS <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / RUNS)


def test_marks_are_wrong_with_a_chance_of_their_error_together() -> None:
    rows = [Best("a", MARKS / 5, 1.0), Best("b", MARKS / 2.5, 1.0), None, Best("c", MARKS, 1.0), Best("d", 0.5, 1.0)]
    # Holm: of four p values the first has a quarter of the error, the second a third, and b is above it.
    assert marked(rows) == ["a", None, None, None, None]
    assert marked([Best("a", MARKS * 0.99, 1.0)]) == ["a"]
    assert marked([Best("a", MARKS * 0.99, 0.5)]) == [None]  # at the first look
    assert marked([Best("a", MARKS * 1.01, 1.0)]) == [None]
    assert marked([]) == []


def test_of_forty_rows_about_nothing_few_reports_have_a_mark() -> None:
    random = np.random.default_rng(4)
    reports = [marked([Best("a", float(p), 1.0) for p in ps]) for ps in random.uniform(size=(RUNS, 40))]
    assert sum(any(report) for report in reports) / RUNS <= MARKS + 3 * math.sqrt(MARKS / RUNS)


@pytest.mark.parametrize("other", [term(100.0, trials=2), term(100.0, pool=None), term(100.0, trials=1)])
def test_no_best_rests_on_fewer_than_three_trials(other: Term) -> None:
    assert best({"a": term(1.0), "b": other}, largest=False) is None


def test_one_side_alone_is_no_best() -> None:
    assert best({"a": term(1.0)}, largest=False) is None
