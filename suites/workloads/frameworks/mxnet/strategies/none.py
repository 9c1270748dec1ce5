"""A single device: steps on a batch that is on it from the start, or epochs over a DataLoader."""

import functools

import mxnet
import numpy as np
from mxnet import gluon

from common import jobs, timing
from common.events import Unsupported
from frameworks import interface
from frameworks.mxnet import devices
from frameworks.mxnet.networks import nchw
from frameworks.mxnet.trainer import Trainer


class Steady(Trainer):
    """A fixed batch, on the device from the start."""

    def __init__(self, job):
        super().__init__(job)
        images, labels = job.train
        self.batch = devices.on(nchw(images), self.device), devices.on(labels, self.device)

    def step(self):
        return (self.train if self.job.mode == "training" else self.infer)(*self.batch)

    def parts(self):
        yield "forward", lambda: self.forward(*self.batch)
        yield "forward_backward", lambda: self.gradients(*self.batch)


class Literal(Trainer):
    """Epochs over a DataLoader: by its defaults the main process makes the batches from shuffled arrays of the host."""

    def fit(self, emitter, probe):
        images, labels = self.job.train
        np.random.seed(self.job.settings["seed"])  # of the order of the images
        data = gluon.data.ArrayDataset(nchw(images), labels)
        loader = gluon.data.DataLoader(data, self.job.batch_size, shuffle=True)
        epoch = functools.partial(self._epoch, loader, probe)
        return timing.timed_epochs(emitter, self.job.settings, len(images), epoch).asscalar() / len(images)

    def _epoch(self, loader, probe):
        """(sum of the images' losses, steps), synchronised. The sum is on the device, so that no step waits for it."""
        total, steps = mxnet.nd.zeros((1,), ctx=self.device), 0
        for images, labels in loader:
            images, labels = images.as_in_context(self.device), labels.as_in_context(self.device)
            total += self.train(images, labels) * len(labels)
            steps += 1
            probe.step_ended()
        self.synchronise()
        return total, steps


class Strategy(interface.Strategy):
    steady = Steady
    literal = Literal
    tunings = jobs.TUNINGS

    def check(self, job, protocol):
        if job.layout != "channels_first":
            raise Unsupported(
                "layout {!r}: poolings of MXNet 1.5, and its convolutions on CPUs, are for 'channels_first', which "
                "would run".format(job.layout)
            )
        if job.precision.startswith("amp_"):
            raise Unsupported(
                "precision {!r}: what MXNet 1.5 has of it is an experiment for GPUs (contrib.amp); 'fp32' would "
                "run".format(job.precision)
            )
        if job.execution != "native":
            raise Unsupported(
                "execution {!r}: MXNet 1.5 keeps the graph of a step, and compiles no code for it; 'native' would "
                "run".format(job.execution)
            )
