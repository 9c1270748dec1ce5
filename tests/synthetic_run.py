"""A small run nobody made: made-up numbers, round enough for arithmetic by hand, written as the runner writes them."""

import csv
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.plan.trials import PlannedTrial, trial_slug
from tsuishi.results import manifest, schema, trial_folders
from tsuishi.results.directory import WRITTEN_ANEW, RunDirectory
from tsuishi.results.records import RECORDS, CaseRecord, TrialRecord
from tsuishi.results.run_record import RunRecord
from tsuishi.results.schema import csv_writer
from tsuishi.specs.case import Case
from tsuishi.specs.suite import known_suites, read_suite
from tsuishi.specs.trial_id import TrialId

TF, TORCH = "tf1.13-cpu", "torch2-cpu"
FRAMEWORKS = {TF: "tensorflow 1.13.1", TORCH: "torch 2.13.0"}

# First runs in s by number of towers, as the constant-folding step makes them.
FIRST_RUN_S = {1: 2.4, 2: 1.6, 3: 0.9, 4: 0.45, 8: 0.5}
LATER_RUN_S = {1: 0.36, 2: 0.20, 3: 0.12, 4: 0.0004, 8: 0.0005}

# The workload of each suite of this checkout.
WORKLOADS = {name: read_suite(path, WORDS).workload for name, path in known_suites(Checkout().suites).items()}

_CONV2D = {
    "suite": "conv2d", "strategy": "towers", "images": 840, "height": 100, "width": 100, "channels": 1,
    "filter_size": 3, "data": "ones", "graph_optimizers": "default",
}  # fmt: skip
_TRAINING = {
    "suite": "multi_gpu_scaling", "mode": "training", "model": "cnn10", "layout": "native", "strategy": "none",
    "devices": 1, "nodes": 1, "precision": "fp32", "execution": "native",
}  # fmt: skip


def conv2d_case(**axes: Any) -> Case:
    """A literal case of conv2d, as the source has it but for the given axes."""
    base = {"protocol": "literal", "implementation": "framework", "feed": "constant", "devices": 1}
    return WORDS.case({**_CONV2D, **base, **axes})


def training_case(batch_size: int, **axes: Any) -> Case:
    """A steady case of multi_gpu_scaling."""
    return WORDS.case({**_TRAINING, "protocol": "steady", "batch_size": batch_size, **axes})


def planned_trial(case: Case, environment: str, expected_s: float, repetition: int = 1, **fields: Any) -> PlannedTrial:
    """A trial of a workload that nobody has."""
    name = TrialId(case.id[:6], environment, repetition)
    how = {"accelerator": "cpu", "workload": "w", "settings": {}, "timeout_s": 60.0, "expected_s": expected_s}
    what = {"trial_id": str(name), "case_id": case.id, "case": case, "environment": environment}
    return PlannedTrial.model_validate({**what, "repetition": repetition, **how, **fields})


def run_content(run_id: str, **more: Any) -> dict[str, Any]:
    """The least that a run.json holds."""
    return {"run_id": run_id, "profile": "quick", "seed": 0, "engine": "host", "arguments": {}, "plan": [], **more}


def run_record(run_id: str, **more: Any) -> RunRecord:
    """The least run.json."""
    return RunRecord.model_validate_json(json.dumps(run_content(run_id, **more)))


def add_record(directory: RunDirectory, kind: str, content: Mapping[str, Any]) -> str:
    """Store a record that has this content; returns its id."""
    return directory.add(RECORDS[kind].model_validate(content))


