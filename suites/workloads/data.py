"""Deterministic stand-in for CIFAR-10: the same shapes and types, classes that can be learned, no download."""

import numpy as np

CLASSES = 10
SIZE = 32  # pixels, height and width
CELL = 4  # pixels over which a class's pattern is constant
LARGEST_TRAINING_SET = 50000  # CIFAR-10's

# Of SGD. The sources leave both to an earlier article: assumed.
LEARNING_RATE = 0.01
MOMENTUM = 0.9


def synthetic(train_images, test_images, seed):
    """((images, labels), (images, labels)) for training and test.

    images: (N, 32, 32, 3) uint8, each the mean of its class's coarse pattern and noise; labels: (N,) int64. Built from
    the raw bytes of MT19937 by integer arithmetic, so that every NumPy gives the same bytes. Raises ValueError for more
    training images than CIFAR-10 has.
    """
    if train_images > LARGEST_TRAINING_SET:
        raise ValueError("{} training images asked for; the set has {}".format(train_images, LARGEST_TRAINING_SET))
    random = np.random.RandomState(seed)
    patterns = _random_bytes(random, (CLASSES, SIZE // CELL, SIZE // CELL, 3))
    patterns = patterns.repeat(CELL, axis=1).repeat(CELL, axis=2)
    return _draw(random, patterns, train_images), _draw(random, patterns, test_images)


def _draw(random, patterns, count):
    labels = _random_bytes(random, (count,)) % CLASSES
    noise = _random_bytes(random, (count,) + patterns.shape[1:])
    return patterns[labels] // 2 + noise // 2, labels.astype(np.int64)


def _random_bytes(random, shape):
    return np.frombuffer(random.bytes(int(np.prod(shape))), np.uint8).reshape(shape)


def normalise(images):
    """uint8 0..255 to float32 0..1, as sources torch-2080ti and keras-channels-first scale theirs."""
    return images.astype(np.float32) / np.float32(255)


def glorot_uniform(random, shape):
    """Initial weights (..., in, out) float32 (Glorot & Bengio 2010), drawn from `random`, a numpy RandomState.

    Drawn here and not by the framework, so that every framework starts from the same weights.
    """
    positions = int(np.prod(shape[:-2]))
    limit = np.sqrt(6.0 / (positions * (shape[-2] + shape[-1])))
    return random.uniform(-limit, limit, shape).astype(np.float32)
