"""A single device: steps on a batch that is on it from the start, or epochs over shuffled arrays."""

import functools

import numpy as np

from common import timing
from common.events import Unsupported
from frameworks import interface
from frameworks.jax import devices
from frameworks.jax.trainer import KINDS, Trainer, arrays


class Steady(Trainer):
    """A fixed batch, on its devices from the start."""

    def __init__(self, job):
        super().__init__(job)
        self.batch = self.placed()

    def placed(self):
        """The batch, on its devices."""
        return devices.copied(arrays(self.job.train, self.job.layout), self.split())

    def split(self):
        """The device, or the sharding, of the batch."""
        return self.whole()

    def step(self):
        if self.job.mode == "training":
            return self.one_step(*self.batch)
        return self._loss_of(self.forward)

    def parts(self):
        yield "forward", lambda: self._loss_of(self.forward)
        yield "forward_backward", lambda: self._loss_of(self.gradients)

    def _loss_of(self, program):
        """Runs a program on the batch; returns its first result, the loss. synchronise() waits for all results."""
        self.last = self.run(program, *self.batch)
        return self.last[0]


class Literal(Trainer):
    """Epochs over shuffled arrays in host memory. JAX has no loader of its own: NumPy makes the batches."""

    def fit(self, emitter, probe):
        batch = arrays(self.job.train, self.job.layout)
        images, random = len(batch[1]), np.random.RandomState(self.job.settings["seed"])
        epoch = functools.partial(self._epoch, batch, random, probe)
        return float(timing.timed_epochs(emitter, self.job.settings, images, epoch)) / images

    def _epoch(self, batch, random, probe):
        """(sum of the images' losses, steps), synchronised. The sum is on the device, so that no step waits for it."""
        order, total, steps = random.permutation(len(batch[1])), 0.0, 0
        for first in range(0, len(order), self.job.batch_size):
            chosen = order[first : first + self.job.batch_size]
            images, labels = devices.copied([array[chosen] for array in batch], self.whole())
            total += self.one_step(images, labels) * len(chosen)
            steps += 1
            probe.step_ended()
        self.synchronise()
        return total, steps


class Strategy(interface.Strategy):
    steady = Steady
    literal = Literal

    def check(self, job, protocol):
        if job.precision.startswith("amp_") and job.precision not in KINDS:
            raise Unsupported(
                "precision {!r}: its losses have to be scaled, which JAX leaves to other packages; 'amp_bf16' would "
                "run".format(job.precision)
            )
        if job.execution != "native":
            raise Unsupported(
                "execution {!r}: JAX has one way, which compiles every step by XLA; 'native' would run".format(
                    job.execution
                )
            )
