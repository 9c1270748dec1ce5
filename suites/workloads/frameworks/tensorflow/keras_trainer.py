"""What training in tf.keras has in common under both protocols: what can be done, the model, its loss."""

import tensorflow as tf

from common import networks
from common.events import Unsupported
from frameworks.tensorflow import networks_keras
from frameworks.tensorflow import towers as training_towers

IS_GRAPH_MODE = tf.__version__.startswith("1.")
POLICIES = {"amp_fp16": "mixed_float16", "amp_bf16": "mixed_bfloat16"}


def prepare(job, protocol):
    """Sets precision and logical devices."""
    if IS_GRAPH_MODE:
        return
    if job.precision in POLICIES:
        tf.keras.mixed_precision.set_global_policy(POLICIES[job.precision])
    if job.strategy == "mirrored" and None in job.places:
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * len(job.places))


def check(job, protocol):
    """Raises Unsupported for what this TensorFlow, or this device, cannot do."""
    if job.execution == "cuda_graph":
        raise Unsupported("execution 'cuda_graph': TensorFlow has none to ask for; 'compiled' (XLA) would run in 2.x")
    if job.strategy == "multi_gpu_model" and not IS_GRAPH_MODE:
        raise Unsupported("strategy 'multi_gpu_model': TensorFlow 2.4 and newer have it no more; 'mirrored' would run")
    if IS_GRAPH_MODE:
        unknown = [
            (job.precision in POLICIES, "precision %r" % job.precision),
            (job.execution == "compiled", "execution 'compiled' (XLA for the whole step)"),
        ]
        for asked, what in unknown:
            if asked:
                raise Unsupported("{}: TensorFlow {} has none; 2.x has".format(what, tf.__version__))
        if job.strategy == "mirrored":
            raise Unsupported(
                "strategy 'mirrored': MirroredStrategy of TensorFlow {} trains no batch normalisation; "
                "'multi_gpu_model' and 'towers' are its ways".format(tf.__version__)
            )
    if job.strategy == "mirrored" and None not in job.places and len(set(job.places)) < len(job.places):
        raise Unsupported("strategy 'mirrored' needs {} GPUs: two replicas cannot share one".format(len(job.places)))


def tries(job):
    """As for towers, and whether multi_gpu_model finds the GPUs it wants."""
    found = [(try_replicated, (len(job.places),))] if job.strategy == "multi_gpu_model" else []
    return found + training_towers.tries(job)


def try_replicated(gpus):
    """Copies a model of one operation."""
    replicated(tf.keras.Sequential([tf.keras.layers.Activation("linear", input_shape=(1,))]), gpus)


def replicated(model, gpus):
    """Copies of a model that share its weights, each with a slice of the batch, on a GPU each."""
    try:
        return tf.keras.utils.multi_gpu_model(model, gpus=gpus)
    except ValueError as error:
        raise Unsupported("strategy 'multi_gpu_model' needs {} GPUs; Keras says: {}".format(gpus, error)) from error


def loss_function(labels, logits):
    """Mean softmax cross-entropy. In this form, as Keras's own differ between 1.13 and Keras 3."""
    labels = tf.cast(tf.reshape(labels, [-1]), tf.int64)  # Keras 1.x hands them over as (N, 1) float32
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


class Trainer:
    """What all protocols share. Subclasses set `model`."""

    def __init__(self, job):
        self.job = job
        self.layout = job.layout
        self.devices = [training_towers.tower_device(index, place) for index, place in enumerate(job.places)]

    def laid_out(self, images):
        """NHWC array to the job's layout, on the host, as the source does."""
        return images if self.layout == "channels_last" else images.transpose(0, 3, 1, 2).copy()

    def build(self, inputs):
        """The Keras model on the Keras tensor `inputs`, with the initial weights all frameworks share."""
        model = networks_keras.build(self.job.network, inputs, self.layout)
        weights = networks.initial_weights(self.job.network, self.job.settings["seed"])
        networks_keras.set_weights(self.job.network, model, weights)
        return model

    def optimizer(self):
        """SGD; under FP16 the loss is scaled up, as small gradients vanish otherwise."""
        settings = self.job.settings
        optimizer = tf.keras.optimizers.SGD(settings["learning_rate"], settings["momentum"])
        if self.job.precision == "amp_fp16":
            return tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
        return optimizer

    def announce(self, steps):
        """Nothing to prepare for so many steps."""

    def mean_losses(self, losses):
        """Losses of steps as floats, of the whole batch."""
        return [float(loss) for loss in losses]

    def parts(self):
        """None, where a step is one operation."""
        return ()

    def parameter_count(self):
        return networks_keras.parameter_count(self.model)

    def weights(self):
        """Float32 arrays in canonical order."""
        return networks_keras.get_weights(self.job.network, self.model)

    def logits(self, images):
        """(N, height, width, channels) array to (N, 10), with the moving statistics of batch normalisation."""
        return self.model.predict(self.laid_out(images), batch_size=self.job.batch_size, verbose=0)

    def peak_device_memory_mib(self):
        """None: TensorFlow takes all the memory there is, which says nothing about the network."""

    def transposes(self):
        """None, where the graph is Keras's own and not at hand."""

    def close(self):
        """Nothing is left running."""

    def replicated_model(self):
        """The model itself, or its copies."""
        if self.job.strategy != "multi_gpu_model":
            return self.model
        return replicated(self.model, len(self.job.places))


def keras_loss():
    """Keras 3 divides a loss of its own by the number of replicas, whose gradients it adds up, and no function's."""
    return loss_function if IS_GRAPH_MODE else tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
