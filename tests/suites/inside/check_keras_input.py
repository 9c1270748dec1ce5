"""Runs inside a TensorFlow environment: the arrays that literal training hands to Keras.

Argument: the folder of the workloads. Prints a JSON object. Keeps to Python 3.6, as the workloads do.
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

from common import data, jobs, networks
from frameworks.tensorflow.keras_literal import Literal

SETTINGS = {"learning_rate": 0.01, "momentum": 0.9, "seed": 0}


def looked_at(layout):
    (images, labels), _ = data.synthetic(8, 0, 0)
    train = data.normalise(images), labels
    network = networks.NETWORKS["cnn10"]
    handed = Literal(
        jobs.Job(network, "training", layout, "none", [None], 8, "fp32", "native", train, train, SETTINGS)
    ).images
    return {
        "type": str(handed.dtype),
        "shape": list(handed.shape),
        "is_a_view": handed.base is not None and not handed.flags["C_CONTIGUOUS"],
    }


print("found: " + json.dumps({layout: looked_at(layout) for layout in ("channels_first", "channels_last")}))
