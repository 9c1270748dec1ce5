"""This machine, described for the records of runs."""

import os
import platform
from pathlib import Path
from typing import Any

import psutil

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
            "governor": _governor(),
        },
        "memory_mib": psutil.virtual_memory().total // _MIB,
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "os": _os_name(),
        "driver": nvml.driver(),
        "gpus": nvml.describe(),
        "links": nvml.links(),
        "wsl": wsl(),
        # Of a module system (Lmod, Environment Modules): they change paths of libraries.
        **({"modules": modules.split(":")} if (modules := os.environ.get("LOADEDMODULES")) else {}),
    }


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _governor() -> str | None:
    """The governor of the first core's frequency; None where the system does not say, as in virtual machines."""
    try:
        return Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
