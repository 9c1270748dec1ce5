"""Training in every pinned environment: replicas against one device, weights from a file, and how trials end."""

import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from common import networks
from tests.suites.environments import PINNED, REAL, inside, run_inside
from tsuishi.specs.environment import Environment

BATCH = 4
TORCH = [environment for environment in PINNED if environment.framework == "torch"]
HALF = "precision 'fp16' on cpu: torch 1.1.0 says: _th_addmm not supported on CPUType for Half; 'fp32' would run"
TENSORFLOW = [environment for environment in PINNED if environment.framework == "tensorflow"]


@inside
def test_keras_with_two_replicas_learns_what_it_learns_with_one() -> None:
    """Keras 3 adds up the replicas' gradients, and divides by their number only a loss of its own."""
    (environment,) = (one for one in PINNED if one.name == "tf2-cpu")
    found = run_inside(environment, "check_training.py")
    assert found["replicas"] == 2
    assert found["loss"] == pytest.approx(found["expected_loss"], rel=1e-5)
    assert found["update_error"] < 1e-4


@pytest.mark.parametrize(("name", "size", "count"), [("cnn10", 32, BATCH), ("mobilenet_v2", 96, 2)])
@inside
def test_weights_from_one_file_give_the_same_logits_everywhere(
    name: str, size: int, count: int, tmp_path: Path
) -> None:
    network = networks.resized(networks.NETWORKS[name], size)
    weights = networks.initial_weights(network, 0)
    images = np.random.RandomState(0).uniform(-2, 2, (count, *network.shape)).astype(np.float32)
    file = tmp_path / "weights.npz"
    np.savez(file, images=images, **{f"weight{index:03d}": one for index, one in enumerate(weights)})
    logits = {
        (environment.name, how): np.array(rows)
        for environment in PINNED
        for how, rows in run_inside(environment, "check_logits.py", environment.framework, name, file=file).items()
    }
    # PyTorch twice, JAX, MXNet and Chainer once, TensorFlow twice: by Keras and by raw operations
    assert len(logits) == 9
    for one, other in itertools.combinations(logits, 2):
        difference = np.abs(logits[one] - logits[other]).max() / np.abs(logits[one]).max()
        assert difference < 1e-4, (one, other)


@pytest.mark.parametrize("environment", PINNED, ids=lambda environment: environment.name)
@inside
def test_how_a_trial_ends_that_cannot_go_on(environment: Environment) -> None:
    found = run_inside(environment, "check_endings.py", environment.framework)
    for protocol in ("literal", "steady"):
        skipped = found.pop(protocol)
        assert skipped["code"] == 0
        assert skipped["last"]["kind"] == "skipped"
        assert " s a step (the " in skipped["last"]["text"]
        assert skipped["last"]["text"].endswith(
            "its budget is 0.001 s: allow more with --timeout, or take --profile quick"
        )
    texts = {
        "killed": "rank 2 was killed, most likely for want of memory",
        "without_memory": "rank 2: MemoryError: nothing left for 2 images",
        "early": "rank 2: MemoryError: nothing left for 6 images",
        "waiting": "rank 2: MemoryError: nothing left for 2 images",
    }
    assert set(found) == (set(texts) if environment.framework == "torch" else set())
    for name, ending in found.items():
        assert ending["code"] == 0
        assert ending["last"]["kind"] == "out_of_memory"
        assert ending["last"]["text"] == texts[name]
        assert ending["lost_touch"] == (name != "early")  # before the ranks meet, there is no touch to lose
        assert not ending["patience_ended"]
        assert ending["left"] == 0


