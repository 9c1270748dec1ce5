"""What limits a process is recorded: in a process that is limited so, and for cgroups of both versions."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tsuishi.machine.process_limits import cpu_quota, limits_of_process, lowest, ranges
from tsuishi.results.records import LimitsRecord

TELL = "import json; from tsuishi.machine.process_limits import limits_of_process as l; print(json.dumps(l()))"


def told(*before: str, **variables: str) -> dict[str, Any]:
    """The limits of a process that is started by a command."""
    command = [*before, sys.executable, "-c", TELL]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", **variables}
    )
    found: dict[str, Any] = json.loads(done.stdout)
    LimitsRecord.model_validate_json(done.stdout)
    return found


def test_a_process_says_what_it_was_started_with() -> None:
    core = limits_of_process()["affinity"].replace("-", ",").partition(",")[0]
    found = told(
        *("taskset", "-c", core, "nice", "-n", "5", "prlimit", f"--as={8 << 30}", "--nofile=300:300"),
        OMP_NUM_THREADS="1", SLURM_CPUS_PER_TASK="4", SLURM_JOB_NAME="ada", OMP_PLACES="/home/ada", HOME="/home/ada",
    )  # fmt: skip
    assert (found["affinity"], found["cores"] <= 1, found["nice"]) == (core, True, 5)
    assert (found["ulimits"]["address space"], found["ulimits"]["open files"]) == (8 << 30, 300)
    assert found["variables"] == {"OMP_NUM_THREADS": "1", "SLURM_CPUS_PER_TASK": "4"}, "and nobody's name"
    assert "address space" not in told("prlimit", "--as=unlimited")["ulimits"]


def files(root: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("texts", "quota", "memory"),
    [
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
          "sys/fs/cgroup/a/cpu.max": "150000 100000\n", "sys/fs/cgroup/a/b/memory.max": "4096\n",
          "sys/fs/cgroup/a/memory.max": "max\n"}, 1.5, 4096),
        ({"proc/self/cgroup": "3:cpu,cpuacct:/docker/x\n2:memory:/docker/x\n",  # a container does not see the path
          "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
          "sys/fs/cgroup/memory/memory.limit_in_bytes": "8192\n"}, 0.5, 8192),
        ({"proc/self/cgroup": "1:cpu:/\n1:memory:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
          "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
          "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, None, None),
        ({}, None, None),
    ],
)  # fmt: skip
def test_the_lowest_limit_of_all_cgroups_counts(
    tmp_path: Path, texts: dict[str, str], quota: float | None, memory: int | None
) -> None:
    root = files(tmp_path, texts)
    assert cpu_quota(root) == quota
    assert lowest("memory", ("memory.max", "memory.limit_in_bytes"), root) == memory


def test_numbers_of_cores_are_written_in_short() -> None:
    assert [ranges(cores) for cores in ([0], [0, 1], [0, 2, 3, 4, 8])] == ["0", "0-1", "0,2-4,8"]
