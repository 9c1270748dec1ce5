"""NVIDIA's driver without a GPU: the real pynvml over a stand-in of its library, which answers from recordings of GPUs.

The stand-in is a table of C functions by symbol. It fills the structures of the bindings as nvml.h (of CUDA 12.6)
declares them, and answers with a code of nvmlReturn_t.
"""

import ctypes
import importlib.util
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import pynvml

MIB = 1 << 20

VERSION = "570.86.15"
Recording = Mapping[str, Any]


def refused(code: int) -> Callable[[], Any]:
    """A recording of a refusal: the code that the driver returns."""

    def answer() -> Any:
        raise pynvml.NVMLError(code)

    return answer


_NOT_SUPPORTED = refused(pynvml.NVML_ERROR_NOT_SUPPORTED)


def recorded(gpu: Recording, field: str, default: Any = _NOT_SUPPORTED) -> Any:
    value = gpu.get(field, default)
    return value() if callable(value) else value


def number(field: str) -> Callable[..., None]:
    def function(gpu: Recording, answer: Any) -> None:
        answer._obj.value = recorded(gpu, field)

    return function


def of_kind(field: str) -> Callable[..., None]:
    """A number for each kind: of clock, of sensor."""

    def function(gpu: Recording, kind: Any, answer: Any) -> None:
        answer._obj.value = recorded(gpu, f"{field}{kind.value}")

    return function


def pair(field: str) -> Callable[..., None]:
    def function(gpu: Recording, first: Any, second: Any) -> None:
        first._obj.value, second._obj.value = recorded(gpu, field)

    return function


def text(field: str) -> Callable[..., None]:
    def function(gpu: Recording, buffer: Any, size: Any) -> None:
        said = recorded(gpu, field)
        buffer.value = said if isinstance(said, bytes) else said.encode()

    return function


def running(field: str) -> Callable[..., int]:
    """Asked without room, the driver says how many processes there are; then it fills the array."""

    def function(gpu: Recording, count: Any, places: Any) -> int:
        found = recorded(gpu, field)
        count._obj.value = len(found)
        if places is None and found:
            return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
        hidden = pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value
        for place, process in zip(places or (), found, strict=False):
            place.pid = process.pid
            place.usedGpuMemory = hidden if process.usedGpuMemory is None else process.usedGpuMemory
        return int(pynvml.NVML_SUCCESS)

    return function


def memory(gpu: Recording, answer: Any) -> None:
    """nvmlMemory_t, used: "Sum of Reserved and Allocated device memory (in bytes)."."""
    of_gpu = recorded(gpu, "memory")
    answer._obj.total, answer._obj.used = of_gpu.total, of_gpu.used + of_gpu.reserved


def memory_v2(gpu: Recording, answer: Any) -> None:
    """nvmlMemory_v2_t, used: "Allocated device memory (in bytes)."; reserved: "for system use (driver or firmware)"."""
    of_gpu, wanted = recorded(gpu, "memory"), answer._obj
    assert wanted.version == ctypes.sizeof(wanted) | 2 << 24, "NVML_STRUCT_VERSION(Memory, 2)"
    wanted.total, wanted.reserved, wanted.used = of_gpu.total, of_gpu.reserved, of_gpu.used


def utilisation(gpu: Recording, answer: Any) -> None:
    answer._obj.gpu = recorded(gpu, "utilisation").gpu


def fields(gpu: Recording, count: Any, values: Any) -> None:
    """Each field has a code of its own, and the call succeeds."""
    for value in values._obj:
        try:
            value.value.uiVal = recorded(gpu, f"field{value.fieldId}")
        except pynvml.NVMLError as error:
            value.nvmlReturn = error.value


def peer(gpu: Recording, other: Any, capability: int, answer: Any) -> None:
    answer._obj.value = recorded(gpu, f"peer{_place(other)}", {})[capability]


def ancestor(gpu: Recording, other: Any, answer: Any) -> None:
    answer._obj.value = recorded(gpu, f"ancestor{_place(other)}")


