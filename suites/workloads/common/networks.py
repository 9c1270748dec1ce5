"""The networks as data: every framework builds them from this module, and operations and bytes are counted from it.

Weights are lists of float32 arrays in a canonical order and form: layer by layer (of a Residual, the body, then the
shortcut). A Conv has a kernel (height, width, in, out), and a bias where `bias` is True; a Norm has a scale and an
offset; a Dense has a kernel (in, out) and a bias. The networks*.py of each framework translate.
"""

import collections

import numpy as np

# Stride 1 keeps the size ("same"). Stride 2 pads (size - 1) // 2 on all four sides, as PyTorch does; TensorFlow's
# "SAME" would pad a 3x3 filter at the bottom and right only.
Conv = collections.namedtuple("Conv", "width size stride bias")
Norm = collections.namedtuple("Norm", "")  # over the batch
Relu = collections.namedtuple("Relu", "")
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
Network = collections.namedtuple("Network", "name shape layers parameters")

CLASSES = 10
IMAGENET_CLASSES = 1000


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
        layers += depth * [Conv(width, 3, 1, bias=True), Relu()] + [MaxPool(2, 2)]
    return layers + [Flatten(), Dense(512), Relu(), Dense(CLASSES)]


def resnet50():
    """ResNet-50 (He et al. 2015, arXiv 1512.03385) for ImageNet, with the stride in the 3x3 convolution of a block.

    That is torchvision's, which others call version 1.5; the article has the stride in the 1x1 convolution before it.
    """
    layers = [Conv(64, 7, 2, bias=False), Norm(), Relu(), MaxPool(3, 2)]
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            body = [Conv(width, 1, 1, bias=False), Norm(), Relu(), Conv(width, 3, stride, bias=False), Norm(), Relu()]
            body += [Conv(4 * width, 1, 1, bias=False), Norm()]
            shortcut = [] if block else [Conv(4 * width, 1, stride, bias=False), Norm()]
            layers += [Residual(body, shortcut), Relu()]
    return layers + [GlobalAveragePool(), Dense(IMAGENET_CLASSES)]


def mlp():
    """The "3-layer fully connected" network for MNIST of source batch-throughput; its widths are assumed."""
    return [Flatten(), Dense(512), Relu(), Dense(512), Relu(), Dense(CLASSES)]


NETWORKS = {
    network.name: network
    for network in (
        Network("cnn10", (32, 32, 3), cnn10(), 1925258),
        Network("wrn28_10", (32, 32, 3), wide_resnet(28, 10), 36479194),
        Network("resnet50", (224, 224, 3), resnet50(), 25557032),
        Network("vgg_small", (32, 32, 3), vgg_small(), 3838282),
        Network("mlp", (28, 28, 1), mlp(), 669706),
    )
}


def small(network):
    """A network of the first layer of each kind in `network`, in the same order; its convolutions have two channels."""
    kinds = collections.OrderedDict()
    for layer, _, _ in walk(network.layers, network.shape):
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
            yield (layer.size, layer.size, before[-1], layer.width), None
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
            total += shape[0] * shape[1] * layer.size**2 * before[-1] * layer.width
        elif isinstance(layer, Dense):
            total += before[-1] * layer.width
    return total


def flops(network, images, training):
    """Floating-point operations of a step over `images` images; a multiply-add counts as 2.

    The backward pass counts as two forward passes: for the gradients of the weights, and for the gradients of the
    inputs (Kaplan et al. 2020, arXiv 2001.08361, section 2.1).
    """
    return 2 * multiply_adds(network) * images * (3 if training else 1)


def least_bytes(network, images, training, value_bytes=4):
    """The least bytes that a step moves between the device and its memory, if all other layers are fused.

    The forward pass writes and reads the outputs of convolutions, dense layers and poolings once; training reads them
    once more, and writes and reads their gradients. The forward pass reads every weight once; training reads it again
    and writes its gradient; the update reads gradient, weight and momentum, and writes weight and momentum. A weight
    has 4 bytes; a value that passes between layers has value_bytes (2 under mixed precision).
    """
    written = (Conv, Dense, AveragePool, MaxPool, GlobalAveragePool)
    values = sum(
        int(np.prod(shape)) for layer, _, shape in walk(network.layers, network.shape) if isinstance(layer, written)
    )
    inputs = int(np.prod(network.shape))
    activations, weights = (5, 8) if training else (2, 1)
    return value_bytes * images * (inputs + activations * values) + 4 * weights * network.parameters
