"""The networks in TensorFlow's graph mode, from raw operations: the same file on 1.4 and on 2.x.

A Model has the variables of a network, on the device of the enclosing tf.device; any number of towers share them.
"""

import numpy as np

from common import networks
from frameworks.tensorflow import graph_api
from frameworks.tensorflow.graph_api import tf

DATA_FORMAT = {"channels_last": "NHWC", "channels_first": "NCHW"}


class Model:
    """Variables in canonical order (see common/networks.py), and the moving statistics of batch normalisation.

    layout: of the images, and of all values up to Flatten or GlobalAveragePool. Raises AssertionError where the
    variables have another number of parameters than the network.
    """

    def __init__(self, network, layout):
        self.network = network
        self.layout = layout
        self.variables = [
            loadable("weight%d" % index, shape, tf.float32, trainable=True)
            for index, shape in enumerate(networks.weight_shapes(network))
        ]
        self.statistics = []  # [mean, variance] of every Norm, in order
        for layer, before, _ in networks.walk(network.layers, network.shape):
            if isinstance(layer, networks.Norm):
                names = ["%s%d" % (what, len(self.statistics)) for what in ("mean", "variance")]
                self.statistics.append([loadable(name, before[-1:], tf.float32) for name in names])
        self._values = [variable.read_value() for variable in self.variables]
        count = self.parameter_count()
        if count != network.parameters:
            raise AssertionError(
                "{} has {} trainable parameters; it must have {}".format(network.name, count, network.parameters)
            )

    def parameter_count(self):
        return sum(variable.shape.num_elements() for variable in self.variables)

    def load(self, session, weights):
        """Sets the variables to arrays in canonical order, and the moving statistics to mean 0 and variance 1."""
        load(session, self.variables, weights)
        for mean, variance in self.statistics:
            shape = mean.shape.as_list()
            load(session, [mean, variance], [np.zeros(shape, np.float32), np.ones(shape, np.float32)])

    def weights(self, session):
        """The variables' values: float32 arrays in canonical order."""
        return session.run(self._values)

    def apply(self, images, training):
        """(logits, updates) of a tower: (N, classes) float32, and the operations that update the moving statistics.

        images: (N, h, w, c) or (N, c, h, w) float32, by `layout`. Without `training`, batch normalisation uses the
        moving statistics, and `updates` is empty.
        """
        tower = _Tower(self, training)
        return tower.apply(self.network.layers, images), tower.updates


class _Tower:
    """A pass over the layers, which uses the model's variables in canonical order."""

    def __init__(self, model, training):
        self.layout = model.layout
        self.training = training
        self.variables = iter(model.variables)
        self.statistics = iter(model.statistics)
        self.updates = []

    def apply(self, layers, values):
        for layer in layers:
            values = getattr(self, "_" + type(layer).__name__.lower())(layer, values)
        return values

    def _conv(self, layer, values):
        kernel = next(self.variables)
        margin = (layer.size - 1) // 2
        if layer.stride > 1 and margin:  # "SAME" would pad at the bottom and right only
            values = tf.pad(values, self._spatial([0, 0], [margin, margin]))
        strides = self._spatial(1, layer.stride)
        padding = "SAME" if layer.stride == 1 else "VALID"
        convolve = tf.nn.conv2d
        if layer.depthwise:
            kernel, convolve = tf.transpose(kernel, [0, 1, 3, 2]), tf.nn.depthwise_conv2d_native
        values = convolve(values, kernel, strides, padding, data_format=DATA_FORMAT[self.layout])
        if not layer.bias:
            return values
        return tf.nn.bias_add(values, next(self.variables), data_format=DATA_FORMAT[self.layout])

    def _norm(self, layer, values):
        """Normalises by the tower's own batch.

        TensorFlow raises an epsilon of 1e-5 to 1.001e-5. Its batch variance is the unbiased estimate, as in PyTorch.
        """
        scale, offset = next(self.variables), next(self.variables)
        moving = next(self.statistics)
        given = (None, None) if self.training else moving
        values, mean, variance = tf.nn.fused_batch_norm(
            values,
            scale,
            offset,
            *given,
            epsilon=networks.NORM_EPSILON,
            data_format=DATA_FORMAT[self.layout],
            is_training=self.training,
        )
        if self.training:
            share = 1 - networks.NORM_MOMENTUM
            for old, new in zip(moving, (mean, variance)):
                with tf.device(old.device):
                    self.updates.append(graph_api.subtract(old, share * (old.read_value() - new)))
        return values

    def _relu(self, layer, values):
        return tf.nn.relu(values)

    def _relu6(self, layer, values):
        return tf.nn.relu6(values)

    def _averagepool(self, layer, values):
        return self._pool(tf.nn.avg_pool, layer.size, layer.size, values)

    def _maxpool(self, layer, values):
        margin = networks.pool_padding(layer)
        if margin:
            values = tf.pad(values, self._spatial([0, 0], [margin, margin]))
        return self._pool(tf.nn.max_pool, layer.size, layer.stride, values)

    def _pool(self, function, size, stride, values):
        window, strides = self._spatial(1, size), self._spatial(1, stride)
        return function(values, window, strides, "VALID", data_format=DATA_FORMAT[self.layout])

    def _globalaveragepool(self, layer, values):
        return tf.reduce_mean(values, axis=[1, 2] if self.layout == "channels_last" else [2, 3])

    def _flatten(self, layer, values):
        if self.layout == "channels_first":
            values = tf.transpose(values, [0, 2, 3, 1])
        return tf.reshape(values, [-1, int(np.prod(values.shape.as_list()[1:]))])

    def _dense(self, layer, values):
        kernel, bias = next(self.variables), next(self.variables)
        return tf.nn.bias_add(tf.matmul(values, kernel), bias)

    def _residual(self, layer, values):
        body = self.apply(layer.body, values)
        return body + self.apply(layer.shortcut, values)

    def _spatial(self, other, spatial):
        """A list for the four dimensions of images: `spatial` for height and width, `other` for the others."""
        if self.layout == "channels_last":
            return [other, spatial, spatial, other]
        return [other, other, spatial, spatial]


def mean_loss(logits, labels):
    """Mean softmax cross-entropy, a float32 scalar. labels: (N,) int64."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def loadable(name, shape, dtype, trainable=False):
    """A variable that `load` fills through a placeholder, as a constant in the graph would be folded."""
    placeholder = tf.placeholder(dtype, shape)
    return tf.get_variable(name, initializer=placeholder, trainable=trainable, use_resource=True)


def load(session, variables, arrays):
    """Fills `loadable` variables, at any time."""
    placeholders = [variable.initializer.inputs[1] for variable in variables]
    session.run([variable.initializer for variable in variables], dict(zip(placeholders, arrays)))


def laid_out(images, layout):
    """(N, h, w, c) array to `layout`."""
    return images if layout == "channels_last" else images.transpose(0, 3, 1, 2).copy()
