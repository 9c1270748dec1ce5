"""Towers and what feeds them: by first principles in every pinned environment, and the counting on its own."""

import numpy as np
import pytest

from common.events import Unsupported
from common.request import Fields
from experiments import input_pipeline
from tests.suites.environments import PINNED, REAL, inside, run_inside
from tests.words import WORDS
from tsuishi.specs.environment import Environment
from tsuishi.specs.source import read_source
from tsuishi.specs.suite import read_suite

WITH_PIPELINES = [environment for environment in PINNED if environment.framework in ("torch", "tensorflow")]
TENSORFLOW = [environment for environment in PINNED if environment.framework == "tensorflow"]
CASE = {
    "protocol": "steady",
    "mode": "training",
    "model": "vgg_small",
    "strategy": "towers",
    "devices": 2,
    "batch_size": 8,
    "precision": "fp32",
    "pipeline": "per_device",
}


def job(**changed):
    given = dict.fromkeys(input_pipeline.Job._fields)
    return input_pipeline.Job(**given | changed)


def batch(*ids):
    """What a tower got: ids, and images that tell them apart."""
    return np.array(ids), np.array(ids, np.float32).reshape(-1, 1, 1, 1)


@pytest.mark.parametrize("environment", TENSORFLOW, ids=lambda environment: environment.name)
@inside
def test_a_step_of_two_towers_is_the_mean_of_a_step_on_each_half_of_the_batch(environment: Environment) -> None:
    found = run_inside(environment, "check_towers.py")
    assert found["update_error"] < 1e-4
    assert found["loss"] == pytest.approx(found["expected_loss"], rel=1e-6)
    for mode in ("training", "inference"):
        assert found[mode]["replicas"] == 2
        assert found[mode]["parameters"] == 1925258
        assert [device.rpartition(":")[2] for device in found[mode]["devices"]] == ["0", "1"]


@pytest.mark.parametrize("environment", WITH_PIPELINES, ids=lambda environment: environment.name)
@inside
def test_every_pipeline_gives_whitened_crops_of_the_records_it_says(environment: Environment) -> None:
    found = run_inside(environment, "check_pipelines.py", environment.framework)
    towers = 2 if environment in TENSORFLOW else 1
    assert set(found) == (set(input_pipeline.PIPELINES) if towers == 2 else {"loader", "resident"})
    for name, pipeline in found.items():
        distinct = 4 if name.startswith("shared") else 4 * towers
        assert pipeline["counts"] == 2 * [[4 * towers, distinct]]
        assert pipeline["distinct_in_two_steps"] == pipeline["different_distortions"] == 2 * distinct
        assert pipeline["largest_mean"] < 1e-3
        assert pipeline["largest_deviation_error"] < 1e-3
        assert pipeline["least_similarity"] > 0.999999
        assert pipeline["parts"] == ["loading"]
        assert pipeline["devices_used"] == towers


def test_a_batch_that_two_towers_get_is_counted_twice_by_the_source_and_once_by_a_user():
    assert input_pipeline.count_step(2 * [batch(3, 4)], job(pipeline="shared_host")) == (4, 2)
    assert input_pipeline.count_step([batch(3, 4), batch(5, 6)], job(pipeline="per_device")) == (4, 4)
    assert input_pipeline.count_step([batch(3, 4), batch(5, 3)], job(pipeline="per_device")) == (4, 3)


def test_a_pipeline_that_does_not_do_what_its_name_says_is_an_error():
    with pytest.raises(AssertionError, match=r"^pipeline 'shared_host' gave two towers different batches$"):
        input_pipeline.count_step([batch(3, 4), batch(5, 6)], job(pipeline="shared_host"))
    with pytest.raises(AssertionError, match=r"^pipeline 'loader' gave two towers the same batches$"):
        input_pipeline.count_step(2 * [batch(3, 4)], job(pipeline="loader"))


def test_the_log_has_the_sources_arithmetic(capsys: pytest.CaptureFixture[str]) -> None:
    input_pipeline.log(10, 4.6234, 512 / 2682.6, job(batch_size=512, towers=4))
    assert capsys.readouterr().out == "step 10, loss = 4.62 (2682.6 examples/sec; 0.048 sec/batch)\n"


def test_a_queue_for_each_device_needs_towers():
    with pytest.raises(Unsupported, match=r"would run: shared_host, loader, resident$"):
        input_pipeline.check_axes(Fields("case", dict(CASE, strategy="none")))
    input_pipeline.check_axes(Fields("case", CASE))


def test_every_published_number_has_a_case_in_the_suite():
    cases = [case.axes for case, _ in read_suite(REAL.suites / "input_pipeline.toml", WORDS).cases("full", "cuda")]
    numbers = list(read_source(REAL.published / "towers-titanx.toml", WORDS).flat())
    assert len(numbers) == 67
    for number in numbers:
        assert sum(number.matches(case) for case in cases) == 1
