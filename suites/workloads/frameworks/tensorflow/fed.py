"""Steady training's batches from the host, endless and shuffled, by the axis `batches`."""

import numpy as np
import tensorflow as tf

from common import jobs
from frameworks.tensorflow.towers import HOST

# Of HOST_AHEAD: the batches that are made at once, and those that wait.
MADE_AT_ONCE, AHEAD = 2, 2


def handed(job, images):
    """Batches that the program makes and hands over, from the arrays of literal training: (images float32, labels).

    images: those of the training set, laid out for the job.
    """
    for numbers in jobs.shuffled(job):
        yield images[numbers].astype(np.float32), job.train[1][numbers]


def made_ahead(job, images, labels):
    """A tf.data.Dataset of the same batches. images, labels: those of the training set, in tensors on the host."""

    def gathered(numbers):
        return tf.gather(images, numbers), tf.gather(labels, numbers)

    with tf.device(HOST):
        numbers = tf.data.Dataset.from_generator(lambda: jobs.shuffled(job), tf.int64, [job.batch_size])
        return numbers.map(gathered, num_parallel_calls=MADE_AT_ONCE).prefetch(AHEAD)
