"""How a trial used its GPUs over the measured phases, from its telemetry."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from tsuishi.results.frames import Results, named_rows
from tsuishi.specs.quantities import MEASURED, imbalance

HOST = "host"


def gpu_number(device: str) -> int:
    """The GPU's index on its machine, from the telemetry's name for it: gpu<index>."""
    return int(device.removeprefix("gpu"))


def device_order(device: str) -> tuple[bool, int, str]:
    """The key that sorts devices of telemetry: the host, then GPUs by their index."""
    return device != HOST, len(device), device


def measured_on_gpus(telemetry: pd.DataFrame) -> pd.DataFrame:
    """The ticks of GPUs in measured phases."""
    return telemetry[telemetry["phase"].isin(MEASURED) & (telemetry["device"] != HOST)]


def gpu_quantities(results: Results) -> dict[int, dict[str, float]]:
    """Quantities by trial (its index in `trials`), of all that have telemetry of GPUs in their measured phases.

    gpu<i>_…: of the trial's i-th GPU; mean utilisation (the share of time with some kernel running, not how much of the
    GPU it filled), mean power, largest memory in use. gpu_utilisation_percent: mean over the GPUs. gpu_imbalance: of
    their utilisation; one GPU has none. peak_gpu_memory_mib: sum over the GPUs of each one's largest.
    least_gpu_memory_share: the smallest of these over that GPU's memory, of GPUs whose memory was recorded.
    """
    ticks = measured_on_gpus(results.telemetry)
    used = ticks.groupby(["trial", "device"], observed=True, as_index=False).agg(
        utilisation_percent=("utilisation_percent", "mean"),
        power_w=("power_w", "mean"),
        memory_mib=("memory_used_mib", "max"),
    )
    by_trial: dict[int, list[Any]] = defaultdict(list)
    for row in named_rows(used):
        by_trial[row.trial].append(row)
    machines = results.trials["machine_record"].to_dict()
    found = {}
    for trial, rows in by_trial.items():
        rows.sort(key=lambda row: gpu_number(row.device))
        gpus = results.records.get(machines[trial], {}).get("gpus") or []
        memory = {gpu.get("index"): gpu.get("memory_mib") for gpu in gpus}
        quantities = dict(_of_trial(rows, [memory.get(gpu_number(row.device)) for row in rows]))
        found[trial] = {quantity: value for quantity, value in quantities.items() if not pd.isna(value)}
    return found


def _of_trial(rows: Sequence[Any], memory_mib: Sequence[float | None]) -> Iterator[tuple[str, float]]:
    """The quantities of one trial, from what each GPU did and how much memory it has; NaN where it was not sampled."""
    for place, row in enumerate(rows):
        yield f"gpu{place}_utilisation_percent", row.utilisation_percent
        yield f"gpu{place}_power_w", row.power_w
        yield f"gpu{place}_memory_mib", row.memory_mib
    loads = [row.utilisation_percent for row in rows]
    yield "gpu_utilisation_percent", sum(loads) / len(loads)
    if len(loads) > 1:
        yield "gpu_imbalance", imbalance(loads)
    yield "peak_gpu_memory_mib", sum(row.memory_mib for row in rows)
    shares = [row.memory_mib / total for row, total in zip(rows, memory_mib, strict=True) if total]
    if shares:
        yield "least_gpu_memory_share", min(shares)
