"""Training in the four pinned environments, smoke profile: the same networks, the same losses, real replicas.

`done` is the main job: its folder, and what it printed.
"""

import itertools
from collections import defaultdict
from pathlib import Path

import pytest

from tests.job import ONEDNN, PINNED, TENSORFLOW, TORCH, WITHOUT_CHANNELS_FIRST, Trial, trials

pytestmark = pytest.mark.engine

EVERYWHERE = {environment.name for environment in PINNED}
PARAMETERS = {"cnn10": 1925258, "wrn28_10": 36479194, "resnet50": 25557032, "vgg_small": 3838282, "mlp": 669706}
MULTIPLY_ADDS = {"cnn10": 266013184, "mlp": 784 * 512 + 512 * 512 + 512 * 10}  # of one image's forward pass
WITH_TWO_DEVICES = {"towers": set(TENSORFLOW), "mirrored": {"tf2-cpu"}, "distributed_data_parallel": set(TORCH)}
TOLERANCE = 1e-4


def differ_by(values: list[float]) -> float:
    """The largest relative difference of any two."""
    return max(abs(one - other) / min(one, other) for one, other in itertools.combinations(values, 2))


def by_case(found: list[Trial]) -> dict[str, list[Trial]]:
    cases: dict[str, list[Trial]] = defaultdict(list)
    for trial in found:
        cases[trial["case_id"]].append(trial)
    return cases


def steps(folder: Path) -> list[Trial]:
    """All trials of the workload `training` that ran."""
    suites = "batch_throughput", "channels_first", "multi_gpu_scaling"
    return [trial for suite in suites for trial in trials(folder, suite=suite, status="ok")]


def parity(folder: Path, **axes: str) -> list[Trial]:
    return trials(folder, suite="parity", status="ok", **axes)


@pytest.mark.parametrize("model", sorted(PARAMETERS))
def test_a_network_has_as_many_parameters_in_every_environment(done: tuple[Path, str], model: str) -> None:
    found = [trial for trial in steps(done[0]) + parity(done[0]) if trial["model"] == model]
    assert {trial["environment"] for trial in found} == EVERYWHERE
    assert {trial["metrics"]["trainable_parameters"] for trial in found} == {PARAMETERS[model]}


def test_every_environment_computes_what_numpy_computes_in_float64(done: tuple[Path, str]) -> None:
    found = [trial for trial in parity(done[0]) if trial["precision"] == "fp32"]
    for trial in found:
        assert trial["metrics"]["logits_relative_error"] < TOLERANCE
        assert trial["metrics"]["loss_relative_error"] < TOLERANCE
        if trial["mode"] == "training":
            assert trial["metrics"]["gradient_relative_error"] < 1e-3
    on_one_device = {(trial["environment"], trial["model"]) for trial in found if trial["strategy"] == "none"}
    assert on_one_device == set(itertools.product(EVERYWHERE, PARAMETERS))


def test_a_case_has_the_same_loss_in_every_environment(done: tuple[Path, str]) -> None:
    cases = by_case(parity(done[0], strategy="none", layout="native", precision="fp32"))
    assert len(cases) == 6
    for of_case in cases.values():
        assert {trial["environment"] for trial in of_case} == EVERYWHERE
        assert differ_by([trial["metrics"]["loss"] for trial in of_case]) < TOLERANCE
    in_fp64 = parity(done[0], precision="fp64")
    assert {trial["environment"] for trial in in_fp64} == {"torch1.1-cu90", "torch2-cpu"}
    assert differ_by([trial["metrics"]["loss"] for trial in in_fp64]) < 1e-11


def test_a_decoder_computes_the_same_everywhere_however_its_attention_is_computed(done: tuple[Path, str]) -> None:
    found = parity(done[0], model="decoder_tiny", precision="fp32")
    assert {(trial["environment"], trial["attention"]) for trial in found} == {
        *((environment, "plain") for environment in EVERYWHERE),
        ("torch2-cpu", "fused"),
    }
    assert differ_by([trial["metrics"]["loss"] for trial in found]) < TOLERANCE
    in_bf16 = parity(done[0], model="decoder_tiny", precision="amp_bf16")
    assert {trial["environment"] for trial in in_bf16} == {"tf2-cpu", "torch2-cpu"}
    assert all(0 < trial["metrics"]["logits_relative_error"] < 3e-2 for trial in in_bf16)


