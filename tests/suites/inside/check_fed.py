"""Runs inside a TensorFlow environment: the batches of steps that are fed from the host, and what the steps lose.

Argument: the folder of the workloads. Prints a JSON object. Keeps to Python 3.6, as the workloads do.
"""

import itertools
import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow as tf

from common import data, jobs, networks
from frameworks.tensorflow import fed, keras_steady
from frameworks.tensorflow.keras_literal import as_handed

IMAGES, BATCH, STEPS = 40, 16, 5
SETTINGS = {"learning_rate": 0.01, "momentum": 0.9, "seed": 0}


def main():
    (images, labels), _ = data.synthetic(IMAGES, 0, 0)
    train = data.normalise(images), labels
    batches = {layout: looked_at(layout, train) for layout in ("channels_last", "channels_first")}
    fed_losses = {batches: losses(made("channels_last", train, batches)) for batches in (jobs.HOST, jobs.HOST_AHEAD)}
    first = next(handed(made("channels_last", train, jobs.HOST)))
    resident = losses(made("channels_last", first, jobs.RESIDENT))
    print("found: " + json.dumps({"batches": batches, "losses": fed_losses, "first_loss": resident[0]}))


def handed(job):
    return fed.handed(job, as_handed(job.train[0], job.layout))


def looked_at(layout, train):
    """The images of the first steps, in a layout that a CPU need not train in."""
    job = made(layout, train, jobs.HOST)
    first = list(itertools.islice(handed(job), STEPS))
    laid_out = train[0] if layout == "channels_last" else np.transpose(train[0], [0, 3, 1, 2])
    order = [int(np.abs(laid_out - image).sum((1, 2, 3)).argmin()) for images, _ in first for image in images]
    return {
        "counts": np.bincount(order).tolist(),
        "labelled": np.concatenate([labels for _, labels in first]).tolist() == train[1][order].tolist(),
        "type": str(first[0][0].dtype),
        "same_ahead": list(map(same, first, ahead(job, laid_out))),
    }


def same(batch, other):
    return all(map(np.array_equal, batch, other))


def ahead(job, laid_out):
    """The first batches of tf.data."""
    if not tf.__version__.startswith("1."):
        batches = iter(fed.made_ahead(job, tf.constant(laid_out), tf.constant(job.train[1])))
        return [[tensor.numpy() for tensor in next(batches)] for _ in range(STEPS)]
    with tf.Graph().as_default(), tf.Session() as session:
        batches = fed.made_ahead(job, tf.constant(laid_out), tf.constant(job.train[1]))
        iterator = tf.data.make_initializable_iterator(batches)
        session.run(iterator.initializer)
        following = iterator.get_next()
        return [session.run(following) for _ in range(STEPS)]


def losses(job):
    trainer = keras_steady.Steady(job)
    found = [float(trainer.step()) for _ in range(STEPS)]
    trainer.close()
    if tf.__version__.startswith("1."):
        tf.keras.backend.clear_session()
    return found


def made(layout, train, batches):
    network = networks.NETWORKS["cnn10"]
    return jobs.Job(
        network, "training", layout, "none", [None], BATCH, "fp32", "native", train, None, SETTINGS, batches=batches
    )


main()
