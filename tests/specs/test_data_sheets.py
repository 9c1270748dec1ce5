"""Data sheets of cards: those of a printed name; figures that follow from cores and clocks, none of them sparse."""

import pytest

from tsuishi.base.checkout import Checkout
from tsuishi.machine.compatibility import read_table
from tsuishi.specs.data_sheets import DataSheet, sheets_of_printed

TABLE = read_table(Checkout().images)
SHEETS = TABLE.data_sheets
# Cores of a multiprocessor, each of which multiplies and adds in a cycle; and the FLOP of its tensor cores in a cycle,
# in fp16 with sums in fp32. GeForce cards have half of the latter (the papers named in images/compatibility.toml).
CORES = {"3.7": 192, "7.0": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.9": 128, "9.0": 128, "12.0": 128}
# FLOP of a multiprocessor in a cycle in fp64: of its tensor cores where these have fp64, else of its cores.
DOUBLE = {"3.7": 128, "7.0": 64, "7.5": 4, "8.0": 128, "8.6": 4, "8.9": 4, "9.0": 256, "12.0": 4}
TENSOR = {"7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024, "9.0": 4096, "12.0": 1024}


def capability(sheet: DataSheet) -> str:
    (found,) = {gpu.capability for gpu in TABLE.gpus if any(name.startswith(gpu.name) for name in sheet.names)} or {""}
    return found


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: f"{sheet.names[0]}, {sheet.power_limit_w:g} W")
def test_a_peak_follows_from_cores_and_clock_and_is_not_the_sparse_one(sheet: DataSheet) -> None:
    cycles = sheet.multiprocessors * sheet.boost_mhz * 1e6
    of_card = capability(sheet)
    assert sheet.peak_tflops["fp32"] * 1e12 == pytest.approx(2 * CORES[of_card] * cycles, rel=0.02)
    assert sheet.peak_tflops["fp64"] * 1e12 == pytest.approx(DOUBLE[of_card] * cycles, rel=0.02)
    if "fp16" in sheet.peak_tflops:
        half_rate = 2 if sheet.names[0].startswith("GeForce") else 1
        # The tensor cores of an H100 have another boost clock, 8 % lower.
        expected = TENSOR[of_card] / half_rate * cycles
        assert sheet.peak_tflops["fp16"] * 1e12 == pytest.approx(expected, rel=0.09)
    if "bf16" in sheet.peak_tflops:
        assert sheet.peak_tflops["bf16"] == sheet.peak_tflops["fp16"]
        assert sheet.peak_tflops["tf32"] == pytest.approx(sheet.peak_tflops["fp16"] / 2, rel=0.02)
    assert ("tf32" in sheet.peak_tflops) == ("bf16" in sheet.peak_tflops) == (float(of_card) >= 8)


def test_every_card_that_a_first_gpu_may_be_has_a_sheet() -> None:
    names = {name for sheet in SHEETS for name in sheet.names}
    assert names >= {
        *("H100 80GB HBM3", "H200", "A100-SXM4-80GB", "L40S", "GeForce RTX 2080 Ti", "GeForce RTX 3090"),
        *("GeForce RTX 4090", "GeForce RTX 5090", "Tesla V100-SXM2-16GB", "Tesla T4", "Tesla K80"),
    }


@pytest.mark.parametrize(
    "hardware",
    [
        "GeForce RTX 2080 Ti",
        "RTX 2080 Ti",
        "2080 Ti",
        "RTX 2080 Ti, a table",
        "NVIDIA GeForce RTX 2080 Ti",
        "nvidia_geforce_rtx_2080_ti",
        "rtx2080ti",
    ],
)
def test_a_card_is_found_by_the_end_of_its_name(hardware: str) -> None:
    (of_250_w, of_260_w) = sheets_of_printed(hardware, SHEETS)
    assert of_250_w.names == of_260_w.names == ("GeForce RTX 2080 Ti",)


@pytest.mark.parametrize(
    "hardware", ["", "RTX 2080", "Ti 2080", "80 Ti", "Ti", "CPU", "GeForce", "V100S", "H100 PCIe", "16GB", "SXM2"]
)
def test_another_card_is_not(hardware: str) -> None:
    assert sheets_of_printed(hardware, SHEETS) == []


@pytest.mark.parametrize(
    ("hardware", "cards"),
    [
        ("V100", [("Tesla V100-SXM2-16GB", 300), ("Tesla V100-PCIE-16GB", 250)]),
        ("Tesla V100 PCIe", [("Tesla V100-PCIE-16GB", 250)]),
        ("v100_32gb", [("Tesla V100-SXM2-16GB", 300), ("Tesla V100-PCIE-16GB", 250)]),
        ("NVIDIA A100-SXM-80GB", [("A100-SXM4-80GB", 400)]),
        ("A100 40GB", [("A100-SXM4-40GB", 400), ("A100-PCIE-40GB", 250)]),
        ("H100 80 GB HBM3", [("H100 80GB HBM3", 700)]),
        ("H100", [("H100 80GB HBM3", 700)]),
        ("H100 80GB HBM2e", []),
        ("Tesla V100-SXM3-32GB", []),
        ("Tesla V100-SXM2 (16GB)", [("Tesla V100-SXM2-16GB", 300)]),
        ("A100 PCI-E 40GB", [("A100-PCIE-40GB", 250)]),
        ("RTX 3090 24GB", [("GeForce RTX 3090", 350)]),
    ],
)
def test_a_name_without_form_or_memory_is_of_every_card_that_has_it(
    hardware: str, cards: list[tuple[str, float]]
) -> None:
    assert [(sheet.names[0], sheet.power_limit_w) for sheet in sheets_of_printed(hardware, SHEETS)] == cards