class SyntheticRun:
    """A run directory that is filled a trial at a time; `finish` writes the plan and gathers.

    `workloads`: of suites that are not of this checkout. `frameworks`: with their versions, by environment.
    `started_at`: of its trials.
    """

    started_at = "2026-11-21T08:00:01Z"

    def __init__(
        self,
        path: Path,
        workloads: Mapping[str, str] | None = None,
        frameworks: Mapping[str, str] = FRAMEWORKS,
        **run: Any,
    ) -> None:
        self.plan: list[dict[str, Any]] = []
        self._frameworks = frameworks
        self._workloads = {**WORKLOADS, **(workloads or {})}
        self.run = {
            "run_id": path.name,
            "tsuishi_version": "0.1.0",
            "git": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False},
            "arguments": {"suites": ["conv2d", "multi_gpu_scaling"], "profile": "quick", "resume": False, "data": None},
            "profile": "quick",
            "seed": 0,
            "created_at": "2026-11-21T08:00:00Z",
            "engine": "docker",
            "plan": self.plan,
            "left_out": [{"environment": "tf1.13-cu100", "reason": "needs an NVIDIA GPU; this machine has none"}],
            **run,
        }
        self.directory = RunDirectory.create(path, RunRecord.model_validate_json(json.dumps(self.run)))
        self.machine = add_record(self.directory, "machine", machine())
        self.environments = {
            name: add_record(self.directory, "environment", environment(name, framework))
            for name, framework in frameworks.items()
        }

    def workload_record(self, suite: str) -> str:
        """The id of the record of a suite's workload; of a suite that nobody knows, it names none."""
        named = {"workload": self._workloads[suite]} if suite in self._workloads else {}
        return add_record(self.directory, "workload", {**named, "files": {"timing.py": "0" * 64}})

    def add_plan(self, case: Case, environment: str, repetition: int = 1) -> str:
        """Plan a trial; returns its name."""
        name = str(TrialId(trial_slug(case, WORDS), environment, repetition))
        planned = {"trial_id": name, "case_id": case.id, "case": case.axes, "environment": environment}
        self.plan.append({**planned, "repetition": repetition})
        return name

    def add(
        self,
        case: Case,
        environment: str,
        samples: list[tuple[str, int, int, int, float]] = (),  # type: ignore[assignment]
        repetition: int = 1,
        attempt: int = 1,
        **fields: Any,
    ) -> str:
        """Plan and commit a trial. samples: (phase, index, steps, images, seconds). Returns its id."""
        if attempt == 1:
            self.add_plan(case, environment, repetition)
        trial_id = TrialId(trial_slug(case, WORDS), environment, repetition, attempt)
        partial = trial_folders.begin(self.directory.trials, trial_id)
        _write_rows(partial, "samples", samples)
        _write_rows(partial, "metrics", fields.pop("metrics", []))
        _write_rows(partial, "telemetry", fields.pop("telemetry", []))
        with gzip.open(partial / "log.txt.gz", "wt") as log:
            log.write("made up\n")
        trial = dict.fromkeys(column.name for column in schema.TRIALS)
        trial |= {
            "trial_id": str(trial_id), "case_id": case.id,
            "case_record": self.directory.add(CaseRecord(case.axes)),
            "environment": environment, "environment_record": self.environments[environment],
            "machine_record": self.machine, "workload_record": self.workload_record(case.suite),
            "framework": self._frameworks[environment],
            "device": "cpu", "repetition": repetition, "attempt": attempt, "status": "ok", "reason": "",
            "simulated": False, "synthetic": False, "started_at": self.started_at, "duration_s": 9.5,
            "startup_s": 2.5, "exit_code": 0, "peak_process_memory_mib": 800.5,
            "events_garbled": 0, "events_missing": 0,
            "phases": [], "reported": {"python": "3.6.15", "flags": {"threads": 2}}, "command": ["python"],
            "settings": {"seed": 0},
        }  # fmt: skip
        trial_folders.commit(partial, TrialRecord.model_validate({**trial, **fields}))
        return str(trial_id)

    def finish(self) -> RunDirectory:
        self.directory.write_run(RunRecord.model_validate_json(json.dumps(self.run)))
        self.directory.gather(WORDS)
        return self.directory


def listed(run: RunDirectory) -> RunDirectory:
    """The run with the manifest that a runner leaves."""
    (run.path / manifest.ONCE).unlink(missing_ok=True)
    of_run = manifest.Manifest(run.path)
    for _, trial in run.finished():
        of_run.add(trial)
    of_run.add_records(run.record_files())
    manifest.write_anew(run.path, WRITTEN_ANEW)
    return run


