"""What a workload without a container is started with."""

import json
import sys
import time

import pytest

from tests.pinned import environment
from tsuishi.engines.base import Built, Launch, Limits
from tsuishi.engines.subprocesses import SubprocessEngine
from tsuishi.gpus.nvml import Gpu
from tsuishi.listen import Transcript, listen

SHOW = """
import json, os, sys
names = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "KEPT")
print(json.dumps({name: os.environ[name] for name in names if name in os.environ}))
"""


def started_with(limits: Limits) -> dict[str, str]:
    """The variables a workload sees."""
    log = bytearray()
    built = Built(environment(()), "host", "", "", "", (sys.executable,))
    process = SubprocessEngine().start(built, Launch(("-c", SHOW), {}, "name", {}, limits))
    listen(process, Transcript(), time.monotonic(), 20, lambda event: None, log.extend)
    found: dict[str, str] = json.loads(log)
    return found


def test_a_workload_sees_its_gpus_by_uuid_and_counts_them_as_nvml_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA alone numbers the fastest first, and telemetry would watch another GPU than the one that works."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = started_with(Limits(gpus=(Gpu(0, "GPU-a"), Gpu(3, "GPU-b"))))
    assert (found["CUDA_VISIBLE_DEVICES"], found["CUDA_DEVICE_ORDER"]) == ("GPU-a,GPU-b", "PCI_BUS_ID")


def test_nothing_of_the_python_that_runs_tsuishi_reaches_a_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "KEPT"):
        monkeypatch.setenv(name, "x")
    found = started_with(Limits())
    assert found.keys() - {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"} == {"PYTHONDONTWRITEBYTECODE", "KEPT"}
