"""Input pipelines in PyTorch, 1.1 to 2.x: a DataLoader's workers, and images that are on the device from the start.

A pipeline is a function of (job, device) that returns an endless iterator over (images, labels, ids): (n, 3, 32, 32)
float32 whitened, (n,) int64, (n,) int64, the first two on the device.
"""

import os

import numpy as np
import torch
import torch.nn.functional as functional
from torch.utils.data import DataLoader, TensorDataset

from common import networks
from common.data import BRIGHTNESS, CONTRAST, MARGIN
from common.events import Unsupported
from frameworks import parts
from frameworks.torch import devices
from frameworks.torch.networks import build, parameter_count

THREADS = 6  # worker processes, as many as threads of the source's queue
PREFETCHED = 2  # batches of a worker, DataLoader's default
SHARED_MEMORY = "/dev/shm"  # through which workers pass their batches


class Rounds:
    """Batches of record numbers, in order and without end: no epoch ends, so no worker is started again."""

    def __init__(self, records, size):
        self._records = records
        self._size = size

    def __iter__(self):
        first = 0
        while True:
            yield [index % self._records for index in range(first, first + self._size)]
            first += self._size


def loader(job, device):
    """Worker processes read and distort whole batches, which are pinned where there is a GPU."""
    _require_shared_memory(job)
    records = TensorDataset(*_tensors(job))
    batches = DataLoader(
        records,
        batch_sampler=Rounds(len(records), job.batch_size),
        num_workers=THREADS,
        collate_fn=collate,
        pin_memory=device != "cpu",
    )
    return _moved(iter(batches), device)


def _require_shared_memory(job):
    """Raises OSError where the batches do not fit: a DataLoader waits for ever for a batch that had no space."""
    batches = THREADS * PREFETCHED + 2  # the batch in training, and the next batch
    needed = batches * job.batch_size * job.images[0].size * 4
    there = os.statvfs(SHARED_MEMORY)
    free = there.f_bavail * there.f_frsize
    if free < needed:
        raise OSError(
            "{} has {:.0f} MiB free, and {} batches of {} on their way from {} workers need {:.0f} MiB: give the "
            "container more (docker run --shm-size), or take pipeline 'resident'".format(
                SHARED_MEMORY, free / 2.0**20, batches, job.batch_size, THREADS, needed / 2.0**20
            )
        )


def _moved(batches, device):
    for images, labels, ids in batches:
        yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True), ids


def collate(records):
    """A list of (image, label, id) to (images, labels, ids), distorted."""
    images, labels, ids = [torch.stack(column) for column in zip(*records)]
    return whitened(distorted(images)), labels, ids


def resident(job, device):
    images, labels, _ = [tensor.to(device) for tensor in _tensors(job)]
    for ids in Rounds(len(labels), job.batch_size):
        ids = torch.tensor(ids)
        chosen = ids.to(device)
        yield whitened(distorted(images[chosen])), labels[chosen], ids


PIPELINES = {"loader": loader, "resident": resident}


def _tensors(job):
    """(images, labels, ids) of all records, NHWC bytes, on the host."""
    arrays = [np.ascontiguousarray(job.images), job.labels, np.arange(len(job.labels))]
    return [torch.from_numpy(array) for array in arrays]


def distorted(images):
    """(n, size, size, channels) uint8 to (n, channels, size, size) float32, on the same device; see common/data.py.

    A single lookup crops and flips all images; brightness and contrast follow.
    """
    count, size, _, channels = images.shape
    device, side = images.device, size + 2 * MARGIN
    padded = functional.pad(images.float(), (0, 0, MARGIN, MARGIN, MARGIN, MARGIN))
    top, left = torch.randint(0, 2 * MARGIN + 1, (2, count, 1, 1), device=device)
    flipped = torch.randint(0, 2, (count, 1, 1), device=device)
    offsets = torch.arange(size, device=device)
    rows = top + offsets.view(1, size, 1)
    columns = left + (flipped * (size - 1) - offsets.view(1, 1, size)).abs()
    positions = (torch.arange(count, device=device).view(-1, 1, 1) * side + rows) * side + columns
    cropped = padded.view(-1, channels)[positions].permute(0, 3, 1, 2).contiguous()
    bright = cropped + _uniform(-BRIGHTNESS, BRIGHTNESS, count, device)
    mean = bright.mean(dim=(2, 3), keepdim=True)
    return mean + (bright - mean) * _uniform(CONTRAST[0], CONTRAST[1], count, device)


def _uniform(low, high, count, device):
    return low + (high - low) * torch.rand((count, 1, 1, 1), device=device)


def whitened(images):
    """Each image with mean 0 and standard deviation 1; a uniform image stays finite."""
    centred = images - images.mean(dim=(1, 2, 3), keepdim=True)
    deviation = centred.pow(2).mean(dim=(1, 2, 3), keepdim=True).sqrt()
    return centred / deviation.clamp(min=images[0].numel() ** -0.5)


class Trainer(parts.PipelineTrainer):
    """The network on the first device."""

    def __init__(self, job):
        super().__init__(job)
        torch.manual_seed(job.settings["seed"])
        self._place = job.places[0]
        device = devices.name(self._place)
        # Before any computation, as the workers are forked and would lack the threads that compute.
        self._batches = PIPELINES[job.pipeline](job, device)
        weights = networks.initial_weights(job.network, job.settings["seed"])
        self._model = build(job.network, weights).to(device)
        self._model.train()
        self._optimizer = torch.optim.Adam(self._model.parameters(), job.settings["learning_rate"])

    def step(self):
        images, labels, _ = next(self._batches)
        return self._train(images, labels)

    def parts(self):
        return (("loading", lambda: next(self._batches)),)

    def _train(self, images, labels):
        self._optimizer.zero_grad()
        loss = functional.cross_entropy(self._model(images), labels)
        loss.backward()
        self._optimizer.step()
        return loss.detach()

    def synchronise(self):
        devices.synchronise([self._place])

    def look(self):
        images, labels, ids = next(self._batches)
        self._train(images, labels)
        return [(ids.numpy(), images.cpu().numpy().transpose(0, 2, 3, 1))]

    def parameter_count(self):
        return parameter_count(self._model)

    def devices_used(self):
        return len({parameter.device for parameter in self._model.parameters()})

    def close(self):
        """Ends the workers."""
        self._batches = None


class Pipelines(parts.Pipelines):
    threads = THREADS
    trainer = Trainer

    def check(self, case):
        if case["strategy"] == "towers":
            raise Unsupported(
                "strategy 'towers': PyTorch has no graph to place towers in; strategy 'none' would run here, and "
                "'data_parallel' and 'distributed_data_parallel' in suite multi_gpu_scaling"
            )
        if case["pipeline"] not in PIPELINES:
            raise Unsupported(
                "pipeline {!r}: PyTorch has no queue in a graph; would run: {}".format(
                    case["pipeline"], ", ".join(sorted(PIPELINES))
                )
            )

    def prepare(self, job):
        """In steady, cuDNN searches its fastest algorithm; literal keeps the default."""
        torch.backends.cudnn.benchmark = job.protocol == "steady"
