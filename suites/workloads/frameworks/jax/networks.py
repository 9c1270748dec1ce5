"""The networks in JAX: functions of weights, statistics and images. Weights stay in their canonical order and form."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from common import networks

# Axes of images, kernels and outputs, as lax.conv_general_dilated names them.
DIMENSIONS = {"channels_first": ("NCHW", "HWIO", "NCHW"), "channels_last": ("NHWC", "HWIO", "NHWC")}


def initial_statistics(network):
    """(mean, variance) of every batch normalisation, in the order of their weights."""
    widths = [
        before[-1]
        for layer, before, _ in networks.walk(network.layers, network.shape)
        if isinstance(layer, networks.Norm)
    ]
    return [(np.zeros(width, np.float32), np.ones(width, np.float32)) for width in widths]


class Pass:
    """A forward pass, which takes weights and statistics in the order of the layers.

    kind: the dtype of convolutions and dense layers. moved: the statistics after the pass.
    """

    def __init__(self, weights, statistics, layout, training, kind="float32"):
        self._weights = iter(weights)
        self._statistics = iter(statistics)
        self._layout = layout
        self._training = training
        self._kind = kind
        self._positions = (2, 3) if layout == "channels_first" else (1, 2)
        self.moved = []

    def through(self, layers, x):
        """The outputs of these layers. x: images in the layout, or values."""
        for layer in layers:
            if isinstance(layer, networks.Residual):
                body = self.through(layer.body, x)
                x = body + self.through(layer.shortcut, x)
            else:
                x = self._layer(layer, x)
        return x

    def _layer(self, layer, x):
        if isinstance(layer, networks.Conv):
            return self._convolved(layer, x)
        if isinstance(layer, networks.Norm):
            return self._normalised(x)
        if isinstance(layer, networks.Relu):
            return jax.nn.relu(x)
        if isinstance(layer, networks.Relu6):
            return jax.nn.relu6(x)
        if isinstance(layer, networks.AveragePool):
            return self._windows(x, layer.size).mean(axis=self._inner())
        if isinstance(layer, networks.MaxPool):
            return self._largest(layer, x)
        if isinstance(layer, networks.GlobalAveragePool):
            return x.mean(axis=self._positions)
        if isinstance(layer, networks.Flatten):
            return (x.transpose(0, 2, 3, 1) if self._layout == "channels_first" else x).reshape(len(x), -1)
        return jnp.dot(x.astype(self._kind), self._next()) + self._next()

    def _next(self):
        return next(self._weights).astype(self._kind)

    def _convolved(self, layer, x):
        padding = 2 * [((layer.size - 1) // 2,) * 2]
        strides = (layer.stride, layer.stride)
        dimensions = DIMENSIONS[self._layout]
        x, kernel = x.astype(self._kind), self._next()
        form = {"dimension_numbers": dimensions, "feature_group_count": layer.width if layer.depthwise else 1}
        x = lax.conv_general_dilated(x, kernel, strides, padding, **form)
        return x + self._by_channel(self._next()) if layer.bias else x

    def _normalised(self, x):
        """Normalised by the statistics of the batch in training, by the moving statistics otherwise; float32."""
        mean, variance = next(self._statistics)
        scale, offset = next(self._weights), next(self._weights)
        x = x.astype("float32")
        if self._training:
            axes = (0,) + self._positions
            own = x.mean(axis=axes), x.var(axis=axes)
            kept = networks.NORM_MOMENTUM
            moved = [kept * old + (1 - kept) * new for old, new in zip((mean, variance), own)]
            self.moved.append(tuple(moved))
            mean, variance = own
        factor = scale * lax.rsqrt(variance + networks.NORM_EPSILON)
        return (x - self._by_channel(mean)) * self._by_channel(factor) + self._by_channel(offset)

    def _by_channel(self, values):
        return values[:, None, None] if self._layout == "channels_first" else values

    def _windows(self, x, size):
        """The images with two further axes, for the positions in windows that do not overlap."""
        shape = list(x.shape)
        for axis in reversed(self._positions):
            shape[axis : axis + 1] = [shape[axis] // size, size]
        return x.reshape(shape)

    def _largest(self, layer, x):
        margin, sizes, strides, padding = networks.pool_padding(layer), [1] * 4, [1] * 4, [(0, 0)] * 4
        if not margin:
            return self._windows(x, layer.size).max(axis=self._inner())
        for axis in self._positions:
            sizes[axis], strides[axis], padding[axis] = layer.size, layer.stride, (margin, margin)
        return lax.reduce_window(x, -np.inf, lax.max, sizes, strides, padding)

    def _inner(self):
        """The axes of the positions in a window."""
        first = self._positions[0]
        return first + 1, first + 3


def logits(network, weights, statistics, images, layout, training, kind="float32"):
    """(logits (N, classes) float32, statistics after the pass)."""
    forward = Pass(weights, statistics, layout, training, kind)
    return forward.through(network.layers, images).astype("float32"), forward.moved if training else statistics


def loss(logits, labels):
    """Mean softmax cross-entropy of (N, classes) against (N,) integers."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()


def laid_out(images, layout):
    """(N, height, width, channels) array in the layout."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)) if layout == "channels_first" else images
