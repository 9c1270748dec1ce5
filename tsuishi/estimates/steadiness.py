"""Whether a machine was steady over a session: step times against the time since its beginning (docs/certainty.md).

A machine that warms for minutes makes later trials slower, each of which is too short to show it. Trials of all cases
together do.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from tsuishi.estimates.intervals import CONFIDENCE, student
from tsuishi.estimates.variances import moderated

# So often a session in which nothing changes is said to have changed.
LEVEL = 0.01
# A smaller change from the first trial to the last does not matter.
LEAST_CHANGE = 0.01
# The fewest trials beyond one of each case: fewer would find chance only.
_FEWEST_FREEDOM = 6
# The quantities of a step's time. An epoch may be derived from steps, so of several the first counts.
STEP_TIMES = ("step_s", "later_run_s", "median_epoch_s")


class TrialTime(NamedTuple):
    """The step time of a trial, and when the trial began, in seconds since any moment. `case`: the case's name."""

    session: str
    column: str
    case: str
    began_s: float
    step_s: float


class SessionChange(NamedTuple):
    """The change of step times in an environment from the first to the last trial of a case: 0.05 is 5 % longer.

    low, high: of its 95 % interval. p: how often so much is seen where nothing changes.
    """

    session: str
    column: str
    trials: int
    change: float
    low: float
    high: float
    p: float

    @property
    def matters(self) -> bool:
        return self.p < LEVEL and abs(self.change) >= LEAST_CHANGE


def session_changes(times: Iterable[TrialTime]) -> list[SessionChange]:
    """The change in each session and environment; without sessions that have too few trials of the same cases."""
    groups: dict[tuple[str, str], list[TrialTime]] = defaultdict(list)
    for time in times:
        if 0 < time.step_s < math.inf:
            groups[time.session, time.column].append(time)
    return [change for key in sorted(groups) for change in _change(*key, groups[key])]


def _change(session: str, column: str, times: Sequence[TrialTime]) -> Iterator[SessionChange]:
    """Least squares of the logarithms about each case's mean on the time of the trial about the case's mean time."""
    of_case: dict[str, list[TrialTime]] = defaultdict(list)
    for time in times:
        of_case[time.case].append(time)
    cases = {case: several for case, several in of_case.items() if len(several) > 1}
    freedom = sum(map(len, cases.values())) - len(cases) - 1
    if freedom < _FEWEST_FREEDOM:
        return
    logs = {case: [math.log(time.step_s) for time in several] for case, several in cases.items()}
    scatter = moderated(logs, session)
    # A case that scatters more than others counts less; equal trials have no scatter, and all count alike.
    least = max((pool.variance for pool in scatter.values() if pool), default=0.0) * 1e-6 or 1.0
    x = np.concatenate([_centred([time.began_s for time in several]) for several in cases.values()])
    y = np.concatenate([_centred(logs[case]) for case in cases])
    each = [max(pool.variance, least) if (pool := scatter[case]) else least for case in cases]
    weights = 1 / np.repeat(each, [len(several) for several in cases.values()])
    spread = float((weights * x * x).sum())
    if not spread:
        return
    slope = float((weights * x * y).sum()) / spread
    error = math.sqrt(float((weights * (y - slope * x) ** 2).sum()) / freedom / spread)
    # A run measures its questions one after the other: nothing is known of a longer time than that of a case.
    began = [[time.began_s for time in several] for several in cases.values()]
    lasted = max(max(of_case) - min(of_case) for of_case in began)
    reach = student(freedom, CONFIDENCE) * error
    p = 2 * float(special.stdtr(freedom, -abs(slope) / error)) if error else float(slope == 0)
    change, low, high = (math.expm1(lasted * (slope + side * reach)) for side in (0, -1, 1))
    yield SessionChange(session, column, sum(map(len, began)), change, low, high, p)


def _centred(values: Sequence[float]) -> np.ndarray:
    centred: np.ndarray = np.array(values) - math.fsum(values) / len(values)
    return centred
