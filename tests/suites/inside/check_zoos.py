"""Runs inside an environment: networks of libraries by their names, each for a step of training, or why not.

Arguments: the folder of the workloads, the names. Prints a JSON object: by name the parameters, the shape of an image,
the loss, the multiply-adds; or the reason as `unsupported`. As `keras`: its release and all names, where it is there.
"""

import json
import sys
from importlib.util import find_spec

sys.path.insert(0, sys.argv[1])

from common import jobs
from common.events import Unsupported
from common.request import Request
from experiments import training

AXES = {"protocol": "steady", "mode": "training", "layout": "native", "strategy": "none", "devices": 1, "nodes": 1}
AXES.update(batch_size=2, precision="fp32", execution="native")
SETTINGS = {"seed": 0, "learning_rate": 0.01, "momentum": 0.9, "train_images": 2, "test_images": 0}


def found(name):
    request = Request({"case": dict(AXES, model=name), "framework": None, "accelerator": "cpu", "settings": SETTINGS})
    try:
        training.check(request)
        _, strategy, job = training.make_job(request)
    except Unsupported as error:
        return {"unsupported": str(error)}
    job, _ = jobs.with_data(job, request)
    trainer = strategy.steady(job)
    trainer.announce(1)
    (loss, _) = trainer.mean_losses([trainer.step()] * 2)
    answer = {"parameters": trainer.parameter_count(), "shape": job.network.shape, "loss": loss}
    answer["multiply_adds"] = trainer.multiply_adds()
    trainer.close()
    return answer


def known():
    if not find_spec("tensorflow"):
        return []
    import keras

    from frameworks.tensorflow import zoos

    return [keras.__version__, *sorted(zoos.names())]


if __name__ == "__main__":
    print("found: " + json.dumps(dict({name: found(name) for name in sys.argv[2:]}, keras=known())))
