"""Runs inside an environment with PyTorch: precisions that are the type of everything.

Argument: the folder of the workloads. Prints a JSON object: by precision and protocol the metrics of a trial, the types
of the network, of a batch and of a loss, or why the trial is unsupported; and whether a try computes after another.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

from recorder import Recorder

from common import jobs
from common.events import Unsupported
from common.request import Request
from experiments import possible, training
from frameworks.torch.strategies import none

CASE = {"mode": "training", "model": "mlp", "layout": "native", "strategy": "none", "devices": 1, "nodes": 1}
SETTINGS = {"seed": 0, "learning_rate": 0.01, "momentum": 0.9, "train_images": 16, "test_images": 8, "parts": ""}
SETTINGS.update(warm_up_steps=1, warm_up_s=0.0, block_s=0.0, min_blocks=1, measure_s=0.0, max_s=5.0, stop_at=0.0)
SETTINGS.update(epochs=1, min_epochs=1)


class Emitter(Recorder):  # type: ignore[misc]
    def environment(self, **facts):
        pass


def request(protocol, **axes):
    case = dict(CASE, protocol=protocol, batch_size=8, execution="native", **axes)
    return Request({"case": case, "framework": "torch", "accelerator": "cpu", "settings": SETTINGS})


def trial(protocol, precision):
    recorder = Emitter()
    try:
        training.run(request(protocol, precision=precision), recorder)
        found = {name: value for name, (value, _) in recorder.metrics.items()}
        found["types"] = types(request(protocol, precision=precision))
        return found
    except Unsupported as error:
        return {"unsupported": str(error)}


def types(asked):
    """The types of weights, momentum, the images of a batch and the loss, as a step has them."""
    training.check(asked)
    _, strategy, job = training.make_job(asked)
    trainer = strategy.steady(jobs.with_data(job, asked)[0])
    seen = [parameter.dtype for parameter in trainer.network.parameters()]
    trainer.network.register_forward_hook(lambda module, given, output: seen.extend([given[0].dtype, output.dtype]))
    seen.append(trainer.step().dtype)
    seen += [state["momentum_buffer"].dtype for state in trainer.optimizer.state.values()]
    return sorted({str(kind) for kind in seen})


def computes():
    none.try_precision("fp16", "training")
    raise Unsupported("it has computed")


def tried():
    """The answer of a try that computes, where the case before it was of depthwise convolutions.

    A process that has computed itself has threads, and what it forks hangs.
    """
    asked = request("steady", precision="fp32")
    asked.case["model"] = "mobilenet_v2"
    for function, arguments in training.possible(asked):
        possible.try_apart(function, arguments)
    return possible.try_apart(computes, ())


def main():
    found = {"tried": tried()}  # first, as the trials compute
    for precision in ("fp32", "fp16", "bf16", "fp64"):
        found[precision] = {protocol: trial(protocol, precision) for protocol in ("steady", "literal")}
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
