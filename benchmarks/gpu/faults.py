"""Steps 7 and 8: out of memory, and a runner that is killed while its trial is on the device."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.gpu import cases
from benchmarks.gpu.findings import Finding, judged, within
from benchmarks.gpu.journal import Journal
from benchmarks.gpu.kit import Kit
from tsuishi.base.checkout import Checkout
from tsuishi.run.sampler import families, resident_mib

MOST_DOUBLINGS = 10
# With --dry a limit of data stands for the memory of a card, in bytes: what PyTorch takes by itself, stacks of its
# threads included, and a few hundred MiB.
DRY_MEMORY, DRY_MEMORY_OF_A_CORE = 650_000_000, 20_000_000
# Memory that others move meanwhile, and what a trial takes at least once it computes; in MiB.
SETTLED_MIB, LEAST_MIB = 64.0, 150.0
# The seconds within which everything must be gone.
GONE_S = 15.0
# The seconds within which the victim's trial must measure.
START_S = 90.0
# The victim: a runner in a process of its own, with a trial that would take minutes.
VICTIM = """
import sys
from benchmarks.gpu.faults import run_victim
run_victim(*sys.argv[1:])
"""


def out_of_memory(kit: Kit) -> Iterator[Finding]:
    """The batch is doubled until a trial is out of memory; then the device must be usable."""
    model, batch_size = ("mlp", 1 << 12) if kit.dry else ("wrn28_10", _first_batch(kit))
    tried: list[dict[str, Any]] = []
    with _less_memory(DRY_MEMORY + DRY_MEMORY_OF_A_CORE * (os.cpu_count() or 1) if kit.dry else None):
        for _ in range(MOST_DOUBLINGS):
            tried.append(_trial(kit, "kit_memory", model, batch_size))
            if tried[-1]["status"] != "ok":
                break
            batch_size *= 2
    yield first_that_failed(tried)
    yield usable_after(_trial(kit, "kit_after_memory", model, 8))


def _first_batch(kit: Kit) -> int:
    """A batch of the large network that fits: some 30 MiB an image in FP32, and less in bf16; a power of two."""
    fits = max(64, int((kit.gpu.get("memory_mib") or 8192) / 30))
    return 1 << (fits.bit_length() - 1)


def _trial(kit: Kit, suite: str, model: str, batch_size: int) -> dict[str, Any]:
    # In bf16, as cuDNN's trials of its algorithms in FP32 take half a minute with such a batch.
    axes = {"model": model, "batch_size": batch_size, "precision": "fp32" if kit.dry else "amp_bf16"}
    text = cases.suite("one batch", "training", cases.TRAINING, [axes], cases.ONCE)
    return kit.measure_one(f"{suite}_{batch_size}", text)


@contextmanager
def _less_memory(limit: int | None) -> Iterator[None]:
    """Let processes that are started meanwhile have less memory, and this one too."""
    if limit is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def first_that_failed(tried: Sequence[Mapping[str, Any]]) -> Finding:
    """Whether the last trial is out of memory, by that status, and all before it are ok."""
    what = "batch doubled until it fails"
    fitted = [trial["axes"]["batch_size"] for trial in tried if trial["status"] == "ok"]
    last = tried[-1]
    words = f"batch {fitted[-1] if fitted else 'none'} fitted, {last['axes']['batch_size']} was {last['status']}"
    holds = bool(fitted) and last["status"] == "out_of_memory"
    return judged(what, holds, f"{words} ({last['reason']}); expected some to fit, then out_of_memory")


def usable_after(trial: Mapping[str, Any]) -> Finding:
    return judged("the device after that", trial["status"] == "ok", f"batch 8 is {trial['status']}; expected ok")


def killed(kit: Kit) -> Iterator[Finding]:
    """A runner is killed while its trial computes: the memory comes back, and no process is left."""
    kit.ready  # noqa: B018  entered before, so that the victim's start is not that of this process
    before_mib, before = used_mib(kit, ()), _on_device(kit)
    command = [sys.executable, "-c", VICTIM, kit.python, kit.accelerator, str(kit.journal.work / "victim")]
    root, nowhere = Checkout().root, subprocess.DEVNULL
    with subprocess.Popen(command, cwd=root, stdout=nowhere, stderr=nowhere) as victim:
        measures = _awaited_measuring(kit.journal.work / "victim", victim)
        processes = [process for process in families([victim.pid]) if process.pid != victim.pid]
        during_mib = used_mib(kit, processes)
        victim.send_signal(signal.SIGKILL)
    gone_s, after_mib, alive = awaited(lambda: used_mib(kit, processes), before_mib, processes)
    alive += _on_device(kit) - before
    if not measures:
        yield judged("killed runner", False, "its trial never measured; expected a trial to kill")
        return
    yield memory_back(before_mib, during_mib, after_mib)
    yield no_orphan(len(processes), alive, gone_s)


def _awaited_measuring(folder: Path, victim: "subprocess.Popen[bytes]") -> bool:
    """Wait until the victim's trial measures, by its telemetry; False where that takes too long, or the victim ends."""
    begun = time.monotonic()
    while victim.poll() is None and time.monotonic() - begun < START_S:
        if any(",measure," in file.read_text(encoding="utf-8") for file in folder.rglob("telemetry.csv")):
            return True
        time.sleep(0.2)
    return False


