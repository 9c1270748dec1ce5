"""Whether this environment computes correctly: compares it with NumPy in float64, and N devices with a single device.

Axes as in training.py, protocol steady; of a decoder, as in transformer_block.py. Every case starts from the weights
and the batch that all environments share.
Metrics, relative to the largest magnitude:
    logits_relative_error    of inference
    loss_relative_error      of the loss before the first step
    gradient_relative_error  of the loss's slope along the gradient, compared with finite differences
and for several devices:
    step_relative_error      of the weights' change in a step, compared with the mean of the changes that one device
                             makes with each share of the batch: the first step of SGD with averaged gradients is that
    replicas                 how many replicas really computed
    batch_norm_relative_difference  how much a step of N devices differs from a step of a single device on the whole
                             batch: every strategy normalises each device's share by the share's own statistics
"""

import collections

import numpy as np

from common import decoders, jobs, networks
from common.events import Unsupported
from experiments import training, transformer_block
from frameworks.numpy import decoder as decoder_reference
from frameworks.numpy import networks as reference

TOLERANCE = 1e-4  # of logits, loss and step in FP32
# By precision, the largest relative error that is rounding: of logits, loss and step; and of the slope, where it is
# larger for the few kinks of ReLUs that the finite difference crosses. Factors of TF32 and FP16 have 11 significant
# bits, those of BF16 have 8: each layer adds an error of half of the last bit.
Bounds = collections.namedtuple("Bounds", "value slope")
BOUNDS = {
    "fp32": Bounds(TOLERANCE, 1e-3),
    "tf32": Bounds(5e-3, 2e-2),
    "amp_fp16": Bounds(5e-3, 2e-2),
    "amp_bf16": Bounds(3e-2, 1e-1),
    "fp64": Bounds(1e-12, 1e-4),
}
# Length of the finite difference in float64, and the most by which it changes the loss: so short that it crosses few
# kinks of the ReLUs. The gradient of ResNet-101 has the length 6,000: there 1e-6 is too long by 2e-3 of the slope.
FINITE_STEP = 1e-6
# Large, so that a step's error consists of more than the rounding of the weights; there is no second step.
LEARNING_RATE = 1.0
MOST_SKIPPED = 16  # the scale of FP16 begins at 2^16, and is halved after each skipped step
SEED = 0  # of the weights, in every repetition: the losses of all environments and trials are those of one network

Error = collections.namedtuple("Error", "name value tolerance")


def is_decoder(request):
    return request.case.get("model") in decoders.DECODERS


def check(request):
    """Raises Unsupported for a case that no framework can run here."""
    training.check_case(request.case)
    if networks.is_of_zoo(request.case["model"]):
        raise Unsupported(
            "model {!r}: NumPy has the layers of suites' own networks alone".format(request.case["model"])
        )
    request.case.one_of("protocol", ("steady",))
    request.case.one_of("precision", sorted(BOUNDS))
    training.check_devices(request)


def possible(request):
    """Raises Unsupported where the case cannot be run; returns the tries that tell more."""
    if is_decoder(request):
        return transformer_block.possible(request)
    check(request)
    _, strategy, job = training.make_job(request)
    return strategy.tries(job)


def run(request, emitter):
    framework, strategy, job = prepared(request, emitter)
    job = job._replace(settings=dict(job.settings, learning_rate=LEARNING_RATE, seed=SEED))
    before = (decoders if is_decoder(request) else networks).initial_weights(job.network, SEED)
    refused = framework.may_be_refused(job.layout, job.precision, request.accelerator)
    with emitter.phase("one_step"), refused:
        logits, loss, after, replicas = first_step(strategy, job, before)
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


def prepared(request, emitter):
    """(Framework, the Strategy or Decoder, the job with its data); sets flags and emits the environment."""
    if not is_decoder(request):
        check(request)
        return training.prepared(request, emitter)
    transformer_block.check(request)
    framework, part, job = transformer_block.prepared(request, emitter)
    return framework, part, job._replace(train=decoders.made_up(job.network, job.batch_size, SEED))


