"""A run of any size that nobody made: the cases of the real suites, CPUs and two GPUs, as the runner writes them.

Written without the runner's care for power cuts: 10,000 trials take seconds. Numbers are made up (a line over batch
sizes, with noise of a few per cent) and the same for a seed.
"""

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from tests import synthetic_run
from tests.words import WORDS
from tsuishi.plan.trials import trial_slug
from tsuishi.results import schema
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import CaseRecord
from tsuishi.results.run_record import RunRecord
from tsuishi.specs.case import Case
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.suite import select_suites

SUITES = Path(__file__).resolve().parent.parent / "suites"
GPUS = 2
LIBRARIES = {"tensorflow 2.21.0": 1.0, "torch 2.13.0": 0.8}
# Images/s of one device, and seconds that every step costs.
SPEEDS: dict[Accelerator, tuple[float, float]] = {"cpu": (300.0, 0.02), "cuda": (9000.0, 0.004)}
GPU_MEMORY_MIB = 24576
STARTED_S, INTERVAL_S = 3.0, 1.0
_LOG = gzip.compress(b"made up\n", mtime=0)


@dataclass(frozen=True)
class Planned:
    """A trial to make up."""

    case: Case
    environment: str
    framework: str
    accelerator: Accelerator
    repetition: int

    @property
    def name(self) -> str:
        return f"{trial_slug(self.case, WORDS)}.{self.environment}.r{self.repetition}"

    @property
    def gpus(self) -> int:
        return min(GPUS, self.case.devices or 1) if self.accelerator == "cuda" else 0

    @property
    def fits(self) -> bool:
        """Whether it does not run out of memory."""
        return (self.case.batch_size or 0) / (self.case.devices or 1) < 2048


