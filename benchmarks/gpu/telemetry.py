"""Step 1: telemetry at 10 Hz against another program's own log of the same load, and two measures of its energy.

The other program is nvidia-smi; with --dry it is a script that reads /proc/stat at the same pace.
"""

import csv
import shutil
import subprocess
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.gpu.findings import Finding, not_here, within
from benchmarks.gpu.kit import Kit
from tsuishi.base.files import read_rows
from tsuishi.environments.heating import heat
from tsuishi.run.sampler import Sampler, energy_j

INTERVAL_S = 0.1
# Each quantity: the field of nvidia-smi, by how much the means over the load may differ, and whether that is a share of
# nvidia-smi's value or in the quantity's own unit. Utilisation in %, memory in MiB, power in W, clock in MHz.
QUANTITIES = {
    "utilisation_percent": ("utilization.gpu", 10.0, False),
    "memory_used_mib": ("memory.used", 0.05, True),
    "power_w": ("power.draw", 0.05, True),
    "sm_clock_mhz": ("clocks.sm", 0.05, True),
    "temperature_c": ("temperature.gpu", 3.0, False),
}
# Both measures of energy are NVML's. The power of newer cards is a mean over a second, or sampled in a quarter of the
# time (Yang, Adamek and Armour, arXiv 2312.02741).
ENERGY_DIFFERS = 0.1
# The part of the load that is compared: without its beginning, in which averages of a second rise.
STEADY = 0.6
# Prints what nvidia-smi prints, of the CPU.
CPU_LOG = """
import datetime, os, sys, time
before = None
while True:
    values = [int(word) for word in open("/proc/stat").readline().split()[1:9]]
    idle, total = values[3] + values[4], sum(values)
    if before and total > before[1]:
        used = 100 * (1 - (idle - before[0]) / (total - before[1]))
        print(datetime.datetime.now().strftime("%Y/%m/%d %H:%M:%S.%f")[:-3], round(used, 1), sep=", ", flush=True)
    before = idle, total
    time.sleep(0.1)
"""


class Series(NamedTuple):
    """Values of a quantity at moments, in seconds since the epoch."""

    moments: Sequence[float]
    values: Sequence[float]

    def mean(self, begin: float, end: float) -> float | None:
        """The mean of the values from `begin` to `end`; None where there is none."""
        inside = self.values[bisect_left(self.moments, begin) : bisect_right(self.moments, end)]
        return sum(inside) / len(inside) if inside else None


def logged(kit: Kit, load_s: float) -> Iterator[Finding]:
    """Findings on telemetry while the device multiplies matrices for `load_s` seconds."""
    quantities = {"utilisation_percent": QUANTITIES["utilisation_percent"]} if kit.dry else QUANTITIES
    command, why_not = _other_program(kit, quantities)
    telemetry = kit.journal.folder / "telemetry.csv"
    other = kit.journal.folder / ("cpu.csv" if kit.dry else "nvidia-smi.csv")
    with _logging(command, other), Sampler(telemetry, INTERVAL_S, lambda: (), kit.nvml, _indices(kit)) as sampler:
        start = time.time() - sampler.elapsed_s()
        time.sleep(1.0)
        heat(kit.ready, kit.checkout, kit.accelerator, kit.gpus, load_s, kit.screen.say)
        end = time.time()
        time.sleep(0.5)
    rows = [row for row in read_rows(telemetry) if row["device"] == ("host" if kit.dry else f"gpu{kit.gpus[0].index}")]
    yield pace([float(row["elapsed_s"]) for row in rows])
    begin = end - STEADY * load_s
    if why_not:
        yield not_here("telemetry against nvidia-smi", why_not)
    else:
        yield from against_log(rows, start, read_log(other, quantities), begin, end)
    if kit.dry:
        yield not_here("energy counter against integrated power", "--dry: no counter for the CPU")
    else:
        yield energies(rows, begin - start, end - start)


def _indices(kit: Kit) -> list[int]:
    return [gpu.index for gpu in kit.gpus]


