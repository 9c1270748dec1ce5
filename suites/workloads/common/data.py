"""CIFAR-10 where it is at hand; else a deterministic stand-in: same shapes and types, classes that can be learned."""

import hashlib
import os
import pickle
import tarfile

import numpy as np

CLASSES = 10
SHAPE = (32, 32, 3)  # of an image: height, width, channels
CELL = 4  # pixels over which a class's pattern is constant
LARGEST_TRAINING_SET = 50000  # CIFAR-10's

# Members of the tarball. A batch is a dict with data, (10000, 3072) uint8 in the order CHW, and labels, a list.
TRAINING = ["cifar-10-batches-py/data_batch_{}".format(number) for number in range(1, 6)]
TEST = ["cifar-10-batches-py/test_batch"]

# Of SGD. The sources leave both to an earlier article: assumed.
LEARNING_RATE = 0.01
MOMENTUM = 0.9


# How training images are distorted, in every framework. Source towers-titanx does not show its _distort. Assumed are
# the steps and ranges of TensorFlow's CIFAR-10 tutorial of the time, except that the size is kept: a random crop of
# 32x32 from the image with a margin of zeros, flipped left to right half of the time, brightness, contrast about each
# channel's mean; then whitened: mean 0, standard deviation 1 of all values.
MARGIN = 4  # pixels on each side
BRIGHTNESS = 63.0  # at most so much is added or taken, of 0..255
CONTRAST = (0.2, 1.8)  # range of the factor


def data_set(given, train_images, test_images, seed, shape=SHAPE):
    """((images, labels), (images, labels), synthetic): for training, for test, and whether they are made up.

    images: (N,) + shape uint8; labels: (N,) int64. given: `file` (the path of CIFAR-10, python version) and its
    `sha256`, or None. Of the file the first train_images and test_images are taken; images of another shape than its
    are always made up, from `seed`. Raises ValueError for a file that is another than said, and for more images than
    there are.
    """
    if given is None or shape != SHAPE:
        return synthetic(train_images, test_images, seed, shape) + (True,)
    return cifar10(given["file"], given["sha256"], train_images, test_images) + (False,)


def synthetic(train_images, test_images, seed, shape=SHAPE):
    """((images, labels), (images, labels)) for training and test.

    images: (N,) + shape uint8, each the mean of its class's coarse pattern and noise; labels: (N,) int64. Built from
    the raw bytes of MT19937 by integer arithmetic, so that every NumPy gives the same bytes. shape: height, width (both
    in CELLs), channels. Raises ValueError for more training images than CIFAR-10 has.
    """
    _at_most(LARGEST_TRAINING_SET, train_images, "training")
    random = np.random.RandomState(seed)
    height, width, channels = shape
    patterns = _random_bytes(random, (CLASSES, height // CELL, width // CELL, channels))
    patterns = patterns.repeat(CELL, axis=1).repeat(CELL, axis=2)
    return _draw(random, patterns, train_images), _draw(random, patterns, test_images)


def _draw(random, patterns, count):
    labels = _random_bytes(random, (count,)) % CLASSES
    noise = _random_bytes(random, (count,) + patterns.shape[1:])
    return patterns[labels] // 2 + noise // 2, labels.astype(np.int64)


def _random_bytes(random, shape):
    return np.frombuffer(random.bytes(int(np.prod(shape))), np.uint8).reshape(shape)


def cifar10(file, sha256, train_images, test_images):
    """((images, labels), (images, labels)): the first ones of CIFAR-10, python version, as tarball.

    images: (N, 32, 32, 3) uint8; labels: (N,) int64. Raises ValueError where the file's hash or what is in it is not as
    it should be, or where it has fewer images.
    """
    actual = _sha256(file)
    if actual != sha256:
        raise ValueError(
            "{}: sha256 is {}, and should be {}: the file changed, or is another; get it again with "
            "`invoke fetch-data`, or give another --data".format(os.path.basename(file), actual, sha256)
        )
    batches = {}
    with tarfile.open(file, "r:gz") as tar:
        for member in tar:  # in the file's order, as going back would mean to decompress it all again
            if member.name in TRAINING + TEST:
                batches[member.name] = _read_batch(tar.extractfile(member), member.name)
    return (
        _first(batches, TRAINING, train_images, "training"),
        _first(batches, TEST, test_images, "test"),
    )


def _sha256(file):
    digest = hashlib.sha256()
    with open(file, "rb") as content:
        for chunk in iter(lambda: content.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _read_batch(content, name):
    batch = _Unpickler(content, encoding="bytes").load()
    images, labels = batch[b"data"], np.array(batch[b"labels"], np.int64)
    if images.shape != (len(labels), np.prod(SHAPE)) or images.dtype != np.uint8:
        raise ValueError("{} holds {} {} for {} labels".format(name, images.shape, images.dtype, len(labels)))
    height, width, channels = SHAPE
    return images.reshape(-1, channels, height, width).transpose(0, 2, 3, 1), labels


def _first(batches, names, count, what):
    """(images, labels): the first `count` of the batches named, taken together."""
    images, labels = [np.concatenate(arrays) for arrays in zip(*[batches[name] for name in names])]
    _at_most(len(labels), count, what)
    return images[:count], labels[:count]


class _Unpickler(pickle.Unpickler):
    """Makes arrays of numbers and nothing else: a pickle may otherwise run any code."""

    KNOWN = {
        ("numpy.core.multiarray", "_reconstruct"): np.zeros(0).__reduce__()[0],  # wherever this NumPy keeps it
        ("numpy", "ndarray"): np.ndarray,
        # Its flags are the integers of Python 2, of which NumPy 2.4 warns.
        ("numpy", "dtype"): lambda code, align, copy: np.dtype(code, bool(align), bool(copy)),
    }

    def find_class(self, module, name):
        if (module, name) not in self.KNOWN:
            raise ValueError("the file asks for {}.{}, which CIFAR-10 has no need of".format(module, name))
        return self.KNOWN[module, name]


def _at_most(there, images, what):
    if images > there:
        raise ValueError("{} {} images asked for; the set has {}".format(images, what, there))


def normalise(images):
    """uint8 0..255 to float32 0..1, as sources torch-2080ti and keras-channels-first scale theirs."""
    return images.astype(np.float32) / np.float32(255)
