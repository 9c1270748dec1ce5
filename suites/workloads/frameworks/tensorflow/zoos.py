"""Networks of Keras' applications, by name: "keras:ResNet50". Their weights are random, by Keras' initialisers."""

import tensorflow as tf

from common.events import Unsupported
from common.networks import Network, require_in_library
from frameworks.tensorflow.graph_api import accepts

_USUAL_SIZE = 224
# Pixels of an image's side, by the documentation of Keras' applications.
_OWN_SIZES = {
    "InceptionV3": 299,
    "InceptionResNetV2": 299,
    "Xception": 299,
    "NASNetLarge": 331,
    "EfficientNetB1": 240,
    "EfficientNetB2": 260,
    "EfficientNetB3": 300,
    "EfficientNetB4": 380,
    "EfficientNetB5": 456,
    "EfficientNetB6": 528,
    "EfficientNetB7": 600,
    "EfficientNetV2B1": 240,
    "EfficientNetV2B2": 260,
    "EfficientNetV2B3": 300,
    "EfficientNetV2S": 384,
    "EfficientNetV2M": 480,
    "EfficientNetV2L": 480,
}


def network(name, image_size):
    """The Network, without layers. image_size: pixels, or None for the network's own. Raises Unsupported."""
    library, model = name.split(":", 1)
    if library != "keras":
        raise Unsupported("networks of {} are PyTorch's".format(library))
    require_in_library(name, version(), names())
    if not accepts(_of(model), "classifier_activation"):
        raise Unsupported("model {!r}: {} has no logits of it (2.2 and newer do)".format(name, version()))
    size = image_size or _OWN_SIZES.get(model, _USUAL_SIZE)
    return Network(name, (size, size, 3), None, None)


def names():
    return [each for each in dir(tf.keras.applications) if each[0].isupper()]


def version(network=None):
    return "keras of TensorFlow {}".format(tf.__version__)


def build(network, inputs, data_format, seed):
    """A Keras Model of the network, from a Keras tensor to logits in FP32."""
    tf.random.set_seed(seed)
    before = tf.keras.backend.image_data_format()
    tf.keras.backend.set_image_data_format(data_format)
    try:
        model = _of(network.name.split(":", 1)[1])(weights=None, input_tensor=inputs, classifier_activation=None)
    finally:
        tf.keras.backend.set_image_data_format(before)
    return tf.keras.models.Model(inputs, tf.keras.layers.Activation("linear", dtype="float32")(model.outputs[0]))


def _of(model):
    return getattr(tf.keras.applications, model)
