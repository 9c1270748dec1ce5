"""A workload for tests: an epoch of training from the host's batches, and sums over the weights that it ends with.

With a batch of FAILING images, the last rank has no memory for its first step.
"""

import numpy as np

from common import launch
from experiments import training

SUMS, FAILING = 4, 48


def no_memory(trainer, images, labels):
    raise MemoryError("nothing left for {} images".format(len(images)))


def possible(request):
    return training.possible(request)


def run(request, emitter):
    training.check(request)
    _, strategy, job = training.prepared(request, emitter)
    if job.batch_size == FAILING and launch.rank():
        strategy.steady.gradients = no_memory
    trainer = strategy.steady(job)
    steps = len(job.train[1]) // job.batch_size
    with emitter.phase("measure"):
        trainer.announce(steps)
        losses = [trainer.step() for _ in range(steps)]
        trainer.synchronise()
    emitter.sample("measure", 0, steps, steps * job.batch_size, 1.0)
    for name, loss in zip(("initial_loss", "final_loss"), trainer.mean_losses([losses[0], losses[-1]])):
        training.emit_loss(name, loss, emitter)
    weights = np.concatenate([array.ravel() for array in trainer.weights()]).astype(np.float64)
    for number in range(SUMS):
        signs = np.random.RandomState(number).choice([-1.0, 1.0], weights.size)
        emitter.metric("sum_%d" % number, float(signs.dot(weights)), "1")
    training.after(trainer, job, emitter)
    trainer.close()
