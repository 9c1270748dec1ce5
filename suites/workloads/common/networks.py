"""The networks as data. Every framework builds, and everything counts, from what stands here.

Weights are lists of float32 arrays in one canonical order and form: layer by layer (of a Residual, the body, then the
shortcut); of a Conv its kernel (height, width, in, out) and its bias if it has one, of a Norm its scale and offset, of
a Dense its kernel (in, out) and bias. The networks*.py of the frameworks translate.
"""

import collections

import numpy as np

# Stride 1 keeps the size ("same"); a stride of 2 pads (size - 1) // 2 on all four sides, as PyTorch does (TensorFlow's
# "SAME" would pad 3x3 at the bottom and right only).
Conv = collections.namedtuple("Conv", "width size stride bias")
Norm = collections.namedtuple("Norm", "")  # over the batch
Relu = collections.namedtuple("Relu", "")
AveragePool = collections.namedtuple("AveragePool", "size")  # size x size, stride the same
MaxPool = collections.namedtuple("MaxPool", "size")
GlobalAveragePool = collections.namedtuple("GlobalAveragePool", "")
Flatten = collections.namedtuple("Flatten", "")  # in the order height, width, channels, whatever the layout
Dense = collections.namedtuple("Dense", "width")
Residual = collections.namedtuple("Residual", "body shortcut")  # their sum; an empty shortcut is the input itself

# Batch normalisation; Keras and PyTorch differ in their defaults (1e-3 and 1e-5, 0.99 and 0.9), one network needs one.
NORM_EPSILON = 1e-5
NORM_MOMENTUM = 0.9  # share of the old value in the moving statistics

# shape: (height, width, channels) of one image. parameters: trainable, which every framework must come to.
Network = collections.namedtuple("Network", "name shape layers parameters")

CLASSES = 10


def conv_norm_relu(width):
    return [Conv(width, 3, 1, bias=True), Norm(), Relu()]


def cnn10():
    """The "10-layer CNN" of sources torch-2080ti and keras-channels-first; its structure is assumed."""
    layers = []
    for stage, width in enumerate((64, 128, 256)):
        layers += [AveragePool(2)] if stage else []
        layers += 3 * conv_norm_relu(width)
    return layers + [GlobalAveragePool(), Dense(CLASSES)]


def wide_resnet(depth, widening):
    """Wide ResNet (Zagoruyko & Komodakis 2016, arXiv 1605.07146), without dropout."""
    blocks = (depth - 4) // 6
    layers = [Conv(16, 3, 1, bias=False)]
    for stage, width in enumerate((16 * widening, 32 * widening, 64 * widening)):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            second = [Norm(), Relu(), Conv(width, 3, 1, bias=False)]
            body = [Conv(width, 3, stride, bias=False)] + second
            if block:
                layers += [Residual([Norm(), Relu()] + body, [])]
            else:  # the width changes: both branches begin after the activation
                layers += [Norm(), Relu(), Residual(body, [Conv(width, 1, stride, bias=False)])]
    return layers + [Norm(), Relu(), GlobalAveragePool(), Dense(CLASSES)]


def vgg_small():
    """The VGG-style network of source towers-titanx; widths and depths are assumed, and dropout is left out."""
    layers = []
    for width, depth in ((64, 2), (128, 2), (256, 3)):
        layers += depth * [Conv(width, 3, 1, bias=True), Relu()] + [MaxPool(2)]
    return layers + [Flatten(), Dense(512), Relu(), Dense(CLASSES)]


def mlp():
    """The "3-layer fully connected" network for MNIST of source batch-throughput; its widths are assumed."""
    return [Flatten(), Dense(512), Relu(), Dense(512), Relu(), Dense(CLASSES)]


NETWORKS = {
    network.name: network
    for network in (
        Network("cnn10", (32, 32, 3), cnn10(), 1925258),
        Network("wrn28_10", (32, 32, 3), wide_resnet(28, 10), 36479194),
        Network("vgg_small", (32, 32, 3), vgg_small(), 3838282),
        Network("mlp", (28, 28, 1), mlp(), 669706),
    )
}


def small(network):
    """The first layer of every kind that a network has, in their order, with convolutions of two channels."""
    kinds = collections.OrderedDict()
    for layer, _, _ in walk(network.layers, network.shape):
        kinds.setdefault(type(layer), layer._replace(width=2) if isinstance(layer, Conv) else layer)
    layers = [layer for kind, layer in kinds.items() if kind is not Residual]
    made = Network("small " + network.name, network.shape, layers, None)
    return made._replace(parameters=sum(int(np.prod(shape)) for shape in weight_shapes(made)))


