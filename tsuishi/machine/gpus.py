"""The GPUs of this machine, by NVML (nvidia-ml-py). What the driver does not say is None, and never an error."""

import itertools
import os
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsuishi.base.errors import UserError
from tsuishi.machine.process_limits import first_line

# Clock throttle reasons, bit by bit: NVML API reference, group nvmlClocksEventReasons.
_THROTTLE_REASONS = {
    0x0000000000000001: "gpu_idle",
    0x0000000000000002: "applications_clocks_setting",
    0x0000000000000004: "sw_power_cap",
    0x0000000000000008: "hw_slowdown",
    0x0000000000000010: "sync_boost",
    0x0000000000000020: "sw_thermal_slowdown",
    0x0000000000000040: "hw_thermal_slowdown",
    0x0000000000000080: "hw_power_brake_slowdown",
    0x0000000000000100: "display_clock_setting",
}
_MIB = 1 << 20
# Constants of nvml.h. nvidia-ml-py has READ as a tuple by mistake, and older releases of it have not all of them.
_SM, _MEMORY, _OF_GPU = 1, 2, 0  # NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU
_READ, _NVLINK = 0, 2  # NVML_P2P_CAPS_INDEX_READ and _NVLINK
_MEMORY_V2 = 0x02000028  # nvmlMemory_v2
_C2C_LINKS, _POWER_INSTANT = 170, 186  # NVML_FI_DEV_C2C_LINK_COUNT and _POWER_INSTANT
# nvmlGpuTopologyLevel_t: what two GPUs have in common, from the nearest to the farthest; words of `nvidia-smi topo`.
_ANCESTORS = {
    0: "the board",
    10: "a PCIe switch",
    20: "PCIe switches",
    30: "a PCIe host bridge",
    40: "a NUMA node",
    50: "the system",
}
# nvmlComputeMode_t.
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
# What to do where the driver is there and gives no GPU, by the code of its error (nvmlReturn_t).
_REMEDIES = {
    4: "this user or container may not use it: ask for access to /dev/nvidia*",
    9: "load the driver's kernel module (modprobe nvidia), or install the driver again for this kernel",
    12: "install NVIDIA's driver",
    18: "restart the machine: the driver was updated, and its kernel module was not",
}
_UNDIVIDE = "switch MIG off (nvidia-smi -mig 0), which ends its instances"
# Of PCI: the number of NVIDIA, and the beginning of the classes of display controllers.
_NVIDIA, _DISPLAY = "0x10de", "0x03"
# Values of the setting `gpus`, as for `docker run --gpus`: all GPUs, or the beginning of a list.
ALL = "all"
DEVICES = "device="


@dataclass(frozen=True)
class Gpu:
    """A GPU: NVML's index, and the UUID, which NVML, CUDA and container engines have in common."""

    index: int
    uuid: str | None

    @property
    def id(self) -> str:
        """The UUID, or the index where the driver gives no UUID: CUDA may count in another order than NVML."""
        return self.uuid or str(self.index)


# The questions for processes on a GPU: that of today, and that of a driver before 510.
_COMPUTING = "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"
_DRAWING = "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"


