"""The training or inference that an experiment asks a framework's strategy for."""

import collections
import itertools

import numpy as np

from common import data

# network: networks.Network, or decoders.Decoder; mode: training or inference; layout: channels_first or channels_last;
# places: for each device a GPU index, or None for the CPU; batch_size: over all devices; train, test: (images, labels),
# or None before with_data adds them: images (N, height, width, channels) float32 under every layout, labels (N,) int64;
# of a decoder, train is (tokens, targets) of decoders.made_up; settings: of the request; loader: how literal training
# gets its batches, batches: how steady training gets them; tuning: of convolutions in steady training; attention: of a
# decoder; nodes: that share `places` evenly. The last five are as usual where a case does not say them.
Job = collections.namedtuple(
    "Job",
    "network mode layout strategy places batch_size precision execution train test settings loader batches tuning "
    "attention nodes",
)
TENSORS = "tensors"
RESIDENT, HOST, HOST_PINNED, HOST_AHEAD = BATCHES = ("resident", "host", "host_pinned", "host_ahead")
TUNED, UNTUNED = TUNINGS = ("tuned", "untuned")
PLAIN, FUSED = ("plain", "fused")
Job.__new__.__defaults__ = (TENSORS, RESIDENT, TUNED, PLAIN, 1)


def is_single(protocol, settings):
    """Whether a case is literal passes that are timed one by one: the settings have `readings`."""
    return protocol == "literal" and bool(settings.get("readings"))


def with_data(job, request):
    """(the Job with its data, whether the data are made up)."""
    settings, protocol = job.settings, request.case["protocol"]
    steady = protocol == "steady" or is_single(protocol, settings)
    a_batch, shape = steady and job.batches == RESIDENT, job.network.shape
    train_images = job.batch_size if a_batch else settings.positive("train_images")
    if steady:  # of larger images fewer, which take no more memory than CIFAR-10's
        train_images = min(train_images, max(job.batch_size, data.fewer(shape)))
    test_images = 0 if steady else settings.positive("test_images")
    train, test, synthetic = data.data_set(request.data, train_images, test_images, data.SEED, shape)
    return job._replace(train=(data.normalise(train[0]), train[1]), test=(data.normalise(test[0]), test[1])), synthetic


def shuffled(job, rank=None):
    """Lists of `batch_size` record numbers, without end: all of the training set in a random order, then in another.

    rank: the number of a device, for its share of each list alone.
    """
    size = job.batch_size // len(job.places)
    own = slice(None) if rank is None else slice(rank * size, (rank + 1) * size)
    random = np.random.RandomState(job.settings["seed"])
    orders = (random.permutation(len(job.train[1])).tolist() for _ in itertools.count())
    numbers = itertools.chain.from_iterable(orders)
    while True:
        yield list(itertools.islice(numbers, job.batch_size))[own]


def shards(job):
    """(images, labels) of each device's share of the batch, in the order of `places`."""
    size = job.batch_size // len(job.places)
    images, labels = job.train
    return [(images[i * size : (i + 1) * size], labels[i * size : (i + 1) * size]) for i in range(len(job.places))]
