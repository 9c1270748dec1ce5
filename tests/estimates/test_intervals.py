"""Intervals and what is said with them, against arithmetic by hand and against a known truth."""

import math
import statistics
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tsuishi.estimates.intervals import Contrast, Region, Term, case_terms, contrast, ratio, trial_values
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


def test_the_cases_of_a_suite_and_environment_are_a_family_and_a_single_trial_has_no_scatter() -> None:
    rows = [("c1", "a", 1.0), ("c1", "a", 2.0), ("c2", "a", 8.0), ("c1", "b", 1.0), ("c1", "b", 1.0), ("c3", "a", -1.0)]
    frame = pd.DataFrame(rows, columns=["case_id", "column", "value"]).assign(
        suite="s", protocol="steady", quantity="step_s"
    )
    terms = case_terms(trial_values(frame))
    known = terms["c1", "a", "step_s"]
    assert known.pool
    assert known[:2] == (pytest.approx(math.log(2) / 2), 2)
    assert known.pool[:2] == (pytest.approx(2 * (math.log(2) / 2) ** 2), 1)
    assert terms["c2", "a", "step_s"].pool is None
    other = terms["c1", "b", "step_s"].pool
    assert other
    assert other.variance == 0
    assert other.family != known.pool.family
    assert ("c3", "a", "step_s") not in terms
    assert case_terms(trial_values(frame), logarithmic=False)["c3", "a", "step_s"].mean == -1


@pytest.mark.parametrize("trials", [3, 5, 10])
@pytest.mark.parametrize("cases", [1, 8])
def test_intervals_cover_the_truth_as_often_as_they_say(trials: int, cases: int) -> None:
    """Ratios of a case in two environments, one case or eight that scatter alike: 95 % intervals cover 94 to 98.5 %.

    They cover more than 95 % as a case that scatters more than the others by chance keeps its own variance.
    """
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


def in_sessions(random: np.random.Generator, side: str, sessions: Sequence[str], trials: int) -> Term:
    """The term of a case whose trials scatter by 1 %, and whose sessions by 3 %."""
    logs = [shock + random.normal(0, 0.01) for shock in random.normal(0, 0.03, len(sessions)) for _ in range(trials)]
    key = ("s", "steady", side, "step_s")
    of_trials = [session for session in sessions for _ in range(trials)]
    return case_terms({key: {"c": [*map(math.exp, logs)]}}, sessions={key: {"c": of_trials}})["c", side, "step_s"]


def test_what_was_measured_on_different_days_has_no_interval_before_three_sessions() -> None:
    random = np.random.default_rng(1)
    one, other = in_sessions(random, "a", ["monday"], 5), in_sessions(random, "b", ["tuesday"], 5)
    apart = ratio(one, other)
    assert apart.interval() == (-math.inf, math.inf)
    assert apart.p_outside(Region(0.0, 0.0)) == apart.p_inside(Region(-1.0, 1.0)) == 1.0
    together = ratio(one, in_sessions(random, "b", ["monday"], 5))
    assert together.error is not None
    assert math.isfinite(together.error)


def test_over_three_sessions_each_the_interval_covers_what_sessions_scatter() -> None:
    """From trials alone, intervals of 95 % would cover 45 %."""
    random, covered = np.random.default_rng(2), 0
    for _ in range(RUNS // 4):
        sides = [in_sessions(random, side, [f"{side} {day}" for day in range(3)], 5) for side in "ab"]
        interval = ratio(*sides).interval()
        assert interval is not None
        covered += 0.0 in interval
    assert covered / (RUNS // 4) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / (RUNS // 4))


def test_what_a_session_has_in_common_cancels_within_it() -> None:
    """The gap of each side was measured in a session of its own: the difference of two gaps has an interval."""
    pools = [Pool(0.01, 8, place, 8) for place in range(4)]
    days = [frozenset({day}) for day in ("monday", "monday", "tuesday", "tuesday")]
    terms = [Term(0.0, 3, pool_of, day) for pool_of, day in zip(pools, days, strict=True)]
    gaps = contrast(zip((1.0, -1.0, -1.0, 1.0), terms, strict=True))
    assert gaps.error == pytest.approx(math.sqrt(4 * 0.01 / 3))
    assert contrast(zip((1.0, 1.0, -1.0, -1.0), terms, strict=True)).error == math.inf


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
