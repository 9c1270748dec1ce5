"""The use of GPUs by a trial in its measured phases, from telemetry."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from tsuishi.results.frames import Results, named_rows
from tsuishi.specs.quantities import MEASURED, imbalance

HOST = "host"


def gpu_number(device: str) -> int:
    """The index of a GPU on its machine, from its name in telemetry: gpu<index>."""
    return int(device.removeprefix("gpu"))


def device_order(device: str) -> tuple[bool, int, str]:
    """The key to sort devices of telemetry: the host first, then GPUs by index."""
    return device != HOST, len(device), device


def with_lengths(telemetry: pd.DataFrame) -> pd.DataFrame:
    """The rows with the seconds that each stands for, `length_s`: those since the row of the device before it.

    Rows are close at the beginning of a phase, and further apart after it. The first row stands for as long as the
    second, a single one for any time.
    """
    ticks = telemetry.sort_values(["trial", "elapsed_s"], kind="stable")
    devices = ticks.groupby(["trial", "device"], observed=True)["elapsed_s"]
    return ticks.assign(length_s=devices.diff().fillna(-devices.diff(-1)).fillna(1.0))


def _power_by_energy(ticks: pd.DataFrame) -> pd.Series:
    """W: the rise of each GPU's energy counter since the row before it, over the time. Else the power of the row.

    A driver may say the mean power of the last second: the first row of a phase would have that of the phase before.
    """
    risen = ticks.groupby(["trial", "device"], observed=True)["energy_j"].diff()
    return (risen.where(risen >= 0) / ticks["length_s"]).fillna(ticks["power_w"])  # a counter that falls was reset


def means_over_time(ticks: pd.DataFrame, columns: Sequence[str], keys: Sequence[str]) -> pd.DataFrame:
    """The means of columns by `keys`, in which each row has the weight of its `length_s`; NaN where all are missing."""
    by = [ticks[key] for key in keys]
    values, lengths = ticks[[*columns]], ticks["length_s"]
    totals, known = (part.mul(lengths, axis=0).groupby(by, observed=True).sum() for part in (values, values.notna()))
    return totals / known


def measured_on_gpus(telemetry: pd.DataFrame) -> pd.DataFrame:
    """The ticks of GPUs in measured phases, with their lengths: see with_lengths."""
    ticks = with_lengths(telemetry[telemetry["device"] != HOST])
    ticks = ticks.assign(power_w=_power_by_energy(ticks))
    return ticks[ticks["phase"].isin(MEASURED)]


def gpu_quantities(results: Results) -> dict[int, dict[str, float]]:
    """Quantities by trial (its index in `trials`), for trials with telemetry of GPUs in their measured phases.

    - gpu<i>_utilisation_percent, gpu<i>_power_w, gpu<i>_memory_mib: mean utilisation, mean power and largest memory in
      use of the trial's i-th GPU. Utilisation is the share of time in which a kernel ran, of any size. Power is the
      energy over the time, where the GPU counts its energy.
    - gpu_utilisation_percent, gpu_sm_clock_mhz: the means over GPUs.
    - gpu_imbalance: that of their utilisation, for two GPUs or more.
    - peak_gpu_memory_mib: the sum over GPUs of their largest memory in use.
    - least_gpu_memory_share: the smallest share of a GPU's memory that was in use, of GPUs whose memory is recorded;
      memory that driver and firmware reserve is left out of both.
    """
    ticks = measured_on_gpus(results.telemetry)
    keys = ["trial", "device"]
    means = means_over_time(ticks, ["utilisation_percent", "power_w", "sm_clock_mhz"], keys)
    use = means.assign(memory_mib=ticks.groupby(keys, observed=True)["memory_used_mib"].max())
    by_trial: dict[int, list[Any]] = defaultdict(list)
    for row in named_rows(use.reset_index()):
        by_trial[row.trial].append(row)
    machines = results.trials["machine_record"].to_dict()
    by_quantity = {}
    for trial, rows in by_trial.items():
        rows.sort(key=lambda row: gpu_number(row.device))
        machine = results.machines.get(machines[trial])
        memory = {gpu.index: gpu.usable_mib for gpu in (machine.gpus if machine else None) or []}
        quantities = dict(_of_trial(rows, [memory.get(gpu_number(row.device)) for row in rows]))
        by_quantity[trial] = {quantity: value for quantity, value in quantities.items() if not pd.isna(value)}
    return by_quantity


def _of_trial(rows: Sequence[Any], memory_mib: Sequence[float | None]) -> Iterator[tuple[str, float]]:
    """The quantities of a trial, from a row of its use and the memory of each GPU; NaN where telemetry has no value."""
    for place, row in enumerate(rows):
        yield f"gpu{place}_utilisation_percent", row.utilisation_percent
        yield f"gpu{place}_power_w", row.power_w
        yield f"gpu{place}_memory_mib", row.memory_mib
    loads = [row.utilisation_percent for row in rows]
    yield "gpu_utilisation_percent", sum(loads) / len(loads)
    yield "gpu_sm_clock_mhz", sum(row.sm_clock_mhz for row in rows) / len(rows)
    if len(loads) > 1:
        yield "gpu_imbalance", imbalance(loads)
    yield "peak_gpu_memory_mib", sum(row.memory_mib for row in rows)
    shares = [row.memory_mib / total for row, total in zip(rows, memory_mib, strict=True) if total]
    if shares:
        yield "least_gpu_memory_share", min(shares)
