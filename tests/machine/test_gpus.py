"""NVML at the boundary of its bindings: what a GPU does not support is None, and no driver is no crash."""

import sys
import types
from collections.abc import Callable
from typing import Any

import pynvml
import pytest

from tsuishi.base.errors import UserError
from tsuishi.machine.gpus import Nvml, throttle_reasons

MIB = 1 << 20


def unsupported(*arguments: Any) -> Any:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def fake(gpus: list[dict[str, Any]]) -> types.ModuleType:
    """A module with the functions of pynvml that are used, answering from a recording; real constants and errors."""
    module = types.ModuleType("pynvml")
    for name in (
        "NVMLError",
        "NVML_CLOCK_SM",
        "NVML_CLOCK_MEM",
        "NVML_TEMPERATURE_GPU",
        "NVML_P2P_STATUS_OK",
    ):
        setattr(module, name, getattr(pynvml, name))

    def answers(field: str, *more: int) -> Callable[..., Any]:
        def answer(handle: int, *arguments: int) -> Any:
            assert arguments == more or field.endswith("clock")
            key = f"{field}{arguments[0]}" if field.endswith("clock") else field
            value = gpus[handle].get(key, unsupported)
            return value() if callable(value) else value

        return answer

    module.nvmlInit = lambda: None  # type: ignore[attr-defined]
    module.nvmlDeviceGetCount = lambda: len(gpus)  # type: ignore[attr-defined]
    module.nvmlDeviceGetHandleByIndex = lambda index: index  # type: ignore[attr-defined]
    module.nvmlSystemGetDriverVersion = lambda: b"570.86.15"  # type: ignore[attr-defined]
    for function, field in {
        "Name": "name",
        "UUID": "uuid",
        "CudaComputeCapability": "capability",
        "MemoryInfo": "memory",
        "EnforcedPowerLimit": "limit",
        "MaxClockInfo": "max_clock",
        "UtilizationRates": "utilisation",
        "PowerUsage": "power",
        "TotalEnergyConsumption": "energy",
        "ClockInfo": "clock",
        "CurrentClocksThrottleReasons": "throttle",
        "DisplayActive": "display",
        "MaxPcieLinkGeneration": "pcie_generation",
        "MaxPcieLinkWidth": "pcie_lanes",
        "PersistenceMode": "persistence",
        "EccMode": "ecc",
        "ApplicationsClock": "set_clock",
        "MigMode": "mig",
        "ComputeRunningProcesses": "processes",
        "ComputeRunningProcesses_v2": "processes_v2",
    }.items():
        setattr(module, f"nvmlDeviceGet{function}", answers(field))

    def status(one: int, other: int, read: int) -> Any:
        return answers(f"peer{other}", pynvml.NVML_P2P_CAPS_INDEX_READ[0])(one, read)

    module.nvmlDeviceGetP2PStatus = status  # type: ignore[attr-defined]
    module.nvmlDeviceGetTemperature = answers("temperature", pynvml.NVML_TEMPERATURE_GPU)  # type: ignore[attr-defined]
    return module


V100 = {
    "name": "Tesla V100-SXM2-16GB",
    "uuid": "GPU-1",
    "capability": (7, 0),
    "memory": types.SimpleNamespace(total=16384 * MIB, used=512 * MIB),
    "limit": 300_000,
    f"max_clock{pynvml.NVML_CLOCK_SM}": 1530,
    f"max_clock{pynvml.NVML_CLOCK_MEM}": 877,
    "utilisation": types.SimpleNamespace(gpu=97, memory=40),
    "power": 251_234,
    "energy": 123_456_789_123,
    "temperature": 61,
    f"clock{pynvml.NVML_CLOCK_SM}": 1380,
    f"clock{pynvml.NVML_CLOCK_MEM}": 877,
    "throttle": 0x4,
    "display": 1,
    "pcie_generation": 3,
    "pcie_lanes": 16,
    "persistence": 1,
    "ecc": (1, 0),
    f"set_clock{pynvml.NVML_CLOCK_SM}": 1312,
    "mig": (0, 0),
    "processes": [],
}
K80 = {"name": b"Tesla K80", "uuid": b"GPU-2", "capability": (3, 7), "memory": V100["memory"], "temperature": 40}


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    monkeypatch.setitem(sys.modules, "pynvml", fake([V100, K80]))
    return Nvml()


