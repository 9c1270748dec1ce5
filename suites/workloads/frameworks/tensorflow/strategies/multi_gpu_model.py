"""multi_gpu_model of Keras in TensorFlow 1.x: each GPU has a copy of the model, and gets a slice of the batch."""

import tensorflow as tf

from common.events import Unsupported
from frameworks.tensorflow import graphs_that_ran, keras_literal, keras_steady, keras_trainer


class Copies:
    """A Trainer that trains copies of its model."""

    def copies(self):
        return replicated(self.model, len(self.job.places))


class Steady(Copies, keras_steady.SteadyGraph):
    def updates(self):
        """The updates of the first copy. All updates would also compute the whole batch in the original model."""
        return self.model.get_updates_for(self.model.get_input_at(1))

    def replicas(self):
        """The number of devices that compute convolutions or matrix products in the graph that ran."""
        return len(graphs_that_ran.working_devices(tf, self.session, self.fetches))


class Literal(Copies, keras_literal.Literal):
    """By compile and fit."""


class Strategy(keras_trainer.Strategy):
    steady = Steady
    literal = Literal

    def check(self, job, protocol):
        super().check(job, protocol)
        if not keras_trainer.IS_GRAPH_MODE:
            raise Unsupported(
                "strategy 'multi_gpu_model': TensorFlow 2.4 and newer have it no more; 'mirrored' would run"
            )
        if not hasattr(tf.keras.utils, "multi_gpu_model"):
            raise Unsupported(
                "strategy 'multi_gpu_model': tf.keras of TensorFlow {} has none yet; 'towers' would run".format(
                    tf.__version__
                )
            )

    def tries(self, job):
        """Also whether multi_gpu_model finds its GPUs."""
        return [(try_replicated, (len(job.places),))] + super().tries(job)


def try_replicated(gpus):
    """Copies a model of a single operation. Raises Unsupported where Keras finds too few GPUs."""
    replicated(tf.keras.Sequential([tf.keras.layers.Activation("linear", input_shape=(1,))]), gpus)


def replicated(model, gpus):
    """A model of copies that share the weights of `model`. Raises Unsupported where Keras finds too few GPUs."""
    try:
        return tf.keras.utils.multi_gpu_model(model, gpus=gpus)
    except ValueError as error:
        raise Unsupported("strategy 'multi_gpu_model' needs {} GPUs; Keras says: {}".format(gpus, error)) from error
