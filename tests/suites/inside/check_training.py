"""Runs inside an environment with Keras 3: an epoch of one batch by two replicas on CPUs, against one device.

Argument: the folder of the workloads. Prints a JSON object. Keeps to Python 3.6, as the workloads do.
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
from recorder import Recorder

from common import data, jobs, networks, timing
from common.request import Fields
from frameworks.tensorflow.strategies import mirrored, none

BATCH = 16
NETWORK = networks.NETWORKS["mlp"]  # no batch normalisation, whose statistics would be each replica's own
SETTINGS = {"epochs": 1, "min_epochs": 3, "stop_at": 0, "learning_rate": 1.0, "momentum": 0.9, "seed": 0}


def job(strategy, devices):
    (images, labels), _ = data.synthetic(BATCH, 0, 0, NETWORK.shape)
    train, places, settings = (data.normalise(images), labels), [None] * devices, Fields("settings", SETTINGS)
    layout = "channels_last"
    return jobs.Job(NETWORK, "training", layout, strategy, places, BATCH, "fp32", "native", train, None, settings)


def after_an_epoch(module, one):
    """(replicas, mean loss over the epoch, what it added to the weights: one array of all of them)."""
    trainer = module.Strategy().literal(one)
    loss = trainer.fit(Recorder(), timing.EpochProbe(timing.UNLIMITED, 1))
    change = flat(trainer.weights()) - flat(networks.initial_weights(NETWORK, SETTINGS["seed"]))
    return trainer.replicas(), float(loss), change


def flat(weights):
    return np.concatenate([array.ravel() for array in weights]).astype(np.float64)


def main():
    two = job("mirrored", 2)
    mirrored.Strategy().prepare(two, "literal")
    replicas, loss, change = after_an_epoch(mirrored, two)
    _, expected_loss, expected = after_an_epoch(none, job("none", 1))
    found = {
        "replicas": replicas,
        "loss": loss,
        "expected_loss": expected_loss,
        "update_error": float(np.abs(change - expected).max() / np.abs(expected).max()),
    }
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
