"""The networks in NumPy and float64: slow and plain, the reference for every framework's logits and loss."""

import numpy as np

from common import networks


def logits(network, weights, images, training):
    """(N, height, width, channels) to (N, classes) float64.

    Batch normalisation uses the statistics of the batch when `training`, otherwise its first: mean 0, variance 1.
    """
    return _sequence(network.layers, images.astype(np.float64), iter(weights), training)


def loss(logits, labels):
    """Mean softmax cross-entropy of (N, classes) against (N,) integers."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]))


def _sequence(layers, x, weights, training):
    for layer in layers:
        if isinstance(layer, networks.Residual):
            body = _sequence(layer.body, x, weights, training)
            x = body + _sequence(layer.shortcut, x, weights, training)
        else:
            x = _layer(layer, x, weights, training)
    return x


def _layer(layer, x, weights, training):
    if isinstance(layer, networks.Conv):
        kernel = next(weights).astype(np.float64)
        return _convolution(x, kernel, layer) + (next(weights) if layer.bias else 0)
    if isinstance(layer, networks.Norm):
        return _normalised(x, next(weights), next(weights), training)
    if isinstance(layer, networks.Relu):
        return np.maximum(x, 0)
    if isinstance(layer, networks.Relu6):
        return np.clip(x, 0, 6)
    if isinstance(layer, networks.AveragePool):
        count, height, width, channels = x.shape
        windows = x.reshape(count, height // layer.size, layer.size, width // layer.size, layer.size, channels)
        return windows.mean(axis=(2, 4))
    if isinstance(layer, networks.MaxPool):
        return _largest(x, layer)
    if isinstance(layer, networks.GlobalAveragePool):
        return x.mean(axis=(1, 2))
    if isinstance(layer, networks.Flatten):
        return x.reshape(len(x), -1)
    return x.dot(next(weights).astype(np.float64)) + next(weights)


def _convolution(x, kernel, layer):
    """A convolution as a sum over the kernel's positions: shifted images times a matrix, or by channel."""
    size, stride = layer.size, layer.stride
    before = (size - 1) // 2
    padded = np.pad(x, ((0, 0), (before, before), (before, before), (0, 0)), "constant")
    height, width = -(-x.shape[1] // stride), -(-x.shape[2] // stride)
    total = 0
    for a in range(size):
        for b in range(size):
            shifted = padded[:, a : a + stride * height : stride, b : b + stride * width : stride]
            shifted = shifted.reshape(-1, x.shape[3])  # 2-D, so that BLAS computes it
            total = total + (shifted * kernel[a, b, 0] if layer.depthwise else shifted.dot(kernel[a, b]))
    return total.reshape(len(x), height, width, kernel.shape[3])


def _largest(x, layer):
    """The largest of each window, position by position of the window."""
    margin = networks.pool_padding(layer)
    padded = np.pad(x, ((0, 0), (margin, margin), (margin, margin), (0, 0)), "constant")
    height, width, _ = networks.after(layer, x.shape[1:])
    stride, largest = layer.stride, None
    for a in range(layer.size):
        for b in range(layer.size):
            shifted = padded[:, a : a + stride * height : stride, b : b + stride * width : stride]
            largest = shifted if largest is None else np.maximum(largest, shifted)
    return largest


def _normalised(x, scale, offset, training):
    mean, variance = (x.mean(axis=(0, 1, 2)), x.var(axis=(0, 1, 2))) if training else (0.0, 1.0)
    return (x - mean) / np.sqrt(variance + networks.NORM_EPSILON) * scale + offset
