"""The networks in Keras layers, for TensorFlow 1.13 to Keras 3."""

import numpy as np
import tensorflow as tf

from common import networks
from common.events import Unsupported
from frameworks.tensorflow.graph_api import accepts


def build(network, inputs, data_format):
    """A Keras Model of the network. inputs: a Keras tensor, NHWC or, with "channels_first", NCHW."""
    return without_xla(tf.keras.models.Model(inputs, _sequence(network.layers, inputs, data_format)))


def without_xla(model):
    """The model, which runs natively unless it is compiled otherwise: on a GPU Keras 3 would choose XLA on its own."""
    if hasattr(model, "jit_compile"):
        model.jit_compile = False
    return model


def _sequence(layers, x, data_format):
    for layer in layers:
        if isinstance(layer, networks.Residual):
            branches = [_sequence(branch, x, data_format) for branch in (layer.body, layer.shortcut)]
            x = tf.keras.layers.Add()(branches)
        elif isinstance(layer, networks.Conv):
            x = _convolution(layer, x, data_format)
        elif isinstance(layer, networks.MaxPool):
            x = _pool(layer, x, data_format)
        else:
            x = _layer(layer, data_format)(x)
    return x


def _convolution(layer, x, data_format):
    padding = "same"
    if layer.stride > 1:
        if layer.size > 1:
            x = tf.keras.layers.ZeroPadding2D((layer.size - 1) // 2, data_format=data_format)(x)
        padding = "valid"
    form = {"padding": padding, "use_bias": layer.bias, "data_format": data_format}
    if layer.depthwise:
        if not _depthwise():
            raise Unsupported("DepthwiseConv2D: Keras of TensorFlow {} has none".format(tf.__version__))
        return tf.keras.layers.DepthwiseConv2D(layer.size, layer.stride, **form)(x)
    return tf.keras.layers.Conv2D(layer.width, layer.size, layer.stride, **form)(x)


def _pool(layer, x, data_format):
    if networks.pool_padding(layer):
        x = tf.keras.layers.ZeroPadding2D(networks.pool_padding(layer), data_format=data_format)(x)
    return tf.keras.layers.MaxPooling2D(layer.size, layer.stride, data_format=data_format)(x)


def _layer(layer, data_format):
    layers = tf.keras.layers
    if isinstance(layer, networks.Norm):
        axis = 1 if data_format == "channels_first" else -1
        return layers.BatchNormalization(axis, networks.NORM_MOMENTUM, networks.NORM_EPSILON)
    if isinstance(layer, networks.Relu):
        return layers.ReLU() if hasattr(layers, "ReLU") else layers.Activation("relu")  # none before 1.13
    if isinstance(layer, networks.Relu6):
        return layers.Activation(tf.nn.relu6)
    if isinstance(layer, networks.AveragePool):
        return layers.AveragePooling2D(layer.size, data_format=data_format)
    if isinstance(layer, networks.GlobalAveragePool):
        return layers.GlobalAveragePooling2D(data_format=data_format)
    if isinstance(layer, networks.Flatten):
        return _flatten(data_format)
    return layers.Dense(layer.width, dtype="float32")  # logits and loss in FP32, also under mixed precision


def _flatten(data_format):
    """Raises Unsupported where Flatten knows one order of images, and this is another (before 1.13)."""
    if accepts(tf.keras.layers.Flatten.__init__, "data_format"):
        return tf.keras.layers.Flatten(data_format=data_format)
    if data_format == "channels_first":
        raise Unsupported("layout 'channels_first': Flatten of TensorFlow {} has none".format(tf.__version__))
    return tf.keras.layers.Flatten()


def trained_layers(network, model):
    """The layers of `model` that have weights, in canonical order.

    Keras sorts layers by depth, and so moves the layers of a shortcut. The numbers in their names are in the order in
    which they were built.
    """
    layers = tf.keras.layers
    kinds = {False: layers.Conv2D, True: _depthwise(), networks.Norm: layers.BatchNormalization}
    kinds[networks.Dense] = layers.Dense
    built = {}
    for which, kind in kinds.items():
        # A DepthwiseConv2D is a Conv2D in some releases.
        those = [layer for layer in model.layers if isinstance(layer, kind) and _is_depthwise(layer) == (which is True)]
        built[which] = iter(sorted(those, key=lambda layer: _number(layer.name)))
    steps = [layer for layer, _, _ in networks.walk(network.layers, network.shape)]
    wanted = [step.depthwise if isinstance(step, networks.Conv) else type(step) for step in steps]
    return [next(built[which]) for which in wanted if which in built]


def _is_depthwise(layer):
    return isinstance(layer, _depthwise())


def _depthwise():
    """The class of depthwise convolutions, for isinstance: none before TensorFlow 1.7."""
    return getattr(tf.keras.layers, "DepthwiseConv2D", ())


def _turned(layer, arrays):
    """Weights with the kernel of a depthwise convolution turned: Keras has (height, width, in, 1), we (.., 1, in)."""
    return [array.transpose(0, 1, 3, 2) if array.ndim == 4 and _is_depthwise(layer) else array for array in arrays]


def _number(name):
    """conv2d_12 to 12; the first layer of a kind has no number: -1."""
    last = name.rpartition("_")[2]
    return int(last) if last.isdigit() else -1


def set_weights(network, model, weights):
    """Fills the trainable weights from a canonical list; moving statistics stay as they are."""
    left = list(weights)
    for layer in trained_layers(network, model):
        trainable = len(layer.trainable_weights)
        own, left = left[:trainable], left[trainable:]
        layer.set_weights(_turned(layer, own) + layer.get_weights()[trainable:])


def get_weights(network, model):
    """The trainable weights as a canonical list of numpy arrays."""
    return [
        array
        for layer in trained_layers(network, model)
        for array in _turned(layer, layer.get_weights()[: len(layer.trainable_weights)])
    ]


def parameter_count(model):
    return int(sum(np.prod([int(size) for size in weights.shape]) for weights in model.trainable_weights))
