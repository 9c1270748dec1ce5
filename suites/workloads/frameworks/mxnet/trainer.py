"""Training and inference in MXNet: the trainer that both protocols share.

The network is hybridised, as in the examples that come with MXNet: its graph is kept after the first step, and no
code is compiled for it. Nothing waits for a result but synchronise().
"""

import mxnet
import numpy as np
from mxnet import autograd, gluon

from common import networks
from frameworks import interface
from frameworks.mxnet import devices
from frameworks.mxnet.networks import build, get_weights, nchw


class Trainer(interface.Trainer):
    """A network on its device, and its steps of SGD or inference."""

    def __init__(self, job):
        super().__init__(job)
        self.device = devices.device(job.places, 0)
        self.network = build(job.network, networks.initial_weights(job.network, job.settings["seed"]), self.device)
        self.network.hybridize()
        self._loss = gluon.loss.SoftmaxCrossEntropyLoss()
        settings = {name: job.settings[name] for name in ("learning_rate", "momentum")}
        self._optimizer = gluon.Trainer(self.network.collect_params(), "sgd", settings)

    def infer(self, images, labels):
        """The mean loss of a batch, by the moving statistics."""
        return self._loss(self.network(images), labels).mean()

    def forward(self, images, labels):
        """The mean loss of a batch, of which gradients can be computed."""
        with autograd.record():
            return self.infer(images, labels)

    def gradients(self, images, labels):
        """Forward and backward pass; returns the loss."""
        loss = self.forward(images, labels)
        loss.backward()
        return loss

    def train(self, images, labels):
        """A step; returns the loss before it. The loss is a mean already, so the optimizer divides by 1."""
        loss = self.gradients(images, labels)
        self._optimizer.step(1)
        return loss

    def synchronise(self):
        mxnet.nd.waitall()

    def mean_losses(self, losses):
        return [float(loss.asscalar()) for loss in losses]

    def parameter_count(self):
        return sum(weight.size for weight in self.weights())

    def weights(self):
        return get_weights(self.network)

    def logits(self, images):
        size = self.job.batch_size
        batches = [nchw(images[first : first + size]) for first in range(0, len(images), size)]
        return np.concatenate([self.network(devices.on(batch, self.device)).asnumpy() for batch in batches])
