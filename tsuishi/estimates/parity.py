"""Parity: whether environments compute the same from the same weights and the same batch."""

from collections.abc import Mapping

# Against a float64 computation in NumPy; the replicas that really ran; and the loss itself.
QUANTITIES = ("logits_relative_error", "loss_relative_error", "step_relative_error", "replicas", "loss")


def largest_difference(losses: Mapping[str, float]) -> float | None:
    """The largest relative difference between two environments' losses: (max - min) / largest magnitude.

    losses: by environment. None for fewer than two.
    """
    values = list(losses.values())
    if len(values) < 2:
        return None
    largest = max(map(abs, values))
    return (max(values) - min(values)) / largest if largest else 0.0
