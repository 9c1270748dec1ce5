"""NVML at the boundary of its bindings: what a GPU does not support is None, and no driver is no crash."""

import itertools
import re
import sys
import types
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pynvml
import pytest

from tests.driver import FUNCTIONS, K80, MIB, V100, Library, fake, refused
from tsuishi.base.errors import UserError
from tsuishi.machine import gpus
from tsuishi.machine.description import machine_record
from tsuishi.machine.gpus import Nvml, throttle_reasons
from tsuishi.results.records import MachineRecord


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
        "memory_reserved_mib": 256.0,
        "power_limit_w": 300.0,
        "power_limit_default_w": 250.0,
        "power_reading": "usage",
        "sm_clock_max_mhz": 1530,
        "memory_clock_max_mhz": 877,
        "display_active": True,
        "pcie_generation_max": 3,
        "pcie_lanes_max": 16,
        "c2c_links": None,
        "persistence_mode": True,
        "compute_mode": "default",
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


BRIDGED = {gpus._READ: pynvml.NVML_P2P_STATUS_OK, gpus._NVLINK: pynvml.NVML_P2P_STATUS_OK}
APART = {
    gpus._READ: pynvml.NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED,
    gpus._NVLINK: pynvml.NVML_P2P_STATUS_NOT_SUPPORTED,
}


def eight_bridged_in_pairs() -> list[dict[str, Any]]:
    """Workstation cards: 0 and 1, 2 and 3, … have a bridge of NVLink, and no two others read each other's memory."""
    return [
        {**V100, "uuid": f"GPU-{card}"}
        | {f"peer{other}": BRIDGED if other == card ^ 1 else APART for other in range(8)}
        | {f"ancestor{other}": 40 if other // 4 == card // 4 else 50 for other in range(8)}
        for card in range(8)
    ]


def test_of_eight_cards_bridged_in_pairs_two_reach_each_other_and_four_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake(eight_bridged_in_pairs()))
    nvml = Nvml()
    links = nvml.links()
    assert len(links) == 28
    assert links[0] == {"gpus": [0, 1], "peer_to_peer": True, "nvlink": True, "ancestor": "a NUMA node"}
    assert links[3] == {"gpus": [0, 4], "peer_to_peer": False, "nvlink": False, "ancestor": "the system"}
    assert [link["gpus"] for link in links if link["peer_to_peer"]] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    recorded = MachineRecord.model_validate(machine_record(nvml))
    assert [recorded.reach(count) for count in (1, 2, 4, 8)] == [None, True, False, False]


@pytest.mark.parametrize(
    ("second", "reach"),
    [({"peer0": BRIDGED}, True), ({"peer0": APART}, False), ({}, None)],
)
def test_gpus_reach_each_other_where_each_can_read_the_other(
    monkeypatch: pytest.MonkeyPatch, second: dict[str, Any], reach: bool | None
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake([{**V100, "peer1": BRIDGED}, {**V100, "uuid": "GPU-3", **second}]))
    assert [(link["peer_to_peer"], link["nvlink"]) for link in Nvml().links()] == [(reach, reach)]


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
    monkeypatch.setitem(sys.modules, "pynvml", fake([], {"nvmlInitWithFlags": code}))
    nvml = Nvml()
    assert (len(nvml), nvml.why_not) == (0, said)
    assert nvml.driver() is None
    assert nvml.describe() == nvml.sample() == []


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "install NVIDIA's driver"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "load the driver's kernel module"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "restart the machine"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "this user or container may not use it"),
        (pynvml.NVML_ERROR_UNKNOWN, "nvidia-smi should say more"),
    ],
)
@pytest.mark.parametrize(
    ("maker", "kind", "is_card"),
    [("0x10de", "0x030000", True), ("0x10de", "0x040300", False), ("0x1002", "0x030000", False)],
)
def test_a_card_that_the_driver_does_not_give_has_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, remedy: str, maker: str, kind: str, is_card: bool
) -> None:
    """Its audio function is no card, nor is the card of another maker."""
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0" / "vendor").write_text(f"{maker}\n")
    (tmp_path / "0000:01:00.0" / "class").write_text(f"{kind}\n")
    has_card = gpus._has_card
    monkeypatch.setattr(gpus, "_has_card", lambda: has_card(tmp_path))
    monkeypatch.setitem(sys.modules, "pynvml", fake([], {"nvmlInitWithFlags": code}))
    nvml = Nvml()
    assert nvml.remedy.startswith(remedy) if is_card else nvml.remedy == ""
    assert machine_record(nvml).get("gpus_unused") == (nvml.why_not if is_card else None)


