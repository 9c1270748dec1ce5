"""The kit for a first GPU: what it reads of a GPU, where stand-ins answer in the place of NVML and nvidia-smi.

The interpreter is a real PyTorch for CPUs, so that the kit refuses it.
"""

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import machine, telemetry
from benchmarks.gpu.findings import Finding
from benchmarks.gpu.journal import Journal
from benchmarks.gpu.kit import Kit
from tests.driver import V100, fake
from tsuishi.engines.subprocesses import ProcessStarter

pytestmark = pytest.mark.pythons

POWER_W = 251.234
VALUES = {
    "name": "Tesla V100-SXM2-16GB",
    "uuid": "GPU-1",
    "compute_cap": "7.0",
    "memory.total": "16384",
    "power.limit": "300.00",
    "clocks.max.sm": "1530",
    "clocks.max.memory": "877",
    "pcie.link.width.max": "16",
    "persistence_mode": "Enabled",
    "ecc.mode.current": "Enabled",
    "display_active": "Enabled",
    "driver_version": "570.86.15",
    "utilization.gpu": "97",
    "memory.used": "512",
    "power.draw": "251.23",
    "clocks.sm": "1380",
    "temperature.gpu": "61",
}
# Prints as nvidia-smi does: once, or in a loop.
SMI = """#!{python}
import datetime, sys, time
values = {values!r}
given = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:])
assert given["format"] == "csv,noheader,nounits" and given["id"] == "GPU-1"
while True:
    now = datetime.datetime.now().strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
    print(", ".join({{"timestamp": now, **values}}[field] for field in given["query-gpu"].split(",")), flush=True)
    if "loop-ms" not in given:
        break
    time.sleep(int(given["loop-ms"]) / 1000)
"""


def made(folder: Path, python: str, monkeypatch: pytest.MonkeyPatch, **smi: str) -> Kit:
    """A kit on a machine whose driver says that there is a V100 at constant power; smi: what nvidia-smi says else."""
    counter = {"energy": lambda: int(1e3 * POWER_W * time.monotonic())}
    monkeypatch.setitem(sys.modules, "pynvml", fake([{**V100, **counter}]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(ProcessStarter, "unified_memory", Path("/dev/null"))  # the file that a driver's machine has
    program = folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(SMI.format(python=sys.executable, values={**VALUES, **smi}))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return Kit(python, "cuda", Journal(folder / "kit"), minutes=10.0)


def outcomes(found: list[Finding]) -> dict[str, Any]:
    return {finding.what: finding.outcome for finding in found}


def test_the_machine_is_as_both_programs_say_and_a_pytorch_without_cuda_is_refused(
    tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit = made(tmp_path, python, monkeypatch)
    found = outcomes(list(machine.seen(kit)))
    assert found.pop("PyTorch of the interpreter") == "FAIL"
    assert found.pop("doctor") == "pass"
    assert len(found) == len(machine.FIELDS)
    assert set(found.values()) == {"pass"}


def test_telemetry_and_energy_agree_with_the_log_of_nvidia_smi(
    tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit = made(tmp_path, python, monkeypatch)
    found = outcomes(list(telemetry.logged(kit, 1.0)))
    found.pop("telemetry, rows a second")  # which a busy machine delays
    assert found.pop("energy counter over integrated power") == "pass"
    assert set(found) == {f"telemetry against the other log, {name}" for name in telemetry.QUANTITIES}
    assert set(found.values()) == {"pass"}
    assert (kit.journal.folder / "nvidia-smi.csv").read_text().count("251.23") > 5


def test_a_log_that_says_another_power_is_a_fail(tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = made(tmp_path, python, monkeypatch, **{"power.draw": "150.00"})
    found = outcomes(list(telemetry.logged(kit, 1.0)))
    assert found["telemetry against the other log, power_w"] == "FAIL"
    assert found["telemetry against the other log, temperature_c"] == "pass"
