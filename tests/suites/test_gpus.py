"""What needs two real GPUs: the strategies that refuse less, by the framework of an interpreter with CUDA.

INVOKE_TSUISHI_HOST_PYTHON names the interpreter. Run only where asked for: `python -m pytest -m gpus`.
"""

from pathlib import Path

import pytest

from tests import job
from tsuishi.machine.gpus import Nvml

pytestmark = pytest.mark.gpus

# By framework, what `parity` must have run; the others are unsupported.
STRATEGIES = {
    "torch": {"data_parallel", "distributed_data_parallel"},
    "tensorflow 1": {"multi_gpu_model", "towers"},
    "tensorflow 2": {"mirrored", "towers"},
    "jax": {"shard_map"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if len(Nvml()) < 2:
        pytest.fail("these tests were asked for, and there are fewer than two GPUs")
    made = tmp_path_factory.mktemp("gpus")
    suites = "parity,multi_gpu_scaling"
    result = job.invoke(made, "run-suite", "--env", "host", "--suite", suites, "--profile", "smoke")
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr
    return made


def test_every_strategy_of_the_framework_steps_as_one_device_does(folder: Path) -> None:
    found = {trial["strategy"]: trial for trial in job.trials(folder, suite="parity", devices="2", status="ok")}
    framework = next(iter(found.values()))["framework"]
    wanted = next(strategies for name, strategies in STRATEGIES.items() if framework.startswith(name))
    assert set(found) == wanted
    for trial in found.values():
        assert trial["simulated"] == "false"
        assert trial["metrics"]["replicas"] == 2
        assert trial["metrics"]["step_relative_error"] < 1e-4


def test_a_literal_training_on_two_gpus_ends_with_its_accuracy(folder: Path) -> None:
    literal = job.trials(folder, suite="multi_gpu_scaling", protocol="literal", devices="2", status="ok")
    assert literal
    for trial in literal:
        assert 0 <= trial["metrics"]["test_accuracy"] <= 1
        assert len(trial["seconds"]["epoch"]) == 2
