"""Fits on trials: pure error, lack of fit and the batch size that decides, against textbooks and known truths."""

import math

import numpy as np
import pytest
from scipy import stats

from tsuishi.estimates.intervals import Round, Term
from tsuishi.estimates.line_fit import Fit, Point, deciding, fit
from tsuishi.estimates.terms import case_terms
from tsuishi.estimates.variances import Pool

SIZES = (16, 32, 64, 128, 256)
# Seconds of trials: a different number for each batch size, the means within 2 % of a line.
TRIALS = {
    16: (0.0261, 0.0266, 0.0258),
    32: (0.0421, 0.0417, 0.0430, 0.0414, 0.0428),
    64: (0.0735, 0.0752),
    128: (0.1391, 0.1370, 0.1412, 0.1377),
    256: (0.2650, 0.2700, 0.2611),
}


def points(trials: dict[int, tuple[float, ...]], sessions: dict[int, str] | None = None) -> list[Point]:
    """Points as reports make them."""
    values = {str(batch): list(times) for batch, times in trials.items()}
    key = "s", "steady", "torch", "step_s"
    rounds = (
        {
            key: {
                case: [Round(sessions[int(case)], number) for number in range(len(of_case))]
                for case, of_case in values.items()
            }
        }
        if sessions
        else None
    )
    terms = case_terms({key: values}, rounds=rounds)
    return [Point(int(case), math.exp(term.mean), term) for (case, _, _), term in terms.items()]


def fitted(given: list[Point]) -> Fit:
    found = fit(given)
    assert found is not None
    return found


def scattered(random: np.random.Generator, trials: int, sizes: tuple[int, ...] = SIZES) -> list[Point]:
    """A line of 1000 images/s and 0.01 s, whose trials scatter by 2 %."""
    return points(
        {b: tuple(((b / 1000 + 0.01) * np.exp(0.02 * random.standard_normal(trials))).tolist()) for b in sizes}
    )


def test_lack_of_fit_is_tested_as_in_textbooks() -> None:
    """Every trial is a row of the regression, at the mean of its batch size; pure error is the scatter within those."""
    rows = [(b, math.exp(np.mean(np.log(times)))) for b, times in TRIALS.items() for _ in times]
    sizes, seconds = map(np.array, zip(*rows, strict=True))
    design = np.stack([sizes / seconds, 1 / seconds], axis=1)
    estimate, squares, _, _ = np.linalg.lstsq(design, np.ones(len(rows)), rcond=None)
    logs = [np.log(times) for times in TRIALS.values()]
    freedom = len(rows) - len(TRIALS)
    pure = sum(float(((each - each.mean()) ** 2).sum()) for each in logs) / freedom
    f = squares[0] / (len(TRIALS) - 2) / pure
    found = fitted(points(TRIALS))
    assert (1 / found.v0, found.t_cost) == pytest.approx(tuple(estimate))
    assert found.pure_error == pytest.approx((pure, freedom, None, math.inf))
    assert found.lack_of_fit == pytest.approx((f, stats.f.sf(f, len(TRIALS) - 2, freedom)))


def test_the_larger_variance_makes_the_intervals_with_its_own_degrees_of_freedom() -> None:
    for factor, freedom in ((1.0, 10), (1.03, 3)):
        trials = {b: tuple((b / 1000 + 0.01) * e for e in (0.99, 1.0, 1.01)) for b in SIZES}
        trials[64] = tuple(factor * time for time in trials[64])
        found = fitted(points(trials))
        assert found.variance is not None
        assert found.variance.freedom == freedom
        assert found.t_cost_interval is not None
        assert found.covariance is not None
        reach = stats.t.ppf(0.975, freedom) * math.sqrt(found.covariance.t_cost)
        assert found.t_cost_interval.high - found.t_cost == pytest.approx(reach)


def test_a_single_trial_a_batch_has_its_error_from_the_line_as_before() -> None:
    single = [Point(b, TRIALS[b][0]) for b in SIZES]
    found = fitted(single)
    assert (found.pure_error, found.lack_of_fit) == (None, None)
    assert found.variance == found.about_line
    assert found.about_line is not None
    assert found.about_line.freedom == 3


def test_two_batch_sizes_have_intervals_from_trials_and_show_no_lack_of_fit() -> None:
    found = fitted(points({16: TRIALS[16], 256: TRIALS[256]}))
    assert found.v0_interval is not None
    assert found.v0_interval.low < found.v0 < found.v0_interval.high
    assert (found.about_line, found.lack_of_fit) == (None, None)


@pytest.mark.parametrize("sizes", [(16, 256), SIZES])
def test_intervals_of_a_line_that_holds_have_the_truth_as_often_as_they_say(sizes: tuple[int, ...]) -> None:
    random, runs = np.random.default_rng(1), 1000
    inside = np.zeros(3)
    for _ in range(runs):
        found = fitted(scattered(random, 3, sizes))
        pairs = ((1000, found.v0_interval), (0.01, found.t_cost_interval), (10, found.b_half_interval))
        inside += [each is not None and each.low <= true <= each.high for true, each in pairs]
    assert min(inside / runs) > 0.93


