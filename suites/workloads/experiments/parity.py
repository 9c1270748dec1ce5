"""Whether this environment computes what it should: against NumPy in float64, and many devices against one.

Axes as in training.py, protocol steady. Every case starts from the weights and the batch all environments share.
Metrics, relative to the largest magnitude: logits_relative_error (inference), loss_relative_error (of the first step),
gradient_relative_error (its slope along the gradient, against finite differences), and for several devices
step_relative_error (of the weights' change in one step, against the mean of what one device does with each share: for
SGD's first step that is what averaged gradients give) and replicas, how many there really were.

Batch normalisation takes its statistics from each device's own share, as all strategies here do: a step of N devices
therefore differs from one of a single device on the whole batch; `batch_norm_relative_difference` says by how much.
"""

import collections

import numpy as np

from common import jobs, networks
from experiments import training
from frameworks.numpy import networks as reference

TOLERANCE = 1e-4  # of logits, loss and step, in FP32 (that of float32)
SLOPE_TOLERANCE = 1e-3  # a kink of a ReLU that is crossed all the same
FINITE_STEP = 1e-6  # length of the finite difference: small enough to cross hardly a kink of the ReLUs, in float64
# Large, so that rounding of the weights themselves does not hide in a step's error; there is no second step.
LEARNING_RATE = 1.0

Errors = collections.namedtuple("Errors", "name value tolerance")


def check(request):
    """Raises Unsupported for what no framework here can do."""
    training.check_case(request.case)
    request.case.one_of("protocol", ("steady",))
    training.check_devices(request)


def possible(request):
    """Raises Unsupported where the case cannot be; returns what has to be tried to know more."""
    check(request)
    _, strategy, job = training.way(request)
    return strategy.tries(job)


def run(request, emitter):
    check(request)
    framework, strategy, job = training.prepared(request, emitter)
    job = job._replace(settings=dict(job.settings, learning_rate=LEARNING_RATE))
    before = networks.initial_weights(job.network, job.settings["seed"])
    with emitter.phase("one_step"), framework.layout_may_be_refused(job.layout, request.accelerator):
        logits, loss, after, replicas = one_step(strategy, job)
    emitter.metric("trainable_parameters", sum(array.size for array in after), "1")
    emitter.metric("loss", loss, "1")
    with emitter.phase("check"):
        errors = list(against_numpy(job, before, logits, loss, after))
    if len(job.places) > 1:
        emitter.metric("replicas", replicas, "1")
        if replicas != len(job.places):
            raise AssertionError("{} replicas ran; asked for {}".format(replicas, len(job.places)))
        if job.mode == "training":
            single = framework.strategy("none")
            with emitter.phase("check_devices"):
                errors += against_one_device(single, job, before, after, emitter)
    for error in errors:
        emitter.metric(error.name, error.value, "1")
    for error in errors:
        if not error.value <= error.tolerance:
            raise ArithmeticError("{} is {:.3g}; at most {:g} is rounding".format(*error))


def one_step(strategy, job):
    """(logits of inference, loss before the step, weights after it, replicas; None for one device)."""
    trainer = strategy.steady(job)
    logits = trainer.logits(job.train[0])
    trainer.announce(1)
    loss = trainer.step()
    trainer.synchronise()
    (loss, _) = trainer.mean_losses([loss, loss])
    after = trainer.weights()
    replicas = trainer.replicas() if len(job.places) > 1 else None
    trainer.close()
    return logits, float(loss), after, replicas


def against_numpy(job, before, logits, loss, after):
    """Errors of logits and loss, and in training of the slope of the loss along the step, in float64."""
    expected = reference.logits(job.network, before, job.train[0], training=False)
    yield Errors("logits_relative_error", relative(logits, expected), TOLERANCE)
    training = job.mode == "training"
    expected_loss = mean_loss(job, before, training)
    yield Errors("loss_relative_error", abs(loss - expected_loss) / expected_loss, TOLERANCE)
    if training:
        # The first step of SGD is the gradient, times the rate: along it the loss falls by its square.
        change = [(new.astype(np.float64) - old) for new, old in zip(after, before)]
        slope = -sum(float((one**2).sum()) for one in change) / LEARNING_RATE
        step = FINITE_STEP / max(1e-12, np.sqrt(-slope))
        ahead, behind = [
            mean_loss(job, [old + sign * step * one for old, one in zip(before, change)], training) for sign in (1, -1)
        ]
        measured = (ahead - behind) / (2 * step)
        yield Errors("gradient_relative_error", abs(measured - slope) / abs(slope), SLOPE_TOLERANCE)


def mean_loss(job, weights, training):
    """Of the batch by NumPy, each device's share by itself, as batch normalisation sees it."""
    losses = [
        reference.loss(reference.logits(job.network, weights, images, training), labels)
        for images, labels in jobs.shards(job)
    ]
    return float(np.mean(losses))


def against_one_device(single, job, before, after, emitter):
    """The error of a step of N devices, by first principles: one device on each share, and the mean of the results."""
    alone = job._replace(strategy="none", places=job.places[:1], batch_size=job.batch_size // len(job.places))
    results = [one_step(single, alone._replace(train=share))[2] for share in jobs.shards(job)]
    expected = [np.mean(arrays, axis=0, dtype=np.float64) for arrays in zip(*results)]
    whole = one_step(single, alone._replace(batch_size=job.batch_size))[2]
    emitter.metric("batch_norm_relative_difference", of_change(after, whole, before), "1")
    return [Errors("step_relative_error", of_change(after, expected, before), TOLERANCE)]


def of_change(after, expected, before):
    """The largest difference of the weights' changes, over the largest expected change of any weight."""
    differences = [np.abs(got - wanted).max() for got, wanted in zip(after, expected)]
    changes = [np.abs(wanted - old).max() for wanted, old in zip(expected, before)]
    return float(max(differences) / max(changes))


def relative(got, expected):
    """The largest difference over the largest expected magnitude."""
    return float(np.abs(got - expected).max() / np.abs(expected).max())
