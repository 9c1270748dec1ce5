"""Settings of the process, made by the real entry before the experiment is imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.suites.entry import copied, run

SEEN = """
import os

CPUS = len(os.sched_getaffinity(0))  # as a framework counts them when it is imported


def run(request, emitter):
    emitter.metric("cpus", CPUS, "CPUs")
    emitter.metric("hash", hash("tsuishi") % 1000, "1")
    emitter.metric("preloaded", int("libutil" in open("/proc/self/maps").read()), "1")
    emitter.metric("marks", int("TSUISHI_STARTED_ANEW" in os.environ), "1")
    emitter.metric("threads", int(os.environ.get("OMP_NUM_THREADS", 0)), "threads")
"""


def seen(folder: Path, process: dict[str, object], framework: str | None = None) -> tuple[int, dict[str, float], str]:
    workloads = copied(folder)
    (workloads / "experiments" / "seen.py").write_text(SEEN, encoding="utf-8")
    request: dict[str, object] = {
        "experiment": "seen",
        "case": {},
        "framework": framework,
        "accelerator": "cpu",
        "settings": {},
    }
    code, events, _ = run(workloads, json.dumps({**request, "process": process}), OMP_NUM_THREADS="7")
    said = next((event["text"] for event in events if event["event"] == "failed"), "")
    return code, {event["name"]: event["value"] for event in events if event["event"] == "metric"}, said


def test_a_framework_sees_the_cpus_and_variables_of_its_case(tmp_path: Path) -> None:
    code, metrics, _ = seen(tmp_path, {"cpus": 1, "variables": {"OMP_NUM_THREADS": "2"}})
    assert (code, metrics["cpus"], metrics["threads"]) == (0, 1, 2)


def test_variables_are_there_when_the_process_starts(tmp_path: Path) -> None:
    """Python reads PYTHONHASHSEED, and the dynamic linker LD_PRELOAD, at their start only."""
    at_start = {"PYTHONHASHSEED": "7", "LD_PRELOAD": "libSegFault.so"}
    code, metrics, said = seen(tmp_path / "missing", {"variables": at_start})
    assert (code, metrics) == (0, {})
    assert said == "LD_PRELOAD: the dynamic linker did not load libSegFault.so: is it installed here?"
    code, metrics, _ = seen(tmp_path / "there", {"variables": {**at_start, "LD_PRELOAD": "libutil.so.1"}})
    assert (code, metrics["hash"], metrics["preloaded"]) == (0, of_seed_7(), 1)
    assert metrics["marks"] == 0


def of_seed_7() -> int:
    command = [sys.executable, "-c", "print(hash('tsuishi') % 1000)"]
    return int(subprocess.run(command, env={"PYTHONHASHSEED": "7"}, capture_output=True, check=True).stdout)


def test_without_settings_nothing_changes(tmp_path: Path) -> None:
    code, metrics, _ = seen(tmp_path, {})
    assert (code, metrics["cpus"], metrics["threads"]) == (0, len(os.sched_getaffinity(0)), 7)


def test_more_cpus_than_there_are_are_unsupported(tmp_path: Path) -> None:
    code, metrics, said = seen(tmp_path, {"cpus": 100_000})
    assert (code, metrics) == (0, {})
    assert said == f"100000 CPUs: this process may use {len(os.sched_getaffinity(0))}"


def test_a_framework_that_reads_none_of_the_variables_is_unsupported(tmp_path: Path) -> None:
    process = {"variables": {"OMP_NUM_THREADS": "2"}, "read_by": {"threads": ["torch", "tensorflow"]}}
    assert seen(tmp_path / "jax", process, "jax") == (0, {}, "threads: jax does not read it")
    assert seen(tmp_path / "torch", process, "torch")[1]["threads"] == 2
