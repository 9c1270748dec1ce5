"""Runs inside a PyTorch environment: every loader's images against the arrays they are made of.

Argument: the folder of the workloads. Prints a JSON object. Keeps to Python 3.6, as the workloads do.
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import torch

from common import data, jobs, networks
from common.events import Unsupported
from frameworks.torch import loaders
from frameworks.torch.trainer import nchw

IMAGES, BATCH = 40, 16


def main():
    (images, labels), _ = data.synthetic(IMAGES, 0, 0)
    train = data.normalise(images), labels
    print("found: " + json.dumps({name: looked_at(name, train) for name in loaders.LOADERS}))


def looked_at(name, train):
    """Batch sizes, and whether each image came once, with its label; or why the loader is not here."""
    settings = {"seed": 0}
    network = networks.NETWORKS["cnn10"]
    job = jobs.Job(
        network, "training", "channels_first", "none", [None], BATCH, "fp32", "native", train, None, settings, name
    )
    try:
        loaders.check(job)
    except Unsupported as reason:
        return {"unsupported": str(reason)}
    batches = list(loaders.make(job))
    found = torch.cat([images for images, _ in batches]), torch.cat([labels for _, labels in batches])
    wanted = nchw(train[0]), torch.from_numpy(train[1])
    order = [int((found[0] - image).abs().flatten(1).sum(1).argmin()) for image in wanted[0]]
    return {
        "batches": [len(labels) for _, labels in batches],
        "each_once": sorted(order) == list(range(IMAGES)),
        "labels": bool((found[1][order] == wanted[1]).all()),
        "largest_error": float((found[0][order] - wanted[0]).abs().max()),
        "shuffled": order != list(range(IMAGES)),
        "types": [str(found[0].dtype), str(found[1].dtype)],
    }


main()
