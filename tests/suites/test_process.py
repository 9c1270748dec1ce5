"""Settings of the process, made by the real entry before the experiment is imported."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import missing
from tests.suites.entry import copied, run

# An allocator that never frees, and a function that sets flush-to-zero.
ALLOCATOR = """
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
static char *next, *end;
void *malloc(size_t n) {
    n = (n + 31) & ~(size_t)15;
    if (next + n > end) {
        size_t more = n > (1 << 26) ? n : (1 << 26);
        next = mmap(0, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = next + more;
    }
    *(size_t *)next = n - 16;
    void *found = next + 16;
    next += n;
    return found;
}
void free(void *p) {}
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) {
    void *found = malloc(n);
    if (p) memcpy(found, p, ((size_t *)p)[-2] < n ? ((size_t *)p)[-2] : n);
    return found;
}
#if defined(__x86_64__)
void flush(void) { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); }
#else
void flush(void) { __asm__("msr fpcr, %0" : : "r"(1ul << 24)); }
#endif
"""
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


FACTS = """
import ctypes

import numpy  # its wheel brings a BLAS


def run(request, emitter):
    if request.settings.get("flush", False):
        ctypes.CDLL(request.settings["flush"]).flush()
"""


def flags(folder: Path, settings: dict[str, object], **variables: str) -> dict[str, object]:
    """The flags that a process tells of itself."""
    workloads = copied(folder)
    (workloads / "experiments" / "seen.py").write_text(FACTS, encoding="utf-8")
    request = {"experiment": "seen", "case": {}, "framework": None, "accelerator": "cpu", "settings": settings}
    code, events, errors = run(workloads, json.dumps({**request, "process": {"variables": variables}}))
    assert code == 0, errors
    return {name: value for event in events for name, value in event.get("flags", {}).items()}


def test_a_process_tells_its_libraries_by_name_and_digest_and_that_it_flushes_to_zero(tmp_path: Path) -> None:
    usual = flags(tmp_path / "usual", {})
    assert usual["flush_to_zero"] is False
    assert re.fullmatch(r"libc[-.][\w.-]+ [0-9a-f]{12}", str(usual["allocator"]))
    assert re.fullmatch(r"lib[\w.-]*(blas|mkl)[\w.-]* [0-9a-f]{12}", str(usual["BLAS"]))
    if not shutil.which("gcc"):
        missing("no compiler")
    source = tmp_path / "allocator.c"
    source.write_text(ALLOCATOR)
    library = tmp_path / "liballocator.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    other = flags(tmp_path / "other", {"flush": str(library)}, LD_PRELOAD=str(library))
    assert other["flush_to_zero"] is True
    assert re.fullmatch(r"liballocator.so [0-9a-f]{12}", str(other["allocator"]))
    assert other["BLAS"] == usual["BLAS"]


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