def walk(layers, shape):
    """Every layer in canonical order with the shape of one image before and after it.

    Yields (layer, before, after); a shape is (height, width, channels), or (values,) once flat. A Residual itself comes
    after its branches, before being its body's output.
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
    """The shape one image has after a layer."""
    if isinstance(layer, Conv):
        return -(-shape[0] // layer.stride), -(-shape[1] // layer.stride), layer.width
    if isinstance(layer, (AveragePool, MaxPool)):
        return shape[0] // layer.size, shape[1] // layer.size, shape[2]
    if isinstance(layer, GlobalAveragePool):
        return (shape[2],)
    if isinstance(layer, Flatten):
        return (int(np.prod(shape)),)
    return (layer.width,) if isinstance(layer, Dense) else shape


def same_padding(size):
    """(before, after): TensorFlow's 'SAME' at stride 1; an even filter is padded more at the bottom and right."""
    return (size - 1) // 2, size // 2


def weight_shapes(network):
    """Shapes of the weights, in canonical order."""
    shapes = []
    for layer, before, _ in walk(network.layers, network.shape):
        if isinstance(layer, Conv):
            shapes += [(layer.size, layer.size, before[-1], layer.width)] + [(layer.width,)] * layer.bias
        elif isinstance(layer, Norm):
            shapes += 2 * [(before[-1],)]
        elif isinstance(layer, Dense):
            shapes += [(before[-1], layer.width), (layer.width,)]
    return shapes


def initial_weights(network, seed):
    """Glorot-uniform kernels (Glorot & Bengio 2010), zero biases and offsets, scales of 1.

    Drawn here and not by a framework, so that all start alike: torch 1.1 draws the scale of batch normalisation from
    U(0, 1), 1.2 and newer start at 1.
    """
    random = np.random.RandomState(seed)
    weights = []
    for layer, before, _ in walk(network.layers, network.shape):
        if isinstance(layer, Conv):
            weights.append(glorot_uniform(random, (layer.size, layer.size, before[-1], layer.width)))
            weights += [np.zeros(layer.width, np.float32)] * layer.bias
        elif isinstance(layer, Norm):
            weights += [np.ones(before[-1], np.float32), np.zeros(before[-1], np.float32)]
        elif isinstance(layer, Dense):
            weights += [glorot_uniform(random, (before[-1], layer.width)), np.zeros(layer.width, np.float32)]
    return weights


def glorot_uniform(random, shape):
    """(..., in, out) float32, drawn from `random`, a numpy RandomState."""
    limit = np.sqrt(6.0 / (int(np.prod(shape[:-2])) * (shape[-2] + shape[-1])))
    return random.uniform(-limit, limit, shape).astype(np.float32)


def multiply_adds(network):
    """Multiply-adds of one image's forward pass, in convolutions and dense layers; the rest is a few percent."""
    total = 0
    for layer, before, shape in walk(network.layers, network.shape):
        if isinstance(layer, Conv):
            total += shape[0] * shape[1] * layer.size**2 * before[-1] * layer.width
        elif isinstance(layer, Dense):
            total += before[-1] * layer.width
    return total


def flops(network, images, training):
    """Floating-point operations of one step over so many images, 2 to a multiply-add.

    The backward pass is taken as twice the forward pass, once for the gradients of the weights and once for those of
    the inputs (Kaplan et al. 2020, arXiv 2001.08361, section 2.1).
    """
    return 2 * multiply_adds(network) * images * (3 if training else 1)


def least_bytes(network, images, training, value_bytes=4):
    """Bytes a step has to move at least between the device and its memory, if all else stayed in caches and fused.

    The outputs of convolutions, dense layers and poolings are written and read once in the forward pass; training reads
    them once more and writes and reads their gradients. Every weight is read once forward; training reads it again,
    writes its gradient, and the update reads gradient, weight and momentum and writes two of them back. Weights have 4
    bytes, what passes between layers value_bytes (2 under mixed precision).
    """
    made = (Conv, Dense, AveragePool, MaxPool, GlobalAveragePool)
    values = sum(
        int(np.prod(shape)) for layer, _, shape in walk(network.layers, network.shape) if isinstance(layer, made)
    )
    inputs = int(np.prod(network.shape))
    activations, weights = (5, 8) if training else (2, 1)
    return value_bytes * images * (inputs + activations * values) + 4 * weights * network.parameters
