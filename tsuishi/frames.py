"""Runs as pandas frames: what was recorded, and the numbers derived from it for every trial and every case.

Every string is made fit to print while it is read (see `visible`), so nothing after this needs to ask.
"""

import csv
import math
import statistics
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd

from tsuishi import schema
from tsuishi.errors import UserError
from tsuishi.published import QUANTITIES
from tsuishi.store import RunDirectory, read_json
from tsuishi.suite import AXES

# An epoch of CIFAR-10, and how many of them the sources of 2019 ran.
EPOCH_IMAGES = 50_000
EPOCHS = 100

MISSING = "missing"
_WHY_MISSING = "planned, but the run was stopped before it: go on with `invoke run-suite --resume`"
_UNIT_SUFFIXES = {"_images_per_s": "images/s", "_percent": "%", "_mib": "MiB", "_j": "J", "_w": "W", "_s": "s"}
_QUANTITY_OF_PHASE = {"measure": "step_s", "later_runs": "later_run_s"}
# What a workload calls it, where the published tables have another word.
_QUANTITY_OF_METRIC = {"test_accuracy": "accuracy"}
_BOOLEANS = {"true": True, "false": False, "none": None}
_CASE_KEYS = ["suite", "protocol", "case_id", "environment", "column"]


@dataclass(frozen=True)
class Results:
    """One or several runs. `trials` and `samples` have a `run_id`; `details` holds each trial.json."""

    runs: dict[str, dict[str, Any]]
    records: dict[str, dict[str, Any]]
    details: dict[tuple[str, str], dict[str, Any]]
    trials: pd.DataFrame
    samples: pd.DataFrame
    metrics: pd.DataFrame


def read_runs(runs: Sequence[RunDirectory]) -> Results:
    """Everything a report says about these runs, except telemetry (which is large: see read_telemetry).

    Read from the trials themselves, so it does not matter whether a run was gathered. Raises UserError where a
    file is unreadable or a value is not of the type the schema gives it.
    """
    details, rows, records = {}, [], {}
    parts: dict[str, list[dict[str, Any]]] = {"samples": [], "metrics": []}
    for run in runs:
        for path in sorted(run.records.glob("*.json")):
            records[path.stem] = visible(read_json(path))
        for path, trial in run.finished():
            key = (run.id, path.name)
            details[key] = visible(trial)
            rows.append({"run_id": run.id, **details[key], **records.get(trial["case_record"], {})})
            for table, collected in parts.items():
                collected += [dict(zip(("run_id", "trial_id"), key, strict=True), **row) for row in _rows(path, table)]
    return Results(
        {run.id: visible(run.run()) for run in runs},
        records,
        details,
        _label_columns(_typed("trials", rows), records),
        *(_typed(table, part) for table, part in parts.items()),
    )


def read_telemetry(run: RunDirectory, trial_id: str) -> pd.DataFrame:
    """The telemetry of one trial: one row per tick and device."""
    return _typed("telemetry", [{"trial_id": trial_id, **row} for row in _rows(run.trials / trial_id, "telemetry")])


def visible(value: Any) -> Any:
    """The same JSON value with everything unprintable in its strings made visible.

    Control characters, lone surrogates and characters that turn the direction of what follows become ⟨U+…⟩:
    they break files, or show a reader something other than what is there.
    """
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else "".join(map(_visible_character, value))
    if isinstance(value, dict):
        return {visible(key): visible(entry) for key, entry in value.items()}
    return [visible(entry) for entry in value] if isinstance(value, list) else value


def _visible_character(character: str) -> str:
    odd = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and character not in "\n\t"
    return f"⟨U+{ord(character):04X}⟩" if odd else character


def _rows(trial: Path, table: str) -> Iterator[dict[str, str]]:
    """The rows of one trial's part of a table; none where it wrote none."""
    path = trial / f"{table}.csv"
    if path.exists():
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            yield from (visible(row) for row in csv.DictReader(file))


