"""Source towers-titanx: how the towers get their images, and how many of these are different.

Axes. protocol: `literal` times every step on its own, as the source's log does (it prints every tenth of the steps 0 to
50); `steady` times blocks of warm steps. strategy: `towers` averages the gradients of a tower per device; `none` is the
source's unmodified code: a single copy of the network, placed on no device by name. batch_size: the examples of a step
as the source counts them: a tower's batch times the towers. pipeline:
    shared_host    a queue with 6 threads, each batch of which goes to all towers. In `literal` (and without towers) no
                   device is named, as in the source: operations with a GPU kernel run on the first GPU; in `steady` the
                   queue is on the host
    shared_device  the same, on the first tower's device (the same as shared_host where that device is the host)
    per_device     a queue for each tower, on its device, with images of its own
    loader         the modern form: tf.data, or a DataLoader's worker processes
    resident       images that are on the devices from the start, and are distorted there
The records are in memory (the source reads files), in the order of the data set. Each record has its number with it, so
that the different images which reach the towers can be counted.
"""

import collections
import time

import numpy as np

import frameworks
from common import data, devices, networks, timing
from common.events import Unsupported
from experiments.training import emit_loss

AXES = ("protocol", "mode", "model", "strategy", "devices", "batch_size", "precision", "pipeline")
PIPELINES = ("shared_host", "shared_device", "per_device", "loader", "resident")
# A network on no named device needs a pipeline on no named device.
WITHOUT_TOWERS = ("shared_host", "loader", "resident")
COUNTED_STEPS = 4
LOGGED_EVERY = 10  # steps

# network: networks.Network; places: for each device a GPU index, or None for the CPU; towers: their number; batch_size:
# over all towers; images (N, 32, 32, 3) uint8; labels (N,) int64; settings: of the request.
Job = collections.namedtuple(
    "Job", "protocol network strategy places towers pipeline batch_size images labels settings"
)


def check(request):
    """The places of a case. Raises Unsupported for a case that no framework can run here."""
    check_axes(request.case)
    return devices.placement(request, request.case["devices"])


def possible(request):
    """Raises Unsupported where the case cannot be run. There is nothing to try."""
    check(request)
    frameworks.load_part(request, "pipelines", "Pipelines")
    return []


def run(request, emitter):
    places, case = check(request), request.case
    framework, pipelines = frameworks.load_part(request, "pipelines", "Pipelines")
    framework.set_tf32(False)
    job, synthetic = make_job(request, places)
    pipelines.prepare(job)
    framework.report(emitter, request, layout=framework.layout, input_threads=pipelines.threads)
    emitter.environment(simulated=devices.simulated(places), synthetic=synthetic)
    trainer = pipelines.trainer(job)
    emitter.metric("trainable_parameters", trainer.parameter_count(), "1")
    protocol = literal if case["protocol"] == "literal" else steady
    first, last = protocol(trainer, job, timing.Budget(request.budget_s), emitter)
    emit_loss("initial_loss", first, emitter)
    emit_loss("final_loss", last, emitter)
    count_images(trainer, job, emitter)
    emitter.metric("devices_used", trainer.devices_used(), "1")
    emitter.metric("flops", networks.flops(job.network, job.batch_size, training=True), "1")
    emitter.metric("bytes", networks.least_bytes(job.network, job.batch_size, training=True), "B")
    trainer.close()


def literal(trainer, job, budget, emitter):
    """Times steps 0 to settings["later_runs"], each on its own. Returns the first and the last loss.

    Every step has a sample: step 0, which prepares much, in phase first_step, the others in phase step. For step 0 and
    every tenth step it prints the line of the source's log. The source read its GPUs' load while such a run went on:
    more steps follow in phase load, which has one sample, until settings["load_s"] have passed since step 0.
    """
    with emitter.phase("first_step"):
        first, seconds = timing.timed(lambda: finished_step(trainer))
    emitter.sample("first_step", 0, 1, job.batch_size, seconds)
    log(0, first, seconds, job)
    steps, last, begin = job.settings.positive("later_runs"), first, time.perf_counter()
    with emitter.phase("step"):
        for step in range(1, steps + 1):
            last, seconds = timing.timed(lambda: finished_step(trainer))
            emitter.sample("step", step - 1, 1, job.batch_size, seconds)
            if step % LOGGED_EVERY == 0:
                log(step, last, seconds, job)
            if step == 2:
                left = steps - step
                budget.require(left * seconds, "{} more steps at {:.3g} s a step (the third)".format(left, seconds))
    return first, keep_on(trainer, job, begin, last, emitter)