def first_step(strategy, job, before):
    """(logits of inference and loss, both with the weights `before` the step; weights after it; replicas).

    Of a CUDA graph it is a replay: what warmed up before it was taken back. A step that the scaler of FP16 skips, as a
    gradient overflows before the scale is low enough, is none. replicas is None for a single device.
    """
    trainer = strategy.steady(job)
    logits = trainer.logits(job.train[0])
    loss, after = step(trainer), trainer.weights()
    scaled, skipped = job.precision == "amp_fp16" and job.mode == "training", 0
    while scaled and same(before, after) and skipped < MOST_SKIPPED:
        loss, after = step(trainer), trainer.weights()
        skipped += 1
    replicas = trainer.replicas() if len(job.places) > 1 else None
    trainer.close()
    return logits, float(loss), after, replicas


def step(trainer):
    """The loss before a step, which has ended."""
    trainer.announce(1)
    loss = trainer.step()
    trainer.synchronise()
    (loss, _) = trainer.mean_losses([loss, loss])
    return loss


def same(before, after):
    return all(np.array_equal(old, new) for old, new in zip(before, after))


def against_numpy(job, before, logits, loss, after):
    """Yields the Errors of logits and loss, and in training of the slope of the loss along the step."""
    bounds = BOUNDS[job.precision]
    expected = expected_logits(job, before, job.train[0], training=False)
    yield Error("logits_relative_error", relative(logits, expected), bounds.value)
    training = job.mode == "training"
    expected_loss = mean_loss(job, before, training)
    yield Error("loss_relative_error", abs(loss - expected_loss) / expected_loss, bounds.value)
    if training:
        # The first step of SGD changes the weights by -rate x gradient. Along that change the loss has the slope
        # -rate x gradient^2 = -change^2 / rate.
        changes = [(new.astype(np.float64) - old) for new, old in zip(after, before)]
        slope = -sum(float((change**2).sum()) for change in changes) / LEARNING_RATE
        if not slope:
            raise ArithmeticError("the step changed no weight")
        length = FINITE_STEP / max(1e-12, np.sqrt(-slope), -slope)
        ahead, behind = [
            mean_loss(job, [old + sign * length * change for old, change in zip(before, changes)], training)
            for sign in (1, -1)
        ]
        measured = (ahead - behind) / (2 * length)
        yield Error("gradient_relative_error", abs(measured - slope) / abs(slope), bounds.slope)


def expected_logits(job, weights, inputs, training):
    """The logits of images or of tokens by NumPy, in float64."""
    if isinstance(job.network, decoders.Decoder):
        return decoder_reference.logits(job.network, weights, inputs)
    return reference.logits(job.network, weights, inputs, training)


def mean_loss(job, weights, training):
    """The loss of the batch by NumPy. Each device's share is computed on its own, as batch normalisation sees it."""
    losses = [
        reference.loss(expected_logits(job, weights, images, training), labels.ravel())
        for images, labels in jobs.shards(job)
    ]
    return float(np.mean(losses))


def against_one_device(single, job, before, after, emitter):
    """[Error of a step of N devices]: compared with the mean of the steps of a single device on each share."""
    share = job.batch_size // len(job.places)
    alone = job._replace(strategy="none", places=job.places[:1], nodes=1, batch_size=share)
    results = [first_step(single, alone._replace(train=share), before)[2] for share in jobs.shards(job)]
    expected = [np.mean(arrays, axis=0, dtype=np.float64) for arrays in zip(*results)]
    whole = first_step(single, alone._replace(batch_size=job.batch_size), before)[2]
    emitter.metric("batch_norm_relative_difference", of_change(after, whole, before), "1")
    return [Error("step_relative_error", of_change(after, expected, before), BOUNDS[job.precision].value)]


def of_change(after, expected, before):
    """The largest difference between the weights' changes, divided by the largest expected change."""
    differences = [np.abs(got - wanted).max() for got, wanted in zip(after, expected)]
    changes = [np.abs(wanted - old).max() for wanted, old in zip(expected, before)]
    return float(max(differences) / max(changes))


def relative(got, expected):
    """The largest difference, divided by the largest expected magnitude."""
    return float(np.abs(got - expected).max() / np.abs(expected).max())
