"""Runs inside an environment with PyTorch 2: what its CUDA paths do, as far as a CPU can show it.

CUDA's graphs, streams and events are stand-ins that say what is asked of them; everything else is PyTorch itself.
Argument: the folder of the workloads. Prints a JSON object.
"""

import contextlib
import json
import os
import pickle
import sys
import tempfile
import threading
import types
from pathlib import Path

sys.path.insert(0, sys.argv[1])
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import torch

from common import data, jobs, networks
from common.events import Unsupported
from frameworks.torch import replicas
from frameworks.torch.strategies import data_parallel, distributed_data_parallel, none

BATCH, STEPS = 4, 5
NETWORK = networks.NETWORKS["mlp"]
SETTINGS = {"learning_rate": 0.01, "momentum": 0.9, "seed": 0}
STRATEGIES = {
    "none": none,
    "data_parallel": data_parallel,
    "distributed_data_parallel": distributed_data_parallel,
}


def job(mode="training", precision="fp32", execution="native", strategy="none", places=(None,)):
    (images, labels), _ = data.synthetic(BATCH, 0, 0, NETWORK.shape)
    train, layout = (data.normalise(images), labels), "channels_first"
    return jobs.Job(NETWORK, mode, layout, strategy, list(places), BATCH, precision, execution, train, None, SETTINGS)


class Capture:
    """torch.cuda.graph and CUDAGraph: whether a graph is recorded just now, and how often one was replayed.

    A CPU computes what a GPU would only record: so the first replay is done by then, and the others compute `step`.
    """

    def __init__(self):
        self.recording, self.replayed, self.step = False, 0, lambda: None

    @contextlib.contextmanager
    def graph(self, graph):
        self.recording = True
        yield
        self.recording = False

    def replay(self):
        self.replayed += 1
        if self.replayed > 1:
            self.step()


def graph_steps(mode):
    """How a case of CUDA graphs computes its steps.

    Passes of the network before a graph is recorded, and meanwhile; replays; whether gradients are recorded; the number
    of parts of a step that are timed; and how far the first loss and the last weights are from those of native steps.
    """
    native, capture, passes = none.Steady(job(mode)), Capture(), {True: 0, False: 0}
    stream = types.SimpleNamespace(wait_stream=lambda other: None)
    torch.cuda.Stream = torch.cuda.current_stream = lambda place: stream
    torch.cuda.stream = lambda chosen: contextlib.nullcontext()
    torch.cuda.CUDAGraph, torch.cuda.graph = lambda: capture, capture.graph
    trainer = none.Steady(job(mode, execution="cuda_graph"))
    capture.step, gradients = trainer._step_on_batch, set()

    def passed(module, given, output):
        if not capture.replayed:
            passes[capture.recording] += 1
            gradients.add(output.requires_grad)

    trainer.network.register_forward_hook(passed)
    losses = [trainer.step().item() for _ in range(STEPS)]
    expected = [native.step().item() for _ in range(STEPS)]
    weights = zip(trainer.weights(), native.weights(), strict=True)
    return {
        "loss_error": abs(losses[0] - expected[0]),
        "weights_error": max(float(abs(own - other).max()) for own, other in weights),
        "eager": passes[False],
        "recorded": passes[True],
        "replayed": capture.replayed,
        "gradients": sorted(gradients),
        "parts": len(list(trainer.parts())),
    }


def copy_computes_in(precision):
    """The type in which a copy of DataParallel computes: in a thread, under an autocast that knows no precision.

    That is what PyTorch's parallel_apply runs it in, which itself needs a GPU.
    """
    trainer, seen = data_parallel.Steady(job(precision=precision, strategy="data_parallel")), set()
    for module in trainer.network.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(lambda module, given, output: seen.add(str(output.dtype)))

    def run():
        with torch.amp.autocast("cpu"):
            trainer.model.module(trainer.images)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return sorted(seen)


def refusal(**asked):
    """Why two GPUs refuse a case; "" where they do not."""
    try:
        STRATEGIES[asked["strategy"]].Strategy().check(job(**asked), "steady")
    except Unsupported as error:
        return str(error)
    return ""


def device_of_a_rank():
    """The GPU that is the current one when another rank makes its trainer."""
    chosen: list[int] = []
    torch.cuda.set_device = chosen.append

    def make(job, rank):
        raise RuntimeError(str(chosen))

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / replicas.JOB).write_bytes(pickle.dumps(job(places=(0, 1))))
        child = os.fork()
        if not child:
            sys.argv[1:] = [folder, "1"]
            replicas.follow(make)
        os.waitpid(child, 0)
        return json.loads((Path(folder) / "failed-1").read_text())["text"]


def main():
    of_two = {"places": (0, 1), "execution": "cuda_graph"}
    found = {
        "types": {precision: copy_computes_in(precision) for precision in ("amp_bf16", "amp_fp16")},
        "graphs": {mode: graph_steps(mode) for mode in ("training", "inference")},
        "refused": {
            "scaled": refusal(strategy="none", places=(0,), precision="amp_fp16", execution="cuda_graph"),
            "scattered": refusal(strategy="data_parallel", **of_two),
            "distributed": refusal(strategy="distributed_data_parallel", **of_two),
            "compiled": refusal(strategy="data_parallel", places=(0, 1), execution="compiled"),
        },
        "not_refused": [
            refusal(strategy="none", places=(0,), precision="amp_bf16", execution="cuda_graph"),
            refusal(strategy="distributed_data_parallel", places=(0, 1), execution="compiled"),
            refusal(strategy="data_parallel", places=(0, 1), precision="amp_bf16"),
        ],
        "device_of_rank_1": device_of_a_rank(),
    }
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
