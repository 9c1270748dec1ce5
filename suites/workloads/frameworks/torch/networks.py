"""The networks in PyTorch, 1.1 to 2.x: from images (N, channels, height, width) to logits (N, classes)."""

import numpy as np
import torch
from torch import nn

from common import networks

# Axes of PyTorch's weights, by their places in the canonical order (kernels are (height, width, in, out) or (in, out)).
AXES = {nn.Conv2d: (3, 2, 0, 1), nn.Linear: (1, 0), nn.BatchNorm2d: (0,)}


class Lambda(nn.Module):
    """A function as a layer, as torch 1.1 has no nn.Flatten and the like."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, images):
        return self.function(images)


class Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def forward(self, images):
        return self.body(images) + self.shortcut(images)


def build(network, weights):
    """An nn.Module of the network. weights: a canonical list, see common/networks.py."""
    model, _ = _sequence(network.layers, network.shape)
    set_weights(model, weights)
    return model


def _sequence(layers, shape):
    """(nn.Sequential, the shape of an image after it)."""
    modules = []
    for layer in layers:
        if isinstance(layer, networks.Residual):
            (body, after), (shortcut, _) = _sequence(layer.body, shape), _sequence(layer.shortcut, shape)
            modules.append(Residual(body, shortcut))
            shape = after
        else:
            modules.append(_layer(layer, shape))
            shape = networks.after(layer, shape)
    return nn.Sequential(*modules), shape


def _layer(layer, shape):
    if isinstance(layer, networks.Conv):
        padding = (layer.size - 1) // 2
        groups = shape[-1] if layer.depthwise else 1
        return nn.Conv2d(shape[-1], layer.width, layer.size, layer.stride, padding, groups=groups, bias=layer.bias)
    if isinstance(layer, networks.Norm):
        return nn.BatchNorm2d(shape[-1], networks.NORM_EPSILON, 1 - networks.NORM_MOMENTUM)
    if isinstance(layer, networks.Relu):
        return nn.ReLU(inplace=True)
    if isinstance(layer, networks.Relu6):
        return nn.ReLU6(inplace=True)
    if isinstance(layer, networks.AveragePool):
        return nn.AvgPool2d(layer.size)
    if isinstance(layer, networks.MaxPool):
        return nn.MaxPool2d(layer.size, layer.stride, networks.pool_padding(layer))
    if isinstance(layer, networks.GlobalAveragePool):
        return Lambda(_mean_over_positions)
    if isinstance(layer, networks.Flatten):
        return Lambda(_flattened)
    return nn.Linear(shape[-1], layer.width)


def _mean_over_positions(images):
    return images.mean(dim=(2, 3))


def _flattened(images):
    return images.permute(0, 2, 3, 1).reshape(images.shape[0], -1)


def _parameters(model):
    """Yields (parameter, its AXES) in canonical order."""
    for module in model.modules():
        if type(module) in AXES:
            yield module.weight, AXES[type(module)]
            if module.bias is not None:
                yield module.bias, (0,)


def set_weights(model, weights):
    """Fills the parameters from a canonical list; ValueError where the numbers differ."""
    parameters = list(_parameters(model))
    if len(parameters) != len(weights):
        raise ValueError("{} weights for {} parameters".format(len(weights), len(parameters)))
    with torch.no_grad():
        for (parameter, axes), array in zip(parameters, weights):
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(array.transpose(axes))))


def get_weights(model):
    """The parameters as a canonical list of numpy arrays."""
    return [
        parameter.detach().cpu().numpy().transpose(np.argsort(axes)).copy() for parameter, axes in _parameters(model)
    ]


def depthwise_gradients_are_right():
    """Whether the gradient of a depthwise kernel is right on the CPU: in PyTorch 1.1 it is wrong at stride 2.

    The gradient is compared with a sum over the positions of the kernel, in float64.
    """
    random = np.random.RandomState(0)
    images, slopes = random.randn(2, 576, 14, 14), random.randn(2, 576, 7, 7)
    layer = nn.Conv2d(576, 576, 3, 2, 1, groups=576, bias=False)
    layer(torch.from_numpy(images.astype(np.float32))).backward(torch.from_numpy(slopes.astype(np.float32)))
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)), "constant")
    expected = [
        (padded[:, :, a : a + 14 : 2, b : b + 14 : 2] * slopes).sum((0, 2, 3)) for a in range(3) for b in range(3)
    ]
    got = layer.weight.grad.numpy().reshape(576, 9).T
    return np.abs(got - expected).max() < 1e-3 * np.abs(expected).max()


def parameter_count(model):
    return sum(parameter.numel() for parameter in model.parameters())
