"""What a report says of pipelines: only what its own trials show."""

from pathlib import Path
from typing import Any

from suites.explanations.input_pipeline import PipelineOrDevice
from tests.synthetic_run import TF, SyntheticRun, steady_samples
from tests.words import WORDS
from tsuishi.report.parts.wording import worded
from tsuishi.specs.case import Case
from tsuishi.verdicts.evidence import Evidence


def case(pipeline: str, batch_size: int = 32, devices: int = 4) -> Case:
    axes: dict[str, Any] = {"suite": "input_pipeline", "protocol": "steady", "mode": "training", "model": "vgg_small"}
    more = {"strategy": "towers", "precision": "fp32", "pipeline": pipeline}
    return WORDS.case({**axes, **more, "devices": devices, "batch_size": batch_size})


def explained(path: Path, times: dict[Case, tuple[float, float]]) -> dict[str, str]:
    """The paragraphs by topic. times: of a step and of its pipeline alone, in s, by case; three trials of each."""
    run = SyntheticRun(path / "run")
    for measured, (step_s, loading_s) in times.items():
        for repetition in (1, 2, 3):
            factor = 1 + 0.001 * repetition
            samples = steady_samples(measured.batch_size or 0, [step_s * factor] * 4)
            images = 10 * (measured.batch_size or 0)
            loading = [("loading", index, 10, images, 10 * loading_s * factor) for index in range(4)]
            run.add(measured, TF, [*samples, *loading], repetition)
    with worded(WORDS):
        evidence = Evidence([run.finish()], (), WORDS)
        found = PipelineOrDevice(evidence, "input_pipeline").paragraphs()
    return {paragraph.topic: paragraph.text for paragraph in found.get(TF, [])}


def test_a_step_that_takes_as_long_as_its_pipeline_is_decided_by_it(tmp_path: Path) -> None:
    found = explained(tmp_path, {case("shared_host"): (0.1, 0.1), case("resident"): (0.02, 0.001)})
    text = found["Pipeline or device"]
    assert "the step and its pipeline are about as fast." in text
    assert "the step with its pipeline takes 5.0 times as long as the step without (at least" in text
    assert set(found) == {"Pipeline or device"}, "one batch size, and no GPU: nothing else was tested"


def test_a_pipeline_that_is_faster_than_its_step_is_told_from_it(tmp_path: Path) -> None:
    text = explained(tmp_path, {case("per_device"): (0.1, 0.02)})["Pipeline or device"]
    assert "the step takes 5.0 times as long as its pipeline (at least" in text
    assert "esident" not in text


def test_resident_images_in_two_batches_say_whether_small_images_leave_a_device_idle(tmp_path: Path) -> None:
    found = explained(tmp_path, {case("resident"): (0.1, 0.001), case("resident", 64): (0.2, 0.001)})
    assert "2.00 times the images in a step; the larger batch takes 2.0 times" in found["Small images"]


def test_what_was_not_measured_is_not_explained(tmp_path: Path) -> None:
    assert explained(tmp_path, {case("resident"): (0.1, 0.001)}) == {}
