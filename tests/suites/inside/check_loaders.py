"""Runs inside a PyTorch environment: the images of loaders, and of steps fed from the host, against their arrays.

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
from frameworks.torch.strategies import none
from frameworks.torch.trainer import nchw

IMAGES, BATCH = 40, 16
NETWORK = networks.NETWORKS["cnn10"]
SETTINGS = {"seed": 0, "learning_rate": 0.01, "momentum": 0.9}


def main():
    (images, labels), _ = data.synthetic(IMAGES, 0, 0)
    train = data.normalise(images), labels
    found = {name: looked_at(name, train) for name in loaders.LOADERS}
    found["fed"] = {batches: steps_fed(batches, train) for batches in loaders.FED}
    print("found: " + json.dumps(found))


def looked_at(name, train):
    """Batch sizes, and whether each image came once, with its label; or why the loader is not here."""
    job = made(train, name)
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


def steps_fed(batches, train):
    """How often five steps of 16 trained on each of 40 images, and whether each had its label and lost something."""
    trainer = none.Steady(made(train, jobs.TENSORS, batches))
    counts, labelled, losses = [0] * IMAGES, True, []
    wanted = nchw(train[0])
    for _ in range(2 * IMAGES // BATCH):
        losses.append(float(trainer.step()))
        for position, image in enumerate(trainer.images):
            index = int((wanted - image).abs().flatten(1).sum(1).argmin())
            counts[index] += bool((wanted[index] == image).all())
            labelled = labelled and int(trainer.labels[position]) == int(train[1][index])
    trainer.close()
    return {"counts": counts, "labelled": labelled, "losses": losses}


def made(train, loader, batches=jobs.RESIDENT):
    return jobs.Job(
        NETWORK,
        "training",
        "channels_first",
        "none",
        [None],
        BATCH,
        "fp32",
        "native",
        train,
        None,
        SETTINGS,
        loader,
        batches,
    )


main()