def write_example(path: Path, started_at: str = SyntheticRun.started_at) -> RunDirectory:
    """A run with every kind of thing a report has to show."""
    run = SyntheticRun(path)
    run.started_at = started_at
    for devices, first_s in FIRST_RUN_S.items():
        later_s = LATER_RUN_S[devices]
        later = [("later_runs", index, 1, 840, later_s * factor) for index, factor in enumerate((0.9, 1.0, 1.1))]
        samples = [("first_run", 0, 1, 840, first_s), *later]
        run.add(conv2d_case(devices=devices), TF, samples, simulated=devices > 1)
        flat = [(phase, index, steps, images, 0.35) for phase, index, steps, images, _ in samples]
        run.add(conv2d_case(devices=devices, graph_optimizers="none"), TF, flat, simulated=devices > 1)
        run.add(conv2d_case(devices=devices), TORCH, flat, simulated=devices > 1)
    scipy_case = conv2d_case(implementation="scipy", strategy=None, feed=None, graph_optimizers=None)
    scipy = [("first_run", 0, 1, 840, 0.25), *[("later_runs", index, 1, 840, 0.24) for index in range(3)]]
    run.add(scipy_case, TORCH, scipy)
    for devices in (1, 2):
        blocks = {"host_to_device": 0.05, "compute": 0.3 / devices, "device_to_host": 0.02}
        samples = [(phase, i, 1, 840, s) for phase, s in blocks.items() for i in range(4)]
        run.add(conv2d_case(devices=devices, protocol="steady", feed="resident"), TORCH, samples, **_metrics())
    _add_training(run)
    _add_limits(run)
    _add_scaling(run)
    return run.finish()


def limits_case(operation: str, **axes: Any) -> Case:
    """A case of device_limits on one device."""
    return WORDS.case({"suite": "device_limits", "protocol": "steady", "operation": operation, "devices": 1, **axes})


def work(flops: float | None = None, moved: float | None = None) -> list[tuple[str, float, str]]:
    """The metrics of a step's work: FLOP and bytes."""
    return [(name, value, unit) for name, value, unit in (("flops", flops, "1"), ("bytes", moved, "B")) if value]


def _add_limits(run: SyntheticRun) -> None:
    """200 GFLOP/s in FP32 and 20 GB/s."""
    blocks = [("measure", index, 10, 0, 1.0) for index in range(4)]
    product = limits_case("matmul", precision="fp32", matrix_size=1000)
    run.add(product, TORCH, blocks, metrics=work(20e9, 12e6))
    run.add(limits_case("memory_copy", buffer_mib=1000), TORCH, blocks, metrics=work(moved=2e9))


def _add_scaling(run: SyntheticRun) -> None:
    """Two simulated devices, strong and weak, against the baselines of _add_training."""
    for batch_size, step_s in ((32, 0.05), (64, 0.1)):
        case = training_case(batch_size, strategy="mirrored", devices=2)
        samples = steady_samples(batch_size, [step_s] * 4)
        run.add(case, TF, samples, simulated=True, synthetic=True, metrics=work(1e9, 1e8))


def _add_training(run: SyntheticRun) -> None:
    for batch_size in (16, 32, 64):
        step_s = 0.01 + batch_size * 0.002
        for repetition, factor in enumerate((1.0, 1.1, 0.9), start=1):
            # The longest of them has the telemetry; nothing of this is measured.
            extra = _observed() if (batch_size, repetition) == (64, 1) else {}
            samples = steady_samples(batch_size, [step_s * factor] * 8, first_s=1.0, second_s=0.2)
            run.add(training_case(batch_size), TF, samples, repetition, synthetic=True, **extra)
    run.add(training_case(16), TORCH, steady_samples(16, [0.03, 0.04, 0.05, 0.04]), synthetic=True)
    run.add(training_case(32), TORCH, status="failed", reason="exit code 1: RuntimeError", exit_code=1)
    run.add(training_case(32), TORCH, steady_samples(32, [0.06, 0.08, 0.07, 0.07]), attempt=2, synthetic=True)
    run.add_plan(training_case(64), TORCH)
    first_layout = training_case(16, layout="channels_first")
    run.add(first_layout, TF, status="unsupported", reason="channels_first needs a GPU in TensorFlow 1.13; use tf2-cpu")
    epochs = [("epoch", 0, 20, 2560, 8.0), ("epoch", 1, 20, 2560, 6.0), ("epoch", 2, 20, 2560, 6.4)]
    accuracy = [("test_accuracy", 0.1, "1"), ("test_accuracy", 0.25, "1")]
    run.add(training_case(128, protocol="literal"), TF, epochs, synthetic=True, metrics=accuracy)


