"""The networks in PyTorch; models_tensorflow.py has the same in Keras."""

import torch
from torch import nn

import data

CNN10_STAGES = [(64, 3), (128, 3), (256, 3)]  # channels, layers

# Keras and PyTorch differ in their defaults (1e-3 and 1e-5, 0.99 and 0.9 in Keras's sense); one network needs one.
EPSILON = 1e-5
MOMENTUM = 0.1  # share of the new batch in the moving statistics


def cnn10(random):
    """(N, 3, 32, 32) to logits (N, 10). random: numpy RandomState the initial weights are drawn from."""
    layers, channels = [], 3
    for stage, (width, depth) in enumerate(CNN10_STAGES):
        if stage > 0:
            layers.append(nn.AvgPool2d(2))
        for _ in range(depth):
            layers += [
                nn.Conv2d(channels, width, 3, padding=1),
                nn.BatchNorm2d(width, EPSILON, MOMENTUM),
                nn.ReLU(inplace=True),
            ]
            channels = width
    layers += [nn.AdaptiveAvgPool2d(1), Flatten(), nn.Linear(channels, data.CLASSES)]
    return initialise(nn.Sequential(*layers), random)


MODELS = {"cnn10": cnn10}


class Flatten(nn.Module):
    """(N, ...) to (N, product). torch 1.1 has no nn.Flatten."""

    def forward(self, images):
        return images.reshape(images.shape[0], -1)


def initialise(model, random):
    """Gives the layers of `model`, in order, Glorot-uniform weights, and Keras's constants; returns it.

    All is set here, as PyTorch's defaults differ, between its versions too: 1.1 draws the scale of batch normalisation
    from U(0, 1), 1.2 and newer start at 1.
    """
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.Conv2d):
                out_channels, in_channels, height, width = layer.weight.shape
                kernel = data.glorot_uniform(random, (height, width, in_channels, out_channels))
                layer.weight.copy_(torch.from_numpy(kernel.transpose(3, 2, 0, 1).copy()))
                layer.bias.zero_()
            elif isinstance(layer, nn.Linear):
                kernel = data.glorot_uniform(random, (layer.in_features, layer.out_features))
                layer.weight.copy_(torch.from_numpy(kernel.transpose().copy()))
                layer.bias.zero_()
            elif isinstance(layer, nn.BatchNorm2d):
                layer.weight.fill_(1)
                layer.bias.zero_()
    return model


def parameter_count(model):
    return sum(parameter.numel() for parameter in model.parameters())
