"""Analyses: what follows from several cases together, as tables of the page and as rows of CSV files.

The arithmetic is in throughput.py (with fits.py), scaling.py, imbalance.py and parity.py.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tsuishi.analysis import frames, parity, scaling
from tsuishi.analysis.estimates import EPOCH_IMAGES
from tsuishi.analysis.evidence import Evidence
from tsuishi.analysis.imbalance import LOADS, Load, loads
from tsuishi.recording import MEASURED
from tsuishi.report.blocks import Text, View
from tsuishi.report.comparison import Comparison, differing
from tsuishi.report.fits import FIT_COLUMNS, RESIDUAL_COLUMNS, Fits
from tsuishi.report.tables import NOTHING, Cell, Table, case_text, digits, number_cell, status_cell, text_cell
from tsuishi.report.towers import RATIO_COLUMNS
from tsuishi.suite import AXES

# The CSV files, and their columns for when nothing is in them.
_CASE = ["suite", "protocol", *(axis for axis in AXES if axis not in ("suite", "protocol"))]
COLUMNS = {
    "ratios": RATIO_COLUMNS,
    "diagnosis": ["suite", "environment", "topic", "text"],
    "fits": FIT_COLUMNS,
    "residuals": RESIDUAL_COLUMNS,
    "scaling": [*_CASE, "series", "kind", "baseline_batch_size", "speedup", "efficiency", "simulated"],
    "parity": [*_CASE, "environments", "largest_loss_difference"],
    "load": [*_CASE, "environment", "quantity", "device", "mean", "imbalance"],
}

_SCALING_NOTE = (
    "Against 1 device with strategy none, all other axes equal, distinct images/s. Efficiency: speed-up ÷ devices."
)
_SIMULATED_NOTE = "Simulated devices share what one device has: how they scale says nothing about GPUs."
_LOAD_NOTE = "Means over the measured phases and all trials. Imbalance: (largest − smallest) ÷ mean; 0 is even."
_LOAD_TEXT = {"utilisation_percent": "utilisation, %", "memory_used_mib": "memory used, MiB"}
_NO_LOAD_NOTE = "Load over the devices: not known. No trial had two GPUs or more; one device says nothing about it."


def analyse(comparison: Comparison) -> Iterator[View]:
    """All that can be made of a suite's cases under one protocol."""
    fits, scalings, parities = Fits(comparison), _scalings(comparison), _loss_differences(comparison)
    scaled = [{**one.axes, **one._asdict(), **comparison.where, "efficiency": one.efficiency} for one in scalings]
    yield View(tuple(fits.tables()), {"fits": fits.fits(), "residuals": fits.residuals()})
    yield View(tuple(_scaling_tables(scalings)), {"scaling": scaled})
    yield View(tuple(_parity_tables(comparison, parities)), {"parity": parities})


def _scalings(comparison: Comparison) -> list[scaling.Scaling]:
    measured = [
        scaling.Measured(one.series, one.axes, speed, one.simulated)
        for one in comparison.ours()
        # Where devices may get the same images, work that is done twice is no speed.
        if (speed := one.values.get("distinct_images_per_s", one.values.get("throughput_images_per_s")))
    ]
    published = [
        scaling.Measured(one.series, one.axes, EPOCH_IMAGES / one.values["median_epoch_s"], False)
        for one in comparison.theirs()
        if "median_epoch_s" in one.values
    ]
    ours = list(scaling.scalings(measured))
    return [*ours, *scaling.scalings(published)] if ours else []


