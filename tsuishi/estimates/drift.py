"""What disturbs a measurement while it runs: clocks held back, clocks and step times that change."""

from collections.abc import Sequence

import pandas as pd

from tsuishi.estimates.gpu_use import measured_on_gpus
from tsuishi.results.frames import Results
from tsuishi.specs.quantities import MEASURED

# What changes by more than this share from the first third of a trial to the last has drifted.
DRIFT = 0.05
# Blocks of a trial whose thirds can be compared: a third of two or more.
LEAST_BLOCKS = 6


def throttled(results: Results) -> pd.Series:
    """By trial: the share of its GPU ticks in measured phases at which clocks were held back; where there are any."""
    ticks = _counting(measured_on_gpus(results.telemetry), results)
    shares = (ticks["throttle_reasons"].astype("object") != "").groupby(ticks["trial"]).mean()
    return shares[shares > 0]


def throttle_reasons(results: Results) -> list[str]:
    """Why clocks were held back in measured phases, as the driver names it, each reason once."""
    ticks = _counting(measured_on_gpus(results.telemetry), results)
    return sorted({reason for reasons in ticks["throttle_reasons"].unique() for reason in reasons.split("+")} - {""})


def clock_drifts(results: Results) -> pd.Series:
    """By trial: the largest relative change of a GPU's mean clock, of those that drifted; over measured ticks."""
    ticks = _counting(measured_on_gpus(results.telemetry), results)
    return _drifted(ticks.dropna(subset=["sm_clock_mhz"]), "sm_clock_mhz", ["trial", "device"], least=3)


def step_drifts(results: Results) -> pd.Series:
    """By trial: the relative change of the time of a step, of those that drifted; over the blocks of a phase.

    Trials of fewer than LEAST_BLOCKS blocks tell nothing, nor does a first epoch, which is always another.
    """
    samples = _counting(results.samples, results)
    first_epoch = (samples["phase"] == "epoch") & (samples["index"] == 0)
    blocks = samples[samples["phase"].isin(MEASURED) & ~first_epoch & (samples["steps"] > 0)]
    step_s = blocks["seconds"] / blocks["steps"].astype("float64")
    return _drifted(blocks.assign(step_s=step_s), "step_s", ["trial", "phase"], LEAST_BLOCKS)


def _counting(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The rows of trials that count and are ok."""
    return rows[rows["trial"].isin(results.counting.index[results.counting["status"] == "ok"])]


def _drifted(rows: pd.DataFrame, column: str, keys: Sequence[str], least: int) -> pd.Series:
    """By trial: last third over first third of its rows, less 1 (medians), the largest of its groups of `keys`.

    Only of groups of `least` rows or more, and only what is larger than DRIFT.
    """
    groups = rows.groupby(list(keys), observed=True)[column]
    place, size = groups.cumcount(), groups.transform("size")
    first, last = (
        rows[part & (size >= least)].groupby(list(keys), observed=True)[column].median()
        for part in (place < size // 3, place >= size - size // 3)
    )
    changes = (last / first - 1).rename("change").reset_index()
    largest = changes.loc[changes["change"].abs().groupby(changes["trial"]).idxmax()].set_index("trial")["change"]
    return largest[largest.abs() > DRIFT]
