"""Runs inside an environment: the logits of a network whose weights come from a file.

Arguments: the folder of the workloads, the framework, the network, and an .npz with `images` and the weights, named in
canonical order. Prints a JSON object: logits by how they were computed. Keeps to Python 3.6, as the workloads do.
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np

from common import networks


def by_torch(network, weights, images):
    import torch

    from frameworks.torch import networks as networks_torch

    model = networks_torch.build(network, weights)
    model.eval()
    with torch.no_grad():
        return {"torch": model(torch.from_numpy(images.transpose(0, 3, 1, 2).copy())).numpy()}


def by_tensorflow(network, weights, images):
    return {"keras": by_keras(network, weights, images), "graph": by_graph(network, weights, images)}


def by_keras(network, weights, images):
    import tensorflow as tf

    from frameworks.tensorflow import networks_keras

    model = networks_keras.build(network, tf.keras.Input(images.shape[1:]), "channels_last")
    networks_keras.set_weights(network, model, weights)
    return model.predict(images, verbose=0)


def by_graph(network, weights, images):
    import tensorflow.compat.v1 as tf

    from frameworks.tensorflow import networks_graph

    with tf.Graph().as_default(), tf.Session() as session:
        model = networks_graph.Model(network, "channels_last")
        given = tf.placeholder(tf.float32, images.shape)
        logits, _ = model.apply(given, training=False)
        model.load(session, weights)
        return session.run(logits, {given: images})


def by_jax(network, weights, images):
    from frameworks.jax import networks as networks_jax

    statistics = networks_jax.initial_statistics(network)
    logits, _ = networks_jax.logits(network, weights, statistics, images, "channels_last", training=False)
    return {"jax": np.asarray(logits)}


def by_mxnet(network, weights, images):
    import mxnet

    from frameworks.mxnet import networks as networks_mxnet

    model = networks_mxnet.build(network, weights, mxnet.cpu())
    return {"mxnet": model(mxnet.nd.array(networks_mxnet.nchw(images))).asnumpy()}


def by_chainer(network, weights, images):
    import chainer

    from frameworks.chainer import networks as networks_chainer

    model = networks_chainer.build(network, weights)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        return {"chainer": model(networks_chainer.nchw(images)).array}


BY_FRAMEWORK = {
    "torch": by_torch,
    "tensorflow": by_tensorflow,
    "jax": by_jax,
    "mxnet": by_mxnet,
    "chainer": by_chainer,
}


def main():
    framework, name, file = sys.argv[2:]
    with np.load(file) as arrays:
        images = arrays["images"]
        weights = [arrays[one] for one in sorted(arrays.files) if one != "images"]
    network = networks.resized(networks.NETWORKS[name], images.shape[1])
    logits = BY_FRAMEWORK[framework](network, weights, images)
    print("found: " + json.dumps({how: array.tolist() for how, array in logits.items()}))


if __name__ == "__main__":
    main()
