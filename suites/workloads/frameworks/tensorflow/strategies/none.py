"""A single device, in tf.keras."""

from common import jobs
from frameworks.tensorflow import keras_literal, keras_steady, keras_trainer


class Strategy(keras_trainer.Strategy):
    steady = keras_steady.Steady
    literal = keras_literal.Literal
    batches = (jobs.RESIDENT, jobs.HOST, jobs.HOST_AHEAD)
