"""NVML, read through nvidia-ml-py. What a GPU does not support is None, never a number."""

import os
from collections.abc import Callable, Sequence
from typing import Any

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


class Nvml:
    """The GPUs of this machine. Without driver or GPU there are none, and `why_not` says why."""

    def __init__(self) -> None:
        self.why_not = ""
        self._handles: dict[int, Any] = {}
        try:
            import pynvml
        except ImportError as error:
            self.why_not = str(error)
            return
        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
            handles = {i: pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())}
            self._handles = {i: handle for i, handle in handles.items() if self._given(i, handle)}
            self.why_not = "" if self._handles else "CUDA_VISIBLE_DEVICES leaves none"
        except pynvml.NVMLError as error:
            self.why_not = str(error)

    def __len__(self) -> int:
        return len(self._handles)

    @property
    def indices(self) -> tuple[int, ...]:
        """NVML's indices of the GPUs, in order."""
        return tuple(self._handles)

    def _given(self, index: int, handle: Any) -> bool:
        """Whether CUDA_VISIBLE_DEVICES, where a scheduler or user has set it, leaves this GPU to us."""
        allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
        if allowed is None:
            return True
        uuid = str(_text(self._ask(self._nvml.nvmlDeviceGetUUID, handle)))
        words = [word.strip() for word in allowed.split(",") if word.strip()]
        return any(word == str(index) or (not word.isdigit() and uuid.startswith(word)) for word in words)

    def driver(self) -> str | None:
        """Version of the driver."""
        return _text(self._ask(self._nvml.nvmlSystemGetDriverVersion)) if self._handles else None

    def describe(self) -> list[dict[str, Any]]:
        """What does not change about each GPU, for the machine record."""
        nvml = self._nvml if self._handles else None
        return [
            {
                "index": index,
                "name": _text(self._ask(nvml.nvmlDeviceGetName, handle)),
                "uuid": _text(self._ask(nvml.nvmlDeviceGetUUID, handle)),
                "compute_capability": _dotted(self._ask(nvml.nvmlDeviceGetCudaComputeCapability, handle)),
                "memory_mib": _scaled(getattr(self._ask(nvml.nvmlDeviceGetMemoryInfo, handle), "total", None), _MIB),
                "power_limit_w": _scaled(self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle), 1000),
                "sm_clock_max_mhz": self._ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
                "memory_clock_max_mhz": self._ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_MEM),
            }
            for index, handle in self._handles.items()
            if nvml
        ]

    def sample(self, devices: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """One telemetry row (see schema.TELEMETRY) for each GPU, or for those asked for."""
        return [
            self._sample(index, handle)
            for index, handle in self._handles.items()
            if devices is None or index in devices
        ]

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

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return question(*arguments)
        except self._nvml.NVMLError:
            return None


def throttle_reasons(bits: int | None) -> str | None:
    """Names of the reasons whose bits are set, joined by '+'; an idle GPU counts as not throttled."""
    if bits is None:
        return None
    names = [name for bit, name in _THROTTLE_REASONS.items() if bits & bit and name != "gpu_idle"]
    unknown = bits & ~sum(_THROTTLE_REASONS)
    return "+".join([*names, *([hex(unknown)] if unknown else [])])


def _scaled(value: float | None, divisor: float) -> float | None:
    return None if value is None else value / divisor


def _text(value: Any) -> str | None:
    """Older NVML bindings give bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _dotted(pair: Any) -> str | None:
    return None if pair is None else ".".join(str(part) for part in pair)
