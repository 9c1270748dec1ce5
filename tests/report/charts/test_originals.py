"""Originals: the drawn points are the printed numbers and ours, each with its look, on the scale of the source."""

from pathlib import Path
from typing import Any

import pytest

from tests.gpu_run import GPU, add_steps, two_gpus
from tests.report.compared import PUBLISHED
from tests.report.parts.test_standing import ours, picture_of
from tests.synthetic_run import TF, TORCH, SyntheticRun, steady_samples, training_case
from tests.words import WORDS
from tsuishi.report.charts.figures import specification
from tsuishi.report.charts.originals import original_chart, original_points, scale_of
from tsuishi.report.output.vega import to_svg
from tsuishi.report.parts.standing import PublishedStanding, published_values
from tsuishi.specs.source import read_sources

DRAWN = [
    pytest.param(source, picture, id=f"{source.name}-{picture.id}")
    for source in read_sources(PUBLISHED, WORDS, tables=False)
    for picture in source.figures
    if picture.kind == "figure" and any(series.printed for series in picture.series)
]


def drawn(source: str, name: str, own: list[PublishedStanding] | None = None) -> list[dict[str, Any]]:
    known, picture = picture_of(source, name)
    return original_points(picture, published_values(known, picture), own or [])


@pytest.mark.parametrize(("source", "picture"), DRAWN)
def test_drawn_points_are_the_published_numbers_and_look_published(source: Any, picture: Any) -> None:
    theirs = published_values(source, picture)
    points = original_points(picture, theirs, [])
    if not picture.line:
        assert [(point["x"], point["y"]) for point in points] == [(each.x, each.value) for each in theirs]
    assert scale_of(picture, points) == picture.scale
    chart = original_chart(picture, points, ([], [hardware.title for hardware in source.hardware]))
    layer = chart["spec"]["layer"][0]
    colours = layer["encoding"]["color"]["scale"]["range"]
    assert all(colour[1:3] == colour[3:5] == colour[5:7] for colour in colours), "published lines are grey"
    assert [1, 0] not in layer["encoding"]["strokeDash"]["scale"]["range"], "and dashed"


def test_a_level_is_a_rule_in_the_panel_of_the_pictures_quantity() -> None:
    (level,) = [point for point in drawn("conv2d-gce", "time") if point["rule"]]
    assert (level["y"], level["panel"], level["owner"]) == (0.222, "first run", "SciPy, one CPU (published)")


def test_the_curves_are_drawn_from_the_two_printed_constants() -> None:
    points = drawn("batch-throughput", "speed")
    assert {point["mark"] for point in points} == {"fit"}
    assert len({point["series"] for point in points}) == 2
    for point in points:
        v0, t_cost = (258.1, 0.054) if "1 device" in point["series"] else (513.8, 0.15)
        assert point["y"] == pytest.approx(point["x"] / (point["x"] / v0 + t_cost))
    assert (min(point["x"] for point in points), max(point["x"] for point in points)) == pytest.approx((8, 512))


def test_our_line_has_the_same_formula_through_three_points_and_none_through_two(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for batch_size in (32, 64, 128):
        case = training_case(batch_size, suite="batch_throughput")
        run.add(case, TORCH, steady_samples(batch_size, [batch_size / 1000 + 0.01] * 4), **GPU)
    for batch_size in (32, 64):
        case = training_case(batch_size, suite="batch_throughput")
        run.add(case, TF, steady_samples(batch_size, [batch_size / 1000 + 0.01] * 4), **GPU)
    points = drawn("batch-throughput", "speed", ours(run, "batch-throughput", "speed"))
    fitted = [point for point in points if point["mark"] == "fit" and not point["published"]]
    assert {point["owner"] for point in fitted} == {TORCH}
    for point in fitted:
        assert point["y"] == pytest.approx(point["x"] / (point["x"] / 1000 + 0.01))
    assert [point["x"] for point in points if point["owner"] == TF] == [32, 64]


def test_no_line_joins_two_single_trials_but_one_joins_several_trials_or_points(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    for batch_size in (128, 256):
        add_steps(run, TORCH, 0.04, trials=1, batch_size=batch_size)
        add_steps(run, TORCH, 0.03, trials=3, batch_size=batch_size, strategy="data_parallel", devices=2)
    for batch_size in (128, 256, 512):
        add_steps(run, TF, 0.05, trials=1, batch_size=batch_size)
    points = drawn("torch-2080ti", "cnn10", ours(run, "torch-2080ti", "cnn10"))
    marks = {(point["owner"], point["variant"]): point["mark"] for point in points}
    assert marks[TORCH, "PyTorch, 1 device"] == "point"
    assert marks[TORCH, "PyTorch, 2 devices"] == ""
    assert marks[TF, "TensorFlow channels_last, 1 device"] == ""


def test_the_scale_is_logarithmic_only_where_ours_lie_far_from_the_sources(tmp_path: Path) -> None:
    _, picture = picture_of("torch-2080ti", "cnn10")
    for step_s, scale in ((0.03, "linear"), (3.0, "log")):
        run = two_gpus(SyntheticRun(tmp_path / scale))
        add_steps(run, TORCH, step_s)
        assert scale_of(picture, drawn("torch-2080ti", "cnn10", ours(run, "torch-2080ti", "cnn10"))) == scale


@pytest.mark.long
def test_ours_and_theirs_are_drawn_in_one_frame_with_the_hardware_named(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    add_steps(run, TORCH, 0.03)
    source, picture = picture_of("torch-2080ti", "cnn10")
    points = drawn("torch-2080ti", "cnn10", ours(run, "torch-2080ti", "cnn10"))
    chart = original_chart(picture, points, ([TORCH], [hardware.title for hardware in source.hardware]))
    svg = to_svg(specification(chart), "chart")
    assert f"{TORCH} on RTX 2080 Ti, PyTorch, 1 device" in svg
    assert "RTX 2080 Ti (published), PyTorch, 2 devices" in svg
    assert chart["facet"]["sort"] == ["later epochs, median"], "one frame"
