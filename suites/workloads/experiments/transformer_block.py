"""A small transformer decoder: the step time of training and inference against length, batch, precision and attention.

Axes. protocol: steady, a fixed batch that is on the device. mode: training (SGD with momentum), or inference (the loss
of a forward pass). model: a decoder of common/decoders.py. context_length: tokens of a sequence. batch_size: sequences
of a step. devices: 1. precision: fp32 (TF32 off), tf32, or amp_bf16: products and attention in BF16; weights, sums of
blocks, normalisation and loss in FP32. execution: native, or compiled (torch.compile, XLA; JAX natively compiles).
attention:
    plain  two products of matrices, and a masked softmax between them: all scores are written to memory
    fused  the function that the framework has for it; which kernel it then takes is a flag of the environment

Sequences are made up, of random tokens.
"""

import frameworks
from common import decoders, devices, jobs, timing
from common.events import Unsupported
from experiments import training

AXES = (
    "protocol",
    "mode",
    "model",
    "context_length",
    "attention",
    "devices",
    "batch_size",
    "precision",
    "execution",
)


def check(request):
    """ValueError for axes or values that are unknown or do not fit, Unsupported for what no framework can do here."""
    case = request.case
    case.require_only(AXES)
    case.one_of("protocol", ("steady",))
    case.one_of("mode", ("training", "inference"))
    case.one_of("model", sorted(decoders.DECODERS))
    case.one_of("attention", ("plain", "fused"))
    case.one_of("precision", ("fp32", "tf32", "amp_bf16"))
    case.one_of("execution", ("native", "compiled"))
    for axis in ("context_length", "devices", "batch_size"):
        case.positive(axis)
    if case["devices"] > 1:
        raise Unsupported("{} devices: this decoder is of one; 1 would run".format(case["devices"]))
    places = devices.placement(request, case["devices"])
    devices.check_tf32(case["precision"] == "tf32", places)
    devices.check_bf16(case["precision"], places)


def possible(request):
    """Raises Unsupported where the case cannot be run; returns the tries that tell more."""
    check(request)
    _, part, job = make_job(request)
    return part.tries(job)


def make_job(request):
    """(Framework, its Decoder, jobs.Job without data) for a checked case. Raises Unsupported where there is none."""
    case = request.case
    framework = frameworks.load(request)
    framework.require_tf32(case["precision"] == "tf32")
    part = framework.part("decoder").Decoder()
    job = jobs.Job(
        decoders.DECODERS[case["model"]]._replace(length=case["context_length"]),
        case["mode"],
        framework.layout,
        "none",
        devices.placement(request, case["devices"]),
        case["batch_size"],
        case["precision"],
        case["execution"],
        None,
        None,
        request.settings,
    )
    job = job._replace(attention=case["attention"])
    part.check(job)
    return framework, part, job


def prepared(request, emitter):
    """As make_job, with the job's data; also sets the framework's flags and emits the environment."""
    framework, part, job = make_job(request)
    framework.set_tf32(job.precision == "tf32")
    job = job._replace(train=decoders.made_up(job.network, job.batch_size, request.settings["seed"]))
    framework.report(emitter, request, attention=part.kernel(job))
    emitter.environment(simulated=False, synthetic=True)
    return framework, part, job


def run(request, emitter):
    check(request)
    _, part, job = prepared(request, emitter)
    decoder, learns = job.network, job.mode == "training"
    emitter.metric("flops", decoders.flops(decoder, job.batch_size, learns), "1")
    value_bytes = 2 if job.precision.startswith("amp_") else 4
    emitter.metric("bytes", decoders.least_bytes(decoder, job.batch_size, learns, value_bytes), "B")
    emitter.metric("tokens", job.batch_size * decoder.length, "1")
    trainer = part.steady(job)
    training.emit_parameters(trainer, job, emitter)
    losses = []

    def step():
        losses[1:] = [trainer.step()]  # keeps the first and the last

    budget = timing.Budget(request.budget_s)
    timing.steady(emitter, step, trainer.synchronise, 0, job.settings, budget=budget)
    for name, loss in zip(("initial_loss", "final_loss"), trainer.mean_losses([losses[0], losses[-1]])):
        training.emit_loss(name, loss, emitter)
    training.after(trainer, job, emitter)
    trainer.close()
