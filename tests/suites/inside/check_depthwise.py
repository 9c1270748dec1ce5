"""Runs inside an environment with PyTorch: the gradient of a depthwise kernel, and which cases are refused for it.

Argument: the folder of the workloads. Prints a JSON object.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import numpy as np
import torch

from common import jobs, networks
from common.events import Unsupported
from frameworks.torch.strategies import none


def error():
    """The largest error of the gradient of a kernel at stride 2, in float32, over the largest expected value."""
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(192, 192, 3, 2, 1, groups=192, bias=False)
    images = torch.randn(2, 192, 28, 28)
    outputs = layer(images)
    slopes = torch.randn_like(outputs)
    outputs.backward(slopes)
    padded = np.pad(images.numpy().astype(float), ((0, 0), (0, 0), (1, 1), (1, 1)), "constant")
    places = [(a, b) for a in range(3) for b in range(3)]
    expected = [(padded[:, :, a : a + 28 : 2, b : b + 28 : 2] * slopes.numpy()).sum((0, 2, 3)) for a, b in places]
    got = layer.weight.grad.numpy().reshape(192, 9).T
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def refusal(name, mode):
    """Why a case is refused; empty where it would run."""
    network = networks.NETWORKS[name]
    job = jobs.Job(network, mode, "channels_first", "none", [None], 2, "fp32", "native", None, None, {})
    try:
        none.Strategy().prepare(job, "steady")
    except Unsupported as refused:
        return str(refused)
    return ""


def main():
    found = {"error": error(), "without": refusal("resnet18", "training")}
    found.update((mode, refusal("mobilenet_v2", mode)) for mode in ("training", "inference"))
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
