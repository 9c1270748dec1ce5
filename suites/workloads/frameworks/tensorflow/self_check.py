"""The self-check's operations in TensorFlow."""

from frameworks import parts
from frameworks.tensorflow.graph_api import tf
from frameworks.tensorflow.towers import device_name


class SelfCheck(parts.SelfCheck):
    def compute(self, place, left, right, images, filters):
        """In a graph and a session, which both TensorFlow 1 and 2 have; kernels of the CPU need NHWC."""
        with tf.Graph().as_default(), tf.device(device_name(place)):
            nhwc, hwio = tf.constant(images.transpose(0, 2, 3, 1)), tf.constant(filters.transpose(2, 3, 1, 0))
            result = tf.nn.conv2d(nhwc, hwio, strides=[1, 1, 1, 1], padding="VALID")
            of_images, of_filters = tf.gradients(tf.reduce_sum(result * result) / 2, [nhwc, hwio])
            with tf.Session(config=_config()) as session:
                product, result, of_images, of_filters = session.run(
                    [tf.matmul(tf.constant(left), tf.constant(right)), result, of_images, of_filters]
                )
        nchw = (0, 3, 1, 2)
        return [product, result.transpose(nchw), of_images.transpose(nchw), of_filters.transpose(3, 2, 0, 1)]


def _config():
    config = tf.ConfigProto(allow_soft_placement=False)
    config.gpu_options.allow_growth = True
    # Otherwise the CPU would fold the operations, as their operands are constants.
    config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config
