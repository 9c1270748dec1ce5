"""The facts of a machine's record: which of them make another machine, and which are conditions of the same machine.

Trials on the same machine stand together: in the columns of a report, in its history, for a baseline, and in what is
learnt for plans. Where conditions differ, a report says which.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from tsuishi.base import toml
from tsuishi.base.language import mark
from tsuishi.results.records import MachineRecord

# A kernel, a driver or ECC keeps some of the memory for itself: less by this share is the same memory.
_OF_MEMORY = 1 / 16


class Fact(NamedTuple):
    """A fact: its label, whether another value makes another machine, and why. `within`: values as near are equal."""

    label: str
    makes_another: bool
    why: str
    within: float = 0.0


_CORES, _GPUS = mark("physical / logical cores"), mark("GPUs")
# By name, in the order in which they are shown. A fact of a GPU has a value for each GPU.
FACTS = {
    "cpu.model": Fact(mark("CPU"), True, "another CPU has another speed"),
    "cpu.physical": Fact(_CORES, True, "another number of cores, as a virtual machine may get, has another speed"),
    "cpu.logical": Fact(_CORES, True, "two threads of a core share it"),
    "cpu.usable": Fact(mark("usable cores"), True, "frameworks start as many threads"),
    "limits.cores": Fact(mark("cores by affinity and quota"), True, "a quota takes cores as an affinity does"),
    "memory_mib": Fact(mark("memory, MiB"), True, "other modules have another bandwidth", _OF_MEMORY),
    "architecture": Fact(mark("architecture"), True, "it runs other programs"),
    "gpus.name": Fact(_GPUS, True, "another GPU has another speed, and so have two"),
    "gpus.compute_capability": Fact(_GPUS, True, "it runs other kernels"),
    "gpus.memory_mib": Fact(_GPUS, True, "models of one name differ by it", _OF_MEMORY),
    "gpus.uuid": Fact(_GPUS, True, "GPUs of one model differ by some percent; and it tells one node from another"),
    "limits.affinity": Fact(
        mark("affinity"), False, "the number of cores counts; a batch system gives others each time"
    ),
    "limits.cpu_quota": Fact(mark("CPU quota, cores"), False, "it counts with the cores"),
    "limits.memory_limit_mib": Fact(mark("memory limit, MiB"), False, "it decides what fits, and seldom how long"),
    "limits.processes": Fact(mark("limit of processes"), False, "it decides what starts"),
    "limits.ulimits": Fact(mark("ulimits"), False, "they decide what starts and fits"),
    "limits.nice": Fact(mark("niceness"), False, "it counts only beside other programs"),
    "limits.scheduling": Fact(mark("scheduling policy"), False, "it counts only beside other programs"),
    "limits.variables": Fact(mark("variables of threads and batch systems"), False, "trials do not get them"),
    "modules": Fact(mark("modules"), False, "they change paths of libraries; pinned environments bring their own"),
    "cpu.governor": Fact(mark("CPU frequency governor"), False, "a setting, which users compare"),
    "cpu.max_mhz": Fact(mark("CPU frequency limit, MHz"), False, "a setting, which users compare"),
    "cpu.min_mhz": Fact(mark("lowest CPU frequency, MHz"), False, "a setting, which users compare"),
    "cpu.turbo": Fact(mark("CPU turbo"), False, "a setting, which users compare"),
    "cpu.numa_nodes": Fact(mark("NUMA nodes"), False, "firmware shows the same memory as one node or several"),
    "huge_pages": Fact(mark("transparent huge pages"), False, "a setting, which users compare"),
    "huge_pages_defrag": Fact(mark("transparent huge pages, defragmentation"), False, "a setting, which users compare"),
    "preloaded": Fact(
        mark("libraries of /etc/ld.so.preload"), False, "a setting, which users compare; containers have their own"
    ),
    "power": Fact(mark("power supply"), False, "a plug comes and goes"),
    "platform_profile": Fact(mark("platform profile"), False, "a setting, which users compare"),
    "os": Fact(mark("operating system"), False, "it is updated"),
    "kernel": Fact(mark("kernel"), False, "it is updated"),
    "wsl": Fact(mark("WSL"), False, "the same hardware under another system"),
    "driver": Fact(mark("NVIDIA driver"), False, "it is updated"),
    "peer_to_peer": Fact(mark("peer-to-peer access between GPUs"), False, "drivers and firmware allow it or not"),
    "links": Fact(mark("peer-to-peer access between GPUs"), False, "drivers and firmware allow it or not"),
    "gpus_unused": Fact(mark("why a GPU is not used"), False, "a driver that is repaired gives the GPU"),
    "gpus.index": Fact(_GPUS, False, "a batch system gives others each time"),
    "gpus.ecc": Fact(_GPUS, False, "a setting, which users compare"),
    "gpus.power_limit_w": Fact(_GPUS, False, "a setting, which users compare"),
    "gpus.power_limit_default_w": Fact(_GPUS, False, "an earlier tsuishi did not ask for it"),
    "gpus.sm_clock_max_mhz": Fact(_GPUS, False, "a driver may say another"),
    "gpus.sm_clock_set_mhz": Fact(_GPUS, False, "a setting, which users compare"),
    "gpus.memory_clock_max_mhz": Fact(_GPUS, False, "a driver may say another"),
    "gpus.persistence_mode": Fact(_GPUS, False, "a setting, which users compare"),
    "gpus.pcie_generation_max": Fact(_GPUS, False, "another slot"),
    "gpus.pcie_lanes_max": Fact(_GPUS, False, "another slot"),
    "gpus.display_active": Fact(_GPUS, False, "a desktop comes and goes"),
    "gpus.memory_reserved_mib": Fact(_GPUS, False, "the driver's state decides it"),
    "gpus.power_reading": Fact(_GPUS, False, "what the driver can say"),
    "gpus.compute_mode": Fact(_GPUS, False, "a setting, which users compare"),
    "gpus.c2c_links": Fact(_GPUS, False, "the name says which GPUs have them; an older driver does not say it"),
}


def facts(record: MachineRecord) -> dict[str, Any]:
    """What a record knows, by the names of FACTS. What a later tsuishi recorded has a name of its own; it is a note."""
    return {name: value for name, value in _flat(record) if value is not None}


def _flat(record: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record:
        if isinstance(value, BaseModel):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and all(isinstance(each, BaseModel) for each in value) and name == "gpus":
            yield from _of_gpus(value)
        elif name == "links" and value is not None:
            yield name, [str(link) for link in value]
        else:
            yield f"{prefix}{name}", value


def _of_gpus(gpus: Sequence[BaseModel]) -> Iterator[tuple[str, Any]]:
    """For each fact a tuple of its values; the number of GPUs is that of their names."""
    of_each = [dict(_flat(gpu)) for gpu in gpus]
    names = dict.fromkeys(["name", *(name for each in of_each for name in each)])
    for name in names:
        values = tuple(each.get(name) for each in of_each)
        yield f"gpus.{name}", values if name == "name" or any(value is not None for value in values) else None


def differing(*records: MachineRecord) -> list[str]:
    """The facts that differ between records, in order, by name. A fact that is not known does not differ."""
    every = [facts(record) for record in records]
    names = dict.fromkeys((*FACTS, *(name for known in every for name in known)))
    values = {name: [known[name] for known in every if name in known] for name in names}
    return [name for name, known in values.items() if any(_differ(name, known[0], other) for other in known[1:])]


def _differ(name: str, one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        pairs = zip(one, other, strict=False)
        return len(one) != len(other) or any(None not in pair and _differ(name, *pair) for pair in pairs)
    within = FACTS[name].within if name in FACTS else 0.0
    return bool(abs(one - other) > within * max(one, other)) if within else bool(one != other)


def makes_another(name: str) -> bool:
    """Whether another value of a fact makes another machine."""
    return name in FACTS and FACTS[name].makes_another


def is_same(one: MachineRecord, other: MachineRecord) -> bool:
    """Whether two records are of the same machine."""
    return not any(map(makes_another, differing(one, other)))


def is_like(record: MachineRecord, content: Any) -> bool:
    """Whether the content of another record, which may be anything, is of the same machine."""
    try:
        return bool(content) and is_same(record, MachineRecord.model_validate_json(toml.canonical_json(content)))
    except ValidationError:
        return False


def machines(records: Mapping[str, MachineRecord]) -> dict[str, str]:
    """By the id of each record, the id that stands for its machine: that of the first record of the same machine."""
    firsts: list[str] = []
    found = {}
    for id_, record in records.items():
        first = next((known for known in firsts if is_same(records[known], record)), id_)
        firsts += [id_] if first == id_ else []
        found[id_] = first
    return found
