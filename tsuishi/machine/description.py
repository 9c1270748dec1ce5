"""This machine, described for the records of runs."""

import os
import platform
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tsuishi.base.files import sha256_of
from tsuishi.machine.gpus import Nvml, wsl
from tsuishi.machine.process_limits import first_line, limits_of_process

_MIB = 1 << 20
# Of a digest, as of the libraries of a trial's process.
_DIGITS = 12
_CPUS = Path("/sys/devices/system/cpu")
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")
_SUPPLIES = Path("/sys/class/power_supply")
# The load of the last minute, as a share of the cores, from which on other programs disturb measurements.
_BUSY_LOAD = 0.3
_PRELOAD = Path("/etc/ld.so.preload")


def machine_record(nvml: Nvml) -> dict[str, Any]:
    """This machine, without anything that names it or its user (results are for publishing)."""
    return {
        "cpu": {
            "model": _cpu_model(),
            "logical": psutil.cpu_count(),
            "physical": psutil.cpu_count(logical=False),
            "usable": len(os.sched_getaffinity(0)),
            **cpu_settings(),
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
        "huge_pages": _chosen(first_line(_HUGE_PAGES / "enabled")),
        "huge_pages_defrag": _chosen(first_line(_HUGE_PAGES / "defrag")),
        "preloaded": preloaded(),
        "power": power_supply(),
        "platform_profile": first_line(Path("/sys/firmware/acpi/platform_profile")),
        "limits": limits_of_process(),
        **({"gpus_unused": nvml.why_not} if nvml.remedy else {}),
    }


def machine_line(nvml: Nvml) -> str:
    """The CPU and the GPUs in a line, with a warning where other programs compute."""
    cores, load = len(os.sched_getaffinity(0)), psutil.getloadavg()[0]
    gpus = Counter(gpu["name"] for gpu in nvml.describe())
    named = ", ".join(f"{count} x {name}" for name, count in gpus.items()) or "no NVIDIA GPU"
    busy = (
        f"; load of the last minute {load:.1f}: other programs make times longer" if load > _BUSY_LOAD * cores else ""
    )
    return f"this machine: {_cpu_model()}, {cores} logical cores, {named}{busy}"


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def preloaded(preload: Path = _PRELOAD) -> dict[str, str]:
    """The libraries of ld.so.preload: a digest by the name of the file; its folder may name a user."""
    try:
        lines = preload.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found = {}
    words = " ".join(line.partition("#")[0] for line in lines).replace(":", " ").split()
    for path in map(Path, words):
        try:
            found[path.name] = sha256_of(path)[:_DIGITS]
        except OSError:
            found[path.name] = "unreadable"
    return found


def power_supply(supplies: Path = _SUPPLIES) -> str | None:
    """AC or battery; None where the system does not say, as a desktop."""
    known = [supply for supply in sorted(supplies.glob("*")) if first_line(supply / "scope") != "Device"]
    types = {supply: first_line(supply / "type") for supply in known}
    plugs = [first_line(supply / "online") for supply, type_ in types.items() if type_ in ("Mains", "USB")]
    states = [first_line(supply / "status") for supply, type_ in types.items() if type_ == "Battery"]
    if "1" in plugs:
        return "AC"
    return "battery" if "Discharging" in states or (states and plugs) else None


def cpu_settings(cpus: Path = _CPUS) -> dict[str, Any]:
    """What is set for the cores, and the number of NUMA nodes; None where the system does not say.

    Virtual machines seldom do. Where the cores differ, a setting is a list of all values.
    """
    no_turbo, boost = first_line(cpus / "intel_pstate/no_turbo"), first_line(cpus / "cpufreq/boost")

    def of_cores(name: str, read: Callable[[str], Any]) -> Any:
        texts = {first_line(core / "cpufreq" / name) for core in cpus.glob("cpu[0-9]*")}
        values = sorted({read(text) for text in texts if text})
        return values if len(values) > 1 else values[0] if values else None

    return {
        "governor": of_cores("scaling_governor", str),
        "max_mhz": of_cores("scaling_max_freq", _mhz),
        "min_mhz": of_cores("scaling_min_freq", _mhz),
        "turbo": no_turbo == "0" if no_turbo else boost == "1" if boost else None,
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
    }


def _mhz(khz: str) -> int:
    return int(khz) // 1000


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
