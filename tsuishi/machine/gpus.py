"""The GPUs of this machine, by NVML (nvidia-ml-py). A value that a GPU does not support is None, never a number."""

import itertools
import os
import platform
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsuishi.base.errors import UserError

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
# NVML_P2P_CAPS_INDEX_READ, which is a tuple in nvidia-ml-py by mistake.
_CAN_READ = 0
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


class Nvml:
    """The GPUs of this machine that tsuishi may use. Where there are none, `why_not` gives the reason.

    `wanted` is the setting `gpus`: "all", a number ("2"), or a list ("device=0,1", "device=GPU-…"). Raises UserError
    where it asks for a GPU that is not here.
    """

    # Whether they are in this machine, and not in the nodes of a cluster.
    are_here = True

    def __init__(self, wanted: str = ALL) -> None:
        self.why_not = ""
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
        answers = {index: self._ask(self._nvml.nvmlDeviceGetHandleByIndex, index) for index in indices}
        handles = [(index, handle) for index, handle in answers.items() if handle is not None]
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        allowed = dict(handles[place] for place in visible_places(visible, [self._uuid(one) for _, one in handles]))
        whole = {index: handle for index, handle in sorted(allowed.items()) if not self._divided(handle)}
        if whole:
            return whole
        if allowed:
            names = (_text(self._ask(self._nvml.nvmlDeviceGetName, handle)) for handle in allowed.values())
            named = ", ".join(f"{index}: {name}" for index, name in zip(allowed, names, strict=True))
            self.why_not = f"MIG divides every GPU ({named}), and only whole ones are measured"
        elif handles and (visible or "").strip().startswith("MIG-"):
            self.why_not = "CUDA_VISIBLE_DEVICES names parts of GPUs (MIG), and only whole ones are measured"
        elif handles:
            self.why_not = "CUDA_VISIBLE_DEVICES leaves none"
        else:
            self.why_not = "the driver gives this process none of its GPUs" if answers else "the driver knows no GPU"
        return {}

    def _divided(self, handle: Any) -> bool:
        return bool((self._ask(self._nvml.nvmlDeviceGetMigMode, handle) or (0, 0))[0])

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
        return _text(self._ask(self._nvml.nvmlSystemGetDriverVersion)) if self._handles else None

    def describe(self) -> list[dict[str, Any]]:
        """The constant facts of each GPU, for the record of the machine. Units are in the keys; clocks in MHz."""
        nvml = self._nvml if self._handles else None
        return [
            {
                "index": index,
                "name": _text(self._ask(nvml.nvmlDeviceGetName, handle)),
                "uuid": self._uuid(handle),
                "compute_capability": _dotted(self._ask(nvml.nvmlDeviceGetCudaComputeCapability, handle)),
                "memory_mib": _scaled(getattr(self._ask(nvml.nvmlDeviceGetMemoryInfo, handle), "total", None), _MIB),
                "power_limit_w": _scaled(self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle), 1000),
                "sm_clock_max_mhz": self._ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
                "memory_clock_max_mhz": self._ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_MEM),
                # A desktop takes memory and time of the GPU.
                "display_active": _yes_or_no(self._ask(nvml.nvmlDeviceGetDisplayActive, handle)),
                # The most that GPU and slot can do: an idle GPU lowers the generation.
                "pcie_generation_max": self._ask(nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle),
                "pcie_lanes_max": self._ask(nvml.nvmlDeviceGetMaxPcieLinkWidth, handle),
                "persistence_mode": _yes_or_no(self._ask(nvml.nvmlDeviceGetPersistenceMode, handle)),
                "ecc": _yes_or_no((self._ask(nvml.nvmlDeviceGetEccMode, handle) or (None,))[0]),
                "sm_clock_set_mhz": self._ask(nvml.nvmlDeviceGetApplicationsClock, handle, nvml.NVML_CLOCK_SM),
            }
            for index, handle in self._handles.items()
            if nvml
        ]

    def peer_to_peer(self) -> bool | None:
        """Whether each GPU can read the memory of each other GPU; None for fewer than two, or an old driver."""
        pairs = itertools.permutations(self._handles.values(), 2)
        known = [self._ask(self._nvml.nvmlDeviceGetP2PStatus, *pair, _CAN_READ) for pair in pairs]
        if not known or None in known:
            return None
        return all(status == self._nvml.NVML_P2P_STATUS_OK for status in known)

    def sample(self, devices: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """A row of telemetry (see schema.TELEMETRY) for each GPU, or for the indices in `devices`."""
        return [
            self._sample(index, handle)
            for index, handle in self._handles.items()
            if devices is None or index in devices
        ]

    def processes(self, index: int) -> dict[int, float | None]:
        """The processes that compute on a GPU: memory in MiB by process id. Empty where the driver hides them."""
        nvml, handle = self._nvml, self._handles[index]
        running = self._ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle)
        if running is None:  # a driver before 510
            running = self._ask(nvml.nvmlDeviceGetComputeRunningProcesses_v2, handle) or []
        return {process.pid: _scaled(process.usedGpuMemory, _MIB) for process in running}

    def _sample(self, index: int, handle: Any) -> dict[str, Any]:
        nvml = self._nvml
        return {
            "device": f"gpu{index}",
            "utilisation_percent": getattr(self._ask(nvml.nvmlDeviceGetUtilizationRates, handle), "gpu", None),
            "memory_used_mib": _scaled(getattr(self._ask(nvml.nvmlDeviceGetMemoryInfo, handle), "used", None), _MIB),
            "power_w": _scaled(self._ask(nvml.nvmlDeviceGetPowerUsage, handle), 1000),
            "energy_j": _scaled(self._ask(nvml.nvmlDeviceGetTotalEnergyConsumption, handle), 1000),
            "temperature_c": self._ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            "sm_clock_mhz": self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            "memory_clock_mhz": self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            "throttle_reasons": throttle_reasons(self._ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)),
        }

    def _uuid(self, handle: Any) -> str | None:
        return _text(self._ask(self._nvml.nvmlDeviceGetUUID, handle))

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return question(*arguments)
        except self._nvml.NVMLError:
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


def _text(value: Any) -> str | None:
    """A text of NVML; older bindings give bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _dotted(pair: Any) -> str | None:
    return None if pair is None else ".".join(str(part) for part in pair)
