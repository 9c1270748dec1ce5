"""Runs inside an environment of PyTorch: literal inference, by the package of a source, with the label of each batch.

Arguments: the folder of the workloads, a ZIP with the package and what it needs. Prints a JSON object: what each label
emits, and what is said without the package.
"""

import json
import sys
import tempfile
import zipfile

sys.path.insert(0, sys.argv[1])

from recorder import Recorder

from common.events import Unsupported
from common.request import Request
from experiments import training

AXES = {"protocol": "literal", "mode": "inference", "model": "cnn10", "strategy": "none", "devices": 1, "nodes": 1}
AXES.update(precision="fp32", execution="native")
SETTINGS = {"seed": 0, "learning_rate": 0.01, "momentum": 0.9, "later_runs": 10}


def emitted(batch_size, layout="native"):
    case = dict(AXES, batch_size=batch_size, layout=layout)
    emitter = Recorder()
    emitter.environment = lambda **facts: None
    try:
        training.run(Request({"case": case, "framework": "torch", "accelerator": "cpu", "settings": SETTINGS}), emitter)
    except Unsupported as error:
        return {"unsupported": str(error)}
    return {"phases": emitter.phases, "samples": emitter.samples, "metrics": sorted(emitter.metrics)}


if __name__ == "__main__":
    answers = {"without": emitted(16)}
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(sys.argv[2]) as packed:
            packed.extractall(folder)
        sys.path.insert(0, folder)
        answers.update({"1": emitted(1), "16": emitted(16), "channels_last": emitted(16, "channels_last")})
        print("found: " + json.dumps(answers))
