"""Imbalance: whether the GPUs of a trial carried the same load, from its telemetry."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pandas as pd

# What is compared, by the telemetry's columns.
LOADS = ("utilisation_percent", "memory_used_mib")


class Load(NamedTuple):
    """One telemetry column over the measured phases: its mean on every GPU, in the column's unit."""

    column: str
    means: Mapping[str, float]

    @property
    def imbalance(self) -> float:
        """(largest - smallest) / mean over the GPUs: 0 is even; 0 too where all of them are idle."""
        values = list(self.means.values())
        return (max(values) - min(values)) * len(values) / sum(values) if sum(values) else 0.0


def loads(telemetry: pd.DataFrame, phases: Iterable[str]) -> list[Load]:
    """The mean load of every GPU of a trial over the ticks in these phases; of two GPUs or more.

    [] for a trial with fewer, as one device says nothing about balance, and where no tick fell into the phases.
    `utilisation_percent` is the share of time with some kernel running, and not how much of the GPU it filled.
    """
    ticks = telemetry[telemetry["phase"].isin(list(phases)) & (telemetry["device"] != "host")]
    found = []
    for column in LOADS:
        means = ticks.dropna(subset=[column]).groupby("device")[column].mean()
        if len(means) > 1:
            found.append(Load(column, {str(device): float(mean) for device, mean in means.items()}))
    return found