def run_victim(python: str, accelerator: Any, folder: str) -> None:
    """Run a long trial: the process that `killed` kills."""
    kit = Kit(python, accelerator, Journal(Path(folder)), minutes=10)
    timing = {**cases.STEADY, "measure_s": 300.0, "max_s": 400.0}
    axes = {"batch_size": 16 if kit.dry else 512}
    kit.measure("kit_victim", cases.suite("a long trial", "training", cases.TRAINING, [axes], timing), 500.0)


def used_mib(kit: Kit, processes: Sequence[psutil.Process]) -> float:
    """The memory of the device that is in use; with --dry, that of the given processes."""
    if kit.dry:
        return resident_mib(processes)
    (sample,) = kit.nvml.sample([kit.gpus[0].index])
    return float(sample["memory_used_mib"] or 0.0)


def _on_device(kit: Kit) -> set[int]:
    """The processes that compute on the GPU, by the driver; none where it hides them, and with --dry."""
    return {pid for gpu in kit.gpus for pid in kit.nvml.processes(gpu.index)}


def awaited(
    used: Callable[[], float], before_mib: float, processes: Sequence[psutil.Process], most_s: float = GONE_S
) -> tuple[float, float, list[int]]:
    """(seconds until all was gone, memory then, the processes that are left), after `most_s` at the latest."""
    begun = time.monotonic()
    while True:
        alive = [process.pid for process in processes if _lives(process)]
        gone_s, now_mib = time.monotonic() - begun, used()
        if gone_s > most_s or (not alive and now_mib <= before_mib + SETTLED_MIB):
            return gone_s, now_mib, alive
        time.sleep(0.2)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def memory_back(before_mib: float, during_mib: float, after_mib: float) -> Finding:
    """Whether a trial that took memory has given it back."""
    what = "killed runner, memory of the device"
    if during_mib < before_mib + LEAST_MIB:
        words = f"{during_mib:.0f} MiB during the trial, {before_mib:.0f} before; expected {LEAST_MIB:.0f} more"
        return judged(what, False, words)
    more = f"{before_mib:.0f} before, {during_mib:.0f} during the trial"
    return within(what, after_mib, -1.0, before_mib + SETTLED_MIB, unit="MiB", more=more)


def no_orphan(started: int, alive: Sequence[int], gone_s: float) -> Finding:
    words = f"{len(alive)} of {started} processes left after {gone_s:.1f} s; expected 0 of at least 1"
    return judged("killed runner, processes of its trial", started > 0 and not alive, words)