def test_trials_make_intervals_shorter_than_the_distance_of_few_points_does() -> None:
    """Three points alone have one degree of freedom: mostly, their interval says next to nothing."""
    random = np.random.default_rng(2)
    shorter = 0
    for _ in range(200):
        given = scattered(random, 3, (16, 64, 256))
        alone, known = fitted([Point(point.batch_size, point.seconds) for point in given]), fitted(given)
        assert alone.t_cost_interval is not None
        assert known.t_cost_interval is not None
        shorter += known.t_cost_interval.high < alone.t_cost_interval.high
    assert shorter / 200 > 0.4


def test_the_band_is_the_interval_of_the_line() -> None:
    found = fitted(points(TRIALS))
    assert found.covariance is not None
    slope, t_cost, both, freedom, _ = found.covariance
    covariance, t = np.array([[slope, both], [both, t_cost]]), stats.t.ppf(0.975, freedom)
    for batch in (16, 100, 256):
        band = found.band(batch)
        assert band is not None
        at = np.array([batch, 1])
        assert band.high - found.step_s(batch) == pytest.approx(t * math.sqrt(at @ covariance @ at))
        assert band.high + band.low == pytest.approx(2 * found.step_s(batch))


def test_a_kinked_line_has_no_band_and_its_lack_of_fit_shows() -> None:
    kinked = {b: tuple((0.7 if b > 64 else 1.0) * time for time in times) for b, times in TRIALS.items()}
    found = fitted(points(kinked))
    assert found.kinked
    assert found.band(64) is None
    assert found.v0_interval == (0.0, math.inf)
    assert found.lack_of_fit is not None
    assert found.lack_of_fit[1] < 1e-4


def test_batch_sizes_of_different_days_have_no_pure_error() -> None:
    """Trials of a day scatter less than days do, so they do not say how well a line over days is known."""
    together, apart = dict.fromkeys(SIZES, "monday"), {b: "monday" if b < 64 else "tuesday" for b in SIZES}
    assert fitted(points(TRIALS, together)).pure_error is not None
    found = fitted(points(TRIALS, apart))
    assert found.pure_error is None
    assert found.variance == found.about_line


def test_trials_that_are_equal_say_nothing_of_scatter() -> None:
    found = fitted(points({b: (b / 1000 + 0.01,) * 3 for b in (16, 256)}))
    assert (found.pure_error, found.v0_interval) == (None, None)


def test_the_batch_size_that_decides_a_line_is_found() -> None:
    exact = {b: tuple((b / 1000 + 0.01) * e for e in (0.995, 1.0, 1.005)) for b in SIZES}
    assert deciding(points(exact), fitted(points(exact))) is None
    for bad in (16, 256):
        off = points({**exact, bad: tuple(1.04 * time for time in exact[bad])})
        assert deciding(off, fitted(off)) == bad


def test_two_batch_sizes_both_decide_so_none_is_named() -> None:
    given = [
        Point(b, time, Term(math.log(time), 3, None, own=Pool(1e-4, 2))) for b, time in ((16, 0.026), (256, 0.266))
    ]
    assert deciding(given, fitted(given)) is None


def test_a_batch_size_without_which_there_is_no_line_decides() -> None:
    given = [Point(16, 0.1), Point(32, 0.1), Point(256, 0.3)]
    assert deciding(given, fitted(given)) == 256


def in_rounds(random: np.random.Generator, trials: int) -> dict[str, list[Point]]:
    """Two environments of 1000 images/s and 0.01 s: rounds make all steps longer or shorter by 3 %, trials by 1 %."""
    slow = random.normal(0, 0.03, trials)
    values = {
        ("s", "steady", side, "step_s"): {
            str(b): ((b / 1000 + 0.01) * np.exp(slow + random.normal(0, 0.01, trials))).tolist() for b in SIZES
        }
        for side in "ab"
    }
    rounds = {key: {case: [Round("x", n) for n in range(trials)] for case in cases} for key, cases in values.items()}
    terms = case_terms(values, rounds=rounds)
    return {
        side: [Point(int(case), math.exp(term.mean), term) for (case, of, _), term in terms.items() if of == side]
        for side in "ab"
    }


def test_what_rounds_have_in_common_moves_the_whole_line() -> None:
    """Of trials that are taken for independent, v0's interval misses in 14 %."""
    random, runs = np.random.default_rng(3), 300
    missed, pure = 0, []
    for _ in range(runs):
        found = fitted(in_rounds(random, 6)["a"])
        assert found.v0_interval is not None
        assert found.pure_error is not None
        missed += not found.v0_interval.low <= 1000 <= found.v0_interval.high
        pure.append(math.sqrt(found.pure_error.variance))
    assert missed / runs < 0.08
    # Lack of fit is held against what is left of the scatter.
    assert np.median(pure) == pytest.approx(0.01, rel=0.1)


def test_numbers_of_one_batch_size_have_no_line() -> None:
    """Several published sources may print the same case."""
    assert fit([Point(16, 0.1), Point(16, 0.2)]) is None
