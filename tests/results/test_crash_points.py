"""A few of the points that `python -m benchmarks.crash_points` kills a run, its resumption and a report at."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_a_kill_at_any_change_of_the_disk_and_at_any_moment_loses_and_repeats_nothing() -> None:
    # A prime number, so that no kind of change is always passed over.
    command = [sys.executable, "-m", "benchmarks.crash_points", "--every", "29", "--random", "3"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [name for name, *_ in rows] == ["run", "resumption", "report"]
    assert {fault for _, _, *faults in rows for fault in faults} == {"0"}