class Nvml:
    """The GPUs of this machine that tsuishi may use. Where there are none, `why_not` gives the reason.

    `remedy`: what to do where a GPU of NVIDIA is here and nobody has kept it from this process; empty elsewhere.

    `wanted` is the setting `gpus`: "all", a number ("2"), or a list ("device=0,1", "device=GPU-…"). Raises UserError
    where it asks for a GPU that is not here.
    """

    # Whether they are in this machine, and not in the nodes of a cluster.
    are_here = True
    why_not = remedy = ""

    def __init__(self, wanted: str = ALL) -> None:
        # Answers of the driver that the bindings cannot read, by question: faults, unlike features that a GPU lacks.
        self.unreadable: dict[str, str] = {}
        self._handles: dict[int, Any] = {}
        try:
            import pynvml
        except ImportError as error:
            self.why_not = str(error)
        else:
            self._nvml = pynvml
            try:
                pynvml.nvmlInit()
                self._handles = self._usable(range(pynvml.nvmlDeviceGetCount()))
            except pynvml.NVMLError as error:
                self.why_not = str(error)
                self.remedy = _REMEDIES.get(error.value, "nvidia-smi should say more") if _has_card() else ""
        self._choose(wanted)

    def __len__(self) -> int:
        return len(self._handles)

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs in NVML's order, which is the order of the PCI bus."""
        return tuple(Gpu(index, self._uuid(handle)) for index, handle in self._handles.items())

    def _usable(self, indices: Iterable[int]) -> dict[int, Any]:
        """The GPUs that this process may use, CUDA_VISIBLE_DEVICES allows and MIG does not divide.

        NVML counts GPUs too that a scheduler has not given to this process. Sets `why_not` where none is left.
        """
        answers = {index: self._ask("nvmlDeviceGetHandleByIndex", index) for index in indices}
        handles = [(index, handle) for index, handle in answers.items() if handle is not None]
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        allowed = dict(handles[place] for place in visible_places(visible, [self._uuid(one) for _, one in handles]))
        if len(allowed) < len(handles) and self._order_is_cudas(visible, handles):
            return {}
        whole = {index: handle for index, handle in sorted(allowed.items()) if not self._divided(handle)}
        if whole:
            return whole
        if allowed:
            self.why_not = f"MIG divides every GPU ({self._named(allowed.items())}), and only whole ones are measured"
            self.remedy = _UNDIVIDE
        elif handles and (visible or "").strip().startswith("MIG-"):
            self.why_not = "CUDA_VISIBLE_DEVICES names parts of GPUs (MIG), and only whole ones are measured"
        elif handles:
            self.why_not = "CUDA_VISIBLE_DEVICES leaves none"
        else:
            self.why_not = "the driver gives this process none of its GPUs" if answers else "the driver knows no GPU"
        return {}

    def _order_is_cudas(self, visible: str | None, handles: Sequence[tuple[int, Any]]) -> bool:
        """Whether CUDA_VISIBLE_DEVICES has numbers of CUDA's own order, in which only CUDA knows the GPUs.

        By default the fastest GPU comes first, and the order of the others is unspecified (CUDA programming guide,
        CUDA_DEVICE_ORDER). GPUs of one name are taken in NVML's order. Sets `why_not`.
        """
        by_number = (visible or "").strip()[:1].isdigit()
        names = {self._name(handle) for _, handle in handles}
        if not by_number or len(names) < 2 or os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
            return False
        self.why_not = (
            f"CUDA_VISIBLE_DEVICES={visible} counts in CUDA's order, the fastest GPU first, and these differ "
            f"({self._named(handles)}): set CUDA_DEVICE_ORDER=PCI_BUS_ID to count as here, or name GPUs by UUID"
        )
        return True

    def _named(self, handles: Iterable[tuple[int, Any]]) -> str:
        return ", ".join(f"{index}: {self._name(handle)}" for index, handle in handles)

    def _divided(self, handle: Any) -> bool:
        return bool((self._ask("nvmlDeviceGetMigMode", handle) or (0, 0))[0])

    def _choose(self, wanted: str) -> None:
        """Keep the GPUs that the setting asks for."""
        if wanted == ALL:
            return
        if not wanted.startswith(DEVICES):
            if int(wanted) > len(self):
                raise UserError(f"{wanted} GPUs are asked for (gpus); here: {self._listing()}")
            self._handles = dict(list(self._handles.items())[: int(wanted)])
            return
        words = wanted.removeprefix(DEVICES).split(",")
        for word in words:
            if not any(_means(word, gpu.index, gpu.uuid) for gpu in self.gpus):
                raise UserError(f"GPU {word} is asked for (gpus), and is not here; here: {self._listing()}")
        uuids = {gpu.index: gpu.uuid for gpu in self.gpus}
        self._handles = {
            index: handle
            for index, handle in self._handles.items()
            if any(_means(word, index, uuids[index]) for word in words)
        }

    def _listing(self) -> str:
        gpus = [f"{gpu['index']} ({gpu['name']}, {gpu['uuid']})" for gpu in self.describe()]
        return "; ".join(gpus) or f"none ({self.why_not})"

    def driver(self) -> str | None:
        """The version of the driver."""
        answer: str | None = self._ask("nvmlSystemGetDriverVersion") if self._handles else None
        return answer

    def describe(self) -> list[dict[str, Any]]:
        """The constant facts of each GPU, for the record of the machine. Units are in the keys; clocks in MHz."""
        return [self._description(index, handle) for index, handle in self._handles.items()]

    def _description(self, index: int, handle: Any) -> dict[str, Any]:
        memory = self._memory(handle)
        return {
            "index": index,
            "name": self._name(handle),
            "uuid": self._uuid(handle),
            "compute_capability": _dotted(self._ask("nvmlDeviceGetCudaComputeCapability", handle)),
            "memory_mib": memory["total"],
            # Of the driver and the firmware. None from a driver before 510, which counts it as used.
            "memory_reserved_mib": memory["reserved"],
            "power_limit_w": _scaled(self._ask("nvmlDeviceGetEnforcedPowerLimit", handle), 1000),
            "power_limit_default_w": _scaled(self._ask("nvmlDeviceGetPowerManagementDefaultLimit", handle), 1000),
            "power_reading": self._power(handle)[1],
            "sm_clock_max_mhz": self._ask("nvmlDeviceGetMaxClockInfo", handle, _SM),
            "memory_clock_max_mhz": self._ask("nvmlDeviceGetMaxClockInfo", handle, _MEMORY),
            # A desktop takes memory and time of the GPU.
            "display_active": _yes_or_no(self._ask("nvmlDeviceGetDisplayActive", handle)),
            # The most that GPU and slot can do: an idle GPU lowers the generation.
            "pcie_generation_max": self._ask("nvmlDeviceGetMaxPcieLinkGeneration", handle),
            "pcie_lanes_max": self._ask("nvmlDeviceGetMaxPcieLinkWidth", handle),
            # Of NVLink-C2C, to the CPU: these then carry what PCIe does elsewhere.
            "c2c_links": self._field(handle, _C2C_LINKS),
            "persistence_mode": _yes_or_no(self._ask("nvmlDeviceGetPersistenceMode", handle)),
            "compute_mode": _COMPUTE_MODES.get(self._ask("nvmlDeviceGetComputeMode", handle)),
            "ecc": _yes_or_no((self._ask("nvmlDeviceGetEccMode", handle) or (None,))[0]),
            "sm_clock_set_mhz": self._ask("nvmlDeviceGetApplicationsClock", handle, _SM),
        }

    def links(self) -> list[dict[str, Any]]:
        """How each two GPUs reach each other, for the record of the machine.

        peer_to_peer: each reads the other's memory; nvlink: over NVLink. ancestor: what they have in common on the bus.
        """
        return [
            {
                "gpus": [index, other],
                "peer_to_peer": self._both_ways(*pair, _READ),
                "nvlink": self._both_ways(*pair, _NVLINK),
                "ancestor": _ANCESTORS.get(self._ask("nvmlDeviceGetTopologyCommonAncestor", *pair)),
            }
            for index, other in itertools.combinations(self._handles, 2)
            for pair in [(self._handles[index], self._handles[other])]
        ]

    def _both_ways(self, one: Any, other: Any, capability: int) -> bool | None:
        """Whether each GPU has a capability towards the other; None where the driver does not say."""
        answers = [
            self._ask("nvmlDeviceGetP2PStatus", *pair, capability) for pair in itertools.permutations((one, other))
        ]
        return None if None in answers else answers == [0, 0]  # NVML_P2P_STATUS_OK

    def sample(self, devices: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """A row of telemetry (see schema.TELEMETRY) for each GPU, or for the indices in `devices`."""
        return [
            self._sample(index, handle)
            for index, handle in self._handles.items()
            if devices is None or index in devices
        ]

    def processes(self, index: int, *, draws: bool = False) -> dict[int, float | None]:
        """The processes that compute on a GPU (or draw): memory in MiB by process id. Empty where they are hidden."""
        answers = (self._ask(question, self._handles[index]) for question in (_DRAWING if draws else _COMPUTING))
        running: Sequence[Any] = next((answer for answer in answers if answer is not None), ())
        return {process.pid: _scaled(process.usedGpuMemory, _MIB) for process in running}

    def _sample(self, index: int, handle: Any) -> dict[str, Any]:
        return {
            "device": f"gpu{index}",
            "utilisation_percent": getattr(self._ask("nvmlDeviceGetUtilizationRates", handle), "gpu", None),
            "memory_used_mib": self._memory(handle)["used"],
            "power_w": self._power(handle)[0],
            "energy_j": _scaled(self._ask("nvmlDeviceGetTotalEnergyConsumption", handle), 1000),
            "temperature_c": self._ask("nvmlDeviceGetTemperature", handle, _OF_GPU),
            "sm_clock_mhz": self._ask("nvmlDeviceGetClockInfo", handle, _SM),
            "memory_clock_mhz": self._ask("nvmlDeviceGetClockInfo", handle, _MEMORY),
            "throttle_reasons": throttle_reasons(self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)),
        }

    def _memory(self, handle: Any) -> dict[str, float | None]:
        """`total`, `used` and `reserved` memory in MiB. In version 1 the reserved memory counts as used (nvml.h)."""
        question = "nvmlDeviceGetMemoryInfo"
        answer = self._ask(question, handle, _MEMORY_V2) or self._ask(question, handle)
        return {name: _scaled(getattr(answer, name, None), _MIB) for name in ("total", "used", "reserved")}

    def _power(self, handle: Any) -> tuple[float | None, str | None]:
        """The power of a GPU in W, and how the driver reads it: at this instant, or `usage`.

        nvml.h: on Ampere (but GA100) and newer, usage is the mean of the last second; a short phase would get the power
        of the phase before it.
        """
        instant = self._field(handle, _POWER_INSTANT)
        if instant is not None:
            return instant / 1000, "instant"
        usage = self._ask("nvmlDeviceGetPowerUsage", handle)
        return _scaled(usage, 1000), None if usage is None else "usage"

    def _field(self, handle: Any, field: int) -> int | None:
        """An unsigned value that has no function of its own."""
        (value,) = self._ask("nvmlDeviceGetFieldValues", handle, [field]) or (None,)
        return value.value.uiVal if value is not None and value.nvmlReturn == 0 else None

    def _name(self, handle: Any) -> str:
        """The name in words, as every sentence about a GPU has it."""
        return self._ask("nvmlDeviceGetName", handle) or "a GPU without a readable name"

    def _uuid(self, handle: Any) -> str | None:
        answer: str | None = self._ask("nvmlDeviceGetUUID", handle)
        return answer

    def _ask(self, question: str, *arguments: Any) -> Any:
        """The answer to a question to the driver; None where it has none, or where its answer cannot be read."""
        try:
            return getattr(self._nvml, question)(*arguments)
        except self._nvml.NVMLError:
            return None
        except Exception as error:  # the bindings raise their own kinds: for a text that is not UTF-8, for old drivers
            self.unreadable[question] = f"{type(error).__name__}: {error}"
            return None


