"""The networks in Chainer: from images (N, channels, height, width) to logits (N, classes)."""

import chainer
import chainer.functions as functions
import chainer.links as links
import numpy as np

from common import networks

# Axes of Chainer's weights, by their places in the canonical order (kernels are (height, width, in, out) or (in, out)).
AXES = {links.Convolution2D: (3, 2, 0, 1), links.Linear: (1, 0)}


class Residual(chainer.Chain):
    def __init__(self, body, shortcut):
        super().__init__()
        with self.init_scope():
            self.body = body
            self.shortcut = shortcut

    def forward(self, images):
        # A Sequential without layers returns a tuple.
        return self.body(images) + (self.shortcut(images) if len(self.shortcut) else images)


def build(network, weights):
    """A chainer.Sequential of the network. weights: a canonical list, see common/networks.py."""
    model, _ = _sequence(network.layers, network.shape)
    parameters = list(_parameters(model))
    if len(parameters) != len(weights):
        raise ValueError("{} weights for {} parameters".format(len(weights), len(parameters)))
    for (parameter, axes), array in zip(parameters, weights):
        parameter.array[...] = array.transpose(axes)
    return model


def _sequence(layers, shape):
    """(chainer.Sequential, the shape of an image after it)."""
    model = chainer.Sequential()
    for layer in layers:
        if isinstance(layer, networks.Residual):
            (body, after), (shortcut, _) = _sequence(layer.body, shape), _sequence(layer.shortcut, shape)
            model.append(Residual(body, shortcut))
            shape = after
        else:
            model.append(_layer(layer, shape))
            shape = networks.after(layer, shape)
    return model, shape


def _layer(layer, shape):
    if isinstance(layer, networks.Conv):
        padding = (layer.size - 1) // 2
        form = shape[-1], layer.width, layer.size, layer.stride, padding
        return links.Convolution2D(*form, nobias=not layer.bias, groups=shape[-1] if layer.depthwise else 1)
    if isinstance(layer, networks.Norm):
        return links.BatchNormalization(shape[-1], networks.NORM_MOMENTUM, networks.NORM_EPSILON)
    if isinstance(layer, networks.Relu):
        return functions.relu
    if isinstance(layer, networks.Relu6):
        return lambda images: functions.clipped_relu(images, 6.0)
    if isinstance(layer, networks.AveragePool):
        return lambda images: functions.average_pooling_2d(images, layer.size)
    if isinstance(layer, networks.MaxPool):
        padding = networks.pool_padding(layer)
        return lambda images: functions.max_pooling_2d(images, layer.size, layer.stride, padding, cover_all=False)
    if isinstance(layer, networks.GlobalAveragePool):
        return lambda images: functions.average(images, axis=(2, 3))
    if isinstance(layer, networks.Flatten):
        return _flattened
    return links.Linear(int(np.prod(shape)), layer.width)


def _flattened(images):
    """To the order height, width, channels."""
    return functions.reshape(functions.transpose(images, (0, 2, 3, 1)), (len(images), -1))


def _parameters(link):
    """Yields (parameter, its axes in the canonical order), in that order, of a link and those within."""
    if isinstance(link, links.BatchNormalization):
        yield link.gamma, (0,)
        yield link.beta, (0,)
    elif type(link) in AXES:
        yield link.W, AXES[type(link)]
        if link.b is not None:
            yield link.b, (0,)
    # children() of a Sequential are in another order than its layers; those of a Residual are in alphabetical order.
    for inner in link if isinstance(link, chainer.Sequential) else link.children():
        if isinstance(inner, chainer.Link):
            for found in _parameters(inner):
                yield found


def get_weights(model):
    """The trainable parameters as a canonical list of NumPy arrays."""
    return [parameter.array.transpose(np.argsort(axes)).copy() for parameter, axes in _parameters(model)]


def nchw(images):
    """(N, height, width, channels) array to (N, channels, height, width)."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
