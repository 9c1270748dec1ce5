"""Step 1: whether tsuishi sees the machine as the driver's own program does, and enters the interpreter."""

import csv
import io
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from benchmarks.gpu.findings import Finding, equal, judged, not_here, within
from benchmarks.gpu.kit import HOST, Kit
from tsuishi.base.screen import Screen
from tsuishi.environments import doctor
from tsuishi.environments.builder import Builder

_PATIENCE_S = 30
# A field of nvidia-smi, the key of Nvml.describe that says the same, and by which share they may differ: nvidia-smi
# rounds to whole MiB and to hundredths of a W.
NUMBERS = {
    "memory.total": ("memory_mib", 0.01),
    "power.limit": ("power_limit_w", 0.001),
    "clocks.max.sm": ("sm_clock_max_mhz", 0.0),
    "clocks.max.memory": ("memory_clock_max_mhz", 0.0),
    "pcie.link.width.max": ("pcie_lanes_max", 0.0),
}
TEXTS = {"name": "name", "uuid": "uuid", "compute_cap": "compute_capability"}
SWITCHES = {"persistence_mode": "persistence_mode", "ecc.mode.current": "ecc", "display_active": "display_active"}
FIELDS = (*TEXTS, *NUMBERS, *SWITCHES, "driver_version")


def seen(kit: Kit) -> Iterator[Finding]:
    """Findings on doctor, the interpreter and the record of the machine."""
    yield interpreter(kit.ready.record.content(), kit.accelerator, kit.python)
    yield doctors_answer(_doctor(kit), kit.accelerator)
    if kit.dry:
        yield not_here("NVML against nvidia-smi", kit.nvml.why_not)
        return
    if not kit.gpu:
        yield not_here("NVML against nvidia-smi", f"NVML has no GPU: {kit.nvml.why_not}")
        return
    row, why_not = smi(kit.gpu["uuid"])
    if why_not:
        yield not_here("NVML against nvidia-smi", why_not)
        return
    yield from against_smi({**kit.gpu, "driver": kit.machine["driver"]}, row)


def interpreter(record: Mapping[str, Any], accelerator: str, python: str) -> Finding:
    """Whether the interpreter has PyTorch, and uses the device that is measured."""
    torch = (record.get("versions") or {}).get("torch")
    usable, wanted = bool(record.get("cuda_usable")), accelerator == "cuda"
    what = "PyTorch of the interpreter"
    if torch is None:
        return judged(what, False, f"none in {python}, expected a PyTorch")
    can = "CUDA usable" if usable else "no CUDA"
    expected = "CUDA usable" if wanted else "any PyTorch"
    return judged(what, usable or not wanted, f"PyTorch {torch}, CUDA {record.get('cuda')}, {can}; expected {expected}")


def _doctor(kit: Kit) -> str:
    """What `invoke doctor --all` prints."""
    printed = io.StringIO()
    screen = Screen(Console(file=printed, highlight=False, soft_wrap=True, emoji=False, width=200))
    doctor.examine(Builder(kit.settings(), kit.checkout), kit.nvml, screen, every=True)
    kit.journal.keep(printed.getvalue())
    return printed.getvalue()


def doctors_answer(printed: str, accelerator: str) -> Finding:
    """Whether doctor says that the interpreter would compute on the device that is measured."""
    expected = f"environment {HOST}: would compute on the {'GPU' if accelerator == 'cuda' else 'CPU'}"
    said = [text for text in printed.splitlines() if f"environment {HOST}:" in text]
    found = said[0].strip() if said else "no line of the interpreter"
    return judged("doctor", bool(said) and expected in said[0], f"'{found}', expected '{expected}'")


def smi(uuid: str) -> tuple[dict[str, str], str]:
    """A GPU as nvidia-smi describes it, by field; or why there is no answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}, "there is no nvidia-smi"
    command = [program, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits", f"--id={uuid}"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    rows = list(csv.reader(io.StringIO(result.stdout), skipinitialspace=True))
    if result.returncode or len(rows) != 1 or len(rows[0]) != len(FIELDS):
        return {}, f"nvidia-smi ended with {result.returncode}: {(result.stderr or result.stdout).strip()[:200]}"
    return dict(zip(FIELDS, rows[0], strict=True)), ""


def against_smi(gpu: Mapping[str, Any], row: Mapping[str, str]) -> Iterator[Finding]:
    """A finding for each field that both have. gpu: as Nvml.describe has it, and `driver`; row: of nvidia-smi."""
    for field, key in {**TEXTS, "driver_version": "driver"}.items():
        found, said = gpu.get(key), row[field]
        if key == "uuid" and found == said:  # it names the machine, which the folder must not
            found = said = f"{said[:8]}…"
        yield equal(f"NVML against nvidia-smi, {key}", found, said, ("NVML", "nvidia-smi"))
    for field, (key, share) in NUMBERS.items():
        what = f"NVML against nvidia-smi, {key}"
        value, other = gpu.get(key), _number(row[field])
        if other is None:
            yield not_here(what, f"nvidia-smi says '{row[field]}'")
        else:
            yield within(what, value, other * (1 - share), other * (1 + share), more=f"nvidia-smi {row[field]}")
    for field, key in SWITCHES.items():
        known = {"Enabled": True, "Disabled": False}.get(row[field])
        yield equal(f"NVML against nvidia-smi, {key}", gpu.get(key), known, ("NVML", "nvidia-smi"))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