@inside
def test_the_cuda_paths_of_torch_as_far_as_a_cpu_shows_them() -> None:
    """Stand-ins of CUDA's graphs, streams and events; the rest is PyTorch."""
    (environment,) = (one for one in TORCH if one.name == "torch2-cpu")
    found = run_inside(environment, "check_cuda_in_torch.py")
    assert found["types"] == {"amp_bf16": ["torch.bfloat16"], "amp_fp16": ["torch.float16"]}
    graphs = found["graphs"]
    for mode, steps in graphs.items():  # three steps before the graph, which the first step records
        assert steps.pop("loss_error") < 1e-6
        assert steps.pop("weights_error") < 1e-6
        assert steps == {"eager": 3, "recorded": 1, "replayed": 5, "gradients": [mode == "training"], "parts": 0}
    assert set(graphs) == {"training", "inference"}
    for why in found["refused"].values():
        assert why.startswith("execution '")
        assert why.endswith(" would run")
    assert found["not_refused"] == ["", "", ""]
    assert found["device_of_rank_1"] == "[1]"


@inside
def test_the_cuda_paths_of_tensorflow_2_as_far_as_a_cpu_shows_them() -> None:
    (environment,) = (one for one in TENSORFLOW if one.name == "tf2-cpu")
    found = run_inside(environment, "check_cuda_in_tensorflow.py")
    for made in found["xla"].values():
        assert made
        assert not any(made)
    transposes = found["transposes"]
    assert transposes["channels_last"] == 0
    assert transposes["channels_first"] > 0
    assert found["peaks"] == {"keras": 5, "towers": 5, "conv2d": 5}
    assert found["compiled"].startswith("execution 'compiled' with strategy 'mirrored'")
    assert found["native"] == ""


@inside
def test_the_cuda_paths_of_tensorflow_1_as_far_as_a_cpu_shows_them() -> None:
    (environment,) = (one for one in TENSORFLOW if one.name == "tf1.13-cpu")
    found = run_inside(environment, "check_cuda_in_tensorflow.py")
    assert found["bf16"].startswith("precision 'bf16': TensorFlow 1.13.1 has no kernel in it")
    assert found["copies"]["replicas"] == 2
    assert found["copies"]["step_relative_error"] < 1e-4


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
@inside
def test_networks_as_data_are_torchvisions_to_the_last_bit(name: str) -> None:
    """In the environments that have torchvision: the same parameters in the same order, outputs and gradients."""
    with_torchvision = [one for one in TORCH if any(pin.name == "torchvision" for pin in one.pins)]
    assert with_torchvision
    for environment in with_torchvision:
        found = run_inside(environment, "check_torchvision.py", name)
        assert found["parameters"] == networks.NETWORKS[name].parameters
        assert found["shapes_agree"]
        assert found["differences"] == {"training": 0.0, "inference": 0.0}


@pytest.mark.parametrize(
    ("name", "own", "parameters", "refused"),
    [
        ("torch1.1-cu90", "torchvision:vgg11", 132863336, "model 'torchvision:vgg_11': torchvision 0.2.2 has no such"),
        (
            "tf2-cpu",
            "keras:MobileNetV2",
            3504872,
            "model 'keras:VGG_11': keras of TensorFlow 2.21.0 has no such network",
        ),
    ],
)
@inside
def test_networks_of_libraries_are_built_by_their_names(name: str, own: str, parameters: int, refused: str) -> None:
    """The parameters are those that the libraries' documentation has."""
    (environment,) = (one for one in (*TORCH, *TENSORFLOW) if one.name == name)
    others = ["torchvision:vgg_11", "keras:VGG_11", "timm:resnet18"]
    found = run_inside(environment, "check_zoos.py", own, *others)
    assert found[own]["parameters"] == parameters
    assert found[own]["shape"] == [224, 224, 3]
    assert found[own]["loss"] > 0
    unsupported = [found[other]["unsupported"] for other in others]
    assert any(reason.startswith(refused) for reason in unsupported)
    elsewhere = {
        "tf2-cpu": "networks of timm are PyTorch's",
        "torch1.1-cu90": "timm is not installed in this environment",
    }
    assert elsewhere[name] in unsupported
    known = (REAL.root / "tsuishi" / "specs" / "zoos" / "keras.txt").read_text().split()
    assert ["keras", *found["keras"]] == (known if environment in TENSORFLOW else ["keras"])


