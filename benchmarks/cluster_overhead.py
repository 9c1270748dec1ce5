"""What a trial costs through Slurm: `python -m benchmarks.cluster_overhead [--trials 1000]`, .venv active, as root.

Starts a Slurm of two nodes on this machine (tests/executors), and runs as many cases of a workload that sleeps 0.2 s:

- bare: an array of `sleep 0.2`, each alone on its node, submitted by sbatch
- tsuishi: a run of as many trials, each a record, samples, telemetry and a log in a folder of its own
- local: with --local, the same run on this machine, one trial after the other; both have to have the same case table

Wall time from the submission to the last end, times two nodes, over the trials, without the 0.2 s: what a trial costs
on its node. And the largest resident memory of the submitting process, in MiB; of sbatch and squeue for the bare array.
"""

import argparse
import csv
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench import make_checkout
from tests.executors.slurm_cluster import NODES, cluster, why_not
from tests.executors.test_slurm_run import on_slurm
from tests.run.test_runner import session
from tsuishi.executors.cluster import OnSlurm
from tsuishi.results.directory import RunDirectory
from tsuishi.run.executor import LOCAL
from tsuishi.run.new_run import run_suite

NAP_S, POLL_S, ARRAY = 0.2, 2.0, 1001
WORKLOAD = f"""
import time

def run(request, emitter):
    emitter.environment(framework="none", versions={{}}, devices=[])
    with emitter.phase("measure"):
        time.sleep({NAP_S})
    emitter.sample("measure", 0, 1, 1, {NAP_S})
"""
BARE = """
import resource, subprocess, sys, time
count, nap_s, poll_s = sys.argv[1:]
options = ("--exclusive", "--output=/dev/null", "--job-name=bare", "--wrap", "sleep " + nap_s)
subprocess.run(["sbatch", f"--array=0-{int(count) - 1}%100", *options], check=True, stdout=subprocess.DEVNULL)
while subprocess.run(["squeue", "--noheader", "--name=bare"], check=True, capture_output=True).stdout.strip():
    time.sleep(float(poll_s))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
SUITE = """
title = "naps"
workload = "naps"
[[groups]]
axes = {{ protocol = "steady", batch_size = {sizes} }}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100, help="how many; 100 without it")
    parser.add_argument("--local", action="store_true", help="run them on this machine too")
    given = parser.parse_args()
    if lacking := why_not():
        raise SystemExit(f"no cluster can be made here: {lacking}")
    table = Table("", "wall, s", "a trial on its node, s", "memory, MiB", box=None)
    with tempfile.TemporaryDirectory(prefix="naps-") as folder, cluster(_sub(folder), max_array_size=ARRAY) as slurm:
        os.environ.update(slurm.environ)  # of the processes below
        root = Path(folder) / "checkout"
        make_naps(root, given.trials)
        rows = [("bare sbatch array", len(NODES), apart(bare, given.trials))]
        rows.append(("tsuishi", len(NODES), apart(measured, root, "slurm")))
        if given.local:
            rows.append(("tsuishi, local", 1, apart(measured, root, "local")))
        for name, nodes, (wall_s, memory_mib) in rows:
            each_s = wall_s * nodes / given.trials - NAP_S
            table.add_row(name, f"{wall_s:.0f}", f"{each_s:.2f}", f"{memory_mib:.0f}")
        Console(width=100).print(table)
        runs = [RunDirectory(path) for path in sorted((root / "results").iterdir())]
        for run in runs:
            print(f"{run.id}: {dict(Counter(trial.status for _, trial in run.finished()))}")
        if given.local:
            print(f"equal case tables: {case_table(runs[0]) == case_table(runs[1])}")


def apart(work: Callable[..., tuple[float, float]], *arguments: object) -> tuple[float, float]:
    """(wall time of some work in s, largest resident memory in MiB), in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def bare(count: int) -> tuple[float, float]:
    """Of a process that only runs sbatch and squeue: its own memory is small beside that of this one."""
    begun = time.monotonic()
    command = [sys.executable, "-I", "-c", BARE, str(count), str(NAP_S), str(POLL_S)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.monotonic() - begun, int(done.stdout) / 1024


def measured(root: Path, executor: str) -> tuple[float, float]:
    on_nodes = executor == "slurm"
    work = replace(on_slurm(root, slurm_poll_s=POLL_S) if on_nodes else session(root), data_set=None)
    begun = time.monotonic()
    run_suite(work, executor, executor=OnSlurm() if on_nodes else LOCAL)
    return time.monotonic() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def make_naps(root: Path, count: int) -> None:
    made = make_checkout(root, "ok")
    (made.suites / "bench.toml").unlink()
    (made.workloads / "experiments" / "naps.py").write_text(WORKLOAD, encoding="utf-8")
    sizes = list(range(1, count + 1))
    (made.suites / "naps.toml").write_text(SUITE.format(sizes=sizes), encoding="utf-8")


def case_table(run: RunDirectory) -> list[tuple[str, ...]]:
    """Case, environment, repetition, status and number of samples of the last attempt at every trial, sorted."""
    samples = csv.DictReader((run.path / "samples.csv").open(encoding="utf-8"))
    counts: dict[str, int] = {}
    for row in samples:
        counts[row["trial_id"]] = counts.get(row["trial_id"], 0) + 1
    trials = csv.DictReader((run.path / "trials.csv").open(encoding="utf-8"))
    named = ("case_id", "environment", "repetition", "status")
    by_attempt = sorted(trials, key=lambda row: int(row["attempt"]))
    last = {row["case_id"]: (*(row[name] for name in named), str(counts.get(row["trial_id"], 0))) for row in by_attempt}
    return sorted(last.values())


def _sub(folder: str) -> Path:
    made = Path(folder) / "slurm"
    made.mkdir()
    return made


if __name__ == "__main__":
    main()
