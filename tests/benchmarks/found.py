"""A GPU as NVML describes it, and findings of the kit asked about it."""

from collections.abc import Iterable
from typing import Any

from benchmarks.gpu.findings import FAIL, Finding

GPU: dict[str, Any] = {
    "index": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-1",
    "compute_capability": "9.0",
    "memory_mib": 81559.0,
    "power_limit_w": 700.0,
    "sm_clock_max_mhz": 1980,
    "memory_clock_max_mhz": 2619,
    "pcie_generation_max": 5,
    "pcie_lanes_max": 16,
    "persistence_mode": True,
    "ecc": True,
    "display_active": False,
    "driver": "580.65.06",
}


def failed(found: Iterable[Finding]) -> list[str]:
    return [finding.text for finding in found if finding.outcome == FAIL]


def outcome(found: Finding, words: str) -> str:
    """The outcome of a finding whose words contain these."""
    assert words in found.words, found.text
    return found.outcome