def keep_on(trainer, job, begin, last, emitter):
    """Runs steps until settings["load_s"] have passed since `begin`. Returns the last loss: `last` if none was run."""
    steps, started = 0, time.perf_counter()
    end = begin + job.settings["load_s"]
    if started >= end:
        return last
    with emitter.phase("load"):
        while steps == 0 or time.perf_counter() < end:
            last, steps = finished_step(trainer), steps + 1
        emitter.sample("load", 0, steps, steps * job.batch_size, time.perf_counter() - started)
    return last


def finished_step(trainer):
    """Runs a step and waits for the device; returns the loss before the step."""
    loss = trainer.step()
    trainer.synchronise()
    return float(loss)


def log(step, loss, seconds, job):
    """Prints the line of the source's log, whose "batch" is the batch of a tower."""
    rate, batch_s = job.batch_size / seconds, seconds / job.towers
    print(
        "step {}, loss = {:.2f} ({:.1f} examples/sec; {:.3f} sec/batch)".format(step, loss, rate, batch_s), flush=True
    )


def steady(trainer, job, budget, emitter):
    """Times blocks of warm steps. Returns the first and the last loss.

    With "loading" in settings["parts"], it then times the pipeline alone: the batches of a step, without the step.
    """
    losses = []

    def step():
        losses[1:] = [trainer.step()]  # keeps the first and the last

    def time(step, phase="measure"):
        timing.steady(emitter, step, trainer.synchronise, job.batch_size, job.settings, phase, budget=budget)

    time(step)
    for phase, part in timing.asked_for(trainer.parts(), job.settings):
        time(part, phase)
    return losses[0], losses[-1]


def count_images(trainer, job, emitter):
    """Emits metrics examples_per_step, as the source counts, and distinct_images_per_step, as a user would; untimed.

    Raises AssertionError where towers get different batches but should get the same batch, or the reverse.
    """
    with emitter.phase("count"):
        counts = [count_step(trainer.look(), job) for _ in range(COUNTED_STEPS)]
    for name, values in zip(("examples_per_step", "distinct_images_per_step"), zip(*counts)):
        emitter.metric(name, float(np.mean(values)), "1")


def count_step(batches, job):
    """(examples, distinct images) of a step. batches: for each tower the (ids, images) that reached it."""
    for ids, images in batches[1:]:
        same = np.array_equal(ids, batches[0][0]) and np.array_equal(images, batches[0][1])
        if same != job.pipeline.startswith("shared"):
            raise AssertionError(
                "pipeline {!r} gave two towers {} batches".format(job.pipeline, "the same" if same else "different")
            )
    ids = np.concatenate([ids for ids, _ in batches])
    return len(ids), len(set(ids.tolist()))


def check_axes(case):
    """ValueError for axes or values that are unknown, Unsupported for values that this experiment cannot run."""
    case.require_only(AXES)
    case.one_of("protocol", ("literal", "steady"))
    case.one_of("pipeline", PIPELINES)
    for axis in ("devices", "batch_size"):
        case.positive(axis)
    known = (
        ("mode", ["training"]),
        ("model", ["vgg_small"]),
        ("strategy", ["none", "towers"]),
        ("precision", ["fp32"]),
    )
    for axis, values in known:
        if case[axis] not in values:
            raise Unsupported("{} {!r} is not supported; known: {}".format(axis, case[axis], ", ".join(values)))
    if case["strategy"] == "none" and case["pipeline"] not in WITHOUT_TOWERS:
        raise Unsupported(
            "pipeline {!r} with strategy 'none', which places nothing on a device; would run: {}".format(
                case["pipeline"], ", ".join(WITHOUT_TOWERS)
            )
        )


def make_job(request, places):
    """(Job, whether the images are made up). ValueError where the batch or the data set does not fit the towers."""
    case, settings = request.case, request.settings
    towers = len(places) if case["strategy"] == "towers" else 1
    batch_size, train_images = case["batch_size"], settings.positive("train_images")
    if batch_size % towers:
        raise ValueError("a batch of {} cannot be split evenly over {} towers".format(batch_size, towers))
    if train_images < 2 * batch_size:  # otherwise a queue could begin again within a batch
        raise ValueError("{} training images are too few for batches of {}".format(train_images, batch_size))
    (images, labels), _, synthetic = data.data_set(request.data, train_images, 0, data.SEED)
    network = networks.NETWORKS[case["model"]]
    job = Job(
        case["protocol"],
        network,
        case["strategy"],
        places,
        towers,
        case["pipeline"],
        batch_size,
        images,
        labels,
        settings,
    )
    return job, synthetic
