"""Standing: the printed numbers of a picture are the source's, and ours stand in the series that selects their case."""

from pathlib import Path
from typing import Any

import pytest

from tests.gpu_run import SCATTER, add_steps, two_gpus
from tests.report.compared import PUBLISHED, evidence_of
from tests.synthetic_run import TF, TORCH, SyntheticRun, training_case
from tests.words import WORDS
from tsuishi.report.parts.standing import PublishedStanding, device_names, our_values, published_values
from tsuishi.report.parts.suite_cases import cases_of_suites
from tsuishi.specs.pictures import Picture
from tsuishi.specs.source import Source, read_sources

SOURCES = {source.name: source for source in read_sources(PUBLISHED, WORDS, tables=False)}


def picture_of(source: str, name: str) -> tuple[Source, Picture]:
    (picture,) = (picture for picture in SOURCES[source].figures if picture.id == name)
    return SOURCES[source], picture


def ours(run: SyntheticRun, source: str, name: str) -> list[PublishedStanding]:
    evidence = evidence_of(run, published=True)
    return our_values(cases_of_suites(evidence), picture_of(source, name)[1], device_names(evidence))


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_printed_number_of_a_series_stands_in_its_picture_once(source: Source) -> None:
    for picture in source.figures:
        values = published_values(source, picture)
        for place, series in enumerate(picture.series):
            of_series = [each for each in values if each.place == place]
            assert bool(of_series) == series.printed, (picture.id, series.title)
            keys = [(each.owner, each.x, each.quantity) for each in of_series]
            assert len(keys) == len(set(keys)), (picture.id, series.title)


def test_the_first_picture_has_the_two_printed_lines_as_printed() -> None:
    values = published_values(*picture_of("torch-2080ti", "cnn10"))
    assert {(each.label, each.x): (each.value, each.cell.text) for each in values if each.x in (128, 2048)} == {
        ("RTX 2080 Ti (published), PyTorch, 1 device", 128): (13.90, "13.90"),
        ("RTX 2080 Ti (published), PyTorch, 1 device", 2048): (10.80, "10.80"),
        ("RTX 2080 Ti (published), PyTorch, 2 devices", 128): (11.92, "11.92"),
        ("RTX 2080 Ti (published), PyTorch, 2 devices", 2048): (7.05, "7.05"),
    }


def test_hardware_with_one_line_needs_no_title_and_a_level_has_no_x() -> None:
    values = published_values(*picture_of("conv2d-gce", "time"))
    assert {each.label for each in values} == {"V100 (published)", "K80 (published)", "SciPy, one CPU (published)"}
    assert [(each.quantity, each.value) for each in values if each.x is None] == [("later_run_s", 0.222)]


def test_our_points_of_two_suites_stand_in_the_series_of_one_picture(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    first: dict[str, Any] = {"suite": "channels_first", "layout": "channels_first"}
    add_steps(run, TF, 0.010, **first)
    add_steps(run, TF, 0.020, **first, strategy="multi_gpu_model", devices=2)
    add_steps(run, TF, 0.030)
    add_steps(run, TORCH, 0.040)
    add_steps(run, TORCH, 0.050, strategy="data_parallel", devices=2)
    # Neither is drawn by the source: another strategy, another network.
    add_steps(run, TORCH, 0.060, strategy="distributed_data_parallel", devices=2)
    add_steps(run, TORCH, 0.070, model="wrn28_10")
    found = ours(run, "torch-2080ti", "cnn10")
    # 50,000 images are 390.6 steps of 128; the geometric mean of the three trials is a little less.
    epoch_s = 0.010 * 50_000 / 128
    expected = {(0, TF): epoch_s, (1, TF): 2 * epoch_s, (2, TF): 3 * epoch_s}
    expected |= {(4, TORCH): 4 * epoch_s, (5, TORCH): 5 * epoch_s}
    assert {(each.place, each.owner): each.value for each in found} == pytest.approx(expected, rel=1e-4)
    assert found[1].label == f"{TF} on RTX 2080 Ti, multi_gpu_model, TensorFlow channels_first, 2 devices"
    low, high = found[0].low, found[0].high
    assert (low, high) == pytest.approx((epoch_s * SCATTER[0], epoch_s * SCATTER[-1]))


def test_of_two_ways_an_environment_has_that_with_more_of_the_pictures_values_then_the_sources(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    for strategy, sizes in (("mirrored", (128, 256)), ("multi_gpu_model", (128, 64))):
        for batch_size in sizes:
            add_steps(run, TF, 0.01, batch_size=batch_size, strategy=strategy, devices=2)
    found = ours(run, "torch-2080ti", "cnn10")
    assert {(each.x, "mirrored" in each.label) for each in found} == {(128, True), (256, True)}
    other = two_gpus(SyntheticRun(tmp_path / "other"))
    for strategy in ("mirrored", "multi_gpu_model"):
        add_steps(other, TF, 0.01, strategy=strategy, devices=2)
    (point,) = ours(other, "torch-2080ti", "cnn10")
    assert "multi_gpu_model" in point.label


def test_a_case_without_a_value_says_why_and_accuracy_on_made_up_data_is_no_accuracy(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(training_case(2048), TORCH, status="out_of_memory", reason="CUDA out of memory")
    epochs = [("epoch", index, 391, 50_000, 9.0) for index in range(3)]
    metrics = [("test_accuracy", 0.25, "1")]
    run.add(training_case(128, protocol="literal"), TORCH, epochs, synthetic=True, metrics=metrics)
    evidence = evidence_of(run, published=True)
    (_, picture), (_, accuracies) = (picture_of("torch-2080ti", name) for name in ("cnn10", "accuracy-cnn10"))
    known = cases_of_suites(evidence), device_names(evidence)
    assert [each.value for each in our_values(known[0], picture, known[1])] == [9.0]
    assert [each.value for each in our_values(known[0], accuracies, known[1])] == []
    only = SyntheticRun(tmp_path / "only")
    only.add(training_case(2048), TORCH, status="out_of_memory", reason="CUDA out of memory")
    assert [(each.value, each.cell.text) for each in ours(only, "torch-2080ti", "cnn10")] == [(None, "out of memory")]