def test_without_the_bindings_there_are_no_gpus_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml = Nvml()
    assert len(nvml) == 0
    assert "pynvml" in nvml.why_not
    assert nvml.describe() == nvml.sample() == []


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
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    nvml = Nvml()
    assert indices(nvml) == left
    assert [row["device"] for row in nvml.sample()] == [f"gpu{index}" for index in left]
    assert nvml.why_not == ("" if left else "CUDA_VISIBLE_DEVICES leaves none")


def test_a_gpu_that_a_scheduler_keeps_from_this_process_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA counts only the GPUs that it may open; NVML counts all."""
    kept = {**V100, "handle": refused(pynvml.NVML_ERROR_NO_PERMISSION)}
    monkeypatch.setitem(sys.modules, "pynvml", fake([kept, K80]))
    assert indices(Nvml()) == [1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert indices(Nvml()) == [1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert indices(Nvml()) == []


MIXED = (
    "CUDA_VISIBLE_DEVICES=0 counts in CUDA's order, the fastest GPU first, and these differ (0: Tesla V100-SXM2-16GB, "
    "1: Tesla K80): set CUDA_DEVICE_ORDER=PCI_BUS_ID to count as here, or name GPUs by UUID"
)


@pytest.mark.parametrize(
    ("second", "visible", "order", "left", "why_not"),
    [
        (K80, "0", None, [], MIXED),
        (K80, "0", "FASTEST_FIRST", [], MIXED),
        (K80, "0", "PCI_BUS_ID", [0], ""),
        (K80, "1,0", None, [0, 1], ""),
        (K80, "GPU-2", None, [1], ""),
        ({**V100, "uuid": "GPU-3"}, "0", None, [0], ""),
    ],
)
def test_a_number_in_cudas_own_order_is_refused_where_it_may_mean_another_card(
    monkeypatch: pytest.MonkeyPatch,
    second: dict[str, Any],
    visible: str,
    order: str | None,
    left: list[int],
    why_not: str,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake([V100, second]))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if order:
        monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
    nvml = Nvml()
    assert (indices(nvml), nvml.why_not) == (left, why_not)


def test_where_a_scheduler_has_given_no_gpu_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake([{**V100, "handle": refused(pynvml.NVML_ERROR_NO_PERMISSION)}]))
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


def test_memory_that_the_driver_reserves_is_not_used_memory_where_the_driver_tells_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on an idle A100 of a public report: 912 MB by version 1 of the call, and 8 MB by version 2."""
    idle = {**V100, "memory": types.SimpleNamespace(total=40960 * MIB, used=8 * MIB, reserved=904 * MIB)}
    said = []
    for failing in ({}, {"nvmlDeviceGetMemoryInfo_v2": None}):
        monkeypatch.setitem(sys.modules, "pynvml", fake([idle], failing))
        nvml = Nvml()
        said.append((nvml.sample()[0]["memory_used_mib"], nvml.describe()[0]["memory_reserved_mib"]))
    assert said == [(8.0, 904.0), (912.0, None)]