def steady_samples(
    batch_size: int, steps_s: list[float], first_s: float = 2.0, second_s: float = 1.0
) -> list[tuple[str, int, int, int, float]]:
    """Blocks of 10 steps, at `steps_s` seconds a step."""
    first = [("first_step", 0, 1, batch_size, first_s), ("second_step", 0, 1, batch_size, second_s)]
    return first + [("measure", index, 10, 10 * batch_size, 10 * step_s) for index, step_s in enumerate(steps_s)]


def environment(name: str, framework: str = "") -> dict[str, Any]:
    """An environment's record. framework: with its version, of an environment that FRAMEWORKS has not."""
    package, version = (framework or FRAMEWORKS[name]).split()
    base = "docker.io/library/ubuntu:18.04"
    return {
        "name": name, "title": f"{package} {version} on CPU", "spec_id": "a" * 16, "realised_id": "b" * 16,
        "lock_sha256": "c" * 64, "engine": "docker", "engine_version": "27.0",
        "base": {"reference": base, "used": base if name == TORCH else "localhost/bionic:local", "digest": "unpinned"},
        "substitutions": [] if name == TORCH else [{"asked": base, "used": "localhost/bionic:local"}],
        "python": "3.6.15", "versions": {package: version}, "cuda": None, "cudnn": None,
        "packages": {package: version, "numpy": "1.16.6", **({"scipy": "1.2.3"} if name == TF else {})},
        "image": {"id": "sha256:" + "d" * 64, "size_bytes": 1234567890}, "command": ["docker", "run"],
    }  # fmt: skip


def machine() -> dict[str, Any]:
    return {
        "cpu": {"model": "Example CPU @ 2.50GHz", "logical": 2, "physical": 1}, "memory_mib": 7951,
        "kernel": "6.1.0", "os": "Debian GNU/Linux 12", "driver": None, "gpus": [],
    }  # fmt: skip


def _metrics() -> dict[str, Any]:
    return {"metrics": [("images_checked", 840, "1"), ("max_relative_error", 1.5e-7, "1")]}


def _observed() -> dict[str, Any]:
    """Telemetry of a host and a GPU, with phases."""
    phases = [("first_step", 2.5, 3.5), ("second_step", 3.5, 3.7), ("warm_up", 3.7, 8.0), ("measure", 8.0, 19.0)]
    ticks: list[dict[str, Any]] = []
    for tick in range(40):
        at = {"elapsed_s": tick / 2, "phase": next((n for n, b, e in phases if b <= tick / 2 < e), "")}
        ticks.append({**at, "device": "host", "utilisation_percent": 50 + tick, "process_memory_mib": 20.0 * tick})
        ticks.append(
            {**at, "device": "gpu0", "utilisation_percent": 2 * tick, "memory_used_mib": 2048, "power_w": 150 + tick}
        )
    return {
        "duration_s": 20.0,
        "telemetry": ticks,
        "phases": [{"name": name, "begin_s": begin, "end_s": end} for name, begin, end in phases],
    }


def _write_rows(partial: Path, table: str, rows: Any) -> None:
    """Rows as dicts, or as tuples of the table's columns."""
    with (partial / f"{table}.csv").open("w", encoding="utf-8", newline="") as file:
        writer: csv.DictWriter[str] = csv_writer(table, file)
        names = list(writer.fieldnames)
        writer.writerows(row if isinstance(row, dict) else dict(zip(names, row, strict=True)) for row in rows)


def listed_example(path: Path) -> RunDirectory:
    """The example with a manifest."""
    return listed(write_example(path))
