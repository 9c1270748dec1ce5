"""The networks of ../networks/*.json: every framework builds them, and operations and bytes are counted from them.

A file is a network, and its name is that of the network: `shape`, `parameters`, `multiply_adds` of
an image, `layers`. A layer without values is a
word ("norm", "relu", "relu6", "global_average_pool", "flatten"), another is an object by its kind: "conv" (its width,
with "size", "stride" and "bias"), "depthwise" (its size), "average_pool", "max_pool", "dense", "residual" (layers, with
the layers of its "shortcut"); {"times": 3, "layers": [...]} stands for so many repetitions of these layers.

Weights are lists of float32 arrays in a canonical order and form: layer by layer (of a Residual, the body, then the
shortcut). A Conv has a kernel (height, width, in, out), of which `in` is 1 where it is depthwise, and a bias where
`bias` is True; a Norm has a scale and an offset; a Dense has a kernel (in, out) and a bias. The networks*.py of each
framework translate.
"""

import collections
import difflib
import glob
import json
import os

import numpy as np

from common.events import Unsupported

# Stride 1 keeps the size ("same"). Stride 2 pads (size - 1) // 2 on all four sides, as PyTorch does; TensorFlow's
# "SAME" would pad a 3x3 filter at the bottom and right only.
# depthwise: each channel has a kernel of its own, and the width is that of the input.
Conv = collections.namedtuple("Conv", "width size stride bias depthwise")
Conv.__new__.__defaults__ = (False,)
Norm = collections.namedtuple("Norm", "")  # over the batch
Relu = collections.namedtuple("Relu", "")
Relu6 = collections.namedtuple("Relu6", "")  # min(max(x, 0), 6)
AveragePool = collections.namedtuple("AveragePool", "size")  # size x size, stride the same
# size x size. Stride 2 pads as a Conv; with zeros, as it comes after a ReLU.
MaxPool = collections.namedtuple("MaxPool", "size stride")
GlobalAveragePool = collections.namedtuple("GlobalAveragePool", "")
Flatten = collections.namedtuple("Flatten", "")  # to the order height, width, channels under every layout
Dense = collections.namedtuple("Dense", "width")
Residual = collections.namedtuple("Residual", "body shortcut")  # the sum of both; an empty shortcut is the input

# Of batch normalisation, as the defaults of Keras (1e-3, 0.99) and PyTorch (1e-5, 0.9) differ.
NORM_EPSILON = 1e-5
NORM_MOMENTUM = 0.9  # share of the old value in the moving statistics

# shape: (height, width, channels) of an image. parameters: how many trainable parameters every framework must have.
# Of a network of a library (ZOOS), layers and parameters are None: the library alone knows them.
Network = collections.namedtuple("Network", "name shape layers parameters")

# Libraries whose networks a case may name, as "timm:resnet50"; the framework's zoos.py builds them.
ZOOS = ("torchvision", "timm", "keras")

_WORDS = {
    "norm": Norm(),
    "relu": Relu(),
    "relu6": Relu6(),
    "global_average_pool": GlobalAveragePool(),
    "flatten": Flatten(),
}


