"""Input pipelines and towers in TensorFlow's graph mode, through compat.v1: the same file on 1.13 and on 2.x.

A pipeline is a function of (job, session, devices) that returns, for each tower, the tensors (images, labels, ids) of
its batches: (n, 32, 32, 3) float32 whitened, (n,) int64, (n,) int64. devices: for each tower a device, or None where
TensorFlow chooses it.
"""

import numpy as np

from common import networks
from common.data import BRIGHTNESS, CONTRAST, MARGIN
from frameworks import parts
from frameworks.tensorflow import graphs_that_ran, networks_graph, towers
from frameworks.tensorflow.graph_api import tf
from frameworks.tensorflow.towers import HOST

THREADS = 6  # that fill a queue, as in the source, or prepare images for tf.data


def shared_host(job, session, devices):
    """A queue for all towers; in literal (and without towers) on no named device."""
    placed_nowhere = job.protocol == "literal" or job.strategy == "none"
    return [_queue(job, _records(job, session), 0, 1, None if placed_nowhere else HOST)] * job.towers


def shared_device(job, session, devices):
    return [_queue(job, _records(job, session), 0, 1, devices[0])] * job.towers


def per_device(job, session, devices):
    """A queue for every tower. Each reads a share of the records, so that no image is in two batches of a step.

    In the source each queue reads all records, in an order of its own.
    """
    records = _records(job, session)
    return [_queue(job, records, tower, job.towers, device) for tower, device in enumerate(devices)]