def _typed(table: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a frame with exactly the schema's columns and types (and the run_id); text is never NaN."""
    columns = {column.name: column.type for column in schema.TABLES[table]}
    frame = pd.DataFrame({"run_id": pd.Series([row.get("run_id", "") for row in rows], dtype="object")})
    for name, kind in columns.items():
        values = [None if row.get(name) == "" else row.get(name) for row in rows]
        try:
            if kind in ("integer", "number"):
                numbers = pd.to_numeric(pd.Series(values, dtype="object"))
                frame[name] = numbers.astype("Int64" if kind == "integer" else "float64")
            elif kind == "boolean":
                frame[name] = pd.Series([_BOOLEANS[str(value).lower()] for value in values], dtype="boolean")
            else:
                frame[name] = pd.Series(["" if value is None else str(value) for value in values], dtype="object")
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{table}: column '{name}' should be of type {kind}: {error}; mend the run") from error
    return frame


def _label_columns(trials: pd.DataFrame, records: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Adds `column`: the environment, and where that is not one thing, its realised id and its machine too.

    A trial that never started may lack its records; it stands with the others of its environment.
    """
    for record in ("environment_record", "machine_record"):
        known = trials[record].mask(trials[record] == "").groupby([trials["run_id"], trials["environment"]])
        trials[record] = known.transform(lambda ids: ids.ffill().bfill()).fillna("")
    machines = sorted(set(trials["machine_record"]) - {""})
    several = trials.groupby("environment")["environment_record"].nunique() > 1
    labels = []
    for trial in trials.to_dict("records"):
        label = trial["environment"]
        if several[label]:
            record = trial["environment_record"]
            realised_id = str(records.get(record, {}).get("realised_id", record))
            label += f" ({realised_id.removeprefix('sha256:')[:19]})"
        if len(machines) > 1 and trial["machine_record"]:
            label += f" on machine {machines.index(trial['machine_record']) + 1}"
        labels.append(label)
    trials["column"] = pd.Series(labels, index=trials.index, dtype="object")
    return trials


def last_attempts(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials that count: of every case, environment and repetition of a run, the last attempt."""
    ordered = trials.sort_values(["run_id", "trial_id", "attempt"], kind="stable")
    last = ordered.groupby(["run_id", "case_id", "environment", "repetition"])["attempt"].transform("max")
    return ordered[ordered["attempt"] == last]


def outcomes(results: Results) -> pd.DataFrame:
    """One row per planned or tried repetition: what became of it. `missing`: planned, and there is nothing.

    Columns: run_id, suite, protocol, case_id, axes (dict), environment, column, repetition, trial_id, status, reason.
    """
    rows, tried = [], set()
    for trial in last_attempts(results.trials).to_dict("records"):
        tried.add((trial["run_id"], trial["case_id"], trial["environment"], trial["repetition"]))
        axes = {axis: trial[axis] for axis in AXES if not (pd.isna(trial[axis]) or trial[axis] == "")}
        rows.append({**{str(name): value for name, value in trial.items()}, "axes": axes})
    columns = {(row["run_id"], row["environment"]): row["column"] for row in rows}
    for run_id, run in results.runs.items():
        for planned in run.get("plan", []):
            environment, case = planned["environment"], planned["case"]
            if (run_id, planned["case_id"], environment, planned["repetition"]) not in tried:
                label = columns.get((run_id, environment), environment)
                row = {"trial_id": planned["trial"], "status": MISSING, "reason": _WHY_MISSING, "column": label}
                rows.append({**case, **planned, **row, "run_id": run_id, "axes": case})
    names = ["run_id", *_CASE_KEYS, "axes", "repetition", "trial_id", "status", "reason"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.sort_values(["suite", "case_id", "column", "run_id", "repetition"], kind="stable", ignore_index=True)


class Block(NamedTuple):
    """One timed block: wall seconds over so many steps and images."""

    steps: int
    images: int
    seconds: float

    @property
    def step_s(self) -> float:
        return self.seconds / max(1, self.steps)


class Estimate(NamedTuple):
    """A quantity of one trial. `low`, `high`: quartiles of its blocks (None for a single one).

    The quartiles say how steady one process was; they are no interval for the case.
    """

    quantity: str
    value: float
    low: float | None
    high: float | None
    blocks: int
    derived: bool = False


def unit_of(quantity: str) -> str:
    """The unit a quantity's name ends with; 1 for a pure number."""
    if quantity in QUANTITIES:
        return QUANTITIES[quantity].unit
    return next((unit for suffix, unit in _UNIT_SUFFIXES.items() if quantity.endswith(suffix)), "1")


def phase_estimates(phases: dict[str, list[Block]], batch_size: int | None, training: bool) -> Iterator[Estimate]:
    """What one trial says, from its blocks by phase. Times in seconds, throughput in images/s.

    Per phase: the median over blocks of the seconds per step (2-method.md, "Steady protocol" 4).
    """
    for phase, blocks in phases.items():
        if phase == "epoch":
            yield from _epochs_timed(blocks, batch_size)
        else:
            yield _median_over(_QUANTITY_OF_PHASE.get(phase, f"{phase}_s"), blocks, lambda block: block.step_s)
        if phase in ("measure", "epoch"):
            yield from _throughput(blocks[1:] or blocks if phase == "epoch" else blocks)
    if training and batch_size and "measure" in phases:
        yield from _epochs_derived(phases, batch_size)


def _median_over(quantity: str, blocks: list[Block], of: Callable[[Block], float], derived: bool = False) -> Estimate:
    values = [of(block) for block in blocks]
    low, high = None, None
    if len(values) > 1:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return Estimate(quantity, statistics.median(values), low, high, len(values), derived)


def _throughput(blocks: list[Block]) -> Iterator[Estimate]:
    """Images over seconds in total: averaging the blocks' rates would weigh the slow ones too little."""
    images, seconds = sum(block.images for block in blocks), sum(block.seconds for block in blocks)
    if images and seconds > 0 and all(block.seconds > 0 for block in blocks):
        spread = _median_over("", blocks, lambda block: block.images / block.seconds)
        yield spread._replace(quantity="throughput_images_per_s", value=images / seconds)


def _epochs_timed(epochs: list[Block], batch_size: int | None) -> Iterator[Estimate]:
    """Epochs that were run as such. A shortened one is brought to 50,000 images by its later steps, and so marked.

    The total is first + 99 x mean of the later ones (2-method.md, "Steady protocol" 3).
    """
    first, later = epochs[0], epochs[1:]

    def full_steps(epoch: Block) -> float:
        if epoch.images >= EPOCH_IMAGES or not epoch.images:
            return epoch.steps
        return math.ceil(EPOCH_IMAGES / batch_size) if batch_size else epoch.steps * EPOCH_IMAGES / epoch.images

    derived = any(full_steps(epoch) != epoch.steps for epoch in epochs)
    step_s = statistics.median([epoch.step_s for epoch in later or epochs])
    first_s = first.seconds + (full_steps(first) - first.steps) * step_s
    yield Estimate("first_epoch_s", first_s, None, None, 1, derived)
    if later:
        yield _median_over("median_epoch_s", later, lambda epoch: epoch.step_s * full_steps(epoch), derived)
        total_s = first_s + (EPOCHS - 1) * statistics.fmean(epoch.step_s * full_steps(epoch) for epoch in later)
        yield Estimate("total_s", total_s, None, None, len(epochs), derived or len(epochs) != EPOCHS)


def _epochs_derived(phases: dict[str, list[Block]], batch_size: int) -> Iterator[Estimate]:
    """Epochs nobody ran: ceil(50,000 / batch) steps of the median step, the first with its own first two steps."""
    steps = math.ceil(EPOCH_IMAGES / batch_size)
    epoch = _median_over("median_epoch_s", phases["measure"], lambda block: block.step_s * steps, derived=True)
    if "first_step" in phases and "second_step" in phases and steps >= 2:
        start_s = phases["first_step"][0].step_s + phases["second_step"][0].step_s
        first_s = start_s + (steps - 2) * epoch.value / steps
        yield Estimate("first_epoch_s", first_s, None, None, epoch.blocks, derived=True)
    yield epoch


def trial_estimates(results: Results) -> pd.DataFrame:
    """One row per quantity of every trial that counts and is ok: value, unit, low, high, blocks, derived."""
    names = ["run_id", "trial_id", *_CASE_KEYS, "simulated", "synthetic"]
    samples, metrics = _by_trial(results.samples), _by_trial(results.metrics)
    trials = last_attempts(results.trials)
    rows: list[dict[str, Any]] = []
    for trial in trials[trials["status"] == "ok"].to_dict("records"):
        key = (trial["run_id"], trial["trial_id"])
        phases: dict[str, list[Block]] = {}
        for sample in samples.get(key, []):
            phases.setdefault(sample["phase"], []).append(Block(sample["steps"], sample["images"], sample["seconds"]))
        batch_size = None if pd.isna(trial["batch_size"]) else int(trial["batch_size"])
        estimates = phase_estimates(phases, batch_size, training=trial["mode"] != "inference")
        found = [(estimate, unit_of(estimate.quantity)) for estimate in estimates]
        # A metric that is reported several times (accuracy after every epoch) ends with what it came to.
        last = {_QUANTITY_OF_METRIC.get(metric["name"], metric["name"]): metric for metric in metrics.get(key, [])}
        found += [(Estimate(name, metric["value"], None, None, 1), metric["unit"]) for name, metric in last.items()]
        base = {name: trial[name] for name in names}
        rows += [{**base, **estimate._asdict(), "unit": unit} for estimate, unit in found]
    return pd.DataFrame(rows, columns=[*names, "quantity", "value", "unit", "low", "high", "blocks", "derived"])


def _by_trial(frame: pd.DataFrame) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The rows of a table, by run and trial, in their order."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in cast(list[dict[str, Any]], frame.to_dict("records")):
        rows.setdefault((row["run_id"], row["trial_id"]), []).append(row)
    return rows


def case_estimates(trials: pd.DataFrame) -> pd.DataFrame:
    """One row per case, column and quantity: the median over trials, `n`, and `low` to `high`.

    What these two are is in `spread_kind`: "trials" (smallest and largest trial), "blocks" (quartiles of the blocks
    of the only trial; this says nothing about the next trial) or "" (one trial, one number).
    """
    rows = []
    for _, part in trials.groupby(["suite", "case_id", "column", "quantity"], sort=True):
        values, first = part["value"], part.iloc[0]
        if len(part) > 1:
            low, high, kind = values.min(), values.max(), "trials"
        else:
            low, high, kind = first["low"], first["high"], "" if pd.isna(first["low"]) else "blocks"
        flags = {name: bool(part[name].fillna(False).any()) for name in ("simulated", "synthetic", "derived")}
        spread = {"estimate": values.median(), "n": len(part), "low": low, "high": high, "spread_kind": kind}
        base = {name: first[name] for name in (*_CASE_KEYS, "quantity", "unit")}
        rows.append({**base, **spread, "blocks": int(part["blocks"].sum()), **flags})
    spread_names = ["estimate", "n", "low", "high", "spread_kind", "blocks"]
    names = [*_CASE_KEYS, "quantity", "unit", *spread_names, "simulated", "synthetic", "derived"]
    return pd.DataFrame(rows, columns=names)
