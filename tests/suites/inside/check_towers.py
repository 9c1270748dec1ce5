"""Runs inside a TensorFlow environment: one step of two towers against one step on each half of the batch.

Argument: the folder of the workloads. Prints a JSON object. Keeps to Python 3.6, as the workloads do.
"""

import collections
import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow.compat.v1 as tf

from common import data, networks
from frameworks.tensorflow import graphs_that_ran
from frameworks.tensorflow.strategies.towers import Steady

BATCH = 8
# A rate at which the update is no smaller than the weights, so that it does not drown in their rounding.
SETTINGS = {"learning_rate": 1.0, "momentum": 0.9, "seed": 0}

Job = collections.namedtuple(
    "Job", "network mode layout strategy places batch_size precision execution train test settings"
)


def trainer(towers, train, mode="training"):
    network = networks.NETWORKS["cnn10"]
    places, size = [None] * towers, len(train[1])
    job = Job(network, mode, "channels_last", "towers", places, size, "fp32", "native", train, None, SETTINGS)
    return Steady(job)


def after_a_step(towers, train):
    """(loss before the step, what it added to the weights: one array of all of them)."""
    steady = trainer(towers, train)
    before = flat(steady.weights())
    loss = steady.step()
    update = flat(steady.weights()) - before
    steady.close()
    return loss, update


def flat(weights):
    return np.concatenate([array.ravel() for array in weights]).astype(np.float64)


def main():
    (images, labels), _ = data.synthetic(BATCH, 0, 0)
    images, half = data.normalise(images), BATCH // 2
    loss, update = after_a_step(2, (images, labels))
    shares = [after_a_step(1, (images[part], labels[part])) for part in (slice(half), slice(half, BATCH))]
    expected = np.mean([share[1] for share in shares], axis=0)
    found = {
        "loss": loss,
        "expected_loss": float(np.mean([share[0] for share in shares])),
        "update_error": float(np.abs(update - expected).max() / np.abs(expected).max()),
    }
    for mode in ("training", "inference"):
        steady = trainer(2, (images, labels), mode)
        found[mode] = {"replicas": steady.replicas(), "parameters": steady.parameter_count(), "loss": steady.step()}
        executed = graphs_that_ran.executed_towers(tf, steady.session, steady._fetches)
        found[mode]["devices"] = [executed[tower] for tower in sorted(executed)]
        steady.close()
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
