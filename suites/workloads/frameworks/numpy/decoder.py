"""A transformer decoder in NumPy and float64: slow and plain, the reference for every framework's logits and loss."""

import numpy as np

from common import decoders


def logits(decoder, weights, tokens):
    """(sequences, length) tokens to (sequences * length, vocabulary) float64."""
    arrays = decoders.named([array.astype(np.float64) for array in weights])
    x = arrays.tokens[tokens] + arrays.positions
    for block in arrays.blocks:
        normal = _normalised(x, block.first_scale, block.first_offset)
        qkv = normal.dot(block.qkv_kernel) + block.qkv_bias
        x = x + attention(decoder, qkv).dot(block.out_kernel) + block.out_bias
        normal = _normalised(x, block.second_scale, block.second_offset)
        x = x + gelu(normal.dot(block.up_kernel) + block.up_bias).dot(block.down_kernel) + block.down_bias
    return _normalised(x, arrays.scale, arrays.offset).dot(arrays.head).reshape(-1, decoder.vocabulary)


def attention(decoder, qkv):
    """(sequences, length, 3 width) to (sequences, length, width): each token attends to itself and those before it."""
    sequences, length, _ = qkv.shape
    depth = decoder.width // decoder.heads
    query, key, value = qkv.reshape(sequences, length, 3, decoder.heads, depth).transpose(2, 0, 3, 1, 4)
    scores = np.matmul(query, key.transpose(0, 1, 3, 2)) / np.sqrt(depth)
    scores[..., np.triu(np.ones((length, length), bool), 1)] = -np.inf
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return np.matmul(shares, value).transpose(0, 2, 1, 3).reshape(sequences, length, decoder.width)


def gelu(x):
    """GELU by tanh (Hendrycks & Gimpel 2016, section 2)."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _normalised(x, scale, offset):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + decoders.NORM_EPSILON) * scale + offset
