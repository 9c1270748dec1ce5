"""Runs inside an environment with JAX: what parity does not see, on two virtual devices of a CPU.

Argument: the folder of the workloads. Prints a JSON object.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import numpy as np

import frameworks
from common import data, jobs, networks
from common.request import Request

FRAMEWORK = frameworks.load(Request({"case": {"devices": 2}, "framework": "jax", "accelerator": "cpu", "settings": {}}))
DEVICES = FRAMEWORK.part("devices")

BATCH = 8
SETTINGS = {"learning_rate": 0.1, "momentum": 0.9, "seed": 0}
ALIGNED = 16  # numbers in 64 bytes
UNDER_WAY = 500  # steps that nobody waits for


def trainer(strategy, network, mode="training"):
    (images, labels), _ = data.synthetic(BATCH, 0, 0, network.shape)
    places, train = [None] * (1 if strategy == "none" else 2), (data.normalise(images), labels)
    layout = FRAMEWORK.layout
    job = jobs.Job(network, mode, layout, strategy, places, BATCH, "fp32", "native", train, None, SETTINGS)
    return FRAMEWORK.strategy(strategy).steady(job)


def second_step_error(strategy):
    """Of SGD's second step, the first with momentum: against the gradients of the weights that it begins with."""
    one = trainer(strategy, networks.NETWORKS["mlp"])
    weights = [one.weights()]
    one.step()
    weights.append(one.weights())
    gradients = [np.array(array) for array in one.gradients(one.state, *one.batch)[2]]
    one.step()
    rate, kept = SETTINGS["learning_rate"], SETTINGS["momentum"]
    expected = [kept * (new - old) - rate * slope for old, new, slope in zip(*weights, gradients, strict=True)]
    changes = [after - new for after, new in zip(one.weights(), weights[1], strict=True)]
    errors = [np.abs(got - wanted).max() for got, wanted in zip(changes, expected, strict=True)]
    return float(max(errors) / max(np.abs(wanted).max() for wanted in expected))


def moving_statistics():
    """(mean, variance) of the first batch normalisation after a step, and of the images that it has seen."""
    layers = [networks.Norm(), networks.GlobalAveragePool(), networks.Dense(10)]
    one = trainer("none", networks.Network("norm", (32, 32, 3), layers, 46))
    one.step()
    seen = one.job.train[0].astype(np.float64)
    kept = networks.NORM_MOMENTUM
    mean, variance = (1 - kept) * seen.mean((0, 1, 2)), kept + (1 - kept) * seen.var((0, 1, 2))
    found = [np.asarray(array) for array in one.state.statistics[0]]
    return max(float(np.abs(got - wanted).max()) for got, wanted in zip(found, (mean, variance), strict=True))


def compilation():
    """Seconds of it before the first step, after it, and after the second."""
    one = trainer("none", networks.NETWORKS["mlp"])
    found = [one.compile_s()]
    for _ in range(2):
        one.step()
        found.append(one.compile_s())
    return found


def steps_under_way(mode):
    """Many steps without waiting: virtual devices that do not wait for each other would end this process."""
    one = trainer("shard_map", networks.NETWORKS["mlp"], mode)
    step = dict(one.parts())["forward"] if mode == "training" else one.step
    for _ in range(UNDER_WAY):
        loss = step()
    one.synchronise()
    return float(loss)


def shares_memory():
    """Whether a copy has the memory of its original: an aligned array of NumPy, and arrays in memories of devices."""
    numbers, (first, second) = np.ones((1 << 16) + ALIGNED, np.float32), DEVICES.all_of([None, None])
    host = numbers[-numbers.ctypes.data // numbers.itemsize % ALIGNED :]
    copies = [DEVICES.copied(host, first)]
    for target in (second, DEVICES.host_memory(second), DEVICES.device_memory(second)):
        copies.append(DEVICES.copied(copies[-1], target))
    addresses = [host.ctypes.data, *(copy.unsafe_buffer_pointer() for copy in copies)]
    return len(set(addresses)) < len(addresses)


def main():
    found = {
        "devices": len(FRAMEWORK.module.devices()),
        "second_step_errors": [second_step_error("none"), second_step_error("shard_map")],
        "statistics_error": moving_statistics(),
        "compile_s": compilation(),
        "losses": [steps_under_way("training"), steps_under_way("inference")],
        "shares_memory": shares_memory(),
    }
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
