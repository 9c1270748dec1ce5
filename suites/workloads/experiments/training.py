"""Training and inference on CIFAR-10 (and MNIST's shape): how step and epoch times depend on batch, devices, framework.

Sources torch-2080ti, keras-channels-first, batch-throughput. Axes. protocol: `literal` runs whole epochs as a user
would, host data shuffled, each epoch timed; `steady` takes one fixed batch that is already on the devices, in
synchronised blocks. mode: training or inference. layout: of the images, `native` is each framework's own (PyTorch
channels_first, TensorFlow channels_last). strategy: how several devices share a batch. batch_size: global. precision:
fp32 has TF32 off. execution: `compiled` is torch.compile or XLA.

The last batch of an epoch may be smaller: it is trained on, and its images are counted.
"""

import math

import numpy as np

import frameworks
from common import jobs, networks, timing
from common.events import Unsupported


def check(request):
    """Raises Unsupported for what no framework here can do."""
    case = request.case
    jobs.check(case)
    if case["protocol"] == "literal" and case["mode"] != "training":
        raise Unsupported("protocol 'literal' with mode {!r}: no source did; 'steady' would run".format(case["mode"]))
    jobs.check_devices(request)


def possible(request):
    """Raises Unsupported where the case cannot be; returns what has to be tried to know more (jobs.tries)."""
    check(request)
    return jobs.tries(jobs.way(request))


def run(request, emitter):
    check(request)
    case = request.case
    name, module, implementation, job = jobs.way(request)
    frameworks.set_tf32(name, module, case["precision"] == "tf32")
    job, synthetic = jobs.with_data(job, request)
    implementation.prepare(job, case["protocol"])
    frameworks.report(emitter, name, module, request, layout=job.layout)
    emitter.environment(simulated=frameworks.simulated(job.places), synthetic=synthetic)
    emitter.metric("flops", networks.flops(job.network, job.batch_size, job.mode == "training"), "1")
    value_bytes = 2 if job.precision.startswith("amp_") else 4
    least_bytes = networks.least_bytes(job.network, job.batch_size, job.mode == "training", value_bytes)
    emitter.metric("bytes", least_bytes, "B")
    budget = timing.Budget(request.budget_s)
    protocol = literal if case["protocol"] == "literal" else steady
    with jobs.layout_may_be_refused(job.layout, request.accelerator, module):
        trainer = protocol(implementation, job, emitter, budget)
        after(trainer, job, emitter)
    trainer.close()


def steady(implementation, job, emitter, budget):
    """Blocks of steps on one batch; metrics initial_loss (of the first step) and final_loss. Returns the trainer.

    With settings["parts"], then forward pass and gradients on their own, where the trainer can.
    """
    trainer = implementation.Steady(job)
    emit_parameters(trainer, job, emitter)
    losses = []

    def step():
        losses[1:] = [trainer.step()]  # keeps the first and the last

    def time(one, **phase):
        timing.steady(
            emitter,
            one,
            trainer.synchronise,
            job.batch_size,
            job.settings,
            budget=budget,
            announce=trainer.announce,
            **phase,
        )

    time(step)
    for name, loss in zip(("initial_loss", "final_loss"), trainer.mean_losses([losses[0], losses[-1]])):
        emit_loss(name, loss, emitter)
    if job.settings["parts"] and job.mode == "training":
        for phase, part in trainer.parts():
            time(part, phase=phase)
    return trainer


def literal(implementation, job, emitter, budget):
    """Epochs as a user would run them, then the accuracy, outside the clock. Returns the trainer.

    Metrics final_loss (mean over the last epoch) and test_accuracy.
    """
    trainer = implementation.Literal(job)
    emit_parameters(trainer, job, emitter)
    steps = math.ceil(len(job.train[1]) / job.batch_size) * timing.least_epochs(job.settings)
    final_loss = trainer.fit(emitter, timing.EpochProbe(budget, steps, trainer.synchronise))
    with emitter.phase("evaluate"):
        images, labels = job.test
        accuracy = np.mean(trainer.logits(images).argmax(axis=1) == labels)
    emit_loss("final_loss", final_loss, emitter)
    emitter.metric("test_accuracy", float(accuracy), "1")
    return trainer


def after(trainer, job, emitter):
    """What is asked once the clock is off: memory, the graph that ran, and how many replicas there really were."""
    peak_mib = trainer.peak_device_memory_mib()
    if peak_mib is not None:
        emitter.metric("peak_device_memory_mib", peak_mib, "MiB")
    transposes = trainer.transposes()
    if transposes is not None:
        emitter.metric("transposes_in_step", transposes, "1")
    replicas = trainer.replicas() if len(job.places) > 1 else None
    if replicas is not None:
        emitter.metric("replicas", replicas, "1")


def emit_parameters(trainer, job, emitter):
    count, expected = trainer.parameter_count(), job.network.parameters
    if count != expected:
        raise AssertionError(
            "{} has {} trainable parameters; it must have {}".format(job.network.name, count, expected)
        )
    emitter.metric("trainable_parameters", count, "1")


def emit_loss(name, loss, emitter):
    loss = float(loss)
    if not math.isfinite(loss):
        raise ArithmeticError("{} is {}: the training diverged".format(name, loss))
    emitter.metric(name, loss, "1")
