"""What a workload without a container is started with."""

import json
import sys
import time

import pytest

from tests.test_artifacts import environment
from tsuishi.engines.base import Built, Launch, Limits
from tsuishi.engines.subprocesses import SubprocessEngine
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


def test_gpus_are_counted_as_nvml_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA alone numbers the fastest first, and telemetry would watch another GPU than the one that works."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = started_with(Limits(gpus=("0", "1")))
    assert (found["CUDA_VISIBLE_DEVICES"], found["CUDA_DEVICE_ORDER"]) == ("0,1", "PCI_BUS_ID")


def test_nothing_of_the_python_that_runs_tsuishi_reaches_a_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "KEPT"):
        monkeypatch.setenv(name, "x")
    found = started_with(Limits())
    assert found.keys() - {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"} == {"PYTHONDONTWRITEBYTECODE", "KEPT"}
