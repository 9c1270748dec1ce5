"""Sweeps: which charts there are, and what is a line in each."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.report.compared import PUBLISHED, compared
from tests.synthetic_run import TF, TORCH, SyntheticRun, steady_samples, training_case
from tests.words import WORDS
from tsuishi.estimates.line_fit import Point, fit
from tsuishi.report.charts.course import of_trial
from tsuishi.report.charts.curves import MOST_PANELS, curves
from tsuishi.report.charts.figures import PALETTE, series_colour, shape_of, sweep_chart
from tsuishi.report.charts.sweeps import MOST_VARIANTS, sweep_charts, sweep_points, sweep_variants, sweeps
from tsuishi.report.output.vega import to_svg
from tsuishi.report.parts.blocks import Chart
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.specs.source import read_sources
from tsuishi.verdicts.evidence import Evidence

STEP, THROUGHPUT, _, EPOCH = sweeps()[2:]

STRATEGIES = [("none", 1), ("data_parallel", 2), ("distributed_data_parallel", 2)]
PRECISIONS = ["fp32", "tf32", "amp_fp16", "amp_bf16"]


def add_sweep(run: SyntheticRun, environment: str = TORCH, t_cost: float = 0.01, **axes: Any) -> None:
    for batch_size in (16, 32, 64):
        samples = steady_samples(batch_size, [batch_size / 1000 + t_cost] * 4)
        run.add(training_case(batch_size, **axes), environment, samples)


def drawn(run: SyntheticRun, sweep: Any, published: bool = False) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    evidence = Evidence([run.finish()], read_sources(PUBLISHED, WORDS, tables=False) if published else (), WORDS)
    charts = sweep_charts(sweep_variants(SuiteCases(evidence, "multi_gpu_scaling", "steady"), sweep))
    return [(shared, pd.DataFrame(points)) for shared, points in (sweep_points(chart, sweep) for chart in charts)]


def rows(points: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for row in points.to_dict("records")
    ]


def test_strategies_and_precisions_are_lines_of_one_chart_and_models_are_charts(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for strategy, devices in STRATEGIES:
        add_sweep(run, strategy=strategy, devices=devices)
    add_sweep(run, precision="tf32")
    add_sweep(run, TF)
    add_sweep(run, model="wrn28_10")
    (cnn10, points), (wrn28_10, others) = drawn(run, THROUGHPUT)
    assert (cnn10["model"], wrn28_10["model"]) == ("cnn10", "wrn28_10")
    assert "strategy" not in cnn10
    assert set(points["series"]) == {
        "tf1.13-cpu, 1 device, fp32",
        "torch2-cpu, 1 device, fp32",
        "torch2-cpu, 1 device, tf32",
        "torch2-cpu, data_parallel, 2 devices, fp32",
        "torch2-cpu, distributed_data_parallel, 2 devices, fp32",
    }
    # What lines share is not in their names.
    assert set(others["series"]) == {"torch2-cpu"}


def test_more_lines_than_can_be_told_apart_are_spread_over_charts_by_strategy(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for strategy, devices in STRATEGIES:
        for precision in PRECISIONS:
            add_sweep(run, strategy=strategy, devices=devices, precision=precision)
    found = drawn(run, THROUGHPUT)
    assert [variant["strategy"] for variant, _ in found] == [strategy for strategy, _ in STRATEGIES]
    assert all(points["variant"].nunique() == len(PRECISIONS) <= MOST_VARIANTS for _, points in found)


def test_published_lines_are_there_once_each_with_the_case_they_belong_to(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_sweep(run)
    add_sweep(run, execution="compiled")
    add_sweep(run, strategy="data_parallel", devices=2)
    ((_, points),) = drawn(run, EPOCH, published=True)
    published = points[points["published"]]
    assert set(published["series"]) == {
        "RTX 2080 Ti (published), 1 device",
        "RTX 2080 Ti (published), data_parallel, 2 devices",
    }
    assert not published.duplicated(["series", "panel", "x"]).any()


def test_the_line_of_a_step_is_the_models_and_its_points_lie_about_it(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_sweep(run)
    ((_, points),) = drawn(run, STEP)
    line, measured = points[points["mark"] == "fit"], points[points["mark"] == "point"]
    assert sorted(measured["x"]) == [16, 32, 64]
    assert (line["x"].min(), line["x"].max()) == (16, pytest.approx(64))
    assert line["y"].tolist() == pytest.approx((line["x"] / 1000 + 0.01).tolist())


def test_measured_lines_have_a_band_and_published_lines_have_none(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size in (16, 32, 64):
        for repetition, factor in enumerate((0.99, 1.0, 1.01), start=1):
            samples = steady_samples(batch_size, [factor * (batch_size / 1000 + 0.01)] * 4)
            run.add(training_case(batch_size), TORCH, samples, repetition=repetition)
    ((_, points),) = drawn(run, STEP, published=True)
    line = points[points["mark"] == "fit"]
    ours, theirs = line[~line["published"]], line[line["published"]]
    assert ((ours["low"] < ours["y"]) & (ours["y"] < ours["high"])).all()
    # Trials scatter by 1 %: the line is known better than that in the middle, and nowhere twice as badly.
    assert 0.005 < (ours["high"] / ours["y"] - 1).min() < (ours["high"] / ours["y"] - 1).max() < 0.02
    assert len(theirs)
    assert theirs["low"].isna().all()
    curves, _ = sweep_chart(rows(points), STEP, [TORCH], ["RTX 2080 Ti"])["vconcat"]
    band, *others = curves["spec"]["layer"]
    assert (band["mark"]["type"], band["encoding"]["y2"]["field"]) == ("area", "high")
    assert all(layer["mark"]["type"] != "area" for layer in others)


def test_a_band_that_reaches_nothing_is_not_drawn(tmp_path: Path) -> None:
    """A log scale has no place for it. Single trials 4 % off their line by three points leave one degree of freedom."""
    run = SyntheticRun(tmp_path / "run")
    for batch_size, factor in ((16, 1.0), (32, 1.13), (64, 1.0)):
        run.add(training_case(batch_size), TF, steady_samples(batch_size, [factor * (batch_size / 1000 + 0.01)] * 4))
    ((_, points),) = drawn(run, STEP)
    assert (points["mark"] == "fit").any()
    low = points.loc[points["mark"] == "fit", "low"].dropna()
    assert (low > 0).all()
    specification = sweep_chart(rows(points), STEP, [TF], [])
    assert "NaN" not in to_svg(specification, "x")


def test_points_off_the_line_are_drawn_below_it(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size, factor in ((16, 1.0), (32, 1.1), (64, 1.0)):
        samples = steady_samples(batch_size, [factor * batch_size / 1000] * 4)
        run.add(training_case(batch_size), TF, samples)
    ((_, points),) = drawn(run, STEP)
    fitted = fit([Point(16, 0.016), Point(32, 0.0352), Point(64, 0.064)])
    assert fitted is not None
    off = points[points["mark"] == "point"].sort_values("x")["residual"].tolist()
    assert off == pytest.approx([one.percent for one in fitted.residuals])
    _, residuals = sweep_chart(rows(points), STEP, [TF], [])["vconcat"]
    assert residuals["layer"][-1]["encoding"]["y"]["field"] == "residual"


def test_a_published_epoch_is_a_point_of_the_step_it_implies(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_sweep(run)
    ((_, points),) = drawn(run, STEP, published=True)
    published = points[points["published"] & (points["mark"] == "point")].set_index(["variant", "x"])["y"]
    # 12.29 s over 196 steps of 256 images.
    assert published["", 256] == pytest.approx(12.29 / 196)


@pytest.mark.parametrize(("trials", "mark"), [(3, ""), (1, "point")])
def test_two_batch_sizes_are_joined_if_several_trials_show_them_and_not_fitted(
    tmp_path: Path, trials: int, mark: str
) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size in (16, 32):
        for repetition in range(1, trials + 1):
            samples = steady_samples(batch_size, [batch_size / 1000 + repetition / 1e5] * 4)
            run.add(training_case(batch_size), TF, samples, repetition)
    ((_, points),) = drawn(run, STEP)
    assert set(points["mark"]) == {mark}


def test_every_series_of_a_chart_looks_different(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for environment in (TF, TORCH):
        for precision in PRECISIONS:
            add_sweep(run, environment, precision=precision)
    ((_, points),) = drawn(run, THROUGHPUT)
    specification = sweep_chart(rows(points), THROUGHPUT, [TF, TORCH], [])
    encoding = specification["spec"]["layer"][0]["encoding"]
    colours, dashes = encoding["color"]["scale"]["range"], encoding["strokeDash"]["scale"]["range"]
    assert len(set(zip(colours, map(tuple, dashes), strict=True))) == 2 * len(PRECISIONS)
    assert "fp32" in to_svg(specification, "x")


def test_environments_look_different_when_there_are_more_than_colours() -> None:
    many = [f"environment {number}" for number in range(2 * len(PALETTE))]
    looks = {(series_colour(name, many), shape_of(place)) for place, name in enumerate(many)}
    assert len(looks) == len(many)


@pytest.mark.long
def test_the_lines_of_a_quantity_are_panels_of_one_chart_and_share_its_axes(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for number, (strategy, devices) in enumerate(STRATEGIES):
        for precision in PRECISIONS:
            add_sweep(run, strategy=strategy, devices=devices, precision=precision, t_cost=0.01 * 5**number)
    charts = [block for block in curves(compared(run, published=True)).blocks if isinstance(block, Chart)]
    assert [chart.title for chart in charts] == ["Step", "Throughput", "Epoch of 50,000 images"]
    for chart in charts:
        svg = to_svg(chart.specification, "x")
        assert all(strategy in svg for strategy, _ in STRATEGIES)
        assert "resolve" not in chart.specification
        assert "not drawn" not in chart.caption
    # A panel of its own for each strategy, whose lines have the same names, so the legend has each once.
    points = [row for row in charts[1].specification["datasets"]["rows"] if "published" not in row["series"]]
    assert len({row["panel"] for row in points}) == len(STRATEGIES)
    assert len({row["series"] for row in points}) == len(PRECISIONS)


def test_a_chart_has_no_more_panels_than_can_be_looked_at_and_says_so(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for model in ("mlp", "cnn10", "vgg_small", "wrn28_10"):
        for mode in ("training", "inference"):
            add_sweep(run, model=model, mode=mode)
    step, *_ = [block for block in curves(compared(run)).blocks if isinstance(block, Chart)]
    assert len({row["panel"] for row in step.specification["datasets"]["rows"]}) == MOST_PANELS
    assert "2 more such panels are not drawn: see the tables." in step.caption


def test_a_trial_has_its_values_in_the_middle_of_its_bins_and_no_panel_without_values() -> None:
    lists = {"host": {"power_w": [None, None]}, "gpu0": {"utilisation_percent": [10.0, None, 30.0]}}
    trial = {"phases": [["measure", 1.0, 6.0]], "step_s": 2.0, "devices": lists}
    drawn = of_trial({"power_w": "power, W", "utilisation_percent": "load, %"}, trial)
    assert [panel["name"] for panel in drawn["vconcat"]] == ["utilisation_percent"]
    assert drawn["datasets"] == {
        "phases": [{"name": "measure", "begin_s": 1.0, "end_s": 6.0}],
        "power_w": [],
        "utilisation_percent": [
            {"elapsed_s": 1.0, "device": "gpu0", "value": 10.0},
            {"elapsed_s": 5.0, "device": "gpu0", "value": 30.0},
        ],
    }


def test_a_trial_without_phases_is_drawn_in_a_finite_size() -> None:
    trial = {"phases": [], "step_s": 1.0, "devices": {"host": {"utilisation_percent": [10.0, 20.0]}}}
    drawn = of_trial({"utilisation_percent": "utilisation, %", "power_w": "power, W"}, trial)
    assert [panel["name"] for panel in drawn["vconcat"]] == ["utilisation_percent"]
    size = re.search(r'width="([0-9.e+]+)" height="([0-9.e+]+)"', to_svg(drawn, "x"))
    assert size is not None
    assert all(10 < float(length) < 2000 for length in size.groups())