def test_power_is_that_of_this_instant_where_the_driver_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the second after a load begins: 60 W is the mean that nvmlDeviceGetPowerUsage gives on Ampere and newer."""
    card = {**V100, "power": 60_000, f"field{pynvml.NVML_FI_DEV_POWER_INSTANT}": 250_000}
    said = []
    for gpu, failing in ((card, {}), (card, {"nvmlDeviceGetFieldValues": None}), ({**card, "field186": None}, {})):
        monkeypatch.setitem(sys.modules, "pynvml", fake([gpu], failing))
        nvml = Nvml()
        said.append((nvml.sample()[0]["power_w"], nvml.describe()[0]["power_reading"]))
    assert said == [(250.0, "instant"), (60.0, "usage"), (60.0, "usage")]


FAILURES = {"no such symbol": None, "NOT_SUPPORTED": pynvml.NVML_ERROR_NOT_SUPPORTED}
# Without one of these there is no GPU to describe; the reason says so.
FIRST = ("nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2")
CARD = {
    **V100,
    "peer0": BRIDGED,
    "peer1": BRIDGED,
    "ancestor0": 40,
    "ancestor1": 40,
    "field170": 0,
    "field186": 250_000,
}


def said_by(failing: Mapping[str, int | None], *cards: Mapping[str, Any]) -> tuple[Nvml, Library, list[Any]]:
    """All that tsuishi asks a driver, and the answers."""
    module = fake(cards or [CARD, {**CARD, "uuid": "GPU-2"}], failing)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        patch.setitem(sys.modules, "pynvml", module)
        nvml = Nvml()
        processes = [nvml.processes(gpu.index) | nvml.processes(gpu.index, draws=True) for gpu in nvml.gpus]
        return nvml, module.nvmlLib, [nvml.driver(), nvml.describe(), nvml.links(), nvml.sample(), processes]


def calls() -> list[str]:
    """The symbols that are asked for: those of a new driver, and what is asked instead where an old one lacks them."""
    lists = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3")
    new = ("nvmlDeviceGetMemoryInfo_v2", *lists, "nvmlDeviceGetFieldValues")
    return sorted(said_by({})[1].asked | said_by(dict.fromkeys(new))[1].asked)


@cache
def whole() -> list[Any]:
    """What a driver says that answers everything."""
    return said_by({})[2]


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(map(leaves, value))
    else:
        yield value


def test_the_stand_in_knows_every_function_and_each_is_one_of_the_bindings() -> None:
    """So that the table below leaves out none of the calls."""
    written = set(re.findall(r"\bnvml(?:Init|System|Device)\w*", Path(gpus.__file__).read_text(encoding="utf-8")))
    assert {name for name in written if not hasattr(pynvml, name)} == set()
    assert {re.sub(r"_v\d|WithFlags", "", call) for call in calls()} == {re.sub(r"_v\d", "", name) for name in written}
    assert set(FUNCTIONS) <= set(calls())


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("call", calls())
def test_whatever_a_driver_refuses_or_lacks_every_gpu_has_its_row(call: str, failure: str) -> None:
    nvml, _, said = said_by({call: FAILURES[failure]})
    if call in FIRST:
        assert (len(nvml), said) == (0, [None, [], [], [], []])
        assert nvml.why_not
        return
    assert [len(rows) for rows in said[1:]] == [2, 1, 2, 2]
    assert nvml.unreadable == {}
    changed = [now for now, before in zip(leaves(said), leaves(whole()), strict=True) if now != before]
    # The fact is None, or what an older call says of it, or words; all others are as ever.
    instead = {
        "nvmlDeviceGetMemoryInfo_v2": ["768.0"] * 2,
        "nvmlDeviceGetFieldValues": ["251.234"] * 2 + ["usage"] * 2,
        "nvmlDeviceGetName": ["a GPU without a readable name"] * 2,
    }
    assert sorted(str(now) for now in changed if now is not None) == instead.get(call, [])
    recorded = MachineRecord.model_validate(machine_record(nvml))
    assert [gpu.name for gpu in recorded.gpus or ()] == [row["name"] for row in said[1]]


@pytest.mark.parametrize(("field", "key"), [("name", "name"), ("uuid", "uuid")])
def test_a_text_that_is_no_utf_8_is_left_out_and_told_apart_from_what_a_gpu_does_not_have(field: str, key: str) -> None:
    nvml, _, said = said_by({}, {**CARD, field: b"\xf8\x95\xa0\x81"})
    (described,) = said[1]
    assert described[key] == ("a GPU without a readable name" if field == "name" else None)
    assert {**described, key: None} == {**said_by({}, CARD)[2][1][0], key: None}
    (question,) = nvml.unreadable
    assert question.lower().endswith(field)
    assert "codec can't decode byte 0xf8" in nvml.unreadable[question]
