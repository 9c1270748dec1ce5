"""Runs inside an environment: the losses of a decoder's first steps, which its momentum decides, and of inference.

Arguments: the folder of the workloads, and the framework. Prints a JSON object.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import numpy as np

import frameworks
from common import decoders, jobs
from common.request import Request

STEPS = 5
SETTINGS = {"learning_rate": 0.1, "momentum": 0.9, "seed": 0}
ASKED = {"case": {}, "framework": sys.argv[2], "accelerator": "cpu", "settings": SETTINGS}


def losses(part, mode):
    """(the loss before each of STEPS steps, whether a weight has changed since the first)."""
    network = decoders.DECODERS["decoder_tiny"]._replace(length=16)
    train = decoders.made_up(network, 2, 0)
    job = jobs.Job(network, mode, None, "none", [None], 2, "fp32", "native", train, None, SETTINGS)
    trainer = part.steady(job)
    before = trainer.weights()
    found = [trainer.mean_losses([trainer.step()] * 2)[0] for _ in range(STEPS)]
    trainer.synchronise()
    after = trainer.weights()
    changed = not all(np.array_equal(old, after[index]) for index, old in enumerate(before))
    trainer.close()
    return found, changed


def main():
    part = frameworks.load(Request(ASKED)).part("decoder").Decoder()
    print("found: " + json.dumps({mode: losses(part, mode) for mode in ("training", "inference")}))


if __name__ == "__main__":
    main()