def loader(job, session, devices):
    """A tf.data pipeline on the host, which gives every tower a batch."""
    arrays = [job.images, job.labels, _numbers(job)]
    with tf.device(HOST):
        placeholders = [tf.placeholder(array.dtype, array.shape) for array in arrays]
        records = tf.data.Dataset.from_tensor_slices(tuple(placeholders)).repeat()
        prepared = records.map(lambda image, *rest: (whitened_and_distorted(image),) + rest, num_parallel_calls=THREADS)
        batches = prepared.batch(job.batch_size // job.towers, drop_remainder=True).prefetch(2 * job.towers)
        iterator = tf.data.make_initializable_iterator(batches)
        session.run(iterator.initializer, dict(zip(placeholders, arrays)))
        return [iterator.get_next() for _ in devices]


def resident(job, session, devices):
    """Each tower's share of the images in a variable on its device; labels and ids, 8 bytes each, come from the host.

    The images are float32, as a GPU lacks some kernels for bytes.
    """
    size, batches = job.batch_size // job.towers, []
    with tf.device(HOST):
        labels = networks_graph.loadable("labels", job.labels.shape, tf.int64)
    networks_graph.load(session, [labels], [job.labels])
    for tower, device in enumerate(devices):
        share = job.images[tower :: job.towers].astype(np.float32)
        with tf.device(HOST):
            turn = networks_graph.loadable("turn%d" % tower, (), tf.int64)
            chosen = (turn.assign_add(size).read_value() + tf.range(size, dtype=tf.int64)) % len(share)
            ids = chosen * job.towers + tower
            batch_labels = tf.gather(labels, ids)
        with tf.device(device):
            images = networks_graph.loadable("images%d" % tower, share.shape, tf.float32)
            prepared = whitened_batch(distorted_batch(tf.gather(images.read_value(), chosen)))
        networks_graph.load(session, [turn, images], [np.int64(0), share])
        batches.append((prepared, batch_labels, ids))
    return batches


PIPELINES = {function.__name__: function for function in (shared_host, shared_device, per_device, loader, resident)}


def _numbers(job):
    """The id of every record."""
    return np.arange(len(job.labels), dtype=np.int64)


def _records(job, session):
    """Variables (images, labels, ids) on the host, as only the host has the kernels of readers."""
    arrays = [job.images, job.labels, _numbers(job)]
    with tf.device(HOST):
        variables = [
            networks_graph.loadable(name, array.shape, array.dtype)
            for name, array in zip(("images", "labels", "ids"), arrays)
        ]
    networks_graph.load(session, variables, arrays)
    return variables


def _queue(job, records, share, shares, device):
    """The batches of a queue of TensorFlow's default length, 32 records.

    It reads the records share, share + shares, share + 2 shares, ..., again and again.
    """
    with tf.device(HOST):
        turn = tf.train.range_input_producer(len(job.labels) // shares, shuffle=False).dequeue()
        image, label, number = [tf.gather(variable, turn * shares + share) for variable in records]
    with tf.device(device):
        record = [whitened_and_distorted(image), label, number]
        return tf.train.batch(record, job.batch_size // job.towers, num_threads=THREADS)


def whitened_and_distorted(image):
    """An image (32, 32, 3) uint8 to float32, as in the tutorial; see common/data.py."""
    shape = image.shape.as_list()
    padded = tf.pad(tf.cast(image, tf.float32), [[MARGIN, MARGIN], [MARGIN, MARGIN], [0, 0]])
    cropped = tf.image.random_flip_left_right(tf.random_crop(padded, shape))
    bright = tf.image.random_brightness(cropped, BRIGHTNESS)
    return tf.image.per_image_standardization(tf.image.random_contrast(bright, *CONTRAST))


def distorted_batch(images):
    """Distorts (n, size, size, channels) float32 on any device: a gather crops and flips all images at once.

    Positions are floats, exact up to 2^24, as GPUs have few kernels for integers.
    """
    count, size, _, channels = images.shape.as_list()
    side = size + 2 * MARGIN
    margins = [[0, 0], [MARGIN, MARGIN], [MARGIN, MARGIN], [0, 0]]
    pixels = tf.reshape(tf.pad(images, margins), [-1, channels])
    top, left = [tf.floor(tf.random_uniform([count, 1, 1], 0, 2 * MARGIN + 1)) for _ in range(2)]
    flipped = tf.floor(tf.random_uniform([count, 1, 1], 0, 2))
    offsets = tf.constant(np.arange(size), tf.float32)
    rows = top + tf.reshape(offsets, [1, size, 1])
    columns = left + tf.abs(flipped * (size - 1) - tf.reshape(offsets, [1, 1, size]))
    images_before = tf.constant(np.arange(count).reshape(-1, 1, 1), tf.float32)
    positions = (images_before * side + rows) * side + columns
    cropped = tf.gather(pixels, tf.cast(positions, tf.int32))
    bright = cropped + tf.random_uniform([count, 1, 1, 1], -BRIGHTNESS, BRIGHTNESS)
    mean = tf.reduce_mean(bright, axis=[1, 2], keepdims=True)
    return mean + (bright - mean) * tf.random_uniform([count, 1, 1, 1], *CONTRAST)


def whitened_batch(images):
    """Each image with mean 0 and standard deviation 1; a uniform image stays finite (as in tf.image)."""
    centred = images - tf.reduce_mean(images, axis=[1, 2, 3], keepdims=True)
    deviation = tf.sqrt(tf.reduce_mean(tf.square(centred), axis=[1, 2, 3], keepdims=True))
    return centred / tf.maximum(deviation, 1 / np.sqrt(np.prod(images.shape.as_list()[1:])))


class Trainer(parts.PipelineTrainer):
    """The towers and their input pipeline; the variables of several towers are on the host."""

    def __init__(self, job):
        super().__init__(job)
        with tf.Graph().as_default():
            tf.set_random_seed(job.settings["seed"])
            self.session = tf.Session(config=towers.session_config(job.places))
            if job.strategy == "none":
                devices, shared = [None], None
            else:
                devices = [towers.tower_device(tower, place) for tower, place in enumerate(job.places)]
                shared = towers.variables_device(job.places)
            self._batches = PIPELINES[job.pipeline](job, self.session, devices)
            optimizer = tf.train.AdamOptimizer(job.settings["learning_rate"])
            with tf.device(shared):
                self._model = networks_graph.Model(job.network, "channels_last")
                self._fetches = towers.step(self._model, [batch[:2] for batch in self._batches], devices, optimizer)
            loaded = tf.group(*[tensor for batch in self._batches for tensor in batch])
            self.session.run(tf.variables_initializer(optimizer.variables()))
            self._model.load(self.session, networks.initial_weights(job.network, job.settings["seed"]))
            self._coordinator = tf.train.Coordinator()
            self._threads = tf.train.start_queue_runners(self.session, self._coordinator)
        self._towers = job.towers
        self._run = self.session.make_callable(self._fetches)
        self._load = self.session.make_callable(loaded)

    def step(self):
        return self._checked(self._run)[0]

    def parts(self):
        return (("loading", lambda: self._checked(self._load)),)

    def _checked(self, run):
        """The result of run(). Where a queue was closed because its threads failed, raises the error of the threads."""
        try:
            return run()
        except tf.errors.OutOfRangeError:
            self._coordinator.raise_requested_exception()
            raise

    def look(self):
        batches = [(ids, images) for images, _, ids in self._batches]
        return self._checked(lambda: self.session.run([batches, self._fetches]))[0]

    def parameter_count(self):
        return self._model.parameter_count()

    def devices_used(self):
        executed = graphs_that_ran.executed_towers(tf, self.session, self._fetches)
        if len(executed) != self._towers:
            raise AssertionError("{} towers computed; there should be {}".format(len(executed), self._towers))
        return len(set(executed.values()))

    def close(self):
        self._coordinator.request_stop()
        self._coordinator.join(self._threads)
        self.session.close()


class Pipelines(parts.Pipelines):
    threads = THREADS
    trainer = Trainer
