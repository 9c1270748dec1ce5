"""The power of a plan: how often trials would find a true difference, known before anything is measured.

A comparison is of two sides whose trials scatter log-normally; a side is the geometric mean over its cells. It is found
where the interval of its level excludes 1. The level is that of a report: of the last look at a main question, before
any other main question is answered (Holm's first step). Few trials may not show all of their scatter, as in a report
(estimates/unseen.py).
"""

import math
from functools import cache
from typing import NamedTuple

from tsuishi.estimates.intervals import Term
from tsuishi.estimates.unseen import OF_DAY, of_few_trials
from tsuishi.estimates.variances import Pool
from tsuishi.specs.questions import MAIN, look_at, share_of_look

# The standard deviation of the logarithm of the scatter, between cases.
_SPREAD = 0.5
# Parts of the distribution of the scatter that trials show.
_PARTS = 40
# Of the search for a ratio: its steps, and the largest logarithm.
_STEPS, _LARGEST = 40, 100.0


class Comparing(NamedTuple):
    """How main questions compare. `scatter`: the relative standard deviation between trials, pooled over cases.

    `questions`: the number of main questions that a report decides together. `cells`: of each side of a comparison.
    `moderated`: whether further cases are measured beside them, over which a report moderates their variances.
    `device`: "cpu" or "gpu". `environments`: whether the sides are of different environments.
    """

    scatter: float
    questions: int
    cells: int = 1
    moderated: bool = True
    device: str = "cpu"
    environments: bool = True

    def unseen(self, scatter: float, trials: int) -> float:
        """The standard deviation of a comparison by errors that so many trials of each cell do not show.

        scatter: of the trials of its cells, which show it. A moderated variance is about halfway to that of all cases.
        """
        every = self.scatter**2 if self.moderated else scatter**2
        cell = Term(0.0, trials, Pool((scatter**2 + every) / 2, 1))
        of_days = 2 * OF_DAY**2 if self.environments else 0.0
        return math.sqrt(2 * of_few_trials(cell, every, device=self.device) / self.cells + of_days)


def share_found(comparing: Comparing, true_ratio: float, trials: int) -> float:
    """The share of comparisons that find a true ratio above 1 by so many trials of each cell; 0 before the first look.

    Cases scatter differently: the scatter of a comparison is drawn from a log-normal distribution whose mean square is
    that of the pooled scatter. The share is right to about a tenth of all comparisons: see docs/certainty.md.
    """
    return _share(comparing, math.log(true_ratio), trials)


def detectable_ratio(comparing: Comparing, trials: int, share: float = 0.8) -> float:
    """The true ratio that this share of comparisons finds by so many trials; infinite before the first look."""
    low, high = 0.0, 1e-6
    while _share(comparing, high, trials) < share:
        low, high = high, 2 * high
        if high > _LARGEST:
            return math.inf
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _share(comparing, middle, trials) < share:
            low = middle
        else:
            high = middle
    return math.exp(high)


def _share(comparing: Comparing, log_ratio: float, trials: int) -> float:
    import numpy as np
    from scipy import special

    look = look_at(trials)
    if not look:
        return 0.0
    level = MAIN / max(1, comparing.questions) * share_of_look(look)
    freedom = _freedom(comparing, look)
    reach, deviations = float(special.stdtrit(freedom, 1 - level / 2)), -float(special.ndtri(level / 2))
    # The variance that trials show, over the true variance: the middles of as many equal parts of its distribution.
    shown = special.gammaincinv(freedom / 2, (np.arange(_PARTS) + 0.5) / _PARTS) * 2 / freedom
    share = 0.0
    for scatter, weight in _scatters(comparing):
        error = scatter * math.sqrt(2 / (comparing.cells * look))
        if not error:
            share += weight * (log_ratio > deviations * comparing.unseen(0.0, look))
            continue
        of_unseen = [comparing.unseen(scatter * math.sqrt(part), look) for part in shown.tolist()]
        needed = np.hypot(reach * error * np.sqrt(shown), deviations * np.array(of_unseen))
        share += weight * float(special.ndtr((log_ratio - needed) / error).mean())
    return min(1.0, share)


def _freedom(comparing: Comparing, trials: int) -> float:
    """The degrees of freedom of a comparison: Satterthwaite's on average, where each cell has its own variance.

    With a single cell on each side, moderation makes them those of both cells together; with several cells, as many are
    lost again because the cells differ.
    """
    cells, each = 2 * comparing.cells, trials - 1
    if comparing.moderated and comparing.cells == 1:
        return cells * each
    return (cells * each + 2) * each / (each + 2)


@cache
def _scatters(comparing: Comparing) -> list[tuple[float, float]]:
    """The scatters of a comparison, each with its weight. Over several cells of a side they differ less (Fenton 1960).

    The points are those of Gauss and Hermite.
    """
    import numpy as np

    variance = math.log1p(math.expm1(4 * _SPREAD**2) / comparing.cells)
    points, weights = np.polynomial.hermite_e.hermegauss(21)
    scatters = comparing.scatter * np.exp((points * math.sqrt(variance) - variance / 2) / 2)
    return list(zip(scatters.tolist(), (weights / weights.sum()).tolist(), strict=True))
