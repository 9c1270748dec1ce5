"""Runs inside the environment: the training loops of two other suites, written anew, on tsuishi's network and weights.

Both train on a batch that is on the device, in bfloat16 by autocast and channels_last. What surrounds the step is
theirs:

timm         huggingface/pytorch-image-models, train.py, train_one_epoch (1.0): forward pass and loss under autocast,
             backward pass, step, the loss read by the host in every step, then zero_grad. Task and optimiser are those
             of its wheel where it can be imported; else SGD with Nesterov's momentum, as its factory makes it, and
             cross entropy, as its task computes it. Its scaler is for float16 alone, so there is none.
torchbench   pytorch/benchmark, torchbenchmark/util/framework/vision/model_factory.py (TorchVisionModel._train) and
             run.py: zero_grad, forward pass, backward pass, step; the device is synchronised after every step. With a
             CUDA graph the batch is copied into the graph's own in every step, then the graph is replayed.

The argument is JSON: loop, model, batch_size, device, execution (native, compiled, cuda_graph), seconds, workloads.
Prints one JSON object: images_per_s, steps, loss, and `by`, the origin of task and optimiser.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

WARM_UP_STEPS = 10
SEED = 0
LEARNING_RATE, MOMENTUM = 0.01, 0.9

Step = Callable[[], float]


def main() -> None:
    asked = json.loads(sys.argv[1])
    sys.path.insert(0, asked["workloads"])
    torch.backends.cudnn.benchmark = True  # as timm sets it; torchbench leaves it to its option
    model, images, labels = batch(asked)
    step, by = LOOPS[asked["loop"]](model, images, labels, asked)
    steps, seconds, loss = timed(step, asked["seconds"], asked["device"])
    speed = steps * asked["batch_size"] / seconds
    print(json.dumps({"images_per_s": speed, "steps": steps, "loss": loss, "by": by}))


def batch(asked: Any) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    """The network with tsuishi's first weights, and a made-up batch, both on the device and channels_last."""
    from common import networks
    from frameworks.torch.networks import build

    network, device = networks.NETWORKS[asked["model"]], asked["device"]
    model = build(network, networks.initial_weights(network, SEED))
    height, width, channels = network.shape
    torch.manual_seed(SEED)
    images = torch.randn(asked["batch_size"], channels, height, width, device=device)
    labels = torch.randint(10, (asked["batch_size"],), device=device)
    last = torch.channels_last
    return model.to(device, memory_format=last).train(), images.contiguous(memory_format=last), labels


def timm_loop(model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, asked: Any) -> tuple[Step, str]:
    task, optimizer, by = timm_parts(model, asked["execution"], images.device)

    def step() -> float:
        held = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast(asked["device"], torch.bfloat16):
            loss = task(held, labels)
        loss.backward()
        optimizer.step()
        seen: float = loss.item()
        optimizer.zero_grad()
        return seen

    return step, by


def timm_parts(model: torch.nn.Module, execution: str, device: torch.device) -> tuple[Any, torch.optim.Optimizer, str]:
    """(function from images and labels to the loss, optimiser, their origin)."""
    try:
        import timm
        from timm.optim import create_optimizer_v2
        from timm.task import ClassificationTask
    except ImportError as error:
        return _like_timms(model, execution, error)
    optimizer = create_optimizer_v2(model, opt="sgd", lr=LEARNING_RATE, momentum=MOMENTUM, weight_decay=0.0)
    task = ClassificationTask(model, device=device, verbose=False)
    if execution == "compiled":
        task.compile()
    return lambda held, labels: task(held, labels)["loss"], optimizer, f"timm {timm.__version__}"


def _like_timms(model: torch.nn.Module, execution: str, error: ImportError) -> tuple[Any, torch.optim.Optimizer, str]:
    optimizer = torch.optim.SGD(model.parameters(), LEARNING_RATE, momentum=MOMENTUM, nesterov=True)
    runs = torch.compile(model) if execution == "compiled" else model

    def task(held: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(runs(held), labels)

    return task, optimizer, f"written anew, as timm cannot be imported ({error})"


def torchbench_loop(model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, asked: Any) -> tuple[Step, str]:
    execution, device = asked["execution"], asked["device"]
    optimizer = torch.optim.SGD(model.parameters(), LEARNING_RATE, momentum=MOMENTUM)
    runs = torch.compile(model) if execution == "compiled" else model
    loss_of = torch.nn.CrossEntropyLoss()

    def train(held: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss: torch.Tensor = loss_of(runs(held), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    once = _graphed(train, images, labels, optimizer) if execution == "cuda_graph" else lambda: train(images, labels)
    last = torch.zeros(())

    def step() -> float:
        nonlocal last
        last = once()
        synchronise(device)
        return float(last)

    return step, "written anew"


def _graphed(
    train: Any, images: torch.Tensor, labels: torch.Tensor, optimizer: torch.optim.Optimizer
) -> Callable[[], torch.Tensor]:
    """A step as the replay of a graph, recorded after steps on another stream."""
    held, targets = images.clone(memory_format=torch.preserve_format), labels.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train(held, targets)
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = train(held, targets)

    def once() -> torch.Tensor:
        held.copy_(images)
        targets.copy_(labels)
        graph.replay()
        return loss

    return once


def synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def timed(step: Step, seconds: float, device: str) -> tuple[int, float, float]:
    """(steps, seconds, last loss) of warm steps, until `seconds` have passed."""
    for _ in range(WARM_UP_STEPS if device == "cuda" else 1):
        loss = step()
    synchronise(device)
    begin, steps = time.perf_counter(), 0
    while not steps or time.perf_counter() - begin < seconds:
        loss = step()
        steps += 1
    synchronise(device)
    return steps, time.perf_counter() - begin, loss


LOOPS = {"timm": timm_loop, "torchbench": torchbench_loop}


if __name__ == "__main__":
    main()
