"""Training in tf.keras: the checks, the model and the loss that all strategies and protocols share."""

import tensorflow as tf

from common import networks
from common.events import Unsupported
from frameworks import interface
from frameworks.tensorflow import graph_api, memory, networks_graph, networks_keras, towers, zoos
from frameworks.tensorflow.strategies.towers import layout_tries

if not hasattr(tf, "keras"):
    raise Unsupported(
        "TensorFlow {} has no Keras; 1.4 and newer have; 'towers' are without Keras".format(tf.__version__)
    )
# TensorFlow 1.x: sessions run graphs, which tf.function makes in 2.x.
IS_GRAPH_MODE = not hasattr(tf, "distribute") or hasattr(tf, "contrib")
POLICIES = {"amp_fp16": "mixed_float16", "amp_bf16": "mixed_bfloat16"}


class Strategy(interface.Strategy):
    def check(self, job, protocol):
        if job.execution == "cuda_graph":
            raise Unsupported(
                "execution 'cuda_graph': TensorFlow has none to ask for; 'compiled' (XLA) would run in 2.x"
            )
        if job.precision in POLICIES and (IS_GRAPH_MODE or not _has_policies()):
            _has_none("precision %r" % job.precision)
        if job.execution == "compiled" and (IS_GRAPH_MODE or not graph_api.accepts(tf.function, "jit_compile")):
            _has_none("execution 'compiled' (XLA for the whole step)")

    def prepare(self, job, protocol):
        if job.precision in POLICIES:  # of 2.x
            tf.keras.mixed_precision.set_global_policy(POLICIES[job.precision])

    def tries(self, job):
        return [] if networks.is_of_zoo(job.network.name) else layout_tries(job)


def _has_policies():
    return hasattr(getattr(tf.keras, "mixed_precision", None), "set_global_policy")


def _has_none(what):
    """Raises Unsupported."""
    raise Unsupported("{}: TensorFlow {} has none; newer releases of 2.x have".format(what, tf.__version__))


class Trainer(interface.Trainer):
    """The trainer that all protocols share. Subclasses set `model`."""

    def __init__(self, job):
        super().__init__(job)
        self.layout = job.layout
        self.devices = [towers.tower_device(index, place) for index, place in enumerate(job.places)]

    def laid_out(self, images):
        """NHWC array to the job's layout, on the host, as in the source."""
        return networks_graph.laid_out(images, self.layout)

    def build(self, inputs):
        """The Keras model on the Keras tensor `inputs`, with the weights of all frameworks; of Keras, its own."""
        if networks.is_of_zoo(self.job.network.name):
            return networks_keras.without_xla(
                zoos.build(self.job.network, inputs, self.layout, self.job.settings["seed"])
            )
        model = networks_keras.build(self.job.network, inputs, self.layout)
        weights = networks.initial_weights(self.job.network, self.job.settings["seed"])
        networks_keras.set_weights(self.job.network, model, weights)
        return model

    def optimizer(self):
        """SGD; under FP16 it scales the loss up, as small gradients would vanish."""
        settings = self.job.settings
        optimizer = tf.keras.optimizers.SGD(settings["learning_rate"], settings["momentum"])
        if self.job.precision == "amp_fp16":
            return tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
        return optimizer

    def parameter_count(self):
        return networks_keras.parameter_count(self.model)

    def weights(self):
        return networks_keras.get_weights(self.job.network, self.model)

    def logits(self, images):
        return self.model.predict(self.laid_out(images), batch_size=self.job.batch_size, verbose=0)

    def peak_device_memory_mib(self):
        return memory.peak_mib(self.job.places)

    def copies(self):
        """The model to train: `model`, or a model of copies that share its weights."""
        return self.model


def loss_function(labels, logits):
    """Mean softmax cross-entropy. Keras's own functions differ between 1.13 and Keras 3."""
    labels = tf.cast(tf.reshape(labels, [-1]), tf.int64)  # Keras 1.x passes them as (N, 1) float32
    return networks_graph.mean_loss(logits, labels)


def keras_loss():
    """The loss for compile. Keras 3 divides its own losses, but no function's, by the number of replicas.

    The division is needed, as it adds up the replicas' gradients.
    """
    return loss_function if IS_GRAPH_MODE else tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
