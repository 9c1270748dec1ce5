"""The cost of a trial beside measuring: `python -m benchmarks.trial_overhead [options]` from the root, .venv active.

The real runner runs trials of a workload that imports its framework, reports it, and measures nothing. Printed are
medians, by environment and engine; no pass or fail. Wall seconds are the machine's, CPU-seconds the workload's:

- start: from the record of the trial before until the interpreter runs (the engine, the trial's files)
- import: until the first event (the framework, and its modules that Python compiles), and its CPU-seconds
- end: from the workload's last metric until the trial's record (the process's end, the container's removal, the disk)
- trial: the sum of all three

--against PATH runs the trials of another checkout in turn with the trials of this checkout, under the same conditions.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tsuishi.results import directory
from tsuishi.results.directory import RunDirectory
from tsuishi.specs.suite import known_suites

ROOT = Path(__file__).resolve().parent.parent
NOT_CODE = shutil.ignore_patterns(".git", ".venv", "results", "out", "exports", ".*_cache", ".hypothesis")
WORKLOAD = '''"""Does nothing that a trial would not do beside measuring."""

import time

BEGUN = time.time()

import frameworks  # noqa: E402


def run(request, emitter):
    frameworks.load(request).report(emitter, request)
    emitter.metric("begun", BEGUN, "s")
    emitter.metric("cpu_s", time.process_time(), "s")
    emitter.metric("done", time.time(), "s")
'''
SUITE = """
title = "nothing"
workload = "nothing"
[profiles.quick]
[[groups]]
axes = { protocol = "steady", devices = 1 }
"""
COLUMNS = ("start", "import", "import_cpu", "end", "trial")

Figures = dict[str, float]


def main() -> None:
    given = parse()
    checkouts = {"here": ROOT} | ({"against": given.against.resolve()} if given.against else {})
    measured: dict[tuple[str, str, str], list[Figures]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        copies = {name: copied(path, Path(folder) / name) for name, path in checkouts.items()}
        for number in range(given.rounds):
            for engine in given.engine.split(","):
                for environment in given.env.split(","):
                    # The order of checkouts changes with every round.
                    for name in sorted(copies, reverse=number % 2 == 1):
                        run = run_nothing(copies[name], engine, environment, given.trials)
                        measured[engine, environment, name] += figures(run)
    print(f"{'engine':7} {'environment':14} {'checkout':8} trials " + " ".join(f"{name:>10}" for name in COLUMNS))
    for (engine, environment, name), rows in measured.items():
        medians = " ".join(f"{statistics.median(row[column] for row in rows):10.2f}" for column in COLUMNS)
        print(f"{engine:7} {environment:14} {name:8} {len(rows):6} {medians}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="torch2-cpu,tf2-cpu,torch1.1-cu90,tf1.13-cpu")
    parser.add_argument("--engine", default="docker,venv", help="docker, venv (and host, with --env host)")
    parser.add_argument("--trials", type=int, default=3, help="in a run; one more is started, and not counted")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path, help="another checkout")
    return parser.parse_args()


def copied(checkout: Path, copy: Path) -> Path:
    """A copy of a checkout, with the suite and the workload `nothing` only."""
    shutil.copytree(checkout, copy, ignore=NOT_CODE)
    for suite in known_suites(copy / "suites").values():
        suite.unlink()
    (copy / "suites" / "nothing.toml").write_text(SUITE, encoding="utf-8")
    (copy / "suites" / "workloads" / "experiments" / "nothing.py").write_text(WORKLOAD, encoding="utf-8")
    return copy


def run_nothing(checkout: Path, engine: str, environment: str, trials: int) -> RunDirectory:
    """A run of `trials` + 1 trials, by the checkout's own code. Exits with the output where the run fails."""
    options = ["--engine", engine, "--env", environment, "--repetitions", str(trials + 1)]
    results = checkout / "results"
    shutil.rmtree(results, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-m", "invoke", "run-suite", *options],
        cwd=checkout,
        env={**os.environ, "INVOKE_TSUISHI_RESULTS": str(results)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{checkout.name}, {engine}, {environment}: {done.stdout}{done.stderr}")
    return directory.open_run(results)


def figures(run: RunDirectory) -> Iterator[Figures]:
    """The figures of every trial except the first, which has no trial before it."""
    moments = sorted(
        ({**metrics(path), "recorded": (path / "trial.json").stat().st_mtime} for path, _ in run.finished()),
        key=lambda trial: trial["begun"],
    )
    for before, trial in pairwise(moments):
        yield {
            "start": trial["begun"] - before["recorded"],
            "import": trial["done"] - trial["begun"],
            "import_cpu": trial["cpu_s"],
            "end": trial["recorded"] - trial["done"],
            "trial": trial["recorded"] - before["recorded"],
        }


def metrics(trial: Path) -> Figures:
    lines = (trial / "metrics.csv").read_text(encoding="utf-8").splitlines()[1:]
    return {name: float(value) for name, value, _ in (line.split(",") for line in lines)}


if __name__ == "__main__":
    main()