# The functions of a GPU.
FUNCTIONS: dict[str, Callable[..., int | None]] = {
    "nvmlDeviceGetName": text("name"),
    "nvmlDeviceGetUUID": text("uuid"),
    "nvmlDeviceGetCudaComputeCapability": pair("capability"),
    "nvmlDeviceGetEccMode": pair("ecc"),
    "nvmlDeviceGetMigMode": pair("mig"),
    "nvmlDeviceGetMaxClockInfo": of_kind("max_clock"),
    "nvmlDeviceGetClockInfo": of_kind("clock"),
    "nvmlDeviceGetApplicationsClock": of_kind("set_clock"),
    "nvmlDeviceGetTemperature": of_kind("temperature"),
    "nvmlDeviceGetEnforcedPowerLimit": number("limit"),
    "nvmlDeviceGetPowerManagementDefaultLimit": number("usual_limit"),
    "nvmlDeviceGetPowerUsage": number("power"),
    "nvmlDeviceGetTotalEnergyConsumption": number("energy"),
    "nvmlDeviceGetCurrentClocksThrottleReasons": number("throttle"),
    "nvmlDeviceGetDisplayActive": number("display"),
    "nvmlDeviceGetMaxPcieLinkGeneration": number("pcie_generation"),
    "nvmlDeviceGetMaxPcieLinkWidth": number("pcie_lanes"),
    "nvmlDeviceGetPersistenceMode": number("persistence"),
    "nvmlDeviceGetComputeMode": number("compute_mode"),
    "nvmlDeviceGetComputeRunningProcesses_v3": running("processes"),
    "nvmlDeviceGetComputeRunningProcesses_v2": running("processes_v2"),
    "nvmlDeviceGetGraphicsRunningProcesses_v3": running("drawing"),
    "nvmlDeviceGetGraphicsRunningProcesses_v2": running("drawing_v2"),
    "nvmlDeviceGetMemoryInfo": memory,
    "nvmlDeviceGetMemoryInfo_v2": memory_v2,
    "nvmlDeviceGetUtilizationRates": utilisation,
    "nvmlDeviceGetFieldValues": fields,
    "nvmlDeviceGetP2PStatus": peer,
    "nvmlDeviceGetTopologyCommonAncestor": ancestor,
}


class Library:
    """What the bindings open as libnvidia-ml.so.1.

    failing: by symbol, the code that it returns, or None where the library lacks it. every: the code of all functions,
    where that is not 0. asked: the symbols that were looked up.
    """

    def __init__(self, gpus: Sequence[Recording], failing: Mapping[str, int | None]) -> None:
        self.gpus, self.failing, self.every, self.asked = gpus, failing, 0, set[str]()

    def __getattr__(self, symbol: str) -> Callable[..., int]:
        self.asked.add(symbol)
        if self.failing.get(symbol, 0) is None:
            raise AttributeError(symbol)

        def function(*arguments: Any) -> int:
            if code := self.every or self.failing.get(symbol):
                return code
            try:
                if symbol in FUNCTIONS:
                    return FUNCTIONS[symbol](self.gpus[_place(arguments[0])], *arguments[1:]) or 0
                self._of_driver(symbol, *arguments)
            except pynvml.NVMLError as error:
                return int(error.value)
            return 0

        return function

    def _of_driver(self, symbol: str, *arguments: Any) -> None:
        match symbol:
            case "nvmlDeviceGetCount_v2":
                arguments[0]._obj.value = len(self.gpus)
            case "nvmlSystemGetDriverVersion":
                arguments[0].value = VERSION.encode()
            case "nvmlDeviceGetHandleByIndex_v2":
                place = arguments[0].value
                recorded(self.gpus[place], "handle", None)
                ctypes.c_void_p.from_buffer(arguments[1]._obj).value = place + 1
            case _:
                assert symbol == "nvmlInitWithFlags", f"the stand-in has no {symbol}"


def _place(handle: Any) -> int:
    """The place of a GPU: a handle is a pointer."""
    return int(ctypes.c_void_p.from_buffer(handle).value or 0) - 1


def fake(gpus: Sequence[Mapping[str, Any]], failing: Mapping[str, int | None] | None = None) -> types.ModuleType:
    """A new copy of the real pynvml, whose `nvmlLib` is a Library of these GPUs."""
    spec = importlib.util.find_spec("pynvml")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    with patch.dict(sys.modules, {"pynvml": module}):  # where it puts the classes of its errors
        spec.loader.exec_module(module)
    module.nvmlLib = Library(gpus, failing or {})  # type: ignore[attr-defined]
    return module


V100 = {
    "name": "Tesla V100-SXM2-16GB",
    "uuid": "GPU-1",
    "capability": (7, 0),
    "memory": types.SimpleNamespace(total=16384 * MIB, used=512 * MIB, reserved=256 * MIB),
    "limit": 300_000,
    "usual_limit": 250_000,
    f"max_clock{pynvml.NVML_CLOCK_SM}": 1530,
    f"max_clock{pynvml.NVML_CLOCK_MEM}": 877,
    "utilisation": types.SimpleNamespace(gpu=97, memory=40),
    "power": 251_234,
    "energy": 123_456_789_123,
    f"temperature{pynvml.NVML_TEMPERATURE_GPU}": 61,
    f"clock{pynvml.NVML_CLOCK_SM}": 1380,
    f"clock{pynvml.NVML_CLOCK_MEM}": 877,
    "throttle": 0x4,
    "display": 1,
    "pcie_generation": 3,
    "pcie_lanes": 16,
    "persistence": 1,
    "compute_mode": pynvml.NVML_COMPUTEMODE_DEFAULT,
    "ecc": (1, 0),
    f"set_clock{pynvml.NVML_CLOCK_SM}": 1312,
    "mig": (0, 0),
    "processes": [],
}
K80 = {"name": b"Tesla K80", "uuid": b"GPU-2", "capability": (3, 7), "memory": V100["memory"], "temperature0": 40}
