"""Disturbances during a measurement: throttled clocks, and clocks or step times that drift.

A drift is a large change from the first third of a trial to its last third, or a smaller change that the order of the
blocks shows (Mann, Econometrica 13, 1945, 245-259; Kendall's tau).
"""

import math
from collections.abc import Sequence

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


def gpu_ticks(results: Results) -> pd.DataFrame:
    """The ticks of GPUs in the measured phases of trials that count and whose status is ok."""
    return _counting(measured_on_gpus(results.telemetry), results)


def throttled(ticks: pd.DataFrame) -> pd.Series:
    """By trial: the share of its measured time on GPUs with throttled clocks; only trials with such ticks."""
    throttled = ticks["length_s"].where(ticks["throttle_reasons"].astype("object") != "", 0.0)
    shares = throttled.groupby(ticks["trial"]).sum() / ticks["length_s"].groupby(ticks["trial"]).sum()
    return shares[shares > 0]


def throttle_reasons(ticks: pd.DataFrame) -> list[str]:
    """The driver's names of the reasons for throttled clocks in measured phases, each once."""
    return sorted({reason for reasons in ticks["throttle_reasons"].unique() for reason in reasons.split("+")} - {""})


def clock_drifts(ticks: pd.DataFrame) -> pd.Series:
    """By trial: the largest relative drift of a GPU's clock in measured phases; only trials that drifted."""
    known = ticks.dropna(subset=["sm_clock_mhz"]).rename(columns={"length_s": "weight"})
    return _drifted(known, "sm_clock_mhz", ["trial", "device"], least=3)


def step_drifts(results: Results) -> pd.Series:
    """By trial: the relative drift of the time of a step over the blocks of a phase; only trials that drifted.

    Blocks of a trial are not independent, so chance alone makes somewhat more of the small drifts than _LEVEL says.

    Trials of fewer than LEAST_BLOCKS blocks are left out. A first epoch is left out too, as it always differs.
    """
    samples = _counting(results.samples, results)
    first_epoch = (samples["phase"] == "epoch") & (samples["index"] == 0)
    blocks = samples[samples["phase"].isin(MEASURED) & ~first_epoch & (samples["steps"] > 0)]
    step_s = blocks["seconds"] / blocks["steps"].astype("float64")
    weighted = blocks.assign(step_s=step_s, weight=1.0)
    return _drifted(weighted, "step_s", ["trial", "phase"], LEAST_BLOCKS, ordered=True)


def _counting(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The rows of trials that count and whose status is ok."""
    return rows[rows["trial"].isin(ok_rows(results.counting).index)]


def _drifted(rows: pd.DataFrame, column: str, keys: Sequence[str], least: int, ordered: bool = False) -> pd.Series:
    """By trial: the largest drift among its groups of `keys`, if it is larger than DRIFT.

    A drift is the median of the last third of a group's rows, by their `weight`, over that of the first third, minus 1.
    Groups of fewer than `least` rows are left out. ordered: also drifts above _SMALL_DRIFT that the order of the rows
    shows.
    """
    by_keys = rows.groupby(list(keys), observed=True)
    groups, weights = by_keys[column], by_keys["weight"]
    ends, third = weights.cumsum(), weights.transform("sum") / 3
    # Sums of weights are rounded.
    parts = ends <= third * (1 + 1e-9), ends - rows["weight"] >= 2 * third * (1 - 1e-9)
    enough = groups.transform("size") >= least
    first, last = (_medians(rows[part & enough], column, keys) for part in parts)
    changes = (last / first - 1).dropna().rename("change").reset_index()
    largest = changes.loc[changes["change"].abs().groupby(changes["trial"]).idxmax()]
    drifts = largest["change"].abs() > DRIFT
    if ordered:
        for place in largest.index[~drifts & (largest["change"].abs() > _SMALL_DRIFT)]:
            group = tuple(largest.loc[place, list(keys)])
            drifts[place] = trend_p(groups.get_group(group).to_numpy(dtype="float64")) < _LEVEL
    return largest[drifts].set_index("trial")["change"]


def _medians(rows: pd.DataFrame, column: str, keys: Sequence[str]) -> pd.Series:
    """The median of a column in each group of `keys`, in which a row counts by its `weight`."""
    ordered = rows.sort_values(column, kind="stable")
    weights = ordered.groupby(list(keys), observed=True)["weight"]
    until, half = weights.cumsum(), weights.transform("sum") / 2
    lower, upper = (
        ordered[past].groupby(list(keys), observed=True)[column].first() for past in (until >= half, until > half)
    )
    return (lower + upper) / 2


def trend_p(values: np.ndarray) -> float:
    """The two-sided p value of Mann's test: how often values in a random order rise or fall so much.

    By the normal distribution with a correction for continuity, which is right from about six values on.
    """
    count = len(values)
    score = abs(float(np.sign(values[None, :] - values[:, None])[np.triu_indices(count, 1)].sum()))
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return 2 * float(special.ndtr(-max(0.0, score - 1) / deviation))
