"""Runs inside an environment: what parity, which makes a single step, does not see of training on one device.

Arguments: the folder of the workloads, and the framework. Prints a JSON object of relative errors. Keeps to Python 3.6.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import numpy as np
from recorder import Recorder

import frameworks
from common import data, jobs, networks, timing
from common.request import Fields, Request

REQUEST = {"case": {"devices": 1}, "framework": sys.argv[2], "accelerator": "cpu", "settings": {}}
FRAMEWORK = frameworks.load(Request(REQUEST))
STRATEGY = FRAMEWORK.strategy("none")
BATCH = 8
SETTINGS = {"learning_rate": 0.1, "momentum": 0.9, "seed": 0, "epochs": 2, "min_epochs": 3, "stop_at": 0}
NETWORK = networks.NETWORKS["mlp"]
INITIAL = networks.initial_weights


def job(network, **settings):
    (images, labels), _ = data.synthetic(BATCH, 0, 0, network.shape)
    given = Fields("settings", dict(SETTINGS, **settings))
    train = data.normalise(images), labels
    return jobs.Job(network, "training", FRAMEWORK.layout, "none", [None], BATCH, "fp32", "native", train, None, given)


def flat(weights):
    return np.concatenate([array.ravel() for array in weights]).astype(np.float64)


def after_steps(trainer, steps):
    """All weights after so many steps, in an array."""
    for _ in range(steps):
        trainer.step()
        trainer.synchronise()
    return flat(trainer.weights())


def second_step_error():
    """Of SGD's second step, the first with momentum, against the slopes where it begins.

    A trainer that begins there finds the slopes: its first step has no momentum yet.
    """
    trainer = STRATEGY.steady(job(NETWORK))
    before, first = flat(trainer.weights()), after_steps(trainer, 1)
    begins_with = trainer.weights()
    networks.initial_weights = lambda network, seed: begins_with
    another = STRATEGY.steady(job(NETWORK))
    networks.initial_weights = INITIAL
    change = after_steps(another, 1) - first
    expected = SETTINGS["momentum"] * (first - before) + change
    return float(np.abs(after_steps(trainer, 1) - first - expected).max() / np.abs(expected).max())


def epochs_error():
    """Of two epochs of one batch, in any order of its images: (weights, loss), against two steps on that batch."""
    literal, steady = STRATEGY.literal(job(NETWORK)), STRATEGY.steady(job(NETWORK))
    loss = literal.fit(Recorder(), timing.EpochProbe(timing.UNLIMITED, 2, literal.synchronise))
    losses = [steady.step() for _ in range(2)]
    steady.synchronise()
    expected = steady.mean_losses(losses)[1]
    changed = np.abs(flat(literal.weights()) - flat(steady.weights())).max()
    return [float(changed), abs(loss - expected) / expected]


def statistics_error():
    """Of the moving statistics after a step that changes no weight, as inference sees them."""
    layers = [networks.Norm(), networks.GlobalAveragePool(), networks.Dense(10)]
    network = networks.Network("norm", (32, 32, 3), layers, 46)
    trainer = STRATEGY.steady(job(network, learning_rate=0.0))
    trainer.step()
    trainer.synchronise()
    images, (_, _, kernel, _) = trainer.job.train[0].astype(np.float64), INITIAL(network, 0)
    kept = networks.NORM_MOMENTUM
    mean, variance = (1 - kept) * images.mean((0, 1, 2)), kept + (1 - kept) * images.var((0, 1, 2))
    expected = ((images.mean((1, 2)) - mean) / np.sqrt(variance + networks.NORM_EPSILON)).dot(kernel)
    return float(np.abs(trainer.logits(trainer.job.train[0]) - expected).max() / np.abs(expected).max())


def inference_changes():
    """The largest change of a weight by steps of inference, and of its loss."""
    trainer = STRATEGY.steady(job(NETWORK)._replace(mode="inference"))
    losses = [trainer.step() for _ in range(2)]
    trainer.synchronise()
    first, second = trainer.mean_losses(losses)
    return [float(np.abs(flat(trainer.weights()) - flat(INITIAL(NETWORK, 0))).max()), abs(first - second)]


def main():
    found = {
        "second_step_error": second_step_error(),
        "epochs_error": epochs_error(),
        "statistics_error": statistics_error(),
        "inference_changes": inference_changes(),
    }
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
