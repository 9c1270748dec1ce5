"""A few of the points that `python -m benchmarks.crash_points` kills a run, its resumption and a report at."""

import subprocess
import sys
from pathlib import Path

import pytest


# Numbers without a common factor with what a trial takes, so that the points are of different kinds.
@pytest.mark.parametrize(("scenario", "every"), [("run", 13), ("resumption", 11), ("report", 7)])
def test_a_kill_at_any_change_of_the_disk_loses_and_repeats_nothing(scenario: str, every: int) -> None:
    command = [sys.executable, "-m", "benchmarks.crash_points", "--only", scenario, "--every", str(every)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    name, points, *faults = done.stdout.splitlines()[-1].split()
    assert (name, faults) == (scenario, ["0"] * 4)
    assert int(points) > 4
