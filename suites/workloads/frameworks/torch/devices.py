"""Devices by their places: GPU indices, or None for the CPU."""

import torch


def name(place):
    """PyTorch's name of the device."""
    return "cpu" if place is None else "cuda:%d" % place


def synchronise(places):
    """Waits until the GPUs among `places` have finished all their work."""
    for place in set(places) - {None}:
        torch.cuda.synchronize(place)
