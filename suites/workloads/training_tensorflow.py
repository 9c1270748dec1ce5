"""Training in TensorFlow: tf.keras layers in all versions; a graph and a session in 1.x, one tf.function in 2.x."""

import math
import time

import numpy as np
import tensorflow as tf

import data
import models_tensorflow

IS_GRAPH_MODE = tf.__version__.startswith("1.")


def prepare(job, protocol):
    """No flag to set, and nothing known beforehand to be impossible."""


def loss_function(labels, logits):
    """Mean softmax cross-entropy. In this form, as Keras's own differ between 1.13 and Keras 3."""
    labels = tf.cast(tf.reshape(labels, [-1]), tf.int64)  # Keras 1.x hands them over as (N, 1) float32
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


class Trainer:
    """What both protocols share. Subclasses set `model`."""

    def __init__(self, job):
        self.job = job
        self.data_format = job.layout

    def laid_out(self, images):
        """NHWC array to the job's layout, on the host, as the source does."""
        return images if self.data_format == "channels_last" else images.transpose(0, 3, 1, 2).copy()

    def build(self, inputs):
        """The Keras model on the Keras tensor `inputs`, with the initial weights all frameworks share."""
        model = tf.keras.Model(inputs, models_tensorflow.MODELS[self.job.model](inputs, self.data_format))
        models_tensorflow.initialise(model, np.random.RandomState(self.job.settings["seed"]))
        return model

    def parameter_count(self):
        return models_tensorflow.parameter_count(self.model)

    def peak_device_memory_mib(self):
        """None: TensorFlow takes all the memory there is, which says nothing about the network."""


class SteadyGraph(Trainer):
    """TensorFlow 1.x: one batch in variables (a constant would be folded), trained by session.run."""

    def __init__(self, job):
        super().__init__(job)
        tf.keras.backend.set_learning_phase(1)
        session = tf.keras.backend.get_session()
        images, labels = [_variable(session, array) for array in (self.laid_out(job.train[0]), job.train[1])]
        self.model = self.build(tf.keras.Input(tensor=images.read_value()))
        loss = loss_function(labels, self.model.output)
        optimizer = tf.train.MomentumOptimizer(data.LEARNING_RATE, data.MOMENTUM)
        with tf.control_dependencies(self.model.updates):  # the moving statistics of batch normalisation
            train = optimizer.minimize(loss, var_list=self.model.trainable_weights)
        session.run(tf.variables_initializer(optimizer.variables()))
        self._run = session.make_callable([loss, train])

    def step(self):
        """Returns the loss before the step."""
        return self._run()[0]

    def synchronise(self):
        """Nothing to wait for: a session's run returns when its device is done."""


class SteadyFunction(Trainer):
    """TensorFlow 2.x: one batch in tensors on the device, trained by one tf.function."""

    def __init__(self, job):
        super().__init__(job)
        images, labels = self.laid_out(job.train[0]), job.train[1]
        self.model = self.build(tf.keras.Input(images.shape[1:]))
        optimizer = tf.keras.optimizers.SGD(data.LEARNING_RATE, momentum=data.MOMENTUM)
        weights = self.model.trainable_variables
        with tf.device("/cpu:0" if job.place is None else "/gpu:%d" % job.place):
            images, labels = tf.identity(images), tf.identity(labels)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = loss_function(labels, self.model(images, training=True))
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return loss

        self.step = step

    def synchronise(self):
        """Reads a weight: the copy waits for the updates queued before it, which the loss would not."""
        self.model.trainable_variables[-1].numpy()


Steady = SteadyGraph if IS_GRAPH_MODE else SteadyFunction


class Literal(Trainer):
    """Keras's compile and fit, from host arrays, shuffled. Its callbacks see an epoch's begin and end."""

    def __init__(self, job):
        super().__init__(job)
        self.images = self.laid_out(job.train[0])
        self.model = self.build(tf.keras.Input(self.images.shape[1:]))
        self.model.compile(tf.keras.optimizers.SGD(data.LEARNING_RATE, momentum=data.MOMENTUM), loss=loss_function)

    def fit(self, emitter):
        """Trains for settings["epochs"], one sample each; returns the mean loss over the last epoch."""
        history = self.model.fit(
            self.images,
            self.job.train[1],
            batch_size=self.job.batch_size,
            shuffle=True,
            verbose=0,
            epochs=self.job.settings.positive("epochs"),
            callbacks=[EpochTimer(emitter, len(self.images), self.job.batch_size)],
        )
        return history.history["loss"][-1]

    def logits(self, images):
        """(N, 32, 32, 3) array to (N, 10), with the moving statistics of batch normalisation."""
        return self.model.predict(self.laid_out(images), batch_size=self.job.batch_size, verbose=0)


class EpochTimer(tf.keras.callbacks.Callback):
    """One sample per epoch; the first holds what Keras does at its first batch (tracing, autotuning)."""

    def __init__(self, emitter, images, batch_size):
        super().__init__()
        self.emitter = emitter
        self.images = images
        self.steps = math.ceil(images / batch_size)

    def on_epoch_begin(self, epoch, logs=None):
        self.emitter.phase_begin("epoch")
        self.begin = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self.begin
        self.emitter.phase_end("epoch")
        self.emitter.sample("epoch", epoch, self.steps, self.images, seconds)


def _variable(session, array):
    """A variable that is not trained and not Keras's, filled with `array` without a constant in the graph."""
    placeholder = tf.placeholder(array.dtype, array.shape)
    variable = tf.Variable(placeholder, trainable=False, use_resource=True)
    session.run(variable.initializer, {placeholder: array})
    return variable
