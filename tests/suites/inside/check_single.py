"""Runs inside an environment with PyTorch: literal passes that are timed one by one, where settings have `readings`.

Argument: the folder of the workloads. Prints a JSON object: by mode what a trial emits, and what its passes do; the
passes under DataParallel; and why other cases are refused.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import torch
from recorder import Recorder

from common import jobs
from common.events import Unsupported
from common.request import Request
from experiments import training
from frameworks.torch.strategies import data_parallel, none

BATCH = 4
AXES = {"protocol": "literal", "model": "cnn10", "layout": "native", "strategy": "none", "devices": 1, "nodes": 1}
AXES.update(mode="training", batch_size=BATCH, precision="fp64", execution="native")
SETTINGS = {"seed": 0, "learning_rate": 0.1, "momentum": 0.9, "parts": "", "readings": 6}
REFUSED = {
    "distributed_data_parallel": {"strategy": "distributed_data_parallel", "devices": 2},
    "compiled": {"execution": "compiled"},
    "fed": {"batches": "host"},
}


class Emitter(Recorder):  # type: ignore[misc]
    def environment(self, **facts):
        pass


def request(**axes):
    case = dict(AXES, **axes)
    return Request({"case": case, "framework": "torch", "accelerator": "cpu", "settings": SETTINGS})


def trial(mode):
    emitter, tuned = Emitter(), torch.backends.cudnn.benchmark
    training.run(request(mode=mode), emitter)
    counted = [[phase, steps, images] for phase, _, steps, images, _ in emitter.samples]
    found = {"samples": counted, "phases": emitter.phases, "metrics": sorted(emitter.metrics)}
    found["tuned"] = [tuned, torch.backends.cudnn.benchmark]
    torch.backends.cudnn.benchmark = tuned
    return found


def passes(mode, made=none.Single):
    """What passes compute of which images, and which they change."""
    asked = request(mode=mode)
    training.check(asked)
    job, _ = jobs.with_data(training.make_job(asked)[2], asked)
    trainer, seen = made(job), []
    before = [parameter.detach().clone() for parameter in trainer.network.parameters()]
    trainer.network.register_forward_hook(lambda module, given, output: seen.append((given[0], output)))
    results = []
    for _ in range(2):
        trainer.announce(1)
        results.append(trainer.step())
    images, outputs = ([pair[place] for pair in seen] for place in (0, 1))
    return {
        "types": sorted({str(tensor.dtype) for tensor in images + outputs}),
        "images": len(job.train[1]),
        "anew": images[0].data_ptr() != images[1].data_ptr() and torch.equal(*images),
        "is_output": results[1] is outputs[1],
        "requires_grad": outputs[0].requires_grad,
        "in_training": trainer.network.training,
        "changed": not all(map(torch.equal, before, trainer.network.parameters())),
        "gradients": all(parameter.grad is not None for parameter in trainer.network.parameters()),
    }


def refused(axes):
    asked = request(**axes)
    try:
        training.check(asked)
        training.make_job(asked)
    except Unsupported as error:
        return str(error)
    return ""


def main():
    found = {mode: {"trial": trial(mode), "passes": passes(mode)} for mode in ("training", "inference")}
    found["data_parallel"] = passes("training", data_parallel.Single)
    found["refused"] = {name: refused(axes) for name, axes in REFUSED.items()}
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