@pytest.mark.parametrize("environment", TORCH, ids=lambda environment: environment.name)
@inside
def test_depthwise_gradients_are_right_or_training_with_them_is_refused(environment: Environment) -> None:
    """PyTorch 1.1 computes them wrong on a CPU; one figure over all gradients of a network would not show it."""
    found = run_inside(environment, "check_depthwise.py")
    is_wrong = environment.name.startswith("torch1.1")
    assert (found["error"] > 0.1) == is_wrong
    assert ("wrong gradients of depthwise convolutions" in found["training"]) == is_wrong
    assert found["inference"] == ""
    assert found["without"] == ""


@pytest.mark.parametrize("environment", TORCH, ids=lambda environment: environment.name)
@inside
def test_a_precision_of_everything_is_the_type_of_everything_or_is_refused(environment: Environment) -> None:
    """PyTorch 1.1 has no kernels for halves on a CPU, and no bfloat16."""
    found = run_inside(environment, "check_precisions.py")
    is_old = environment.name.startswith("torch1.1")
    first = HALF.replace("_th_addmm", "_thnn_conv2d_forward")  # the tiny network begins with a convolution
    assert found["tried"] == (first if is_old else "it has computed")
    fp32 = found["fp32"]["steady"]
    types = {"fp16": "torch.float16", "bf16": "torch.bfloat16", "fp64": "torch.float64"}
    for precision, (bits, size) in {"fp16": (10, 0.5), "bf16": (7, 0.5), "fp64": (23, 2)}.items():
        steady, literal = (found[precision][protocol] for protocol in ("steady", "literal"))
        if is_old and precision != "fp64":
            reason = HALF if precision == "fp16" else "precision 'bf16': PyTorch 1.1.0 has none; 'fp32' would run"
            assert steady["unsupported"] == literal["unsupported"] == reason
            continue
        assert steady["types"] == [types[precision]]
        assert steady["bytes"] == size * fp32["bytes"]
        assert steady["flops"] == fp32["flops"]
        # Roundings add up, by the kernels of the CPU: FP32 was 1.5 units off FP64 on an EPYC.
        assert 0 < abs(steady["initial_loss"] / fp32["initial_loss"] - 1) < 4 * 2**-bits
        assert steady["final_loss"] < steady["initial_loss"]
        assert abs(literal["final_loss"] / found["fp32"]["literal"]["final_loss"] - 1) < 4 * 2**-bits
    assert fp32["types"] == ["torch.float32"]


@pytest.mark.parametrize("environment", TORCH, ids=lambda environment: environment.name)
@inside
def test_every_loader_gives_each_image_once_with_its_label(environment: Environment) -> None:
    """torchvision makes bytes of the images and divides them again: to the last digit or so they are the same."""
    found = run_inside(environment, "check_loaders.py")
    del found["fed"]
    has_torchvision = any(pin.name == "torchvision" for pin in environment.pins)
    for name, loaded in found.items():
        if name.startswith("torchvision") and not has_torchvision:
            assert "torchvision is not installed" in loaded["unsupported"]
            continue
        assert loaded["batches"] == [16, 16, 8]
        assert loaded["types"] == ["torch.float32", "torch.int64"]
        assert loaded["each_once"]
        assert loaded["labels"]
        assert loaded["shuffled"]
        assert loaded["largest_error"] < 1e-6
    assert {name for name, loaded in found.items() if "batches" in loaded} >= {"tensors", "tensors_2_workers"}


@pytest.mark.parametrize("environment", TORCH, ids=lambda environment: environment.name)
@inside
def test_steps_that_are_fed_train_on_every_image_before_any_comes_again(environment: Environment) -> None:
    """Five steps of 16 images take a set of 40 images twice, whoever makes the batches; all make the same batches."""
    found = run_inside(environment, "check_loaders.py")["fed"]
    assert set(found) == {"host", "host_pinned", "host_ahead"}
    for fed in found.values():
        assert fed["counts"] == [2] * 40
        assert fed["labelled"]
        assert fed["losses"] == pytest.approx(found["host"]["losses"], rel=1e-3)
        assert len(set(fed["losses"])) == 5


