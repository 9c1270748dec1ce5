"""Estimates of all trials and cases of runs, as frames: trials from their blocks, cases from their trials."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from tsuishi.estimates.gpu_use import gpu_quantities
from tsuishi.estimates.timed_blocks import (
    Described,
    Estimate,
    TimedBlock,
    energy_estimates,
    phase_estimates,
    work_estimates,
)
from tsuishi.results.frames import CASE_KEYS, Results, named_rows, ok_rows
from tsuishi.results.run_tables import TRIAL
from tsuishi.specs.case import BATCH_SIZE
from tsuishi.specs.source import Epochs

_OF_ESTIMATES = (*Estimate._fields, "unit", "rounding")
# Units of counts, which are exact.
_EXACT = ("", "1", "B")


def trial_estimates(results: Results, epochs: Mapping[str, Epochs]) -> pd.DataFrame:
    """One row per quantity of every trial that counts and is ok: value, unit, low, high, blocks, derived, rounding.

    `rounding`: the most by which the value is wrong because it was rounded, in its unit: a trial may have read a number
    that a program printed.

    `epochs`: by case id, the whole training of the cases that a source trained.
    """
    names = ["run_id", "trial_id", *CASE_KEYS, "simulated", "synthetic"]
    gpu_use, metrics = gpu_quantities(results), _metrics_by_trial(results.metrics)
    phases = _blocks_by_trial(results.samples)
    trials = ok_rows(results.counting)
    described = {suite: Described(results.words, suite) for suite in sorted(set(trials["suite"]))}
    units = cache(lambda quantity: results.words.quantity(quantity).unit)
    columns: dict[str, list[Any]] = {name: [] for name in _OF_ESTIMATES}
    counts = []
    for trial in named_rows(trials[["suite", "case_id", BATCH_SIZE, "energy_j"]].reset_index(names=TRIAL)):
        batch_size = None if pd.isna(trial.batch_size) else int(trial.batch_size)
        blocks, reported = phases.get(trial.trial, {}), metrics.get(trial.trial, {})
        values = {name: several[-1] for name, (several, _) in reported.items()}
        of_suite, whole, from_steps = described[trial.suite], epochs.get(trial.case_id), _takes_no_image_twice(values)
        estimates = [*phase_estimates(blocks, batch_size, whole, of_suite, from_steps)]
        estimates += work_estimates(blocks, values, batch_size)
        estimates += [Estimate(name, value, None, None, 1) for name, value in gpu_use.get(trial.trial, {}).items()]
        estimates += energy_estimates(blocks, trial.energy_j)
        rows = [(*estimate, units(estimate.quantity), 0.0) for estimate in estimates]
        rows += [
            (quantity, value, None, None, 1, False, unit, _rounding(several) if unit not in _EXACT else 0.0)
            for name, (several, unit) in reported.items()
            for quantity, value in of_suite.of_metric(name, several).items()
        ]
        for column, cells in zip(columns.values(), zip(*rows, strict=True), strict=False):
            column += cells
        counts.append(len(rows))
    # The columns that all rows of a trial share are joined at once: in every row they would be most of the work.
    of_trials = trials.loc[trials.index.repeat(counts), names].reset_index(drop=True)
    of_rows = pd.DataFrame(columns)
    return of_trials.join(of_rows[["quantity", "value", "unit", "low", "high", "blocks", "derived", "rounding"]])


def _rounding(printed: Sequence[float]) -> float:
    """Half a unit of the last digit of printed numbers.

    >>> _rounding([2.4, 2.55]), _rounding([20.0, 31.0])
    (0.005, 0.5)
    """
    digits = max(len(f"{number:.12f}".rstrip("0").partition(".")[2]) for number in printed)
    return float(0.5 * 10**-digits)


def _takes_no_image_twice(metrics: dict[str, float]) -> bool:
    """False where all devices get the same batch: an epoch then has another number of steps."""
    return metrics.get("distinct_images_per_step") == metrics.get("examples_per_step")


def _metrics_by_trial(metrics: pd.DataFrame) -> dict[int, dict[str, tuple[list[float], str]]]:
    """Values in their order, and unit, by trial and metric."""
    by_trial: dict[int, dict[str, tuple[list[float], str]]] = {}
    columns = ("trial", "name", "value", "unit")
    for trial, name, value, unit in zip(*(metrics[name].tolist() for name in columns), strict=True):
        by_trial.setdefault(trial, {}).setdefault(name, ([], unit))[0].append(value)
    return by_trial


def _blocks_by_trial(samples: pd.DataFrame) -> dict[int, dict[str, list[TimedBlock]]]:
    """Blocks by trial and phase, in their order."""
    by_trial: dict[int, dict[str, list[TimedBlock]]] = {}
    columns = ("trial", "phase", "steps", "images", "seconds")
    for trial, phase, *block in zip(*(samples[name].tolist() for name in columns), strict=True):
        by_trial.setdefault(trial, {}).setdefault(phase, []).append(TimedBlock(*block))
    return by_trial


def case_estimates(trials: pd.DataFrame) -> pd.DataFrame:
    """One row per case, column and quantity: the mean over trials, the number `n` of trials, `low` and `high`.

    The mean is geometric where all trials are above 0, as in ratios and verdicts; else arithmetic.

    `spread_kind` says what `low` and `high` are: "trials" (smallest and largest trial), "blocks" (quartiles of the
    blocks of the only trial, which say nothing about a next trial) or "" (a single number).
    """
    keys, flags = ["suite", "case_id", "column", "quantity"], ["simulated", "synthetic", "derived"]
    # Flags are null where a workload does not report them.
    rows = trials.assign(**{flag: trials[flag].eq(True).fillna(False).astype(bool) for flag in flags})
    rows["log"] = np.log(rows["value"].where(rows["value"] > 0))
    groups = rows.groupby(keys, sort=True)
    spread = groups["value"].agg(estimate="mean", n="size", smallest="min", largest="max")
    # Of a single trial, whose logarithm would cost its last digits, the value.
    geometric = (spread["smallest"] > 0) & (spread["smallest"] < spread["largest"])
    spread["estimate"] = spread["estimate"].where(~geometric, np.exp(groups["log"].mean()))
    first = rows.drop_duplicates(keys).set_index(keys).loc[spread.index]
    several = spread["n"] > 1
    frame = first.assign(
        estimate=spread["estimate"],
        n=spread["n"],
        low=spread["smallest"].where(several, first["low"]),
        high=spread["largest"].where(several, first["high"]),
        spread_kind=np.select([several, first["low"].notna()], ["trials", "blocks"], ""),
        **{name: groups[name].any() for name in flags},
        blocks=groups["blocks"].sum(),
    )
    spread_names = ["estimate", "n", "low", "high", "spread_kind", "blocks"]
    return frame.reset_index()[[*CASE_KEYS, "quantity", "unit", *spread_names, *flags]]
