"""Ratios over matched cases and certain bests, against arithmetic done by hand."""

import math

import pytest

from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.estimates.ratios import Ratio, as_ratio, certain_best, mean_ratio
from tsuishi.estimates.variances import Pool

# Trials scatter by 10 %, known from 8 degrees of freedom: t is 2.306.
POOL = Pool(0.01, 8)
T_8 = 2.306004


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


def test_the_best_is_certain_where_it_is_clear_of_every_other() -> None:
    sides = {"a": term(1.0), "b": term(2.0), "c": term(3.0)}
    assert certain_best(sides, largest=False) == "a"
    assert certain_best(sides, largest=True) == "c"


def test_overlapping_sides_have_no_best() -> None:
    # The ratio's standard error is sqrt(2 * 0.01 / 3) = 0.0816, so its interval reaches 0.188 to either side.
    assert certain_best({"a": term(1.0), "b": term(math.exp(0.18))}, largest=False) is None
    assert certain_best({"a": term(1.0), "b": term(math.exp(0.20))}, largest=False) == "a"


def test_the_more_sides_there_are_the_clearer_the_best_has_to_be() -> None:
    # Holm: of three comparisons the surest has to reach 5 % / 3, so one at 5 % is not enough where all are alike.
    near = {name: term(math.exp(0.20)) for name in "bcd"}
    assert certain_best({"a": term(1.0), "b": near["b"]}, largest=False) == "a"
    assert certain_best({"a": term(1.0), **near}, largest=False) is None


@pytest.mark.parametrize("other", [term(100.0, trials=2), term(100.0, pool=None), term(100.0, trials=1)])
def test_no_best_rests_on_fewer_than_three_trials(other: Term) -> None:
    assert certain_best({"a": term(1.0), "b": other}, largest=False) is None


def test_one_side_alone_is_no_best() -> None:
    assert certain_best({"a": term(1.0)}, largest=False) is None