@pytest.mark.parametrize("environment", TENSORFLOW, ids=lambda environment: environment.name)
@inside
def test_keras_is_fed_every_image_before_any_comes_again(environment: Environment) -> None:
    """Five steps of 16 images take a set of 40 images twice, by tf.data too; the first trains on the first batch."""
    found = run_inside(environment, "check_fed.py")
    for fed in found["batches"].values():
        assert fed["counts"] == [2] * 40
        assert fed["labelled"]
        assert fed["type"] == "float32"
        assert fed["same_ahead"] == [True] * 5
    losses = found["losses"]["host"]
    assert found["losses"]["host_ahead"] == pytest.approx(losses, rel=1e-3)
    assert losses[0] == pytest.approx(found["first_loss"], rel=1e-5)
    assert len(set(losses)) == 5


@pytest.mark.parametrize("environment", TENSORFLOW, ids=lambda environment: environment.name)
@inside
def test_keras_is_handed_what_the_source_handed_it(environment: Environment) -> None:
    found = run_inside(environment, "check_keras_input.py")
    assert found["channels_last"] == {"type": "float64", "shape": [8, 32, 32, 3], "is_a_view": False}
    assert found["channels_first"] == {"type": "float64", "shape": [8, 3, 32, 32], "is_a_view": True}


@inside
def test_a_source_s_package_times_two_images_whatever_it_calls_the_batch(tmp_path: Path) -> None:
    """The package in its pins, which only the environment of its source has, on another PyTorch."""
    (environment,) = (each for each in TORCH if each.name == "torch2-cpu")
    pins = (REAL.images / "torch2.2-cu121.lock").read_text().splitlines()
    names = ("gputil", "psutil", "ptflops", "py-cpuinfo", "pytorch-benchmark", "pyyaml", "tqdm")
    (tmp_path / "pins.lock").write_text("\n".join(pin for pin in pins if pin.partition("==")[0] in names))
    install = ["install", "--quiet", "--no-deps", "--require-hashes", "--target", str(tmp_path / "packages")]
    subprocess.run([sys.executable, "-m", "pip", *install, "-r", str(tmp_path / "pins.lock")], check=True)
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "packages")
    found = run_inside(environment, "check_package.py", file=Path(packed))
    for label, images in (("1", 1), ("16", 2)):
        ((phase, index, steps, of_images, seconds),) = found[label]["samples"]
        assert (phase, index, steps, of_images) == ("measure", 0, 10, 10 * images)
        assert seconds > 0
        assert found[label]["phases"] == ["+package", "-package"]
        assert found[label]["metrics"] == ["trainable_parameters"]  # no work: of how many images, the package knows
    assert "no package pytorch-benchmark" in found["without"]["unsupported"]
    assert "layout 'channels_first'" in found["channels_last"]["unsupported"]


@pytest.mark.parametrize("environment", TORCH, ids=lambda environment: environment.name)
@inside
def test_literal_passes_are_timed_one_by_one_and_update_no_weight(environment: Environment) -> None:
    found = run_inside(environment, "check_single.py")
    for mode in ("training", "inference"):
        trial, passes = found[mode]["trial"], found[mode]["passes"]
        assert trial["samples"] == [["first_step", 1, 4], ["second_step", 1, 4], *[["measure", 1, 4]] * 6]
        assert trial["phases"][-2:] == ["+measure", "-measure"]
        assert {"flops", "trainable_parameters"} <= {*trial["metrics"]}
        assert trial["tuned"] == [False, True]
        assert passes["types"] == ["torch.float64"]
        assert passes["images"] == 4
        assert passes["anew"]
        assert not passes["changed"]
        of_training = [mode == "training"] * 3
        assert [passes[name] for name in ("in_training", "requires_grad", "gradients")] == of_training
        assert passes["is_output"] == (mode == "inference")  # no loss, as in the source
    assert found["data_parallel"]["gradients"]
    assert not found["data_parallel"]["changed"]
    assert "'steady' would run" in found["refused"]["distributed_data_parallel"]
    assert "'native', which would run" in found["refused"]["compiled"]
    assert "'steady' would run" in found["refused"]["fed"]
