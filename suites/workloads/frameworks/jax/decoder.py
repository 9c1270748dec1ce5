"""A transformer decoder in JAX: functions of weights and tokens. Weights stay in their canonical order and form."""

import jax
import jax.numpy as jnp
import numpy as np

from common import decoders, jobs
from common.events import Unsupported
from frameworks import parts
from frameworks.jax import devices
from frameworks.jax import networks as networks_jax
from frameworks.jax.strategies.none import Steady as SteadyImages
from frameworks.jax.trainer import KINDS


def logits(job, weights, tokens):
    """(sequences, length) tokens to (sequences * length, vocabulary) float32."""
    kind = KINDS.get(job.precision, "float32")
    arrays = decoders.named(weights)

    def dense(values, kernel, bias=None):
        values = jnp.dot(values.astype(kind), kernel.astype(kind))
        return values if bias is None else values + bias.astype(kind)

    x = arrays.tokens[tokens] + arrays.positions
    for block in arrays.blocks:
        qkv = dense(_normalised(x, block.first_scale, block.first_offset), block.qkv_kernel, block.qkv_bias)
        x = x + dense(_attention(job, qkv), block.out_kernel, block.out_bias)
        up = dense(_normalised(x, block.second_scale, block.second_offset), block.up_kernel, block.up_bias)
        x = x + dense(jax.nn.gelu(up, approximate=True), block.down_kernel, block.down_bias)
    out = dense(_normalised(x, arrays.scale, arrays.offset), arrays.head)
    return out.astype("float32").reshape(-1, job.network.vocabulary)


def _attention(job, qkv):
    sequences, length, _ = qkv.shape
    heads = job.network.heads
    query, key, value = jnp.moveaxis(qkv.reshape(sequences, length, 3, heads, -1), 2, 0)
    if job.attention == jobs.FUSED:
        mixed = jax.nn.dot_product_attention(query, key, value, is_causal=True, implementation=_implementation(job))
    else:
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(query.shape[-1]).astype(query.dtype)
        later = np.triu(np.ones((length, length), bool), 1)
        shares = jax.nn.softmax(jnp.where(later, -jnp.inf, scores).astype("float32")).astype(value.dtype)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", shares, value)
    return mixed.reshape(sequences, length, -1)


def _implementation(job):
    """cuDNN's kernel is for GPUs and types of 16 bits; without it XLA compiles the same products as of `plain`."""
    return "cudnn" if None not in job.places and job.precision in KINDS else "xla"


def _normalised(x, scale, offset):
    """Over the last axis, in float32."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + decoders.NORM_EPSILON) * scale + offset


class Steady(SteadyImages):
    """Steps on a batch that is on the device from the start, with compiled functions of (state, tokens, targets)."""

    def initial(self):
        return decoders.initial_weights(self.job.network, self.job.settings["seed"]), []

    def placed(self):
        tokens, targets = self.job.train
        return devices.copied([tokens.astype(np.int32), targets.astype(np.int32).ravel()], self.whole())

    def _loss(self, weights, statistics, tokens, targets):
        return networks_jax.loss(logits(self.job, weights, tokens), targets), statistics

    def logits(self, tokens):
        compute = jax.jit(lambda weights, tokens: logits(self.job, weights, tokens))
        return np.asarray(compute(self.state.weights, tokens.astype(np.int32)))


class Decoder(parts.Decoder):
    steady = Steady

    def check(self, job):
        if job.execution != "native":
            raise Unsupported(
                "execution {!r}: JAX has one way, which compiles every step by XLA; 'native' would run".format(
                    job.execution
                )
            )

    def kernel(self, job):
        if job.attention == jobs.PLAIN:
            return "einsum, softmax, einsum"
        return "jax.nn.dot_product_attention of {}".format(_implementation(job))
