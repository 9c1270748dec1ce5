"""Devices by their places (GPU indices, or None for the CPU), and the memories of device and host."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding


def device(places, index):
    """The GPU of a place; on the CPU, the virtual device of that index (see __init__.py)."""
    place = places[index]
    return jax.devices("cpu")[index] if place is None else jax.devices("cuda")[place]


def all_of(places):
    """The devices of all places, in their order."""
    return [device(places, index) for index in range(len(places))]


def peak_memory_mib(places):
    """The largest MiB of arrays on any GPU, as the allocator of XLA counts, not the driver; None on a CPU."""
    if None in places:
        return None
    return max(device.memory_stats()["peak_bytes_in_use"] for device in all_of(places)) / 2.0**20


def device_memory(of):
    """A device's own memory. With the device itself as its target, an array would keep the kind of memory it is in."""
    return SingleDeviceSharding(of, memory_kind="device")


def host_memory(of):
    """Memory of the host that a device reads without a copy in between (pinned)."""
    return SingleDeviceSharding(of, memory_kind="pinned_host")


def copied(arrays, target):
    """A copy of arrays at a device or sharding, which shares no memory with the original.

    jax.device_put would take over the memory of an array of NumPy that is aligned by chance, whatever may_alias says.
    """

    def copy(array):
        if isinstance(array, np.ndarray):
            return jnp.array(array, copy=True, device=target)
        return jax.device_put(array, target, may_alias=False)

    return jax.tree.map(copy, arrays)


def wait_between_steps(places, results):
    """On several virtual devices of a CPU, waits for the results of the step before, so that steps never overlap.

    The devices share as many threads as the CPU has cores. With several steps at a time, a device can wait in a later
    step for the other devices, on the thread that they need for an earlier one; XLA ends the process after a minute.
    """
    if None in places and len(places) > 1:
        jax.block_until_ready(results)
