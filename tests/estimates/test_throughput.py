"""The throughput model, against points made from it, published tables, and a regression done another way."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.synthetic_run import (
    TF,
    TORCH,
    SyntheticRun,
    conv2d_case,
    steady_samples,
    training_case,
)
from tests.words import WORDS
from tsuishi.estimates.line_fit import KINK_PERCENT, Fit, Point, fit
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import Table
from tsuishi.report.sections.fits import fitted_lines, published_section
from tsuishi.specs.source import read_sources
from tsuishi.verdicts.evidence import Evidence

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"


def fitted(points: list[tuple[int, float]]) -> Fit:
    found = fit(Point(*point) for point in points)
    assert found is not None
    return found


@given(v0=st.floats(10, 1e5), t_cost=st.floats(1e-4, 1), sizes=st.sets(st.integers(1, 4096), min_size=3, max_size=8))
def test_points_on_a_line_give_the_line_back(v0: float, t_cost: float, sizes: set[int]) -> None:
    found = fitted([(size, size / v0 + t_cost) for size in sizes])
    assert found.v0 == pytest.approx(v0, rel=1e-4)
    assert found.t_cost == pytest.approx(t_cost, rel=1e-4, abs=1e-6 * max(sizes) / v0)
    assert max(abs(one.percent) for one in found.residuals) < 1e-4
    assert not any(one.kink for one in found.residuals)


def test_half_of_v0_is_reached_at_b_half() -> None:
    found = fitted([(16, 0.026), (64, 0.074)])
    assert found.b_half == pytest.approx(10)
    assert found.b_half / found.step_s(found.b_half) == pytest.approx(found.v0 / 2)


def test_two_points_make_a_line_without_intervals_and_one_makes_none() -> None:
    found = fitted([(16, 0.026), (64, 0.074)])
    assert (found.v0, found.t_cost) == (pytest.approx(1000), pytest.approx(0.01))
    assert (found.v0_interval, found.t_cost_interval, found.b_half_interval) == (None, None, None)
    assert fit([Point(16, 0.026)]) is None


def test_time_that_does_not_grow_with_the_batch_has_no_line() -> None:
    for times in ((0.1, 0.1, 0.1), (0.2, 0.1, 0.05)):
        assert fit(map(Point, (16, 32, 64), times)) is None


def test_intervals_are_those_of_weighted_linear_regression() -> None:
    """Against the textbook's matrices: (X'WX)^-1, Student's t with n - 2 degrees of freedom."""
    sizes, seconds = np.array([16.0, 32, 64, 128, 256]), np.array([0.0205, 0.0292, 0.0470, 0.0805, 0.1490])
    design, weights = np.stack([sizes, np.ones(5)], axis=1), np.diag(seconds**-2)
    inverse = np.linalg.inv(design.T @ weights @ design)
    slope, t_cost = inverse @ design.T @ weights @ seconds
    residuals = seconds - design @ [slope, t_cost]
    covariance = inverse * (residuals @ weights @ residuals) / 3
    t = stats.t.ppf(0.975, 3)
    found = fitted([(int(b), s) for b, s in zip(sizes, seconds, strict=True)])
    half = t * math.sqrt(covariance[0, 0])
    assert found.v0_interval == pytest.approx((1 / (slope + half), 1 / (slope - half)))
    half = t * math.sqrt(covariance[1, 1])
    assert found.t_cost_interval == pytest.approx((t_cost - half, t_cost + half))
    # Fieller: the ratios r for which t_cost - r slope does not differ from 0.
    assert found.b_half_interval is not None
    for ratio in found.b_half_interval:
        spread = covariance[1, 1] - 2 * ratio * covariance[0, 1] + ratio**2 * covariance[0, 0]
        assert abs(t_cost - ratio * slope) == pytest.approx(t * math.sqrt(spread))


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(0)
    sizes, runs = (16, 32, 64, 128, 256), 1000
    inside = np.zeros(3)
    for _ in range(runs):
        found = fitted([(b, (b / 1000 + 0.01) * (1 + 0.02 * random.standard_normal())) for b in sizes])
        intervals = {1000: found.v0_interval, 0.01: found.t_cost_interval, 10: found.b_half_interval}
        inside += [one is not None and one.low <= true <= one.high for true, one in intervals.items()]
    assert all(0.93 < share < 0.97 for share in inside / runs)


def test_a_slope_that_may_be_nothing_bounds_v0_on_one_side_only() -> None:
    found = fitted([(16, 0.1), (32, 0.12), (64, 0.105)])
    assert found.v0_interval is not None
    assert math.isinf(found.v0_interval.high)
    assert found.b_half_interval == (-math.inf, math.inf)


