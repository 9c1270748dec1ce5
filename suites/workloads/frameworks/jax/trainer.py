"""Training and inference in JAX: the trainer that all strategies and protocols share."""

import collections
import time

import jax
import numpy as np

from common import networks
from frameworks import interface
from frameworks.jax import devices
from frameworks.jax import networks as networks_jax

KINDS = {"amp_bf16": "bfloat16"}
# The arrays that a step changes, in lists. statistics: (mean, variance) of each batch normalisation.
State = collections.namedtuple("State", "weights momenta statistics")


class Program:
    """A function of (state, images, labels), compiled at its first call for each shape of images.

    seconds: the time of all compilations, from tracing to the program.
    """

    def __init__(self, function, donate=()):
        self._jitted = jax.jit(function, donate_argnums=donate)
        self._compiled = {}
        self.seconds = 0.0

    def __call__(self, state, images, labels):
        if images.shape not in self._compiled:
            begin = time.perf_counter()
            self._compiled[images.shape] = self._jitted.lower(state, images, labels).compile()
            self.seconds += time.perf_counter() - begin
        return self._compiled[images.shape](state, images, labels)


class Trainer(interface.Trainer):
    """A network's state on its device, and the programs that use it."""

    def __init__(self, job):
        super().__init__(job)
        weights, statistics = self.initial()
        momenta = [np.zeros_like(weight) for weight in weights]
        state = State(weights, momenta, statistics)
        self.state = devices.copied(state, self.whole())
        self.forward = Program(self.shared(self._forward))
        self.gradients = Program(self.shared(self._gradients))
        # The new state takes over the memory of the old state.
        self.train = Program(self.shared(self._train), donate=0)
        self.last = self.state

    def initial(self):
        """(weights, statistics) that training begins with."""
        network = self.job.network
        weights = networks.initial_weights(network, self.job.settings["seed"])
        return weights, networks_jax.initial_statistics(network)

    def whole(self):
        """The device, or the sharding, of arrays that every device needs whole."""
        return devices.device(self.job.places, 0)

    def shared(self, function):
        """The function of (state, images, labels) that runs another such function under the strategy."""
        return function

    def averaged(self, values):
        """The mean of values over all devices. Called inside a shared function."""
        return values

    def _loss(self, weights, statistics, images, labels):
        job = self.job
        logits, statistics = networks_jax.logits(
            job.network,
            weights,
            statistics,
            images,
            job.layout,
            job.mode == "training",
            KINDS.get(job.precision, "float32"),
        )
        return networks_jax.loss(logits, labels), statistics

    def _forward(self, state, images, labels):
        return self.averaged(self._loss(state.weights, state.statistics, images, labels))

    def _gradients(self, state, images, labels):
        """(loss, statistics, gradients)."""
        of_weights = jax.value_and_grad(self._loss, has_aux=True)
        (loss, statistics), gradients = of_weights(state.weights, state.statistics, images, labels)
        return self.averaged((loss, statistics, gradients))

    def _train(self, state, images, labels):
        """(loss before the step, state after it): SGD with momentum, as the other frameworks have it."""
        loss, statistics, gradients = self._gradients(state, images, labels)
        rate, kept = self.job.settings["learning_rate"], self.job.settings["momentum"]
        momenta = [kept * momentum + gradient for momentum, gradient in zip(state.momenta, gradients)]
        weights = [weight - rate * momentum for weight, momentum in zip(state.weights, momenta)]
        return loss, State(weights, momenta, statistics)

    def run(self, program, images, labels):
        """Starts a program on the state and a batch; returns its results, which may not be computed yet."""
        return program(self.state, images, labels)

    def one_step(self, images, labels):
        """A step on a batch; returns the loss before the step."""
        self.last, self.state = self.run(self.train, images, labels)
        return self.last

    def synchronise(self):
        jax.block_until_ready((self.last, self.state))

    def compile_s(self):
        return (self.train if self.job.mode == "training" else self.forward).seconds

    def parameter_count(self):
        return sum(weight.size for weight in self.state.weights)

    def weights(self):
        return [np.array(weight) for weight in self.state.weights]

    def logits(self, images):
        """On the first device, in FP32."""
        state = devices.copied(self.state, devices.device(self.job.places, 0))
        compute = jax.jit(self._logits)
        images = networks_jax.laid_out(images, self.job.layout)
        size = self.job.batch_size
        batches = [images[first : first + size] for first in range(0, len(images), size)]
        return np.concatenate([compute(state, batch) for batch in batches])

    def _logits(self, state, images):
        job = self.job
        return networks_jax.logits(job.network, state.weights, state.statistics, images, job.layout, training=False)[0]

    def peak_device_memory_mib(self):
        return devices.peak_memory_mib(self.job.places)


def arrays(batch, layout):
    """(images, labels) in the layout and types of the programs: JAX has no int64 by default."""
    images, labels = batch
    return networks_jax.laid_out(images, layout), labels.astype(np.int32)
