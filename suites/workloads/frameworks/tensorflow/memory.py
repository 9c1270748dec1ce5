"""The memory of GPUs, as TensorFlow counts it."""

import tensorflow

from frameworks.tensorflow import folding, towers
from frameworks.tensorflow.graph_api import tf


def peak_mib(places):
    """The largest MiB of tensors on any GPU since the process started.

    None on a CPU, and where TensorFlow does not say. Its allocator counts, which all sessions of a process share: up to
    1.15 an operation says it, from 2.5 on a function.
    """
    if None in places:
        return None
    if not hasattr(tensorflow, "contrib"):
        ask = getattr(tensorflow.config.experimental, "get_memory_info", None)
        return ask and max(ask("GPU:%d" % place)["peak"] for place in places) / folding.MIB
    with tf.Graph().as_default():
        peaks = []
        for place in places:
            with tf.device(towers.device_name(place)):
                peaks.append(tensorflow.contrib.memory_stats.MaxBytesInUse())
        with tf.Session() as session:
            return float(max(session.run(peaks))) / folding.MIB
