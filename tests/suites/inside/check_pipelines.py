"""Runs inside an environment: what every pipeline gives the towers, each image held against the record it says it is.

Arguments: the folder of the workloads, and the framework. Prints a JSON object. Keeps to Python 3.6, as the workloads.
"""

import importlib
import itertools
import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np

from common import data, networks
from common.data import MARGIN
from common.request import Fields
from experiments import input_pipeline

PER_TOWER = 4
RECORDS = 64
SETTINGS = Fields("settings", {"learning_rate": 0.001, "seed": 0})


def similarity(image, record):
    """The largest correlation of an image (32, 32, 3) with any crop of its record (uint8), flipped or not.

    About each channel's mean, as brightness and contrast leave that up to one factor: 1 for a distorted record.
    """
    size = len(record)
    padded = np.pad(record.astype(np.float64), ((MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0)), "constant")
    image = centred(image.astype(np.float64))
    best = -1.0
    for top, left in itertools.product(range(2 * MARGIN + 1), repeat=2):
        crop = centred(padded[top : top + size, left : left + size])
        for candidate in (crop, crop[:, ::-1]):
            best = max(best, (candidate * image).sum() / (np.linalg.norm(candidate) * np.linalg.norm(image)))
    return float(best)


def centred(image):
    return image - image.mean(axis=(0, 1))


def check(implementation, strategy, towers, pipeline):
    (records, labels), _ = data.synthetic(RECORDS, 0, 0)
    job = input_pipeline.Job(
        "steady",
        networks.NETWORKS["vgg_small"],
        strategy,
        [None] * towers,
        towers,
        pipeline,
        PER_TOWER * towers,
        records,
        labels,
        SETTINGS,
    )
    implementation.Pipelines().prepare(job)
    trainer = implementation.Trainer(job)
    steps = [trainer.look() for _ in range(2)]
    parts = trainer.parts()
    for _, part in parts:
        part()
    trainer.step()
    used = trainer.devices_used()
    trainer.close()
    seen = [(number, images[index]) for step in steps for ids, images in step for index, number in enumerate(ids)]
    return {
        "counts": [input_pipeline.count_step(step, job) for step in steps],
        "distinct_in_two_steps": len({int(number) for number, _ in seen}),
        "largest_mean": float(max(abs(image.mean()) for _, image in seen)),
        "largest_deviation_error": float(max(abs(image.std() - 1) for _, image in seen)),
        "least_similarity": min(similarity(image, records[number]) for number, image in seen),
        "different_distortions": len({image.tobytes() for _, image in seen}),
        "parts": [name for name, _ in parts],
        "devices_used": used,
    }


def main():
    framework = sys.argv[2]
    implementation = importlib.import_module(f"frameworks.{framework}.pipelines")
    strategy, towers = ("none", 1) if framework == "torch" else ("towers", 2)
    found = {name: check(implementation, strategy, towers, name) for name in sorted(implementation.PIPELINES)}
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