def _scaling_tables(scalings: list[scaling.Scaling]) -> Iterator[Table]:
    telling = {*differing(one.axes for one in scalings), "strategy"} - {"devices", "batch_size"}
    columns = ["", "case", "devices", "batch size", "on one device", "speed-up", "efficiency"]
    for kind, title in (
        ("strong", "Strong scaling: the same global batch"),
        ("weak", "Weak scaling: the same batch per device"),
    ):
        rows = []
        for one in (one for one in scalings if one.kind == kind):
            counts = one.axes["devices"], one.axes["batch_size"], one.baseline_batch_size
            marks = ("simulated",) if one.simulated else ()
            name = [text_cell(one.series), text_cell(case_text(dict(one.axes), telling))]
            efficiency = Cell(digits(one.efficiency), one.efficiency, marks, "number")
            rows.append([*name, *map(text_cell, counts), number_cell(one.speedup), efficiency])
        if rows:
            simulated = any(one.simulated for one in scalings if one.kind == kind)
            notes = [_SCALING_NOTE, _SIMULATED_NOTE] if simulated else [_SCALING_NOTE]
            yield Table(columns, rows, title, notes=notes)


def _loss_differences(comparison: Comparison) -> list[dict[str, Any]]:
    """Of every case with a loss in two environments or more: how far apart the losses are."""
    losses: dict[str, dict[str, float]] = defaultdict(dict)
    for one in comparison.ours():
        if one.case_id and "loss" in one.values:
            losses[one.case_id][one.series] = one.values["loss"]
    rows = []
    for case_id in comparison.case_ids:
        difference = parity.largest_difference(losses[case_id])
        if difference is not None:
            found = {"environments": len(losses[case_id]), "largest_loss_difference": difference}
            rows.append({**comparison.axes[case_id], **found})
    return rows


def _parity_tables(comparison: Comparison, rows: list[dict[str, Any]]) -> list[Table]:
    columns = ["case", "environments", "largest relative difference"]
    cells = [
        [
            text_cell(case_text(row, comparison.varying) or "the one case"),
            text_cell(row["environments"]),
            number_cell(row["largest_loss_difference"]),
        ]
        for row in rows
    ]
    return [Table(columns, cells, "The loss, between environments")] if cells else []


def gpu_loads(evidence: Evidence, suite: str) -> View:
    """The load of every GPU in the trials that had two or more."""
    trials = frames.last_attempts(evidence.results.trials)
    trials = trials[(trials["suite"] == suite) & (trials["status"] == "ok")]
    found: dict[tuple[str, str], list[Load]] = defaultdict(list)
    for trial in frames.named_rows(trials):
        if len(evidence.results.records.get(trial.machine_record, {}).get("gpus") or []) > 1:
            telemetry = frames.read_telemetry(evidence.directories[trial.run_id], trial.trial_id)
            found[trial.case_id, trial.column] += loads(telemetry, MEASURED)
    cases = [(*key, one) for key, of_case in found.items() for one in _means_of_trials(of_case)]
    if not cases:
        several = bool((trials["devices"].fillna(1) > 1).any())
        return View((Text(_NO_LOAD_NOTE, "note"),) if several else ())
    devices = sorted({device for *_, one in cases for device in one.means})
    table, rows = [], []
    for case_id, environment, load in cases:
        axes = evidence.axes[case_id]
        means = [number_cell(load.means[one]) if one in load.means else status_cell(NOTHING) for one in devices]
        name = [text_cell(f"{axes['protocol']}: {case_text(axes)}"), text_cell(environment)]
        table.append([*name, text_cell(_LOAD_TEXT[load.column], "label"), *means, number_cell(load.imbalance)])
        base = {**axes, "environment": environment, "quantity": load.column, "imbalance": load.imbalance}
        rows += [{**base, "device": device, "mean": mean} for device, mean in load.means.items()]
    columns = ["case", "environment", "", *devices, "imbalance"]
    return View((Table(columns, table, "Load over the GPUs", notes=[_LOAD_NOTE]),), {"load": rows})


def _means_of_trials(of_case: list[Load]) -> Iterator[Load]:
    """Of several trials of a case, the means of their means."""
    for column in LOADS:
        trials = [load.means for load in of_case if load.column == column]
        devices = sorted({device for means in trials for device in means})
        if devices:
            by_device = {one: [means[one] for means in trials if one in means] for one in devices}
            yield Load(column, {one: sum(values) / len(values) for one, values in by_device.items()})
