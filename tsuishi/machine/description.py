"""This machine, described for the records of runs."""

import os
import platform
from pathlib import Path
from typing import Any

import psutil

from tsuishi.machine.gpus import Nvml, wsl
from tsuishi.machine.process_limits import first_line, limits_of_process

_MIB = 1 << 20
_CPUS = Path("/sys/devices/system/cpu")


def machine_record(nvml: Nvml) -> dict[str, Any]:
    """This machine, without anything that names it or its user (results are for publishing)."""
    return {
        "cpu": {
            "model": _cpu_model(),
            "logical": psutil.cpu_count(),
            "physical": psutil.cpu_count(logical=False),
            "usable": len(os.sched_getaffinity(0)),
            **_cpu_settings(),
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
        "modules": [module for module in os.environ.get("LOADEDMODULES", "").split(":") if module],
        "huge_pages": _chosen(first_line(Path("/sys/kernel/mm/transparent_hugepage/enabled"))),
        "limits": limits_of_process(),
        **({"gpus_unused": nvml.why_not} if nvml.remedy else {}),
    }


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _cpu_settings() -> dict[str, Any]:
    """What is set for the first core, and the number of NUMA nodes; None where the system does not say.

    Virtual machines seldom do.
    """
    no_turbo, boost = first_line(_CPUS / "intel_pstate/no_turbo"), first_line(_CPUS / "cpufreq/boost")
    most_khz = first_line(_CPUS / "cpu0/cpufreq/scaling_max_freq")
    return {
        "governor": first_line(_CPUS / "cpu0/cpufreq/scaling_governor"),
        "max_mhz": int(most_khz) // 1000 if most_khz else None,
        "turbo": no_turbo == "0" if no_turbo else boost == "1" if boost else None,
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
    }


def _chosen(words: str | None) -> str | None:
    """The word in brackets, of "always [madvise] never"."""
    return words.partition("[")[2].partition("]")[0] if words else None


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
