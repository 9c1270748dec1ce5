"""Averages the telemetry of many trials, so that a page can hold it.

A page has room for MOST_VALUES numbers. The time of each trial is cut into bins of equal width: the same number for
every trial, but none narrower than the time between two ticks. Where even LEAST_BINS are too many, later repetitions
are left out.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from tsuishi.estimates.gpu_use import device_order, means_over_time, with_lengths
from tsuishi.results.frames import Results, named_rows

MOST_VALUES = 250_000
LEAST_BINS, MOST_BINS = 8, 240
# The name, title and phases of a trial take the room of so many values.
_NAME_VALUES = 40
_SIGNIFICANT_DIGITS = 4

# `memory_mib` is that of the trial's processes on the host, and of all processes on a GPU.
QUANTITIES = ("utilisation_percent", "memory_mib", "power_w", "sm_clock_mhz", "temperature_c")

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """A trial over time: means over bins of `step_s` seconds from its start to `end_s`, by device and quantity.

    `trial` is its index in Results.trials. Devices are the host, then GPUs. A value is None where the bin has no tick:
    ticks are not equally far apart.
    A device without any value of a quantity has no list of it.
    """

    trial: int
    step_s: float
    end_s: float
    devices: dict[str, dict[str, list[float | None]]]


def overview(results: Results, most_values: int = MOST_VALUES) -> list[Series]:
    """The telemetry of trials, in the order of Results.trials, averaged to about `most_values` numbers."""
    ticks = _ticks(results.telemetry)
    bins = _bins(_lengths(ticks), results.trials["repetition"], most_values)
    if bins.empty:
        return []
    means = _means(ticks, bins)
    by_trial = {row.trial: Series(row.trial, row.step_s, row.end_s, {}) for row in named_rows(bins.reset_index())}
    trials, devices, places = (means.index.get_level_values(level).to_numpy() for level in range(3))
    first = np.r_[True, (trials[1:] != trials[:-1]) | (devices[1:] != devices[:-1])][: len(means)]
    begins = np.flatnonzero(first)
    # Every device of a trial has a place for each of the trial's bins.
    ends = np.cumsum(bins["last"].loc[trials[begins]].to_numpy() + 1)
    edges = [0, *ends.tolist()]
    rows = np.r_[0, ends][np.cumsum(first) - 1] + places
    values = {quantity: _listed(means[quantity].to_numpy(), rows, edges[-1]) for quantity in QUANTITIES}
    for place, begin, end in zip(begins.tolist(), edges, edges[1:], strict=False):
        lists = {name: line[begin:end] for name, line in values.items()}
        known = {name: line for name, line in lists.items() if line.count(None) < len(line)}
        by_trial[trials[place]].devices[devices[place]] = known
    return list(by_trial.values())


def _ticks(telemetry: pd.DataFrame) -> pd.DataFrame:
    """The columns of telemetry that a page shows; devices sort by `device_order`."""
    names = sorted(telemetry["device"].unique(), key=device_order)
    memory_mib = telemetry["process_memory_mib"].fillna(telemetry["memory_used_mib"])
    ticks = telemetry.assign(device=pd.Categorical(telemetry["device"], categories=names), memory_mib=memory_mib)
    return with_lengths(ticks[["trial", "device", "elapsed_s", *QUANTITIES]])


def _lengths(ticks: pd.DataFrame) -> pd.DataFrame:
    """By trial: the number of its `ticks`, the median seconds between two, its end in seconds, its number of lines."""
    # The rows of one moment lie together, a row per device: of a million rows few have to be looked up.
    moments = ticks[["trial", "elapsed_s"]]
    moments = moments[(moments != moments.shift()).any(axis=1)].drop_duplicates()
    by_trial = moments.groupby("trial")["elapsed_s"]
    has_values = ticks.groupby(["trial", "device"], observed=True)[[*QUANTITIES]].count() > 0
    return pd.DataFrame(
        {
            "ticks": by_trial.size(),
            "tick_s": by_trial.diff().groupby(moments["trial"]).median().fillna(0.0),
            "end_s": by_trial.max(),
            "lines": has_values.sum(axis=1).groupby("trial").sum(),
        }
    )


def _bins(lengths: pd.DataFrame, repetitions: pd.Series, most_values: int) -> pd.DataFrame:
    """By trial, for the trials that fit on a page: the width of its bins `step_s`, its `last` bin, and `end_s`."""

    def values(bins: int) -> npt.NDArray[np.int64]:
        counts: npt.NDArray[np.int64] = _NAME_VALUES + lines * np.minimum(bins, ticks)
        return counts

    early_first = lengths.loc[repetitions.reindex(lengths.index).fillna(1).sort_values(kind="stable").index]
    lines, ticks = (early_first[name].to_numpy("int64") for name in ("lines", "ticks"))
    fits = values(LEAST_BINS).cumsum() <= most_values
    trials, lines, ticks = early_first[fits].sort_index(), lines[fits], ticks[fits]
    choices = range(MOST_BINS, LEAST_BINS, -1)
    count = next((bins for bins in choices if values(bins).sum() <= most_values), LEAST_BINS)
    # Most bins that are narrower than the time between ticks would be empty.
    width_s = np.maximum(trials["tick_s"], trials["end_s"] / count)
    step_s = np.maximum(np.ceil(1000 * width_s) / 1000, 0.001)
    last = np.maximum(np.ceil(trials["end_s"] / step_s) - 1, 0).astype("int64")
    return pd.DataFrame({"step_s": step_s, "end_s": trials["end_s"], "last": last})


def _means(ticks: pd.DataFrame, bins: pd.DataFrame) -> pd.DataFrame:
    """The mean of every quantity over time, by trial, device and bin."""
    binned = ticks.join(bins[["step_s", "last"]], on="trial", how="inner")
    binned["bin"] = np.minimum(binned["elapsed_s"] // binned["step_s"], binned["last"]).astype("int64")
    return means_over_time(binned, QUANTITIES, ["trial", "device", "bin"])


def _listed(values: Numbers, places: npt.NDArray[np.int64], length: int) -> list[float | None]:
    """The values, rounded, at their places; None elsewhere and for NaN."""
    every = np.full(length, np.nan)
    every[places] = _rounded(values)
    return [None if value != value else int(value) if value.is_integer() else value for value in every.tolist()]


def _rounded(values: Numbers) -> Numbers:
    """The values with _SIGNIFICANT_DIGITS, so that they are short in decimal."""
    with np.errstate(divide="ignore"):
        digits = _SIGNIFICANT_DIGITS - 1 - np.floor(np.log10(np.abs(values)))
    power = np.power(10.0, np.abs(np.nan_to_num(digits, posinf=0.0)))
    rounded: Numbers = np.where(digits > 0, np.rint(values * power) / power, np.rint(values / power) * power)
    return rounded
