"""device_limits in JAX. Every step keeps its results, so that synchronise() can wait for them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from frameworks import parts
from frameworks.jax import devices

KINDS = {"fp16": "float16", "bf16": "bfloat16"}
AXIS = "devices"


class Limits(parts.Limits):
    def matmul(self, problem, measure):
        device, kind = devices.device(problem.places, 0), KINDS.get(problem.precision, "float32")
        left, right = [devices.copied(matrix.astype(kind), device) for matrix in problem.matrices]
        product = _repeated(jax.jit(jnp.dot), measure, left, right)
        return [np.asarray(matrix.astype("float32")) for matrix in (left[problem.rows], right, product[problem.rows])]

    def copy(self, problem, measure, source, target):
        """JAX has no arrays to copy into: the memory of a new array is part of the time, save within a device."""
        buffer = devices.copied(np.ones(problem.values, np.float32), _memory(problem, source))
        if source == target:
            _copy_within(buffer, measure)
        else:
            _repeated(devices.copied, measure, buffer, _memory(problem, target))

    def all_reduce(self, problem, measure):
        mesh = Mesh(np.array(devices.all_of(problem.places)), (AXIS,))
        shares = PartitionSpec(AXIS)
        add = jax.shard_map(lambda own: jax.lax.psum(own, AXIS), mesh=mesh, in_specs=shares, out_specs=shares)
        add = jax.jit(add, donate_argnums=0)
        values = len(problem.places) * problem.values

        def filled(value):
            return jax.device_put(np.full(values, value, np.float32), NamedSharding(mesh, shares))

        def step(buffer):
            devices.wait_between_steps(problem.places, buffer)
            return add(buffer)

        checked = float(step(filled(1.0))[0])
        _chained(step, filled(0.0), measure)  # zeros, so that repeated sums do not overflow
        return checked

    def kernel_launch(self, problem, measure):
        add = jax.jit(lambda number: number + 1)

        def step(number):
            for _ in range(problem.launches):
                number = add(number)
            return number

        _chained(step, jax.device_put(np.float32(0), devices.device(problem.places, 0)), measure)


def _memory(problem, index):
    """The memory of the place with this index; of the host for None."""
    if index is None:
        return devices.host_memory(devices.device(problem.places, 0))
    return devices.device_memory(devices.device(problem.places, index))


def _copy_within(buffer, measure):
    """Each copy takes over the memory of the copy before, so that no step allocates."""
    copy = jax.jit(lambda before, buffer: jnp.copy(buffer), donate_argnums=0, keep_unused=True)
    _chained(lambda before: copy(before, buffer), jnp.copy(buffer), measure)


def _repeated(function, measure, *arguments):
    """Times function(*arguments); returns the last result."""
    results = []

    def step():
        results[:] = [function(*arguments)]

    measure(step, lambda: jax.block_until_ready(results))
    return results[0]


def _chained(function, first, measure):
    """Times a function that takes its own last result."""
    results = [first]

    def step():
        results[0] = function(results[0])

    measure(step, lambda: jax.block_until_ready(results))
