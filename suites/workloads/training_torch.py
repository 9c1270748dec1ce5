"""Training in PyTorch, 1.1 to 2.x."""

import numpy as np
import torch
import torch.nn.functional as functional
from torch.utils.data import DataLoader, TensorDataset

import data
import models_torch
import timing
from events import Unsupported


def prepare(job, protocol):
    """Sets the flags of the protocol: steady lets cuDNN look for the fastest algorithm, literal leaves the default."""
    if job.layout == "channels_last" and not hasattr(torch, "channels_last"):
        raise Unsupported(
            "layout 'channels_last': PyTorch {} has none (1.5 and newer do); 'channels_first' would run".format(
                torch.__version__
            )
        )
    if protocol == "steady":
        torch.backends.cudnn.benchmark = True


class Trainer:
    """A network on its device, and one step of SGD."""

    def __init__(self, job):
        self.job = job
        self.device = "cpu" if job.place is None else "cuda:%d" % job.place
        model = models_torch.MODELS[job.model](np.random.RandomState(job.settings["seed"]))
        self.model = self._laid_out(model.to(self.device))
        self.optimizer = torch.optim.SGD(self.model.parameters(), data.LEARNING_RATE, momentum=data.MOMENTUM)

    def parameter_count(self):
        return models_torch.parameter_count(self.model)

    def train(self, images, labels):
        """One step; returns the loss, a scalar tensor on the device."""
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def to_device(self, images):
        """NCHW tensor to the device, in the job's memory format."""
        return self._laid_out(images.to(self.device))

    def _laid_out(self, what):
        if self.job.layout == "channels_last":
            return what.to(memory_format=torch.channels_last)
        return what

    def synchronise(self):
        if self.job.place is not None:
            torch.cuda.synchronize(self.job.place)

    def peak_device_memory_mib(self):
        """MiB the tensors took at most (the allocator's count, not the process's); None on a CPU."""
        return None if self.job.place is None else torch.cuda.max_memory_allocated(self.job.place) / 2.0**20


class Steady(Trainer):
    """One batch, on the device from the start."""

    def __init__(self, job):
        super().__init__(job)
        images, labels = job.train
        self.images = self.to_device(_nchw(images))
        self.labels = torch.from_numpy(labels).to(self.device)
        self.model.train()

    def step(self):
        return self.train(self.images, self.labels)


class Literal(Trainer):
    """Epochs over a DataLoader in its default: batches put together by the main process, from shuffled host tensors."""

    def fit(self, emitter):
        """Trains for settings["epochs"], one sample each; returns the mean loss over the last epoch."""
        images, labels = self.job.train
        loader = DataLoader(TensorDataset(_nchw(images), torch.from_numpy(labels)), self.job.batch_size, shuffle=True)
        self.model.train()
        for index in range(self.job.settings.positive("epochs")):
            with emitter.phase("epoch"):
                (total, steps), seconds = timing.timed(lambda: self._epoch(loader))
            emitter.sample("epoch", index, steps, len(labels), seconds)
        return total.item() / len(labels)

    def _epoch(self, loader):
        """(sum of the images' losses, steps), synchronised; the sum stays on the device, so no step waits for it."""
        total, steps = torch.zeros((), device=self.device), 0
        for images, labels in loader:
            total += self.train(self.to_device(images), labels.to(self.device)) * len(labels)
            steps += 1
        self.synchronise()
        return total, steps

    def logits(self, images):
        """(N, 32, 32, 3) array to (N, 10), with the moving statistics of batch normalisation."""
        self.model.eval()
        with torch.no_grad():
            return np.concatenate(
                [self.model(self.to_device(batch)).cpu().numpy() for batch in _nchw(images).split(self.job.batch_size)]
            )


def _nchw(images):
    return torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