def _other_program(kit: Kit, quantities: Mapping[str, tuple[str, float, bool]]) -> tuple[list[str], str]:
    """The command that logs the device ten times a second; or none, and why."""
    if kit.dry:
        return [sys.executable, "-c", CPU_LOG], ""
    program = shutil.which("nvidia-smi")
    if program is None:
        return [], "there is no nvidia-smi"
    fields = ",".join(("timestamp", *(field for field, _, _ in quantities.values())))
    command = [program, f"--query-gpu={fields}", "--format=csv,noheader,nounits", f"--loop-ms={INTERVAL_S * 1000:.0f}"]
    return [*command, f"--id={kit.gpu['uuid']}"], ""


@contextmanager
def _logging(command: Sequence[str], path: Path) -> Iterator[None]:
    """Let another program write its log meanwhile; without a command there is none."""
    if not command:
        yield
        return
    with path.open("w", encoding="utf-8") as file, subprocess.Popen(command, stdout=file) as process:
        try:
            yield
        finally:
            process.terminate()


def read_log(path: Path, names: Sequence[str] | Mapping[str, Any]) -> dict[str, Series]:
    """The series of a log by quantity: its columns are a local time, and a value of each name. Unreadable rows count
    not, as the last may be cut.
    """
    moments: list[float] = []
    columns: dict[str, list[float]] = {name: [] for name in names}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file, skipinitialspace=True):
            try:
                moment = datetime.strptime(row[0], "%Y/%m/%d %H:%M:%S.%f").astimezone().timestamp()
                values = [float(value) for value in row[1 : len(columns) + 1]]
            except (ValueError, IndexError):
                continue
            if len(values) == len(columns):
                moments.append(moment)
                for column, value in zip(columns.values(), values, strict=True):
                    column.append(value)
    return {name: Series(moments, column) for name, column in columns.items()}


def pace(moments: Sequence[float]) -> Finding:
    """Whether telemetry has ten rows a second: at least nine on the average. moments: in s."""
    rate = (len(moments) - 1) / (moments[-1] - moments[0]) if len(moments) > 1 else 0.0
    gap = max((later - earlier for earlier, later in pairwise(moments)), default=0.0)
    return within("telemetry, rows a second", rate, 9.0, 11.0, more=f"the longest gap {gap:.2f} s", of_speed=True)


def against_log(
    rows: Sequence[Mapping[str, str]], start: float, log: Mapping[str, Series], begin: float, end: float
) -> Iterator[Finding]:
    """A finding for each quantity of the log: the means of both from `begin` to `end`, in seconds since the epoch.

    rows: of telemetry, for one device, whose first second is `start`.
    """
    for name, theirs in log.items():
        _, differs, is_share = QUANTITIES[name]
        what = f"telemetry against the other log, {name}"
        known = [row for row in rows if row[name] != ""]
        ours = Series([start + float(row["elapsed_s"]) for row in known], [float(row[name]) for row in known])
        expected = theirs.mean(begin, end)
        if expected is None:
            yield not_here(what, "the other log has no value under load")
            continue
        room = differs * abs(expected) if is_share else differs
        found = ours.mean(begin, end)
        yield within(what, found, expected - room, expected + room, more=f"the other log {expected:.4g}")


def energies(rows: Sequence[Mapping[str, str]], begin: float, end: float) -> Finding:
    """The rise of the energy counter over the integral of power, from `begin` to `end` of telemetry's seconds."""
    what = "energy counter over integrated power"
    counted, source = energy_j([dict(row) for row in rows], [(begin, end)])
    if source != "counter":
        return not_here(what, "this GPU has no energy counter (Volta and newer have)")
    integrated, _ = energy_j([{**row, "energy_j": ""} for row in rows], [(begin, end)])
    if not integrated or counted is None:
        return not_here(what, "this GPU says no power")
    both = f"{counted:.1f} J counted, {integrated:.1f} J integrated"
    return within(what, counted / integrated, 1 - ENERGY_DIFFERS, 1 + ENERGY_DIFFERS, more=both)