def test_a_step_far_off_the_line_is_a_kink() -> None:
    points = [(b, b / 1000 + 0.01) for b in (16, 32, 64, 128, 256, 512)]
    points[3] = (128, 1.3 * points[3][1])
    assert [one.batch_size for one in fitted(points).residuals if one.percent > KINK_PERCENT] == [128]
    assert next(one for one in fitted(points).residuals if one.batch_size == 128).kink


def test_the_published_tables_fit_as_the_method_says_whether_their_suites_ran_or_not(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(conv2d_case(), TF, [("first_run", 0, 1, 840, 1.0)])
    (view,) = published_section(Evidence([run.finish()], read_sources(PUBLISHED, WORDS, tables=False), WORDS)).views
    rows = view.rows["throughput_model"]
    found = {(row["series"], row.get("model"), row["devices"]): row for row in rows}
    one, two = (found["RTX 2080 Ti (published)", "cnn10", devices] for devices in (1, 2))
    assert one["v0_images_per_s"] == pytest.approx(4807, abs=1)
    assert one["t_cost_s"] == pytest.approx(9.1e-3, abs=1e-4)
    assert abs(one["largest_residual_percent"]) < 1
    assert abs(two["largest_residual_percent"]) < 2
    assert found["RTX 2080 Ti (published)", "wrn28_10", 1]["v0_images_per_s_low"] is None
    # Of this source the line's parameters are all there is: half of v0 is reached at their product.
    printed = found["unnamed GPU (published)", None, 1]
    assert (printed["v0_images_per_s"], printed["t_cost_s"], printed["points"]) == (258.1, 0.054, 0)
    assert printed["b_half_images"] == pytest.approx(258.1 * 0.054)


def test_a_line_is_told_from_another_by_environment_strategy_and_precision(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size in (16, 32, 64):
        for environment, t_cost in ((TF, 0.01), (TORCH, 0.02)):
            samples = steady_samples(batch_size, [batch_size / 1000 + t_cost] * 4)
            run.add(training_case(batch_size), environment, samples)
        samples = steady_samples(batch_size, [batch_size / 4000 + 0.04] * 4)
        run.add(training_case(batch_size, precision="tf32"), TORCH, samples)
    run.add(training_case(128), TF, status="out_of_memory", reason="out of memory")
    view = fitted_lines(SuiteCases(Evidence([run.finish()], (), WORDS), "multi_gpu_scaling", "steady"))
    rows = view.rows["throughput_model"]
    found = {(row["series"], row["precision"]): (row["v0_images_per_s"], row["t_cost_s"]) for row in rows}
    assert found == {
        (TF, "fp32"): pytest.approx((1000, 0.01)),
        (TORCH, "fp32"): pytest.approx((1000, 0.02)),
        (TORCH, "tf32"): pytest.approx((4000, 0.04)),
    }
    lines, points = (block for block in view.blocks if isinstance(block, Table))
    assert [row[1].text for row in lines.rows] == ["fp32", "fp32", "tf32"]
    assert len(points.rows) == len(view.rows["residuals"]) == 9


def test_of_more_points_than_are_read_the_kinks_are_shown_and_all_are_in_the_rows(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size in range(1, 102):
        kink = 1.3 if batch_size == 50 else 1.0
        run.add(training_case(batch_size), TF, steady_samples(batch_size, [kink * (batch_size / 100 + 1.0)] * 4))
    view = fitted_lines(SuiteCases(Evidence([run.finish()], (), WORDS), "multi_gpu_scaling", "steady"))
    _, points = (block for block in view.blocks if isinstance(block, Table))
    assert [row[2].text for row in points.rows] == ["50"]
    assert points.notes == ["Kinks only, as there are many points; all of them are in residuals.csv."]
    assert len(view.rows["residuals"]) == 101


def test_a_line_through_two_points_has_no_residual_to_speak_of(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size in (16, 32):
        run.add(training_case(batch_size), TF, steady_samples(batch_size, [batch_size / 100 + 0.01] * 4))
    view = fitted_lines(SuiteCases(Evidence([run.finish()], (), WORDS), "multi_gpu_scaling", "steady"))
    (row,) = view.rows["throughput_model"]
    assert (row["points"], row["largest_residual_percent"], view.rows["residuals"]) == (2, None, [])
    (lines,) = (block for block in view.blocks if isinstance(block, Table))
    assert lines.rows[0][-1].text == "—"


def test_a_kinked_line_has_no_interval_as_it_is_no_line() -> None:
    """From 128 images on a step takes 30 % less. The interval of v0 that a line would give covers neither speed."""
    found = fitted([(b, (b / 1000 + 0.01) * (0.7 if b >= 128 else 1.0)) for b in (16, 32, 64, 128, 256)])
    assert any(point.kink for point in found.residuals)
    assert found.v0_interval == (0.0, math.inf)
    assert found.t_cost_interval == found.b_half_interval == (-math.inf, math.inf)
