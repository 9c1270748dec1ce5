"""A single device, the CPU: steps on a batch that is ready, or epochs over an iterator."""

import functools

import chainer
import numpy as np
from chainer.dataset import concat_examples

from common import timing
from common.events import Unsupported
from frameworks import interface
from frameworks.chainer import places
from frameworks.chainer.networks import nchw
from frameworks.chainer.trainer import Trainer


class Steady(Trainer):
    """A fixed batch."""

    def __init__(self, job):
        super().__init__(job)
        images, labels = job.train
        self.batch = nchw(images), labels.astype(np.int32)

    def step(self):
        return (self.train if self.job.mode == "training" else self.infer)(*self.batch)

    def parts(self):
        yield "forward", lambda: self.forward(*self.batch)
        yield "forward_backward", lambda: self.gradients(*self.batch)


class Literal(Trainer):
    """Epochs over a SerialIterator, whose batches concat_examples puts together: both are Chainer's defaults."""

    def fit(self, emitter, probe):
        images, labels = self.job.train
        np.random.seed(self.job.settings["seed"])  # of the order of the images
        data = chainer.datasets.TupleDataset(nchw(images), labels.astype(np.int32))
        iterator = chainer.iterators.SerialIterator(data, self.job.batch_size, repeat=False, shuffle=True)
        epoch = functools.partial(self._epoch, iterator, probe)
        return timing.timed_epochs(emitter, self.job.settings, len(images), epoch) / len(images)

    def _epoch(self, iterator, probe):
        """(sum of the images' losses, steps)."""
        iterator.reset()
        total, steps = 0.0, 0
        for batch in iterator:
            images, labels = concat_examples(batch)
            total += float(self.train(images, labels)) * len(labels)
            steps += 1
            probe.step_ended()
        return total, steps


class Strategy(interface.Strategy):
    steady = Steady
    literal = Literal

    def check(self, job, protocol):
        places.check(job.places)
        if job.layout != "channels_first":
            raise Unsupported("layout {!r}: Chainer 5 has 'channels_first' only, which would run".format(job.layout))
        if job.precision.startswith("amp_"):
            raise Unsupported(
                "precision {!r}: Chainer 5 has none of it (mixed16 is Chainer 6's); 'fp32' would run".format(
                    job.precision
                )
            )
        if job.execution != "native":
            raise Unsupported(
                "execution {!r}: Chainer runs operations as they are called; 'native' would run".format(job.execution)
            )