def test_every_field_is_read_in_its_unit(nvml: Nvml) -> None:
    assert len(nvml) == 2
    assert nvml.why_not == ""
    assert nvml.driver() == "570.86.15"
    assert nvml.describe()[0] == {
        "index": 0,
        "name": "Tesla V100-SXM2-16GB",
        "uuid": "GPU-1",
        "compute_capability": "7.0",
        "memory_mib": 16384.0,
        "power_limit_w": 300.0,
        "sm_clock_max_mhz": 1530,
        "memory_clock_max_mhz": 877,
        "display_active": True,
        "pcie_generation_max": 3,
        "pcie_lanes_max": 16,
        "persistence_mode": True,
        "ecc": True,
        "sm_clock_set_mhz": 1312,
    }
    assert nvml.sample([0]) == [
        {
            "device": "gpu0",
            "utilisation_percent": 97,
            "memory_used_mib": 512.0,
            "power_w": 251.234,
            "energy_j": 123_456_789.123,
            "temperature_c": 61,
            "sm_clock_mhz": 1380,
            "memory_clock_mhz": 877,
            "throttle_reasons": "sw_power_cap",
        }
    ]


@pytest.mark.parametrize(
    ("first", "second", "reach"),
    [
        ({"peer1": pynvml.NVML_P2P_STATUS_OK}, {"peer0": pynvml.NVML_P2P_STATUS_OK}, True),
        ({"peer1": pynvml.NVML_P2P_STATUS_OK}, {"peer0": pynvml.NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED}, False),
        ({"peer1": pynvml.NVML_P2P_STATUS_OK}, {}, None),
    ],
)
def test_gpus_reach_each_other_where_each_can_read_the_other(
    monkeypatch: pytest.MonkeyPatch, first: dict[str, int], second: dict[str, int], reach: bool | None
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake([{**V100, **first}, {**V100, "uuid": "GPU-3", **second}]))
    assert Nvml().peer_to_peer() is reach


def test_a_single_gpu_reaches_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake([V100]))
    assert Nvml().peer_to_peer() is None


def test_what_an_old_gpu_does_not_support_is_none_and_the_rest_is_read(nvml: Nvml) -> None:
    old = nvml.sample()[1]
    assert old == {
        "device": "gpu1",
        "utilisation_percent": None,
        "memory_used_mib": 512.0,
        "power_w": None,
        "energy_j": None,
        "temperature_c": 40,
        "sm_clock_mhz": None,
        "memory_clock_mhz": None,
        "throttle_reasons": None,
    }
    described = nvml.describe()[1]
    assert (described["name"], described["uuid"], described["power_limit_w"]) == ("Tesla K80", "GPU-2", None)


def test_only_the_devices_asked_for_are_sampled(nvml: Nvml) -> None:
    assert [row["device"] for row in nvml.sample([1])] == ["gpu1"]
    assert nvml.sample([]) == []
    assert len(nvml.sample(None)) == 2


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"),
    ],
)
def test_without_a_driver_there_are_no_gpus_and_a_reason(monkeypatch: pytest.MonkeyPatch, code: int, said: str) -> None:
    module = fake([])

    def fail() -> None:
        raise pynvml.NVMLError(code)

    module.nvmlInit = fail  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    nvml = Nvml()
    assert (len(nvml), nvml.why_not) == (0, said)
    assert nvml.driver() is None
    assert nvml.describe() == nvml.sample() == []


def test_without_the_bindings_there_are_no_gpus_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml = Nvml()
    assert len(nvml) == 0
    assert "pynvml" in nvml.why_not
    assert nvml.describe() == nvml.sample() == []


def test_every_function_and_constant_used_is_in_the_installed_bindings() -> None:
    """The fake answers for these, so they have to exist in what it stands for."""
    for name in vars(fake([])):
        if name.startswith(("nvml", "NVML")):
            assert hasattr(pynvml, name), name


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (None, None),
        (0x0, ""),
        (0x1, ""),
        (0x4, "sw_power_cap"),
        (0x1 | 0x20 | 0x40, "sw_thermal_slowdown+hw_thermal_slowdown"),
        (0x8 | 0x80, "hw_slowdown+hw_power_brake_slowdown"),
        (0x1FF & ~0x1, "applications_clocks_setting+sw_power_cap+hw_slowdown+sync_boost+sw_thermal_slowdown"
         "+hw_thermal_slowdown+hw_power_brake_slowdown+display_clock_setting"),
        (0x10000 | 0x4, "sw_power_cap+0x10000"),
    ],
)  # fmt: skip
def test_throttle_bits_have_names_and_unknown_ones_are_kept(bits: int | None, names: str | None) -> None:
    assert throttle_reasons(bits) == names


def test_the_bits_are_those_of_the_bindings() -> None:
    for constant, name in {
        "SwPowerCap": "sw_power_cap",
        "HwSlowdown": "hw_slowdown",
        "SwThermalSlowdown": "sw_thermal_slowdown",
        "HwThermalSlowdown": "hw_thermal_slowdown",
        "HwPowerBrakeSlowdown": "hw_power_brake_slowdown",
        "SyncBoost": "sync_boost",
        "ApplicationsClocksSetting": "applications_clocks_setting",
        "DisplayClockSetting": "display_clock_setting",
    }.items():
        assert throttle_reasons(getattr(pynvml, f"nvmlClocksEventReason{constant}")) == name


def indices(nvml: Nvml) -> list[int]:
    return [gpu.index for gpu in nvml.gpus]


