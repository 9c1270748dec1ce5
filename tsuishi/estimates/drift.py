"""Disturbances during a measurement: throttled clocks, and clocks or step times that drift.

A drift is a large change from the first third of a trial to its last third, or a smaller change that the order of the
blocks shows (Mann, Econometrica 13, 1945, 245-259; Kendall's tau).
"""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import special

from tsuishi.estimates.gpu_use import measured_on_gpus
from tsuishi.results.frames import Results, ok_rows
from tsuishi.specs.quantities import MEASURED

# A larger relative change from the first third of a trial to its last third is a drift.
DRIFT = 0.05
# So is a change of this size, where an order like that of the blocks comes by chance as rarely as this.
_SMALL_DRIFT, _LEVEL = 0.02, 0.01
# The fewest blocks of a trial: each third has two.
LEAST_BLOCKS = 6
# Sums of weights are rounded: so far apart they are equal.
_ROUNDING = 1e-9


def gpu_ticks(results: Results) -> pd.DataFrame:
    """The ticks of GPUs in the measured phases of trials that count and whose status is ok."""
    return _counting(measured_on_gpus(results.telemetry), results)


def throttled(ticks: pd.DataFrame) -> pd.Series:
    """By trial: the share of its measured time on GPUs with throttled clocks; only trials with such ticks."""
    throttled = ticks["length_s"].where(ticks["throttle_reasons"].astype("object") != "", 0.0)
    shares = throttled.groupby(ticks["trial"]).sum() / ticks["length_s"].groupby(ticks["trial"]).sum()
    return shares[shares > 0]


def throttle_reasons_in(ticks: pd.DataFrame) -> list[str]:
    """The driver's names of the reasons for throttled clocks in measured phases, each once."""
    return sorted({reason for reasons in ticks["throttle_reasons"].unique() for reason in reasons.split("+")} - {""})


def clock_drifts(ticks: pd.DataFrame) -> pd.Series:
    """By trial: the largest relative drift of a GPU's clock in measured phases; only trials that drifted."""
    known = ticks.dropna(subset=["sm_clock_mhz"])
    devices = known["device"].astype("category").cat.codes.to_numpy()
    return _drifted(
        known["trial"].to_numpy(), devices, known["sm_clock_mhz"].to_numpy(), known["length_s"].to_numpy(), least=3
    )


def step_drifts(results: Results) -> pd.Series:
    """By trial: the relative drift of the time of a step over the blocks of a phase; only trials that drifted.

    Blocks of a trial are not independent, so chance alone makes somewhat more of the small drifts than _LEVEL says.

    Trials of fewer than LEAST_BLOCKS blocks are left out. A first epoch is left out too, as it always differs.
    """
    samples = _counting(results.samples, results)
    first_epoch = (samples["phase"] == "epoch") & (samples["index"] == 0)
    blocks = samples[samples["phase"].isin(MEASURED) & ~first_epoch & (samples["steps"] > 0)]
    step_s = blocks["seconds"].to_numpy() / blocks["steps"].to_numpy(np.float64)
    phases = blocks["phase"].cat.codes.to_numpy()
    return _drifted(blocks["trial"].to_numpy(), phases, step_s, np.ones(len(blocks)), LEAST_BLOCKS, ordered=True)


def _counting(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The rows of trials that count and whose status is ok."""
    counts = np.zeros(len(results.trials), bool)
    counts[ok_rows(results.counting).index] = True
    counted: pd.DataFrame = rows[counts[rows["trial"].to_numpy()]]
    return counted


def _drifted(
    trials: np.ndarray, parts: np.ndarray, values: np.ndarray, weights: np.ndarray, least: int, ordered: bool = False
) -> pd.Series:
    """By trial: the largest drift among its parts (devices, or phases), if it is larger than DRIFT.

    All arrays have an element for each row: its trial, the trial's part, its value, and the value's weight. A drift is
    the median of the last third of a part's rows, by their weight, over that of the first third, minus 1. Parts of
    fewer than `least` rows are left out. ordered: also drifts above _SMALL_DRIFT that the order of the rows shows.
    """
    order = np.lexsort((parts, trials))
    trials, parts, values, weights = (each[order] for each in (trials, parts, values, weights))
    begins = np.flatnonzero(np.diff(trials, prepend=-1) | np.diff(parts, prepend=-1)).tolist()
    largest: dict[int, tuple[float, np.ndarray]] = {}
    for begin, end in pairwise([*begins, len(trials)]):
        part, trial = slice(begin, end), int(trials[begin])
        change = _change(values[part], weights[part]) if end - begin >= least else 0.0
        if abs(change) > abs(largest.get(trial, (0.0,))[0]):
            largest[trial] = change, values[part]
    drifted = {
        trial: change
        for trial, (change, of) in largest.items()
        if abs(change) > DRIFT or (ordered and abs(change) > _SMALL_DRIFT and trend_p(of) < _LEVEL)
    }
    return pd.Series(drifted, dtype="float64")


def _change(values: np.ndarray, weights: np.ndarray) -> float:
    """The median of the last third, by weight, over that of the first third, minus 1; NaN where one has no weight."""
    until = np.cumsum(weights)
    first = until <= until[-1] / 3 * (1 + _ROUNDING)
    last = until - weights >= until[-1] * 2 / 3 * (1 - _ROUNDING)
    if not (weights[first].sum() > 0 and weights[last].sum() > 0):
        return math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(_median(values[last], weights[last]) / _median(values[first], weights[first]) - 1)


def _median(values: np.ndarray, weights: np.ndarray) -> np.float64:
    """The median of values that count by their weights."""
    order = values.argsort()
    until = weights[order].cumsum()
    half = until[-1] / 2
    low, high = until.searchsorted(half * (1 - _ROUNDING)), until.searchsorted(half * (1 + _ROUNDING), "right")
    middle: np.float64 = (values[order[low]] + values[order[high]]) / 2
    return middle


def trend_p(values: np.ndarray) -> float:
    """The two-sided p value of Mann's test: how often values in a random order rise or fall so much.

    By the normal distribution with a correction for continuity, which is right from about six values on.
    """
    count = len(values)
    score = abs(float(np.sign(values[None, :] - values[:, None])[np.triu_indices(count, 1)].sum()))
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return 2 * float(special.ndtr(-max(0.0, score - 1) / deviation))
