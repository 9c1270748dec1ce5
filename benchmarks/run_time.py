"""The parts of a run's time: `python -m benchmarks.run_time [RUN]`, without an id of the latest run; .venv active.

By suite, as shares of its trials' duration: `start` until the workload's first event (the engine, the interpreter,
mostly the framework's import), `measuring` inside the workload's phases, `rest` (data, the network, checks, the end).
Below, the time between trials over the whole run: the harness commits a trial, and starts the next trial's telemetry.
"""

import math
import os
import statistics
import sys
from collections import defaultdict
from datetime import datetime

from tsuishi.base.settings import read_settings
from tsuishi.results import directory
from tsuishi.results.records import TrialRecord


def main() -> None:
    run = directory.open_run(read_settings({}, os.environ, {}).results, *sys.argv[1:2])
    trials = [trial for _, trial in run.finished() if trial.duration_s and trial.startup_s]
    suites: dict[str, list[TrialRecord]] = defaultdict(list)
    for trial in trials:
        suites[run.case(trial.case_record)["suite"]].append(trial)
    print(f"{'suite':20} trials  median s   start  measuring   rest")
    for suite, its in sorted(suites.items()):
        print(row(suite, its))
    print(row("all", trials))
    print(f"between trials: {between_s(trials):.2f} s each, {between_s(trials) / mean_s(trials):.1%} of a trial")


def row(name: str, trials: list[TrialRecord]) -> str:
    total = sum(trial.duration_s or 0 for trial in trials)
    start = sum(trial.startup_s or 0 for trial in trials) / total
    measuring = sum(map(measured_s, trials)) / total
    median = statistics.median(trial.duration_s or 0 for trial in trials)
    return f"{name:20} {len(trials):6d} {median:9.1f} {start:7.0%} {measuring:10.0%} {1 - start - measuring:6.0%}"


def measured_s(trial: TrialRecord) -> float:
    """The seconds of a trial inside phases."""
    return math.fsum(phase.end_s - phase.begin_s for phase in trial.phases or [] if phase.end_s is not None)


def mean_s(trials: list[TrialRecord]) -> float:
    return statistics.fmean(trial.duration_s or 0 for trial in trials)


def between_s(trials: list[TrialRecord]) -> float:
    """The mean seconds between the end of a trial and the start of the next. Starts are rounded to seconds."""
    began = sorted(datetime.fromisoformat(trial.started_at or "").timestamp() for trial in trials)
    last = max(trials, key=lambda trial: str(trial.started_at))
    before_last = sum(trial.duration_s or 0 for trial in trials) - (last.duration_s or 0)
    return float(began[-1] - began[0] - before_last) / max(1, len(trials) - 1)


if __name__ == "__main__":
    main()
