"""Devices by their places: GPU indices, or None for the CPU."""

import torch


def name(place):
    """PyTorch's name of the device."""
    return "cpu" if place is None else "cuda:%d" % place


def peak_memory_mib(places):
    """The largest MiB of tensors on any GPU, as the allocator of PyTorch counts, not the driver; None on a CPU."""
    if None in places:
        return None
    return max(torch.cuda.max_memory_allocated(place) for place in places) / 2.0**20


def synchronise(places):
    """Waits until the GPUs among `places` have finished all their work."""
    for place in set(places) - {None}:
        torch.cuda.synchronize(place)
