"""What a result must carry to be believed: the machine, the environment, the code that made it."""

import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from tsuishi.engines.interface import Built
from tsuishi.machine.gpus import Nvml, wsl

_MIB = 1 << 20


def machine_record(nvml: Nvml) -> dict[str, Any]:
    """This machine, without anything that names it or its user (results are for publishing)."""
    return {
        "cpu": {
            "model": _cpu_model(),
            "logical": psutil.cpu_count(),
            "physical": psutil.cpu_count(logical=False),
            "usable": len(os.sched_getaffinity(0)),
        },
        "memory_mib": psutil.virtual_memory().total // _MIB,
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "os": _os_name(),
        "driver": nvml.driver(),
        "gpus": nvml.describe(),
        "wsl": wsl(),
    }


def environment_record(built: Built, reported: dict[str, Any]) -> dict[str, Any]:
    """An environment as it was asked for, as it was got, and as it reports itself."""
    environment = built.environment
    return {
        "name": environment.name,
        "title": environment.title,
        "framework": environment.framework,
        "pinned": environment.pinned,
        "spec_id": built.spec_id,
        "realised_id": built.realised_id,
        "lock_sha256": environment.lock_sha256 if environment.pinned else None,
        "engine": built.engine,
        "engine_version": built.engine_version,
        **built.details,
        "python": reported.get("python"),
        "versions": reported.get("versions", {}),
        "cuda": reported.get("cuda"),
        "cudnn": reported.get("cudnn"),
        "cuda_usable": bool(reported.get("flags", {}).get("cuda_usable")),
        "packages": dict(sorted(reported.get("packages", {}).items())),
        "sbom": reported.get("sbom"),  # CycloneDX, of an image
        "command_prefix": [Path(part).name for part in built.python],  # its folder may name a user
    }


def other_versions(record: Mapping[str, Any], reported: Mapping[str, Any]) -> list[str]:
    """Where a trial reports other versions than its environment's record: each with what the record says."""
    expected, actual = _versions(record), _versions(reported)
    return [
        f"{name} is {actual[name]}, recorded {expected[name]}"
        for name in sorted(expected.keys() & actual.keys())
        if actual[name] != expected[name]
    ]


def _versions(said: Mapping[str, Any]) -> dict[str, Any]:
    """All that is said of Python, CUDA, cuDNN and packages."""
    versions = said.get("versions")
    alone = {name: said.get(name) for name in ("python", "cuda", "cudnn")}
    both = {**(versions if isinstance(versions, dict) else {}), **alone}
    return {name: version for name, version in both.items() if version is not None}


def workload_record(workloads: Path, workload: str) -> dict[str, Any]:
    """The code a trial ran: a hash of every file of the workloads folder, and which of them was started."""
    files = {
        path.relative_to(workloads).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(workloads.rglob("*.py"))
    }
    return {"workload": workload, "files": files}


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