def test_a_decoder_says_its_tokens_and_learns(done: tuple[Path, str]) -> None:
    found = trials(done[0], suite="transformer_block", status="ok")
    assert {trial["environment"] for trial in found} == {"tf1.13-cpu", "torch2-cpu"}
    for trial in found:
        metrics = trial["metrics"]
        assert metrics["tokens"] == 2 * 32
        assert metrics["trainable_parameters"] == 134912
        learnt = metrics["initial_loss"] - metrics["final_loss"]
        assert learnt > 0.1 if trial["mode"] == "training" else abs(learnt) < 1e-6


@pytest.mark.parametrize("strategy", sorted(WITH_TWO_DEVICES))
def test_a_step_of_two_replicas_is_the_mean_of_a_step_on_each_half_of_the_batch(
    done: tuple[Path, str], strategy: str
) -> None:
    found = parity(done[0], strategy=strategy)
    assert {trial["environment"] for trial in found} == WITH_TWO_DEVICES[strategy]
    for trial in found:
        assert trial["metrics"]["step_relative_error"] < TOLERANCE
        assert trial["metrics"]["replicas"] == 2


def test_as_many_replicas_train_as_there_are_devices(done: tuple[Path, str]) -> None:
    found = [trial for trial in steps(done[0]) if trial["strategy"] != "none"]
    assert {(trial["strategy"], trial["environment"]) for trial in found} == {
        (strategy, environment) for strategy, names in WITH_TWO_DEVICES.items() for environment in names
    }
    for trial in found:
        assert trial["metrics"]["replicas"] == int(trial["devices"]) == 2


@pytest.mark.parametrize("environment", ["tf2-cpu", "torch2-cpu"])
def test_channels_first_and_channels_last_compute_the_same(done: tuple[Path, str], environment: str) -> None:
    for suite, protocol, metric in (
        ("parity", "steady", "loss"),
        ("channels_first", "steady", "initial_loss"),
    ):
        found = trials(done[0], suite=suite, environment=environment, protocol=protocol, mode="training", status="ok")
        losses = {trial["layout"]: trial["metrics"][metric] for trial in found if trial["layout"].startswith("chan")}
        if environment in WITHOUT_CHANNELS_FIRST:
            assert set(losses) == {"channels_last"}
            continue
        assert set(losses) == {"channels_first", "channels_last"}
        assert differ_by(list(losses.values())) < TOLERANCE


def test_on_a_cpu_a_step_transposes_only_where_channels_come_first(done: tuple[Path, str]) -> None:
    """oneDNN computes channels_first by transposing; how often depends on the CPU."""
    found = trials(done[0], suite="channels_first", protocol="steady", status="ok")
    counts = {
        (trial["environment"], trial["layout"]): trial["metrics"].get("transposes_in_step")
        for trial in found
        if trial["environment"] in TENSORFLOW
    }
    if ONEDNN:
        assert counts.pop(("tf2-cpu", "channels_first")) > 0
    assert counts == {("tf1.13-cpu", "channels_last"): 0, ("tf2-cpu", "channels_last"): 0}


def test_several_devices_on_a_cpu_are_marked_simulated_and_made_up_images_synthetic(done: tuple[Path, str]) -> None:
    for trial in steps(done[0]) + parity(done[0]):
        assert trial["simulated"] == ("true" if trial["devices"] == "2" else "false")
        assert trial["synthetic"] == "true"


def test_a_step_is_two_operations_a_multiply_add_and_training_three_passes(done: tuple[Path, str]) -> None:
    for trial in steps(done[0]):
        passes = 3 if trial["mode"] == "training" else 1
        expected = 2 * MULTIPLY_ADDS[trial["model"]] * passes * int(trial["batch_size"])
        assert trial["metrics"]["flops"] == expected
        assert trial["metrics"]["bytes"] > 0


def test_the_parts_of_a_step_are_timed_where_they_can_be(done: tuple[Path, str]) -> None:
    for trial in trials(done[0], suite="batch_throughput", mode="training"):
        assert trial["status"] == "ok"
        assert {"measure", "forward", "forward_backward"} <= set(trial["seconds"])


def test_the_same_files_ran_in_every_environment(done: tuple[Path, str]) -> None:
    records: dict[str, set[str]] = defaultdict(set)
    for trial in trials(done[0]):
        records[trial["suite"]].add(trial["workload_record"])
    assert len(records) == 8
    assert all(len(found) == 1 for found in records.values())
