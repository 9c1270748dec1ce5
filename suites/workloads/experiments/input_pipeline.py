"""Source towers-titanx: what feeds the towers, and how many different images they get.

Axes. protocol: `literal` takes the time of every single step, as the source's log does (it prints every tenth of the
steps 0 to 50); `steady` times blocks of warm steps. strategy: `towers` averages the gradients of a tower per device;
`none` is the source's unmodified code: one copy of the network, nothing placed, whatever devices there are. batch_size:
the examples of a step as the source counts them: a tower's batch times the towers. pipeline:
    shared_host    one queue with 6 threads; its one batch goes to all towers. In `literal` (and without towers) it is
                   placed nowhere, as in the source: what has a GPU kernel runs on the first GPU; otherwise on the host
    shared_device  the same, placed on the first tower's device (where that is the host, it is shared_host)
    per_device     a queue for each tower, placed on its device, with images of its own
    loader         the modern form: tf.data, or a DataLoader's worker processes
    resident       images on the devices from the start, distorted there
The records are in memory (the source reads files), in the order of the data set, and every one carries its number, so
that the images which reach a tower can be counted.
"""

import collections

import numpy as np

import frameworks
from common import data, devices, networks, timing
from common.events import Unsupported
from experiments.training import emit_loss

AXES = ("protocol", "mode", "model", "strategy", "devices", "batch_size", "precision", "pipeline")
PIPELINES = ("shared_host", "shared_device", "per_device", "loader", "resident")
# A network that is placed nowhere leaves no device to name for its pipeline.
WITHOUT_TOWERS = ("shared_host", "loader", "resident")
COUNTED_STEPS = 4
LOGGED_EVERY = 10  # steps

# network: networks.Network; places: for each device a GPU index, or None for the CPU; towers: how many compute;
# batch_size: of all towers; images (N, 32, 32, 3) uint8; labels (N,) int64; settings: of the request.
Job = collections.namedtuple(
    "Job", "protocol network strategy places towers pipeline batch_size images labels settings"
)


def check(request):
    """The places of a case. Raises Unsupported for what no framework here can do."""
    check_axes(request.case)
    return devices.placement(request, request.case["devices"])


def possible(request):
    """Raises Unsupported where the case cannot be. Nothing has to be tried."""
    check(request)
    way(request)
    return []


def way(request):
    """(Framework, its Pipelines) for a checked case; Unsupported where none can."""
    framework = frameworks.load(request)
    pipelines = framework.part("pipelines").Pipelines()
    pipelines.check(request.case)
    return framework, pipelines


def run(request, emitter):
    places, case = check(request), request.case
    framework, pipelines = way(request)
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
    """Steps 0 to settings["later_runs"], each timed alone; prints the source's lines. Returns the first and last loss.

    One sample per step: step 0, which prepares much, in phase first_step, the others in phase step. The source's lines
    are such single steps, every tenth.
    """
    with emitter.phase("first_step"):
        first, seconds = timing.timed(lambda: one_step(trainer))
    emitter.sample("first_step", 0, 1, job.batch_size, seconds)
    log(0, first, seconds, job)
    steps, last = job.settings.positive("later_runs"), first
    with emitter.phase("step"):
        for step in range(1, steps + 1):
            last, seconds = timing.timed(lambda: one_step(trainer))
            emitter.sample("step", step - 1, 1, job.batch_size, seconds)
            if step % LOGGED_EVERY == 0:
                log(step, last, seconds, job)
            if step == 2:
                left = steps - step
                budget.require(left * seconds, "{} more steps at {:.3g} s a step (the third)".format(left, seconds))
    return first, last


def one_step(trainer):
    """The loss before the step, when the device is done."""
    loss = trainer.step()
    trainer.synchronise()
    return float(loss)


def log(step, loss, seconds, job):
    """The source's line, in its arithmetic: a "batch" is a tower's."""
    rate, batch_s = job.batch_size / seconds, seconds / job.towers
    print(
        "step {}, loss = {:.2f} ({:.1f} examples/sec; {:.3f} sec/batch)".format(step, loss, rate, batch_s), flush=True
    )


def steady(trainer, job, budget, emitter):
    """Blocks of warm steps. Returns the first and the last loss."""
    losses = []

    def step():
        losses[1:] = [trainer.step()]  # keeps the first and the last

    timing.steady(emitter, step, trainer.synchronise, job.batch_size, job.settings, budget=budget)
    return losses[0], losses[-1]


def count_images(trainer, job, emitter):
    """Metrics examples_per_step, as the source counts, and distinct_images_per_step, as a user would; untimed.

    Raises AssertionError where towers that should get the same batch do not, or those that should not do.
    """
    with emitter.phase("count"):
        counts = [count_step(trainer.look(), job) for _ in range(COUNTED_STEPS)]
    for name, values in zip(("examples_per_step", "distinct_images_per_step"), zip(*counts)):
        emitter.metric(name, float(np.mean(values)), "1")


def count_step(batches, job):
    """(examples, distinct images) of one step. batches: for each tower (ids, images), as it got them."""
    for ids, images in batches[1:]:
        same = np.array_equal(ids, batches[0][0]) and np.array_equal(images, batches[0][1])
        if same != job.pipeline.startswith("shared"):
            raise AssertionError(
                "pipeline {!r} gave two towers {} batches".format(job.pipeline, "the same" if same else "different")
            )
    ids = np.concatenate([ids for ids, _ in batches])
    return len(ids), len(set(ids.tolist()))


def check_axes(case):
    """ValueError for a case that says what this workload does not know, Unsupported for what it cannot do."""
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
    """(Job, whether the images are made up). ValueError where batch or data set do not fit the towers."""
    case, settings = request.case, request.settings
    towers = len(places) if case["strategy"] == "towers" else 1
    batch_size, train_images = case["batch_size"], settings.positive("train_images")
    if batch_size % towers:
        raise ValueError("a batch of {} cannot be split evenly over {} towers".format(batch_size, towers))
    if train_images < 2 * batch_size:  # or a queue could come round within a batch
        raise ValueError("{} training images are too few for batches of {}".format(train_images, batch_size))
    (images, labels), _, synthetic = data.data_set(request.data, train_images, 0, settings["seed"])
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
