"""Runs inside an environment with PyTorch and torchvision: a network as data against that of torchvision.

Arguments: the folder of the workloads, the network. Prints a JSON object.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import torch
from torchvision import models

from common import networks
from frameworks.torch import networks as networks_torch


def relative(got, expected):
    """The largest difference of two tensors, divided by the largest expected magnitude."""
    return float((got - expected).abs().max() / expected.abs().max().clamp(min=1e-12))


def main():
    name = sys.argv[2]
    network = networks.NETWORKS[name]
    weights = networks.initial_weights(network, 0)
    own, theirs = networks_torch.build(network, weights), getattr(models, name)()
    shapes = [[list(parameter.shape) for parameter in model.parameters()] for model in (own, theirs)]
    networks_torch.set_weights(theirs, weights)
    torch.manual_seed(0)
    images = torch.rand(2, 3, 224, 224)
    differences = {}
    for training in (True, False):
        results = []
        for model in (own, theirs):
            model.train(training)
            output = model(images)
            gradients = torch.autograd.grad(output[:, 7].sum(), list(model.parameters()))
            results.append([output, *gradients])
        differences["training" if training else "inference"] = max(map(relative, *results))
    found = {
        "parameters": sum(parameter.numel() for parameter in theirs.parameters()),
        "shapes_agree": shapes[0] == shapes[1],
        "differences": differences,
    }
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