def wsl() -> bool:
    """Whether this Linux runs in Windows (WSL2). Its driver passes all GPUs, or none, through /dev/dxg."""
    return Path("/dev/dxg").exists() or "microsoft" in platform.release().lower()


def throttle_reasons(bits: int | None) -> str | None:
    """The names of the reasons whose bits are set, joined by '+'. An idle GPU counts as not throttled."""
    if bits is None:
        return None
    names = [name for bit, name in _THROTTLE_REASONS.items() if bits & bit and name != "gpu_idle"]
    unknown = bits & ~sum(_THROTTLE_REASONS)
    return "+".join([*names, *([hex(unknown)] if unknown else [])])


def _has_card(devices: Path = Path("/sys/bus/pci/devices")) -> bool:
    """Whether a display controller of NVIDIA is on the PCI bus of this machine."""
    known = ((first_line(each / "vendor"), first_line(each / "class") or "") for each in devices.glob("*"))
    return any(vendor == _NVIDIA and kind.startswith(_DISPLAY) for vendor, kind in known)


def visible_places(visible: str | None, uuids: Sequence[str | None]) -> list[int]:
    """The places in `uuids` of the GPUs that CUDA_VISIBLE_DEVICES leaves, as CUDA reads it; None leaves all.

    `visible` has numbers, or beginnings of UUIDs if its first word is one. The list ends before the first word that
    names no GPU, or more than one; a word that comes twice leaves none. PyTorch reads it in the same way
    (torch/cuda/__init__.py: _parse_visible_devices, _transform_uuid_to_ordinals). CUDA counts the GPUs that this
    process may use.
    """
    if visible is None:
        return list(range(len(uuids)))
    words = [word.strip() for word in visible.split(",")]
    by_uuid = words[0].startswith("GPU-")
    places: list[int] = []
    for word in words:
        meant = [place for place, uuid in enumerate(uuids) if by_uuid and (uuid or "").startswith(word)]
        if not by_uuid and (number := re.match(r"\+?\d+", word)):  # CUDA reads "1x" as 1
            meant = [int(number[0])]
        if len(meant) != 1 or not word:
            break
        if meant[0] in places:
            return []
        places += meant
    return list(itertools.takewhile(lambda place: place < len(uuids), places))


def _means(word: str, index: int, uuid: str | None) -> bool:
    """Whether a word names this GPU: by its index, or by the beginning of its UUID."""
    return word == str(index) or (not word.isdigit() and (uuid or "").startswith(word))


def _scaled(value: float | None, divisor: float) -> float | None:
    return None if value is None else value / divisor


def _yes_or_no(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _dotted(pair: Any) -> str | None:
    return None if pair is None else ".".join(str(part) for part in pair)
