"""The networks as data, and the plain NumPy that everything is held to, against sums written out by hand."""

import hashlib
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common import networks
from frameworks.numpy import networks as networks_numpy
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.specs.vocabulary import vocabulary

TINY = networks.Network(
    "tiny",
    (5, 4, 2),
    [
        networks.Conv(3, 3, 1, bias=True),
        networks.Norm(),
        networks.Relu(),
        networks.Residual(
            [networks.Conv(4, 3, 2, bias=False), networks.Relu(), networks.Conv(4, 3, 1, bias=True)],
            [networks.Conv(4, 1, 2, bias=False)],
        ),
        networks.Flatten(),
        networks.Dense(3),
    ],
    parameters=57 + 6 + 108 + 148 + 12 + 75,
)


def random_weights(network):
    random = np.random.RandomState(1)
    return [random.uniform(-1, 1, shape).astype(np.float32) for shape in networks.weight_shapes(network)]


def convolved(images, kernel, stride):
    """One sum for every output: (size - 1) // 2 zeros before, whatever is needed after."""
    size, before = len(kernel), (len(kernel) - 1) // 2
    count, height, width, _ = images.shape
    outputs = np.zeros((count, -(-height // stride), -(-width // stride), kernel.shape[3]))
    for n, y, x, to in np.ndindex(outputs.shape):
        for a, b in itertools.product(range(size), repeat=2):
            row, column = y * stride + a - before, x * stride + b - before
            if 0 <= row < height and 0 <= column < width:
                for of in range(images.shape[3]):
                    outputs[n, y, x, to] += float(images[n, row, column, of]) * float(kernel[a, b, of, to])
    return outputs


def test_a_depthwise_convolution_convolves_each_channel_by_itself_and_relu6_ends_at_6() -> None:
    layers = [networks.Conv(2, 3, 2, True, depthwise=True), networks.Relu6(), networks.Flatten()]
    network = networks.Network("depthwise", (5, 4, 2), layers, 20)
    images = np.random.RandomState(0).uniform(-9, 9, (3, 5, 4, 2)).astype(np.float32)
    kernel, bias = weights = random_weights(network)
    assert kernel.shape == (3, 3, 1, 2)
    alone = [convolved(images[..., [channel]], kernel[..., [channel]], 2) for channel in range(2)]
    expected = np.clip(np.concatenate(alone, axis=3) + bias, 0, 6)
    assert (expected == 6).any()
    got = networks_numpy.logits(network, weights, images, True)
    np.testing.assert_allclose(got, expected.reshape(3, -1), rtol=1e-9)
    assert networks.multiply_adds(network) == 3 * 2 * 9 * 2


def test_the_first_weights_of_a_network_stay_the_same() -> None:
    """The digests were made when the networks were functions of Python."""
    digests = {"cnn10": "4d6f5c47ff0e81b7", "mlp": "8a8813c3b6329997", "vgg_small": "2678b9887ca86176"}
    for name, digest in digests.items():
        weights = networks.initial_weights(networks.NETWORKS[name], 0)
        assert hashlib.sha256(b"".join(array.tobytes() for array in weights)).hexdigest()[:16] == digest


# Trainable parameters as torchvision's documentation has them.
PARAMETERS = {"resnet18": 11689512, "resnet34": 21797672, "resnet50": 25557032, "resnet101": 44549160}
PARAMETERS |= {"resnet152": 60192808, "vgg16": 138357544, "mobilenet_v2": 3504872, "vgg11": 132863336}


def test_published_networks_have_their_published_parameters() -> None:
    assert {name: networks.NETWORKS[name].parameters for name in PARAMETERS} == PARAMETERS


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (["rellu"], "unknown layer 'rellu'; known: "),
        ([{"conv": 3, "size": 3, "strid": 2}], "unknown 'strid' in"),
        ([{"conv": 3}], "KeyError: 'size'"),
        ([{"dens": 3}], "KeyError: 'residual'"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_layer(layers: list[Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"shape": [8, 8, 3], "parameters": 1, "layers": layers}))
    with pytest.raises(ValueError, match=message) as refused:
        networks.read(str(path))
    assert str(path) in str(refused.value)


LAYERS: list[Any] = [
    *("norm", "relu", "relu6", "global_average_pool", "flatten"),
    {"conv": 3, "size": 3, "stride": 2, "bias": True},
    {"depthwise": 3, "stride": 2, "bias": True},
    {"average_pool": 2},
    {"max_pool": 2, "stride": 2},
    {"dense": 3},
    {"residual": [{"conv": 4, "size": 3}], "shortcut": [{"conv": 4, "size": 1}]},
]


def test_the_library_and_the_builder_know_the_same_layers(tmp_path: Path) -> None:
    suites = tmp_path / "suites"
    folder = suites / "workloads" / "networks"
    folder.mkdir(parents=True)
    for name in ("axes.toml", "quantities.toml"):
        (suites / name).write_bytes((Checkout().suites / name).read_bytes())

    def refusal(read: Callable[[], object]) -> str:
        try:
            read()
        except (UserError, ValueError) as refused:
            return str(refused)
        return ""

    def are_known(layer: Any) -> bool:
        path = folder / "mine.json"
        path.write_text(json.dumps({"shape": [8, 8, 3], "parameters": 1, "layers": [layer]}))
        said = [refusal(lambda: vocabulary(suites)), refusal(lambda: networks.read(str(path)))]
        assert all(re.search("unknown layer|unknown '|KeyError: 'residual'", each) for each in said) or not any(said)
        return not any(said)

    assert all(map(are_known, LAYERS))
    further = [{**layer, "groups": 32} for layer in LAYERS if isinstance(layer, dict)]
    assert not any(map(are_known, ["rellu", {"attention": 8}, *further]))
    assert not are_known({"times": 2, "layers": further[:1]})


@pytest.mark.parametrize("training", [True, False])
def test_a_tiny_network_is_what_it_is_by_hand(training: bool) -> None:
    images = np.random.RandomState(0).uniform(-1, 1, (3, *TINY.shape)).astype(np.float32)
    weights = random_weights(TINY)
    kernel, bias, scale, offset, first, second, second_bias, shortcut, dense, dense_bias = weights
    x = convolved(images, kernel, 1) + bias
    mean, variance = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if training else (0, 1)
    x = np.maximum((x - mean) / np.sqrt(variance + 1e-5) * scale + offset, 0)
    body = convolved(np.maximum(convolved(x, first, 2), 0), second, 1) + second_bias
    x = body + convolved(x, shortcut, 2)
    assert x.shape == (3, 3, 2, 4)
    expected = [[sum(row * dense[:, to]) + dense_bias[to] for to in range(3)] for row in x.reshape(3, -1)]
    got = networks_numpy.logits(TINY, weights, images, training)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_pooling_is_over_windows_that_do_not_overlap() -> None:
    images = np.arange(2 * 4 * 4 * 1, dtype=np.float32).reshape(2, 4, 4, 1)
    for layer, function in ((networks.AveragePool(2), np.mean), (networks.MaxPool(2, 2), np.max)):
        network = networks.Network("pool", (4, 4, 1), [layer, networks.Flatten()], 0)
        windows = [
            [function(image[y : y + 2, x : x + 2]) for y, x in itertools.product((0, 2), repeat=2)] for image in images
        ]
        np.testing.assert_array_equal(networks_numpy.logits(network, [], images, True), windows)


def test_the_loss_is_the_mean_of_minus_the_logarithm_of_the_labels_share() -> None:
    logits, labels = np.array([[1.0, 2.0, 3.0], [1000.0, 1000.0, 0.0]]), np.array([0, 1])
    shares = [np.exp(1) / (np.exp(1) + np.exp(2) + np.exp(3)), 0.5]
    assert networks_numpy.loss(logits, labels) == pytest.approx(-np.mean(np.log(shares)), rel=1e-12)


@pytest.mark.parametrize("network", [TINY, *networks.NETWORKS.values()], ids=lambda network: network.name)
def test_the_weights_come_to_the_number_of_parameters(network: networks.Network) -> None:
    assert sum(int(np.prod(shape)) for shape in networks.weight_shapes(network)) == network.parameters


@pytest.mark.parametrize("name", sorted(networks.NETWORKS))
def test_files_state_the_multiply_adds_of_their_layers(name: str) -> None:
    path = Path(networks.__file__).parents[1] / "networks" / f"{name}.json"
    assert json.loads(path.read_text())["multiply_adds"] == networks.multiply_adds(networks.NETWORKS[name])


def test_a_network_takes_other_images_where_no_layer_is_for_one_size() -> None:
    resnet18 = networks.NETWORKS["resnet18"]
    other = networks.resized(resnet18, 160)
    assert other.shape == (160, 160, 3)
    assert networks.weight_shapes(other) == networks.weight_shapes(resnet18)
    # 25 of 49 positions are left after every convolution, and the dense layer stays.
    assert networks.multiply_adds(other) - 512000 == (networks.multiply_adds(resnet18) - 512000) * 25 // 49
    with pytest.raises(ValueError, match="image_size 160: the layers of vgg16 are for 224"):
        networks.resized(networks.NETWORKS["vgg16"], 160)
    pooled = networks.Network("pooled", (16, 16, 3), [networks.AveragePool(8), networks.GlobalAveragePool()], 0)
    assert networks.resized(pooled, 8).shape == (8, 8, 3)
    with pytest.raises(ValueError, match="image_size 4: the layers of pooled are for 16"):
        networks.resized(pooled, 4)


def test_multiply_adds_are_counted_layer_by_layer() -> None:
    """9 taps, widths in and out, of the pixels a layer puts out; of cnn10: 32x32, 16x16 and 8x8 of them."""
    pixels, width = 5 * 4, 3 * 2
    assert networks.multiply_adds(TINY) == pixels * 9 * 6 + width * (9 * 12 + 9 * 16 + 12) + 24 * 3
    stages = [(32, (3, 64, 64), 64), (16, (64, 128, 128), 128), (8, (128, 256, 256), 256)]
    cnn10 = sum(side**2 * 9 * of * to for side, widths, to in stages for of in widths) + 256 * 10
    assert networks.multiply_adds(networks.NETWORKS["cnn10"]) == cnn10 == 266013184


def test_a_step_of_training_is_three_forward_passes_of_two_operations_a_multiply_add() -> None:
    network = networks.NETWORKS["cnn10"]
    assert networks.flops(network, 1, training=False) == 2 * 266013184
    assert networks.flops(network, 128, training=True) == 3 * 128 * 2 * 266013184


def test_a_window_that_overlaps_its_neighbours_has_a_margin_of_zeros() -> None:
    images = np.random.RandomState(0).uniform(0, 1, (2, 6, 4, 3))
    network = networks.Network("pool", (6, 4, 3), [networks.MaxPool(3, 2), networks.Flatten()], 0)
    rows, columns = (0, 2, 4), (0, 2)
    expected = [
        [image[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2].max((0, 1)) for y, x in itertools.product(rows, columns)]
        for image in images
    ]
    np.testing.assert_array_equal(networks_numpy.logits(network, [], images, True), np.array(expected).reshape(2, -1))


def test_resnet50_has_the_multiply_adds_of_its_stages() -> None:
    """By stage: pixels after it, width, blocks. The stride is in the 3x3 convolution: the 1x1 before it is of all."""
    total, before = 112**2 * 7**2 * 3 * 64, 64
    for side, width, blocks in ((56, 64, 3), (28, 128, 4), (14, 256, 6), (7, 512, 3)):
        first_side = side if width == 64 else 2 * side
        total += first_side**2 * before * width + side**2 * (9 * width**2 + width * 4 * width + before * 4 * width)
        total += (blocks - 1) * side**2 * (4 * width * width + 9 * width**2 + width * 4 * width)
        before = 4 * width
    assert networks.multiply_adds(networks.NETWORKS["resnet50"]) == total + 2048 * 1000 == 4089184256
