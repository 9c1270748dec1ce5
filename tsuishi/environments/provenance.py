"""The records of an environment and of a workload's code, without which nobody could judge a result."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsuishi.engines.interface import Built


def environment_record(built: Built, reported: dict[str, Any]) -> dict[str, Any]:
    """The record of an environment: what was asked for, what was got, and what it reports about itself."""
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
    """The versions that a trial reports otherwise than its environment's record, in words, each with both versions."""
    expected, actual = _versions(record), _versions(reported)
    return [
        f"{name} is {actual[name]}, recorded {expected[name]}"
        for name in sorted(expected.keys() & actual.keys())
        if actual[name] != expected[name]
    ]


def _versions(said: Mapping[str, Any]) -> dict[str, Any]:
    """The versions of Python, CUDA, cuDNN and packages, by name."""
    versions = said.get("versions")
    alone = {name: said.get(name) for name in ("python", "cuda", "cudnn")}
    both = {**(versions if isinstance(versions, dict) else {}), **alone}
    return {name: version for name, version in both.items() if version is not None}


def workload_record(workloads: Path, workload: str) -> dict[str, Any]:
    """The record of a trial's code: the experiment, and a hash of every file in the folder of the workloads."""
    files = {
        path.relative_to(workloads).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(workloads.rglob("*.py"))
    }
    return {"workload": workload, "files": files}
