"""Training and inference in Chainer on NumPy: the trainer that both protocols share. A step ends when it returns."""

import chainer
import chainer.functions as functions
import numpy as np

from common import networks
from frameworks import interface
from frameworks.chainer.networks import build, get_weights, nchw


class Trainer(interface.Trainer):
    """A network, and its steps of SGD or inference."""

    def __init__(self, job):
        super().__init__(job)
        self.network = build(job.network, networks.initial_weights(job.network, job.settings["seed"]))
        self.optimizer = chainer.optimizers.MomentumSGD(job.settings["learning_rate"], job.settings["momentum"])
        self.optimizer.setup(self.network)

    def forward(self, images, labels):
        """The mean loss of a batch, of which gradients can be computed."""
        return functions.softmax_cross_entropy(self.network(images), labels)

    def infer(self, images, labels):
        """The mean loss of a batch, by the moving statistics."""
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return self.forward(images, labels).array

    def gradients(self, images, labels):
        """Forward and backward pass; returns the loss."""
        self.network.cleargrads()
        loss = self.forward(images, labels)
        loss.backward()
        return loss.array

    def train(self, images, labels):
        """A step; returns the loss before it."""
        loss = self.gradients(images, labels)
        self.optimizer.update()
        return loss

    def parameter_count(self):
        return self.network.count_params()

    def weights(self):
        return get_weights(self.network)

    def logits(self, images):
        size = self.job.batch_size
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return np.concatenate(
                [self.network(nchw(images[first : first + size])).array for first in range(0, len(images), size)]
            )