@pytest.mark.parametrize(
    ("allowed", "left"),
    [
        ("1", [1]),
        ("0,1", [0, 1]),
        ("1,0", [0, 1]),
        (" 1 ", [1]),
        ("GPU-2", [1]),
        ("GPU-2,GPU-1", [0, 1]),
        ("", []),
        ("7", []),
        ("-1", []),
        ("0,-1,1", [0]),
        ("0,7,1", [0]),
        ("0,,1", [0]),
        ("0,GPU-2", [0]),
        ("GPU-1,1", [0]),
        ("GPU-2,GPU-7,GPU-1", [1]),
        ("GPU-", []),
        ("0,0", []),
        ("GPU-1,GPU-1", []),
        ("NoDevFiles", []),
    ],
)
def test_gpus_a_scheduler_has_not_given_are_left_alone(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch, allowed: str, left: list[int]
) -> None:
    assert indices(nvml) == [0, 1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    nvml = Nvml()
    assert indices(nvml) == left
    assert [row["device"] for row in nvml.sample()] == [f"gpu{index}" for index in left]
    assert nvml.why_not == ("" if left else "CUDA_VISIBLE_DEVICES leaves none")


def test_a_gpu_that_a_scheduler_keeps_from_this_process_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA counts only the GPUs that it may open; NVML counts all."""
    module = fake([V100, K80])

    def handle(index: int) -> int:
        if index == 0:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)
        return index

    module.nvmlDeviceGetHandleByIndex = handle  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert indices(Nvml()) == [1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert indices(Nvml()) == [1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert indices(Nvml()) == []


def test_where_a_scheduler_has_given_no_gpu_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake([V100])
    module.nvmlDeviceGetHandleByIndex = unsupported  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert (len(Nvml()), Nvml().why_not) == (0, "the driver gives this process none of its GPUs")


def test_a_gpu_is_known_by_its_uuid_and_where_it_tells_none_by_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake([V100, {"name": "of a virtual machine"}]))
    assert [gpu.id for gpu in Nvml().gpus] == ["GPU-1", "1"]


@pytest.mark.parametrize(
    ("wanted", "left"),
    [("all", [0, 1]), ("1", [0]), ("2", [0, 1]), ("device=1", [1]), ("device=1,0", [0, 1]), ("device=GPU-2", [1])],
)
def test_the_gpus_asked_for_are_used_and_no_others(nvml: Nvml, wanted: str, left: list[int]) -> None:
    chosen = Nvml(wanted)
    assert indices(chosen) == left
    assert [one["index"] for one in chosen.describe()] == left


HERE = "0 (Tesla V100-SXM2-16GB, GPU-1); 1 (Tesla K80, GPU-2)"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("3", f"3 GPUs are asked for (gpus); here: {HERE}"),
        ("device=2", f"GPU 2 is asked for (gpus), and is not here; here: {HERE}"),
        ("device=0,GPU-3", f"GPU GPU-3 is asked for (gpus), and is not here; here: {HERE}"),
    ],
)
def test_a_gpu_that_is_not_here_is_told_with_those_that_are(nvml: Nvml, wanted: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        Nvml(wanted)
    assert str(caught.value) == said


def test_asking_for_gpus_where_there_are_none_is_told_with_the_reason(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(UserError) as caught:
        Nvml("1")
    assert str(caught.value) == "1 GPUs are asked for (gpus); here: none (CUDA_VISIBLE_DEVICES leaves none)"


def test_a_gpu_that_mig_divides_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    divided = {**V100, "mig": (1, 1)}
    monkeypatch.setitem(sys.modules, "pynvml", fake([divided, K80]))
    assert indices(Nvml()) == [1]
    monkeypatch.setitem(sys.modules, "pynvml", fake([divided]))
    said = "MIG divides every GPU (0: Tesla V100-SXM2-16GB), and only whole ones are measured"
    assert (len(Nvml()), Nvml().why_not) == (0, said)


def test_parts_of_gpus_that_a_scheduler_names_are_not_measured(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f")
    said = "CUDA_VISIBLE_DEVICES names parts of GPUs (MIG), and only whole ones are measured"
    assert (len(Nvml()), Nvml().why_not) == (0, said)


def test_processes_are_told_with_their_memory_where_the_driver_does(monkeypatch: pytest.MonkeyPatch) -> None:
    one = types.SimpleNamespace(pid=11, usedGpuMemory=2048 * MIB)
    other = types.SimpleNamespace(pid=12, usedGpuMemory=None)
    new, old = {**V100, "processes": [one, other]}, {**K80, "processes_v2": [one]}
    monkeypatch.setitem(sys.modules, "pynvml", fake([new, old, K80]))
    nvml = Nvml()
    assert [nvml.processes(index) for index in (0, 1, 2)] == [{11: 2048.0, 12: None}, {11: 2048.0}, {}]
