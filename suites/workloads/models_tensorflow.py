"""The networks in Keras layers, for TensorFlow 1.13 to Keras 3; models_torch.py has the same in PyTorch."""

import numpy as np
import tensorflow as tf

import data

CNN10_STAGES = [(64, 3), (128, 3), (256, 3)]  # channels, layers

EPSILON = 1e-5  # PyTorch's default, see models_torch.py
MOMENTUM = 0.9  # share of the old value in the moving statistics


def cnn10(images, data_format):
    """Keras tensor (N, 32, 32, 3), or (N, 3, 32, 32) with data_format "channels_first", to logits (N, 10)."""
    layers = tf.keras.layers
    axis = 1 if data_format == "channels_first" else -1
    x = images
    for stage, (width, depth) in enumerate(CNN10_STAGES):
        if stage > 0:
            x = layers.AveragePooling2D(2, data_format=data_format)(x)
        for _ in range(depth):
            x = layers.Conv2D(width, 3, padding="same", data_format=data_format)(x)
            x = layers.BatchNormalization(axis=axis, momentum=MOMENTUM, epsilon=EPSILON)(x)
            x = layers.ReLU()(x)
    x = layers.GlobalAveragePooling2D(data_format=data_format)(x)
    return layers.Dense(data.CLASSES)(x)


MODELS = {"cnn10": cnn10}


def initialise(model, random):
    """Gives the layers of `model`, in order, Glorot-uniform weights, drawn from `random`, and zero biases."""
    for layer in model.layers:
        if isinstance(layer, (tf.keras.layers.Conv2D, tf.keras.layers.Dense)):
            kernel, bias = layer.get_weights()
            layer.set_weights([data.glorot_uniform(random, kernel.shape), np.zeros_like(bias)])


def parameter_count(model):
    return int(sum(np.prod([int(size) for size in weights.shape]) for weights in model.trainable_weights))