def write_large_run(path: Path, trials: int, telemetry_rows: int, seed: int = 0) -> RunDirectory:
    """A run of so many trials, each with about so many rows of telemetry (all its devices together)."""
    rng = np.random.default_rng(seed)
    planned = list(islice(_planned(rng), trials))
    run = synthetic_run.SyntheticRun(path, profile="full", arguments={"suite": "", "profile": "full"}, left_out=[])
    run.plan += [
        {"trial_id": one.name, "case_id": one.case.id, "case": one.case.axes, "environment": one.environment,
         "accelerator": one.accelerator, "repetition": one.repetition, "timeout_s": 600.0,
         "workload": synthetic_run.WORKLOADS[one.case.suite]}
        for one in planned
    ]  # fmt: skip
    directory = run.directory
    machine = synthetic_run.add_record(directory, "machine", _machine())
    environments = {
        one.environment: synthetic_run.add_record(directory, "environment", _environment(one))
        for one in _first_of_each(planned)
    }
    workloads = {one.case.suite: run.workload_record(one.case.suite) for one in planned}
    cases = {one.case.id: directory.add(CaseRecord(one.case.axes)) for one in planned}
    for one in sorted(planned, key=lambda one: one.name):
        records = {
            "case_record": cases[one.case.id], "environment_record": environments[one.environment],
            "machine_record": machine, "workload_record": workloads[one.case.suite],
        }  # fmt: skip
        ticks = max(2, telemetry_rows // (1 + one.gpus))
        trial = _trial(one, records, ticks * INTERVAL_S)
        tables = {
            "samples": list(_samples(one, rng)) if one.fits else [],
            "metrics": list(_metrics(one)) if one.fits else [],
            "telemetry": _telemetry(one, ticks, rng),
        }
        folder = directory.trials / trial["trial_id"]
        folder.mkdir()
        files = {"log.txt.gz": _LOG}
        for table, lines in tables.items():
            files[f"{table}.csv"] = "".join([_line(schema.column_names(table)[1:]), *lines]).encode()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        trial["files"] = {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        }
        (folder / "trial.json").write_text(json.dumps(trial, indent=2) + "\n")
    directory.write_run(RunRecord.model_validate_json(json.dumps(run.run)))
    directory.gather(WORDS)
    return synthetic_run.listed(directory)


def _planned(rng: np.random.Generator) -> Iterator[Planned]:
    """Every case of every suite in two libraries, on CPU and GPU, in any order; then again, and so on."""
    accelerators: tuple[Accelerator, ...] = ("cpu", "cuda")
    suites = select_suites(SUITES, ())
    cases = [
        (accelerator, case, framework)
        for framework in LIBRARIES
        for suite in suites
        for accelerator in accelerators
        for case, _ in suite.cases("full", accelerator, GPUS)
    ]
    for repetition in count(1):
        for place in rng.permutation(len(cases)):
            accelerator, case, framework = cases[place]
            environment = f"{framework.split('.')[0].replace('tensorflow ', 'tf').replace(' ', '')}-{accelerator}"
            yield Planned(case, environment, framework, accelerator, repetition)


def _first_of_each(planned: list[Planned]) -> list[Planned]:
    return list({one.environment: one for one in reversed(planned)}.values())


def _environment(one: Planned) -> dict[str, Any]:
    package, version = one.framework.split()
    record = synthetic_run.environment(synthetic_run.TORCH)
    return {**record, "name": one.environment, "title": one.environment, "packages": {package: version}}


def _machine() -> dict[str, Any]:
    gpu = {"name": "Example GPU", "memory_mib": GPU_MEMORY_MIB, "power_limit_w": 350.0, "compute_capability": "8.9"}
    return {**synthetic_run.machine(), "driver": "580.1", "gpus": [{"index": i, **gpu} for i in range(GPUS)]}


def _trial(one: Planned, records: dict[str, str], duration_s: float) -> dict[str, Any]:
    """trial.json; the second half of the time is measured."""
    phases = (("first_step", 0.1), ("second_step", 0.15), ("warm_up", 0.5), (_phase(one), 1.0))
    begin_s, spans = STARTED_S, []
    for name, share in phases:
        end_s = round(STARTED_S + share * (duration_s - STARTED_S), 6)
        spans.append({"name": name, "begin_s": begin_s, "end_s": end_s})
        begin_s = end_s
    case = json.dumps({"case": one.case.axes, "accelerator": one.accelerator}, separators=(",", ":"))
    return {
        "trial_id": f"{one.name}.a1", "case_id": one.case.id, "environment": one.environment, **records,
        "framework": one.framework, "device": "Example GPU" if one.gpus else "cpu",
        "repetition": one.repetition, "attempt": 1, "status": "ok" if one.fits else "out_of_memory",
        "reason": "" if one.fits else f"batch {one.case.batch_size} does not fit", "exit_code": 0 if one.fits else 1,
        "simulated": not one.gpus and (one.case.devices or 1) > 1, "synthetic": True,
        "started_at": "2026-11-21T08:00:01Z", "duration_s": duration_s, "startup_s": 2.5,
        "energy_j": 120.0 * duration_s * one.gpus if one.gpus and one.fits else None,
        "energy_source": "counter" if one.gpus and one.fits else "",
        "peak_process_memory_mib": 800.5, "events_garbled": 0, "events_missing": 0,
        "phases": spans if one.fits else spans[:1], "reported": {"python": "3.11.13", "flags": {"threads": 2}},
        "settings": {"block_s": 1.0, "seed": 0}, "timeout_s": 600.0, "data": None,
        "command": ["python", "suites/workloads/run.py", case],
    }  # fmt: skip


def _phase(one: Planned) -> str:
    """What the measured phase of such a case is called."""
    if one.case.suite == "conv2d":
        return "later_runs" if one.case.protocol == "literal" else "compute"
    return "epoch" if one.case.protocol == "literal" and one.case.suite != "input_pipeline" else "measure"


def _samples(one: Planned, rng: np.random.Generator) -> Iterator[str]:
    """Rows of samples.csv: slow first runs or steps, then blocks of ten steps (or epochs)."""
    if one.case.suite == "parity":
        return
    speed, cost_s = SPEEDS[one.accelerator]
    images = one.case.batch_size or one.case.axes.get("images") or 0
    step_s = LIBRARIES[one.framework] * (images / speed / (one.case.devices or 1) + cost_s)
    phase = _phase(one)
    first = {"later_runs": ["first_run"], "epoch": []}.get(phase, ["first_step", "second_step"])
    for place, name in enumerate(first):
        yield f"{name},0,1,{images},{step_s * (20 - 15 * place):.12g}\n"
    steps = {"later_runs": 1, "epoch": max(1, 50_000 // max(1, images))}.get(phase, 10)
    for index, noise in enumerate(rng.normal(1.0, 0.03, 5 if phase == "epoch" else 8)):
        yield f"{phase},{index},{steps},{steps * images},{steps * step_s * noise:.12g}\n"


def _metrics(one: Planned) -> Iterator[str]:
    """Rows of metrics.csv."""
    images = one.case.batch_size or one.case.axes.get("images") or 100
    if one.case.suite == "parity":
        yield "loss,2.302585,1\n"
    yield f"flops,{images * 1_600_000_000},1\n"
    yield f"bytes,{images * 7_000_000},B\n"
    if one.case.suite == "input_pipeline":
        shared = (one.case.devices or 1) if one.case.axes.get("pipeline") in ("shared_host", "shared_device") else 1
        yield f"examples_per_step,{images},1\n"
        yield f"distinct_images_per_step,{images // shared},1\n"


def _telemetry(one: Planned, ticks: int, rng: np.random.Generator) -> list[str]:
    """Rows of telemetry.csv: the host, then the GPUs, each tick; idle until started."""
    wobble = rng.normal(0.0, 2.0, (ticks, 1 + one.gpus))
    lines, first_s = [], (STARTED_S, ticks * INTERVAL_S)
    warm_s = first_s[0] + 0.5 * (first_s[1] - first_s[0])
    for tick in range(ticks):
        at_s = tick * INTERVAL_S + 0.003
        phase = "" if at_s < STARTED_S else "warm_up" if at_s < warm_s or not one.fits else _phase(one)
        busy = bool(phase)
        host = f"{40 * busy + abs(wobble[tick, 0]):.1f},{800 * busy + tick:.1f},1.49,,,,,,,,"
        lines.append(f"{at_s:.3f},{phase},host,{host}\n")
        for gpu in range(one.gpus):
            load = min(100.0, max(0.0, 90 * busy - 10 * gpu + wobble[tick, 1 + gpu]))
            values = f"{load:.0f},,,,{500 + 8000 * busy},{60 + 2.4 * load:.1f},{100 * at_s:.1f},{40 + tick // 10}"
            throttled = "sw_power_cap" if busy and tick % 50 == 49 else ""
            lines.append(f"{at_s:.3f},{phase},gpu{gpu},{values},{2500 if busy else 210},9501,{throttled}\n")
    return lines


def _line(values: Any) -> str:
    return ",".join(values) + "\n"
