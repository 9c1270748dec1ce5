"""The networks in PyTorch, 1.1 to 2.x: (N, channels, height, width) to logits."""

import numpy as np
import torch
from torch import nn

from common import networks


class Lambda(nn.Module):
    """A function as a layer; torch 1.1 has no nn.Flatten and the like."""

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
    """An nn.Module with these weights (canonical list)."""
    model, _ = _sequence(network.layers, network.shape)
    set_weights(model, weights)
    return model


def _sequence(layers, shape):
    """(nn.Sequential, shape of one image after it)."""
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
        return nn.Conv2d(shape[-1], layer.width, layer.size, layer.stride, padding, bias=layer.bias)
    if isinstance(layer, networks.Norm):
        return nn.BatchNorm2d(shape[-1], networks.NORM_EPSILON, 1 - networks.NORM_MOMENTUM)
    if isinstance(layer, networks.Relu):
        return nn.ReLU(inplace=True)
    if isinstance(layer, networks.AveragePool):
        return nn.AvgPool2d(layer.size)
    if isinstance(layer, networks.MaxPool):
        return nn.MaxPool2d(layer.size)
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
    """Its parameters in canonical order, each with whether it is a kernel, and of which kind."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.BatchNorm2d, nn.Linear)):
            yield module.weight, module
            if module.bias is not None:
                yield module.bias, None


def set_weights(model, weights):
    """Fills the parameters from a canonical list; ValueError where the numbers differ."""
    parameters = list(_parameters(model))
    if len(parameters) != len(weights):
        raise ValueError("{} weights for {} parameters".format(len(weights), len(parameters)))
    with torch.no_grad():
        for (parameter, module), array in zip(parameters, weights):
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(_to_torch(module, array))))


def get_weights(model):
    """The parameters as a canonical list of numpy arrays."""
    return [_from_torch(module, parameter.detach().cpu().numpy()).copy() for parameter, module in _parameters(model)]


def _to_torch(module, array):
    if isinstance(module, nn.Conv2d):
        return array.transpose(3, 2, 0, 1)
    return array.transpose() if isinstance(module, nn.Linear) else array


def _from_torch(module, array):
    if isinstance(module, nn.Conv2d):
        return array.transpose(2, 3, 1, 0)
    return array.transpose() if isinstance(module, nn.Linear) else array


def parameter_count(model):
    return sum(parameter.numel() for parameter in model.parameters())
