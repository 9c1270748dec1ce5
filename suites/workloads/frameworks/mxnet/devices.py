"""Devices by their places: GPU indices, or None for the CPU, of which MXNet makes as many devices as are asked for."""

import mxnet


def device(places, index):
    """The GPU of a place; on the CPU, the device of that index, whose work runs beside that of the others."""
    return mxnet.cpu(index) if places[index] is None else mxnet.gpu(places[index])


def all_of(places):
    """The devices of all places, in their order."""
    return [device(places, index) for index in range(len(places))]


def host_memory(places):
    """Memory of the host: pinned where there is a GPU."""
    return mxnet.cpu() if None in places else mxnet.cpu_pinned()


def on(array, target):
    """A copy of a NumPy array on a device, in an array's own type."""
    return mxnet.nd.array(array, ctx=target, dtype=array.dtype)
