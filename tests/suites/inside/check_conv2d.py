"""Runs inside an environment: conv2d's own functions against SciPy, over filters, channels and towers at once.

Arguments: the folder of the workloads, and the framework. Prints a JSON object: "<size>x<size>, <channels>" to the
largest error over the largest value, of both protocols. Keeps to Python 3.6, as the workloads do.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import numpy as np
from recorder import Recorder

import frameworks
from common import timing
from common.request import Request
from experiments import conv2d
from frameworks.numpy import conv2d as reference

SETTINGS = {
    "later_runs": 1,
    "warm_up_steps": 1,
    "warm_up_s": 0,
    "block_s": 0,
    "min_blocks": 3,
    "measure_s": 0,
    "max_s": 0,
    "stop_at": 0,
}


def error(implementation, size, channels, towers, feed):
    random = np.random.RandomState(size)
    images = random.uniform(-1, 1, (6, 12, 11, channels)).astype(np.float32)
    kernel = random.uniform(-1, 1, (size, size, channels, channels)).astype(np.float32)
    problem = conv2d.Problem(images, kernel, [None] * towers, feed, "default", SETTINGS, timing.Budget(None))
    run = implementation.steady if feed == "resident" else implementation.literal
    expected = reference.expected_sum(problem, range(6 // towers))
    outputs, _ = run(problem, Recorder())
    return reference.relative_error(outputs, expected)


def error_of_case(implementation, method, **given):
    """Of a Problem with further fields: 4 images in a tower, of 2 channels."""
    random = np.random.RandomState(1)
    images = random.uniform(-1, 1, (4, 12, 11, 2)).astype(np.float32)
    kernel = conv2d.filter_of_chain(random.uniform(-1, 1, (3, 3, 2, 2)))
    problem = conv2d.Problem(images, kernel, [None], "constant", "default", SETTINGS, timing.Budget(None), **given)
    chained = problem.chained
    outputs, _ = getattr(implementation, method)(problem, Recorder())
    return reference.relative_error(outputs, reference.expected_sum(problem, range(4), chained))


def further(framework):
    """{name: (method, fields of the Problem)} of what this framework has beside."""
    cases = {
        "30 chained": ("steady", {"chained": 30}),
        "warm device": ("literal", {"warmed": "device"}),
        "warm convolution": ("literal", {"warmed": "convolution"}),
    }
    if framework == "tensorflow":
        cases["callable"] = ("steady", {"call": "callable"})
        cases["keras"] = ("keras", {})
    return cases


def main():
    given = {"case": {"devices": 3}, "framework": sys.argv[2], "accelerator": "cpu", "settings": {}}
    implementation = frameworks.load(Request(given)).part("conv2d").Conv2d()
    found = {}
    for size in (1, 2, 3, 4, 5, 10):
        for channels, towers, feed in ((1, 1, "constant"), (3, 2, "fed"), (2, 3, "resident")):
            name = f"{size}x{size}, {channels} channels, {towers} towers, {feed}"
            found[name] = error(implementation, size, channels, towers, feed)
    for name, (method, given) in further(sys.argv[2]).items():
        found[name] = error_of_case(implementation, method, **given)
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
