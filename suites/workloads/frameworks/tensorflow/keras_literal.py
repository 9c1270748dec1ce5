"""Training in tf.keras as a user would write it, by compile and fit: 1.13 to Keras 3."""

import math
import random
import time

import numpy as np
import tensorflow as tf

from common import timing
from common.events import Skipped
from frameworks.tensorflow.graph_api import accepts
from frameworks.tensorflow.keras_trainer import IS_GRAPH_MODE, Trainer, keras_loss


class Literal(Trainer):
    """Keras's compile and fit, from shuffled arrays of the host. A callback times the epochs."""

    def __init__(self, job):
        super().__init__(job)
        seed_generators(job.settings["seed"])
        self.images = self.laid_out(job.train[0])
        with self.scope():
            self.model = self.build(tf.keras.Input(self.images.shape[1:]))
            self.trained = self.copies()
            # Without jit_compile, Keras 3 would choose XLA on a GPU, which is another case.
            known = accepts(self.trained.compile, "jit_compile")
            compilation = {"jit_compile": job.execution == "compiled"} if known else {}
            self.trained.compile(self.optimizer(), loss=keras_loss(), **compilation)

    def laid_out(self, images):
        return as_handed(images, self.layout)

    def scope(self):
        """Where the model is built and compiled."""
        return tf.name_scope("literal")

    def fit(self, emitter, probe):
        timer = EpochTimer(emitter, len(self.images), self.job, probe)
        history = self.trained.fit(
            self.images,
            self.job.train[1],
            batch_size=self.job.batch_size,
            shuffle=True,
            verbose=0,
            epochs=self.job.settings.positive("epochs"),
            callbacks=[timer],
        )
        if timer.skipped is not None:
            raise timer.skipped
        return history.history["loss"][-1]

    def synchronise(self):
        """Reads a weight: the copy waits for the updates queued before it."""
        tf.keras.backend.get_value(self.model.trainable_weights[-1])


def as_handed(images, layout):
    """Images as the source's script hands them to Keras: float64, from a division by 255.0.

    For channels_first they are a transposed view.
    """
    images = images.astype(np.float64)
    return images if layout == "channels_last" else np.transpose(images, [0, 3, 1, 2])


def seed_generators(seed):
    """Seeds every generator that Keras shuffles with: by version, that of Python, NumPy or TensorFlow."""
    random.seed(seed)
    np.random.seed(seed)
    set_seed = tf.set_random_seed if IS_GRAPH_MODE else tf.random.set_seed
    set_seed(seed)


class EpochTimer(tf.keras.callbacks.Callback):
    """Emits a sample for each epoch; the first includes Keras's work at its first batch (tracing, autotuning).

    skipped: the probe's Skipped, which ended the training, or None.
    """

    # Otherwise Keras 3 would read the loss of every batch, which this callback does not need.
    async_safe = True

    def __init__(self, emitter, images, job, probe):
        super().__init__()
        self.emitter = emitter
        self.images = images
        self.job = job
        self.probe = probe
        self.epochs_s = []
        self.skipped = None

    def on_epoch_begin(self, epoch, logs=None):
        self.emitter.phase_begin("epoch")
        self.begin = time.perf_counter()

    def on_batch_end(self, batch, logs=None):
        if self.epochs_s or self.skipped:
            return
        try:
            self.probe.step_ended()
        except Skipped as skipped:  # not raised here, as Keras may call from another thread
            self.skipped = skipped
            self.model.stop_training = True

    on_train_batch_end = on_batch_end

    def on_epoch_end(self, epoch, logs=None):
        self.epochs_s.append(time.perf_counter() - self.begin)
        self.emitter.phase_end("epoch")
        if self.skipped:
            return
        steps = math.ceil(self.images / self.job.batch_size)
        self.emitter.sample("epoch", epoch, steps, self.images, self.epochs_s[-1])
        if timing.epochs_enough(self.epochs_s, self.job.settings):
            self.model.stop_training = True
