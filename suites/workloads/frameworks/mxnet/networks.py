"""The networks in MXNet, by Gluon: from images (N, channels, height, width) to logits (N, classes)."""

import mxnet
import numpy as np
from mxnet.gluon import nn

from common import networks

# Axes of MXNet's weights, by their places in the canonical order (kernels are (height, width, in, out) or (in, out)).
AXES = {nn.Conv2D: (3, 2, 0, 1), nn.Dense: (1, 0)}


class Residual(nn.HybridBlock):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def hybrid_forward(self, operations, images):
        return self.body(images) + self.shortcut(images)


class Relu6(nn.HybridBlock):
    def hybrid_forward(self, operations, images):
        return operations.clip(images, 0, 6)


class Flatten(nn.HybridBlock):
    """To the order height, width, channels."""

    def hybrid_forward(self, operations, images):
        return operations.flatten(operations.transpose(images, (0, 2, 3, 1)))


def build(network, weights, device):
    """A HybridSequential of the network on a device. weights: a canonical list, see common/networks.py."""
    model, _ = _sequence(network.layers, network.shape)
    model.initialize(ctx=device)
    parameters = list(_parameters(model))
    if len(parameters) != len(weights):
        raise ValueError("{} weights for {} parameters".format(len(weights), len(parameters)))
    for (parameter, axes), array in zip(parameters, weights):
        parameter.set_data(mxnet.nd.array(array.transpose(axes)))
    return model


def _sequence(layers, shape):
    """(HybridSequential, the shape of an image after it)."""
    model = nn.HybridSequential()
    for layer in layers:
        if isinstance(layer, networks.Residual):
            (body, after), (shortcut, _) = _sequence(layer.body, shape), _sequence(layer.shortcut, shape)
            model.add(Residual(body, shortcut))
            shape = after
        else:
            model.add(_layer(layer, shape))
            shape = networks.after(layer, shape)
    return model, shape


def _layer(layer, shape):
    if isinstance(layer, networks.Conv):
        padding, channels = (layer.size - 1) // 2, shape[-1]
        groups = channels if layer.depthwise else 1
        form = layer.width, layer.size, layer.stride, padding, 1, groups
        return nn.Conv2D(*form, use_bias=layer.bias, in_channels=channels)
    if isinstance(layer, networks.Norm):
        return nn.BatchNorm(momentum=networks.NORM_MOMENTUM, epsilon=networks.NORM_EPSILON, in_channels=shape[-1])
    if isinstance(layer, networks.Relu):
        return nn.Activation("relu")
    if isinstance(layer, networks.Relu6):
        return Relu6()
    if isinstance(layer, networks.AveragePool):
        return nn.AvgPool2D(layer.size)
    if isinstance(layer, networks.MaxPool):
        return nn.MaxPool2D(layer.size, layer.stride, networks.pool_padding(layer))
    if isinstance(layer, networks.GlobalAveragePool):
        return nn.GlobalAvgPool2D()
    if isinstance(layer, networks.Flatten):
        return Flatten()
    return nn.Dense(layer.width, in_units=int(np.prod(shape)))


def _parameters(block):
    """Yields (parameter, its axes in the canonical order), in that order, of a block and those within."""
    if isinstance(block, nn.BatchNorm):
        yield block.gamma, (0,)
        yield block.beta, (0,)
    elif type(block) in AXES:
        yield block.weight, AXES[type(block)]
        if block.bias is not None:
            yield block.bias, (0,)
    for inner in block._children.values():
        for found in _parameters(inner):
            yield found


def get_weights(model):
    """The trainable parameters as a canonical list of NumPy arrays."""
    return [
        np.ascontiguousarray(parameter.data().asnumpy().transpose(np.argsort(axes)))
        for parameter, axes in _parameters(model)
    ]


def nchw(images):
    """(N, height, width, channels) array to (N, channels, height, width)."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
