"""The main job, started as a user would, and the tables it leaves."""

import csv
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from tsuishi.base.checkout import Checkout
from tsuishi.results import directory
from tsuishi.specs.environment import default_environments, named_environments

REAL = Checkout()
PINNED = default_environments(REAL.images, "cpu")
TORCH = [environment.name for environment in PINNED if environment.framework == "torch"]
TENSORFLOW = [environment.name for environment in PINNED if environment.framework == "tensorflow"]
EVERYWHERE = [*TENSORFLOW, *TORCH]
# What tests enter: the environments of a job that names none, and those for CPUs that have to be named.
# TensorFlow 2 computes channels_first on a CPU by oneDNN, which it uses by default only on CPUs with one of these
# (tensorflow/core/util/util.cc).
ONEDNN = not {"avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16"}.isdisjoint(
    Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
)
WITHOUT_CHANNELS_FIRST = ["tf1.13-cpu"] if ONEDNN else TENSORFLOW
ENTERED = (*PINNED, *named_environments(REAL.images, ("jax-cpu", "mxnet-cpu", "chainer-cpu")))
# The suites of the smoke job, and the environments that run them: each in both frameworks, and what tells environments
# apart in all of them.
JOB = (
    (("batch_throughput", "input_pipeline", "transformer_block"), ["tf1.13-cpu", "torch2-cpu"]),
    (("device_limits",), ["tf2-cpu", "torch1.1-cu90", "torch2-cpu"]),
    (("channels_first", "conv2d", "multi_gpu_scaling", "parity"), EVERYWHERE),
)

Trial = dict[str, Any]


def invoke(folder: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    given = {"INVOKE_TSUISHI_RESULTS": str(folder / "results"), "INVOKE_TSUISHI_REPORTS": str(folder / "reports")}
    command = [sys.executable, "-m", "invoke", *arguments]
    return subprocess.run(
        command, cwd=REAL.root, env={**os.environ, **given, **environ}, capture_output=True, text=True, check=False
    )


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    """The rows of a table, of all runs; `run` is the name of the run."""
    found = []
    for run in directory.known_runs(folder / "results").values():
        with (run / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            found += [{**row, "run": run.name} for row in csv.DictReader(file)]
    return found


def trials(folder: Path, **wanted: str) -> list[Trial]:
    """The rows of trials.csv with these values, each with its last `metrics` by name and its `seconds` by phase."""
    metrics: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows(folder, "metrics"):
        metrics[row["trial_id"]][row["name"]] = float(row["value"])
    seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows(folder, "samples"):
        seconds[row["trial_id"]][row["phase"]].append(float(row["seconds"]))
    return [
        {**trial, "metrics": metrics[trial["trial_id"]], "seconds": seconds[trial["trial_id"]]}
        for trial in rows(folder, "trials")
        if all(trial[name] == value for name, value in wanted.items())
    ]
