"""Source torch-2080ti: training a CIFAR-10 network, and how that time depends on batch size and framework.

Axes. protocol: `literal` runs whole epochs as a user would, host data shuffled, each epoch timed; `steady` trains on
one fixed batch that is already on the device, in synchronised blocks. layout: of the images, `native` is each
framework's own (PyTorch channels_first, TensorFlow channels_last). batch_size: global. precision: fp32, TF32 off.

The last batch of an epoch may be smaller: it is trained on, and its images are counted.
"""

import events  # noqa: I001  first, as its import starts the clock of `t`
import collections
import importlib
import math
import re

import numpy as np

import data
import frameworks
import timing
from events import Unsupported

AXES = ("protocol", "mode", "model", "layout", "strategy", "devices", "nodes", "batch_size", "precision")
STRATEGIES = ("none", "data_parallel", "distributed_data_parallel", "multi_gpu_model", "mirrored", "towers")
NATIVE_LAYOUT = {"torch": "channels_first", "tensorflow": "channels_last"}
PARAMETERS = {"cnn10": 1925258}  # trainable; the same network in every framework has the same count

# TensorFlow's CPU kernels; which of them can do channels_first depends on its version, and on whether oneDNN is on,
# which depends on the CPU. So it is tried.
LAYOUT_REFUSED = re.compile(r"[^\n]* only supports NHWC[^\n]*")

# layout: channels_first or channels_last; place: GPU index or None for the CPU; train, test: (images, labels), images
# (N, 32, 32, 3) float32 whatever the layout, labels (N,) int64; settings: of the request.
Job = collections.namedtuple("Job", "model layout place batch_size train test settings")


def training(request, emitter):
    case = request.case
    check_axes(case)
    (place,) = frameworks.placement(request, 1)
    name, module = frameworks.load(request)
    frameworks.without_tf32(name, module)
    job = make_job(case, request.settings, NATIVE_LAYOUT[name], place)
    implementation = importlib.import_module("training_" + name)
    implementation.prepare(job, case["protocol"])
    frameworks.report(emitter, name, module, request, layout=job.layout)
    emitter.environment(simulated=False, synthetic=True)
    protocol = literal if case["protocol"] == "literal" else steady
    try:
        trainer = protocol(implementation, job, emitter)
    except Exception as error:
        refusal = LAYOUT_REFUSED.search(str(error))
        if not refusal:
            raise
        raise Unsupported(
            "layout {!r} on {}: {} {} says: {}".format(
                job.layout, request.accelerator, name, module.__version__, refusal.group()
            )
        ) from error
    peak_mib = trainer.peak_device_memory_mib()
    if peak_mib is not None:
        emitter.metric("peak_device_memory_mib", peak_mib, "MiB")


def steady(implementation, job, emitter):
    """Blocks of steps on one batch; metrics initial_loss (of the first step) and final_loss. Returns the trainer."""
    trainer = implementation.Steady(job)
    emit_parameters(trainer, job, emitter)
    losses = []

    def step():
        losses[1:] = [trainer.step()]  # keeps the first and the last

    timing.steady(emitter, step, trainer.synchronise, job.batch_size, job.settings)
    emit_loss("initial_loss", losses[0], emitter)
    emit_loss("final_loss", losses[-1], emitter)
    return trainer


def literal(implementation, job, emitter):
    """Epochs as a user would run them, then the accuracy, outside the clock. Returns the trainer.

    Metrics final_loss (mean over the last epoch) and test_accuracy.
    """
    trainer = implementation.Literal(job)
    emit_parameters(trainer, job, emitter)
    final_loss = trainer.fit(emitter)
    with emitter.phase("evaluate"):
        images, labels = job.test
        accuracy = np.mean(trainer.logits(images).argmax(axis=1) == labels)
    emit_loss("final_loss", final_loss, emitter)
    emitter.metric("test_accuracy", float(accuracy), "1")
    return trainer


def emit_parameters(trainer, job, emitter):
    count, expected = trainer.parameter_count(), PARAMETERS[job.model]
    if count != expected:
        raise AssertionError("{} has {} trainable parameters; it must have {}".format(job.model, count, expected))
    emitter.metric("trainable_parameters", count, "1")


def emit_loss(name, loss, emitter):
    loss = float(loss)
    if not math.isfinite(loss):
        raise ArithmeticError("{} is {}: the training diverged".format(name, loss))
    emitter.metric(name, loss, "1")


def check_axes(case):
    """ValueError for a case that says what this workload does not know, Unsupported for what it cannot do."""
    case.require_only(AXES)
    case.one_of("protocol", ("literal", "steady"))
    case.one_of("layout", ("native", "channels_first", "channels_last"))
    case.one_of("strategy", STRATEGIES)
    for axis in ("devices", "nodes", "batch_size"):
        case.positive(axis)
    for axis, known in (("mode", ["training"]), ("model", sorted(PARAMETERS)), ("precision", ["fp32"])):
        if case[axis] not in known:
            raise Unsupported("{} {!r} is not supported; known: {}".format(axis, case[axis], ", ".join(known)))
    if case["devices"] > 1 or case["nodes"] > 1 or case["strategy"] != "none":
        raise Unsupported(
            "strategies for more devices or nodes are not supported; strategy 'none' with 1 device and 1 node would run"
        )


def make_job(case, settings, native_layout, place):
    """The data a protocol needs: a steady batch, or a training and a test set."""
    layout = native_layout if case["layout"] == "native" else case["layout"]
    steady_batch = case["protocol"] == "steady"
    train_images = case["batch_size"] if steady_batch else settings.positive("train_images")
    test_images = 0 if steady_batch else settings.positive("test_images")
    train, test = [
        (data.normalise(images), labels)
        for images, labels in data.synthetic(train_images, test_images, settings["seed"])
    ]
    return Job(case["model"], layout, place, case["batch_size"], train, test, settings)


if __name__ == "__main__":
    events.main(training)
