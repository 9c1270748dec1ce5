"""What the trials of a round have in common (docs/certainty.md).

A slow minute of the machine makes all trials of a round longer, in every environment. It cancels in ratios within
rounds, so it is taken out of their error: values are the sum of a cell's mean, of a part that all cells of a round
share, and of a rest (a two-way model without interaction). Cells count by the inverse of their variance: else one noisy
cell would say what its round has in common.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from scipy import special

_Cell = TypeVar("_Cell", bound=Hashable)

# Rounds count as different only where chance alone would show this so rarely (F test): with few cells, chance makes
# the rest small.
_LEVEL = 0.001
# The fewest degrees of freedom of the rest.
_FEWEST_FREEDOM = 8
_PASSES = 20
# Rounds that explain everything but rounding are those of made-up values: intervals would have no length.
_LEAST_REST = 1e-9


def two_way_residuals(
    values: Mapping[_Cell, Sequence[float]],
    rounds: Mapping[_Cell, Sequence[Hashable]],
    variances: Mapping[_Cell, float],
) -> tuple[dict[_Cell, list[float]], float] | None:
    """The rest of the values without the means of cells and what rounds have in common, and its degrees of freedom.

    The rest of each cell is raised to make up for the fit.
    values: of each cell, a value for each of its rounds. variances: between the values of each cell, which decide how
    much a cell says of its rounds. None where the rounds have nothing in common that the values show.
    """
    cells = [cell for cell in values if variances[cell] > 0 and len(values[cell]) > 1]
    having = Counter(each for cell in cells for each in rounds[cell])
    # A cell that is alone in each of its rounds, as a case that a resumed run adds, shows no part that rounds share.
    cells = [cell for cell in cells if any(having[each] > 1 for each in rounds[cell])]
    places: dict[Hashable, int] = {}
    of_round = np.array([places.setdefault(each, len(places)) for cell in cells for each in rounds[cell]], dtype=int)
    counts = np.array([len(values[cell]) for cell in cells], dtype=int)
    freedom = len(of_round) - len(cells) - len(places) + 1
    if len(places) < 2 or freedom < _FEWEST_FREEDOM:
        return None
    of_cell = np.repeat(np.arange(len(cells)), counts)
    given = np.array([value for cell in cells for value in values[cell]], dtype=float)
    first = weights = 1 / np.array([variances[cell] for cell in cells])
    for _ in range(2):
        shared, rest = _fitted(given, of_cell, of_round, counts, weights)
        squares = np.bincount(of_cell, rest**2)
        share = _leverage(weights, of_cell, of_round, counts)
        # The variance of a cell that is far above the others' is its own; all other cells share theirs.
        own = squares / (1 - share) / (counts - 1)
        weights = 1 / np.maximum(own, float(np.median(own)) or own.max() or 1.0)
    rest_square = float((weights[of_cell] * rest**2).sum()) / freedom
    between = float((weights[of_cell] * shared[of_round] ** 2).sum()) / (len(places) - 1)
    made_up = float((first[of_cell] * rest**2).mean()) < _LEAST_REST
    if made_up or special.fdtrc(len(places) - 1, freedom, between / rest_square) > _LEVEL:
        return None
    raised = rest / np.sqrt(1 - share)[of_cell]
    parts = (part.tolist() for part in np.split(raised, np.cumsum(counts)[:-1]))
    return dict(zip(cells, parts, strict=True)), freedom


def _fitted(
    given: np.ndarray, of_cell: np.ndarray, of_round: np.ndarray, counts: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What each round has in common, and the rest of each value: weighted least squares, by turns."""
    weight = weights[of_cell]
    total = np.bincount(of_round, weight)
    shared = np.zeros(len(total))
    for _ in range(_PASSES):
        means = np.bincount(of_cell, given - shared[of_round]) / counts
        before, shared = shared, np.bincount(of_round, weight * (given - means[of_cell])) / total
        shared -= (total * shared).sum() / total.sum()
        if np.allclose(before, shared, rtol=1e-9, atol=1e-12):
            break
    means = np.bincount(of_cell, given - shared[of_round]) / counts
    return shared, given - means[of_cell] - shared[of_round]


def _leverage(weights: np.ndarray, of_cell: np.ndarray, of_round: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The part of each cell's variance that the fit of its rounds takes."""
    weight = weights[of_cell]
    share: np.ndarray = np.bincount(of_cell, weight / np.bincount(of_round, weight)[of_round]) / counts
    return share
