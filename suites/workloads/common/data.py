"""CIFAR-10 from a file; without a file, made-up images of the same shapes and types, whose classes can be learned."""

import hashlib
import os
import pickle
import tarfile

import numpy as np

CLASSES = 10
SHAPE = (32, 32, 3)  # of an image: height, width, channels
CELL = 4  # width and height in pixels of the squares that a class's pattern consists of
LARGEST_TRAINING_SET = 50000  # CIFAR-10's

# Members of the tarball. A batch is a dict of `data`, (10000, 3072) uint8 in the order CHW, and `labels`, a list.
TRAINING = ["cifar-10-batches-py/data_batch_{}".format(number) for number in range(1, 6)]
TEST = ["cifar-10-batches-py/test_batch"]

# How every framework distorts training images. Source towers-titanx does not show its function _distort. The steps and
# ranges of TensorFlow's CIFAR-10 tutorial of 2016 are assumed, but images keep their size. The steps are: surround the
# image with a margin of zeros and crop 32x32 pixels at random; flip left to right with probability 1/2; change the
# brightness; change the contrast about each channel's mean; whiten (all values of an image: mean 0, deviation 1).
MARGIN = 4  # pixels on each side
BRIGHTNESS = 63.0  # the largest change, up or down, of values in 0..255
CONTRAST = (0.2, 1.8)  # range of the factor
# Of made-up images: they are the same in every repetition, as those of a file are.
SEED = 0


def data_set(given, train_images, test_images, seed, shape=SHAPE):
    """(training set, test set, synthetic): each set is (images, labels); synthetic: whether the images are made up.

    images: (N,) + shape uint8; labels: (N,) int64. given: `file` (the path of CIFAR-10, python version) and its
    `sha256`, or None. The sets are the first train_images and test_images of the file. Without a file, and for another
    shape than CIFAR-10's, they are made up from `seed`. Raises ValueError for a file with another hash, and for more
    images than the file has.
    """
    if given is None or shape != SHAPE:
        return synthetic(train_images, test_images, seed, shape) + (True,)
    return cifar10(given["file"], given["sha256"], train_images, test_images) + (False,)


def fewer(shape):
    """How many images of a shape take as much memory as CIFAR-10's training set."""
    return max(1, LARGEST_TRAINING_SET * int(np.prod(SHAPE)) // int(np.prod(shape)))


def synthetic(train_images, test_images, seed, shape=SHAPE):
    """((images, labels), (images, labels)) for training and test.

    images: (N,) + shape uint8, each the mean of its class's coarse pattern and noise; labels: (N,) int64. They come
    from raw bytes of MT19937 by integer arithmetic, so that every version of NumPy gives the same bytes. shape: height,
    width, channels. Raises ValueError for more training images than CIFAR-10 has.
    """
    _at_most(LARGEST_TRAINING_SET, train_images, "training")
    random = np.random.RandomState(seed)
    height, width, channels = shape
    patterns = _random_bytes(random, (CLASSES, -(-height // CELL), -(-width // CELL), channels))
    patterns = patterns.repeat(CELL, axis=1).repeat(CELL, axis=2)[:, :height, :width]
    return _draw(random, patterns, train_images), _draw(random, patterns, test_images)


def _draw(random, patterns, count):
    labels = _random_bytes(random, (count,)) % CLASSES
    noise = _random_bytes(random, (count,) + patterns.shape[1:])
    return patterns[labels] // 2 + noise // 2, labels.astype(np.int64)


def _random_bytes(random, shape):
    return np.frombuffer(random.bytes(int(np.prod(shape))), np.uint8).reshape(shape)


def cifar10(file, sha256, train_images, test_images):
    """((images, labels), (images, labels)): the first images for training and for test in CIFAR-10's tarball.

    images: (N, 32, 32, 3) uint8; labels: (N,) int64. Raises ValueError for another hash, for unexpected content, and
    where the file has fewer images.
    """
    actual = _sha256(file)
    if actual != sha256:
        raise ValueError(
            "{}: sha256 is {}, and should be {}: the file changed, or is another; get it again with "
            "`invoke fetch-data`, or give another --data".format(os.path.basename(file), actual, sha256)
        )
    batches = {}
    with tarfile.open(file, "r:gz") as tar:
        for member in tar:  # in the file's order: to go back, tarfile would decompress from the beginning
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
    """(images, labels): the first `count` images of the named batches, joined in their order."""
    images, labels = [np.concatenate(arrays) for arrays in zip(*[batches[name] for name in names])]
    _at_most(len(labels), count, what)
    return images[:count], labels[:count]


class _Unpickler(pickle.Unpickler):
    """Reads pickles of arrays only, as an unrestricted pickle can run any code."""

    KNOWN = {
        ("numpy.core.multiarray", "_reconstruct"): np.zeros(0).__reduce__()[0],  # NumPy 2 has moved it
        ("numpy", "ndarray"): np.ndarray,
        # Python 2 wrote the flags as integers, and NumPy 2.4 warns of integers.
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
    """uint8 0..255 to float32 0..1, as sources torch-2080ti and keras-channels-first do."""
    return images.astype(np.float32) / np.float32(255)