def read(path):
    """The Network of a file. Raises ValueError naming file and layer where it is wrong."""
    name = os.path.splitext(os.path.basename(path))[0]
    with open(path, encoding="utf-8") as file:
        try:
            described = json.load(file)
            layers, _ = _layers(described["layers"], tuple(described["shape"]))
            return Network(name, tuple(described["shape"]), layers, described["parameters"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("{}: {}: {}".format(path, type(error).__name__, error)) from error


def _layers(described, shape):
    """(the layers of a description, the shape of an image after them)."""
    layers = []
    for one in described:
        if isinstance(one, dict) and "times" in one:
            for _ in range(one["times"]):
                inner, shape = _layers(one["layers"], shape)
                layers += inner
            continue
        layer = _layer(one, shape)
        layers.append(layer)
        shape = _layers(one["residual"], shape)[1] if isinstance(layer, Residual) else after(layer, shape)
    return layers, shape


def _layer(one, shape):
    """The layer of a word or an object. shape: of an image before it."""
    if not isinstance(one, dict):
        if one not in _WORDS:
            raise ValueError("unknown layer {!r}; known: {} and objects".format(one, ", ".join(sorted(_WORDS))))
        return _WORDS[one]
    values, stride, bias = dict(one), one.get("stride"), one.get("bias", False)
    if "conv" in one:
        layer, known = Conv(one["conv"], one["size"], stride or 1, bias), {"conv", "size", "stride", "bias"}
    elif "depthwise" in one:
        layer, known = Conv(shape[-1], one["depthwise"], stride or 1, bias, True), {"depthwise", "stride", "bias"}
    elif "average_pool" in one:
        layer, known = AveragePool(one["average_pool"]), {"average_pool"}
    elif "max_pool" in one:
        layer, known = MaxPool(one["max_pool"], stride or one["max_pool"]), {"max_pool", "stride"}
    elif "dense" in one:
        layer, known = Dense(one["dense"]), {"dense"}
    else:
        branches = [_layers(one[key], shape)[0] for key in ("residual", "shortcut") if key in one or key == "residual"]
        layer, known = Residual(branches[0], (branches + [[]])[1]), {"residual", "shortcut"}
    if set(values) - known:
        raise ValueError("unknown {!r} in {!r}".format(sorted(set(values) - known)[0], one))
    return layer


def is_of_zoo(name):
    """Whether a network is that of a library."""
    return name.partition(":")[0] in ZOOS and ":" in name


def require_in_library(name, release, names):
    """Raises Unsupported where a library's release has no network of that name ("timm:resnet50")."""
    model = name.split(":", 1)[1]
    if model not in names:
        near = difflib.get_close_matches(model, names, 3) or sorted(names)[:3]
        raise Unsupported("model {!r}: {} has no such network; near: {}".format(name, release, ", ".join(near)))


def resized(network, size):
    """The network for square images of `size` pixels. Raises ValueError where its layers fit another size alone."""
    shape = (size, size, network.shape[2])
    other = network._replace(shape=shape)
    fits = weight_shapes(other) == weight_shapes(network)
    if not fits or any(min(after) < 1 for _, _, after in walk(network.layers, shape)):
        raise ValueError("image_size {}: the layers of {} are for {}".format(size, network.name, network.shape[0]))
    return other


def small(network):
    """A network of the first layer of each kind in `network`, in the same order; its convolutions have two channels.

    Depthwise convolutions are left out.
    """
    kinds = collections.OrderedDict()
    for layer, _, _ in walk(network.layers, network.shape):
        if not (isinstance(layer, Conv) and layer.depthwise):
            kinds.setdefault(type(layer), layer._replace(width=2) if isinstance(layer, Conv) else layer)
    layers = [layer for kind, layer in kinds.items() if kind is not Residual]
    reduced = Network("small " + network.name, network.shape, layers, None)
    return reduced._replace(parameters=sum(int(np.prod(shape)) for shape in weight_shapes(reduced)))


def walk(layers, shape):
    """Yields (layer, before, after) for every layer in canonical order: the shapes of an image before and after it.

    A shape is (height, width, channels), or (values,) once flat. A Residual comes after the layers of its branches;
    its `before` and `after` are the shape of the body's output.
    """
    for layer in layers:
        before = shape
        if isinstance(layer, Residual):
            for branch in (layer.body, layer.shortcut):
                inner = before
                for step in walk(branch, before):
                    yield step
                    inner = step[2]
                shape = inner if branch is layer.body else shape
            yield layer, shape, shape
        else:
            shape = after(layer, shape)
            yield layer, before, shape


def after(layer, shape):
    """The shape of an image after a layer, from the shape before it."""
    if isinstance(layer, Conv):
        return -(-shape[0] // layer.stride), -(-shape[1] // layer.stride), layer.width
    if isinstance(layer, MaxPool):
        return -(-shape[0] // layer.stride), -(-shape[1] // layer.stride), shape[2]
    if isinstance(layer, AveragePool):
        return shape[0] // layer.size, shape[1] // layer.size, shape[2]
    if isinstance(layer, GlobalAveragePool):
        return (shape[2],)
    if isinstance(layer, Flatten):
        return (int(np.prod(shape)),)
    return (layer.width,) if isinstance(layer, Dense) else shape


def pool_padding(layer):
    """The zeros on all four sides of a MaxPool's input: none where its windows do not overlap."""
    return (layer.size - 1) // 2 if layer.stride < layer.size else 0


def same_padding(size):
    """(before, after): TensorFlow's 'SAME' at stride 1, which pads more at the bottom and right for an even filter."""
    return (size - 1) // 2, size // 2


def weight_shapes(network):
    """Shapes of the weights, in canonical order."""
    return [shape for shape, _ in _weights(network)]


def initial_weights(network, seed):
    """Glorot-uniform kernels (Glorot & Bengio 2010), zero biases and offsets, scales of 1.

    They are drawn here, so that all frameworks start alike: torch 1.1 draws the scale of batch normalisation from
    U(0, 1), torch 1.2 and newer start at 1.
    """
    random = np.random.RandomState(seed)
    return [
        _glorot_uniform(random, shape) if value is None else np.full(shape, value, np.float32)
        for shape, value in _weights(network)
    ]


def _weights(network):
    """Yields (shape, initial value) of each weight in canonical order; the value of a kernel is None."""
    for layer, before, _ in walk(network.layers, network.shape):
        if isinstance(layer, Conv):
            yield (layer.size, layer.size, 1 if layer.depthwise else before[-1], layer.width), None
        elif isinstance(layer, Norm):
            yield (before[-1],), 1
            yield (before[-1],), 0
        elif isinstance(layer, Dense):
            yield (before[-1], layer.width), None
        if isinstance(layer, Dense) or (isinstance(layer, Conv) and layer.bias):
            yield (layer.width,), 0


def _glorot_uniform(random, shape):
    """A kernel (..., in, out) float32."""
    limit = np.sqrt(6.0 / (int(np.prod(shape[:-2])) * (shape[-2] + shape[-1])))
    return random.uniform(-limit, limit, shape).astype(np.float32)


def multiply_adds(network):
    """Multiply-adds of an image's forward pass in convolutions and dense layers; other layers add a few percent."""
    total = 0
    for layer, before, shape in walk(network.layers, network.shape):
        if isinstance(layer, Conv):
            total += shape[0] * shape[1] * layer.size**2 * (1 if layer.depthwise else before[-1]) * layer.width
        elif isinstance(layer, Dense):
            total += before[-1] * layer.width
    return total


def flops(network, images, training):
    """Floating-point operations of a step over `images` images; a multiply-add counts as 2.

    The backward pass counts as two forward passes: for the gradients of the weights, and for the gradients of the
    inputs (Kaplan et al. 2020, arXiv 2001.08361, section 2.1).
    """
    return flops_of(multiply_adds(network), images, training)


def flops_of(multiply_adds, images, training):
    """As flops, from the multiply-adds of an image's forward pass."""
    return 2 * multiply_adds * images * (3 if training else 1)


def least_bytes(network, images, training, value_bytes=4, weight_bytes=4):
    """The least bytes that a step moves between the device and its memory, if all other layers are fused.

    The forward pass writes and reads the outputs of convolutions, dense layers and poolings once; training reads them
    once more, and writes and reads their gradients. The forward pass reads every weight once; training reads it again
    and writes its gradient; the update reads gradient, weight and momentum, and writes weight and momentum. A weight
    has weight_bytes; a value that passes between layers has value_bytes (2 under mixed precision).
    """
    written = (Conv, Dense, AveragePool, MaxPool, GlobalAveragePool)
    values = sum(
        int(np.prod(shape)) for layer, _, shape in walk(network.layers, network.shape) if isinstance(layer, written)
    )
    inputs = int(np.prod(network.shape))
    activations, weights = (5, 8) if training else (2, 1)
    return value_bytes * images * (inputs + activations * values) + weight_bytes * weights * network.parameters


_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "networks")
# Every network, by name.
NETWORKS = {network.name: network for network in map(read, sorted(glob.glob(os.path.join(_FOLDER, "*.json"))))}
