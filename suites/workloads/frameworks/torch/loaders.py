"""Where training gets its batches: a DataLoader over tensors, or over torchvision's CIFAR-10, as scripts do.

A name says the data set, and the DataLoader's worker processes where there are any. Tensors hold all images as floats
before the first epoch. torchvision's data set makes an image of PIL from each array, and a float tensor of that, every
time that the image is asked for.
"""

import importlib.util

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from common import data, jobs
from common.events import Unsupported
from frameworks.torch.trainer import nchw

TORCHVISION = "torchvision"
# By name: whether the data set is torchvision's, and the number of worker processes.
LOADERS = {
    "tensors": (False, 0),
    "tensors_2_workers": (False, 2),
    "torchvision": (True, 0),
    "torchvision_2_workers": (True, 2),
    "torchvision_4_workers": (True, 4),
}
# Of steady training, by the value of axis `batches`: the number of worker processes, and whether batches are pinned.
FED = {jobs.HOST: (0, False), jobs.HOST_PINNED: (0, True), jobs.HOST_AHEAD: (2, True)}


def check(job):
    """Raises Unsupported where the loader of a job is not here, or not for its images."""
    if not LOADERS[job.loader][0]:
        return
    if importlib.util.find_spec(TORCHVISION) is None:
        raise Unsupported(
            "loader {!r}: torchvision is not installed in this environment; 'tensors' would run".format(job.loader)
        )
    if job.network.shape != data.SHAPE:
        raise Unsupported("loader {!r} is for CIFAR-10; 'tensors' would run".format(job.loader))


def make(job):
    """A DataLoader over the job's training set, shuffled in every epoch: images NCHW float32 in 0..1, labels int64."""
    of_torchvision, workers = LOADERS[job.loader]
    images, labels = job.train
    dataset = cifar10(images, labels) if of_torchvision else TensorDataset(nchw(images), torch.from_numpy(labels))
    return DataLoader(dataset, job.batch_size, shuffle=True, num_workers=workers)


def fed(job, rank=None):
    """An endless iterator over shuffled batches of `tensors`: no epoch ends, so no worker is started again.

    rank: the number of a device, for its share of every batch alone. On a CPU nothing is pinned.
    """
    images, labels = job.train
    workers, pinned = FED[job.batches]
    dataset = TensorDataset(nchw(images), torch.from_numpy(labels))
    pinned = pinned and None not in job.places
    return iter(DataLoader(dataset, batch_sampler=jobs.shuffled(job, rank), num_workers=workers, pin_memory=pinned))


def cifar10(images, labels):
    """torchvision's CIFAR10 with these images, (N, 32, 32, 3) float32 in 0..1, in the place of files."""
    from torchvision import datasets, transforms

    class Here(datasets.CIFAR10):
        def __init__(self):
            # `train_data` and `train_labels` are the names before torchvision 0.3.
            self.data = self.train_data = np.rint(images * 255).astype(np.uint8)
            self.targets = self.train_labels = labels.tolist()
            self.train = True
            self.transform, self.target_transform = transforms.ToTensor(), None

    return Here()
