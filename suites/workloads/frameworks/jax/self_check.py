"""The self-check's operations in JAX."""

import jax
import jax.numpy as jnp
import numpy as np

from frameworks import parts
from frameworks.jax import devices


class SelfCheck(parts.SelfCheck):
    def compute(self, place, left, right, images, filters):
        given = devices.copied([left, right, images, filters], devices.device([place], 0))
        return [np.asarray(result) for result in jax.jit(_results)(*given)]


def _results(left, right, images, filters):
    def convolved(images, filters):
        return jax.lax.conv(images, filters, (1, 1), "VALID")

    result, of_loss = jax.vjp(convolved, images, filters)
    return (jnp.dot(left, right), result) + of_loss(result)
