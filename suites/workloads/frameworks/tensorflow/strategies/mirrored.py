"""MirroredStrategy of TensorFlow 2.x: a replica of the model on each device."""

import tensorflow as tf

from common.events import Unsupported
from frameworks.tensorflow import keras_literal, keras_steady, keras_trainer


class Mirrored:
    """A Trainer whose model is built by a MirroredStrategy."""

    def scope(self):
        self.strategy = tf.distribute.MirroredStrategy(self.devices)
        return self.strategy.scope()


class Steady(Mirrored, keras_steady.SteadyFunction):
    def placed_batch(self):
        shares = self.shares()
        return self.strategy.experimental_distribute_values_from_function(
            lambda context: shares[context.replica_id_in_sync_group]
        )

    def everywhere(self, replica_step):
        losses = self.strategy.run(replica_step, (self.batch,))
        return self.strategy.reduce("MEAN", losses, axis=None)

    def replicas(self):
        """The number of replicas that the strategy runs: each adds 1 to a sum."""

        @tf.function
        def count():
            return self.strategy.reduce("SUM", self.strategy.run(lambda: tf.constant(1)), axis=None)

        return int(count())


class Literal(Mirrored, keras_literal.Literal):
    def replicas(self):
        """The number of replicas that the strategy trains."""
        return self.trained.distribute_strategy.num_replicas_in_sync


class Strategy(keras_trainer.Strategy):
    steady = Steady
    literal = Literal

    def check(self, job, protocol):
        super().check(job, protocol)
        if keras_trainer.IS_GRAPH_MODE:
            raise Unsupported(
                "strategy 'mirrored': MirroredStrategy of TensorFlow {} trains no batch normalisation; "
                "'multi_gpu_model' and 'towers' are its ways".format(tf.__version__)
            )
        if job.execution == "compiled":
            raise Unsupported(
                "execution 'compiled' with strategy 'mirrored': a program of XLA is for a single device, and finds no "
                "variable on another; 'native' would run"
            )
        if None not in job.places and len(set(job.places)) < len(job.places):
            raise Unsupported(
                "strategy 'mirrored' needs {} GPUs: two replicas cannot share one".format(len(job.places))
            )

    def prepare(self, job, protocol):
        """Also makes a logical device for each replica on the CPU."""
        super().prepare(job, protocol)
        if None in job.places:
            (cpu,) = tf.config.list_physical_devices("CPU")
            tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * len(job.places))
