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
        losses = _runner(self.strategy)(replica_step, (self.batch,))
        return self.strategy.reduce("MEAN", losses, axis=None)

    def replicas(self):
        """The number of replicas that the strategy runs: each adds 1 to a sum."""

        @tf.function
        def count():
            return self.strategy.reduce("SUM", _runner(self.strategy)(lambda: tf.constant(1)), axis=None)

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
        if protocol == "steady" and not hasattr(
            tf.distribute.MirroredStrategy, "experimental_distribute_values_from_function"
        ):
            raise Unsupported(
                "strategy 'mirrored': in TensorFlow {} a program cannot give each replica a value of its own; 2.4 and "
                "newer can".format(tf.__version__)
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
            make_logical_cpus(len(job.places))

    def tries(self, job):
        """Also whether the optimizer adds the replicas' gradients up."""
        return super().tries(job) + ([(try_sum, (len(job.places),))] if None in job.places else [])


def make_logical_cpus(count):
    """Divides the CPU into devices. Nothing may have been computed before."""
    config = tf.config if hasattr(tf.config, "set_logical_device_configuration") else tf.config.experimental
    (cpu,) = config.list_physical_devices("CPU")
    if config is tf.config:
        config.set_logical_device_configuration(cpu, [config.LogicalDeviceConfiguration()] * count)
    else:
        config.set_virtual_device_configuration(cpu, [config.VirtualDeviceConfiguration()] * count)


def try_sum(count):
    """A step of SGD, whose gradient is 1 in each of `count` replicas: the weight has to change by their sum.

    Keras 3.4 gives each replica its own gradients: replicas then train networks of their own.
    """
    make_logical_cpus(count)
    strategy = tf.distribute.MirroredStrategy(["/cpu:%d" % device for device in range(count)])
    with strategy.scope():
        weight, sgd = tf.Variable([0.0]), tf.keras.optimizers.SGD(1.0, 0.9)
        if hasattr(sgd, "build"):
            sgd.build([weight])

    @tf.function
    def step():
        _runner(strategy)(lambda: sgd.apply_gradients([(tf.constant([1.0]), weight)]))

    step()
    if abs(float(weight.numpy()[0]) + count) > 1e-6:
        raise Unsupported(
            "strategy 'mirrored': the optimizer of Keras {} does not add up the gradients of the replicas".format(
                tf.keras.__version__
            )
        )


def _runner(strategy):
    """The strategy's function that runs a step in each replica: it had another name before 2.2."""
    return strategy.run if hasattr(strategy, "run") else strategy.experimental_run_v2
