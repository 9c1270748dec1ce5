"""Where Chainer computes: on the CPU."""

from common.events import Unsupported


def check(places):
    """Raises Unsupported for GPUs. places: GPU indices, or None for the CPU."""
    if set(places) != {None}:
        raise Unsupported(
            "Chainer computes on GPUs by CuPy, which no environment here has; accelerator 'cpu' would run"
        )
