"""The words of an answer of `check`."""

import pytest

from tsuishi.estimates.ratios import Ratio
from tsuishi.extras.tables.adoption import UNNAMED
from tsuishi.extras.tables.checkable import CheckableNumber
from tsuishi.extras.tables.checked import _compared, is_device
from tsuishi.report.sections.beside_published import MeasuredNumber
from tsuishi.specs.case import Value


@pytest.mark.parametrize(
    ("device", "printed"),
    [
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti, PyTorch 1.4"),
        ("NVIDIA GeForce RTX 3090", "rtx3090"),
        ("Tesla V100-SXM2-16GB", "1x V100-SXM2-16GB"),
        ("NVIDIA H100 80GB HBM3", "H100 80GB HBM3"),
        ("Intel(R) Core(TM) i9-10940X CPU @ 3.30GHz", "CPU i9_10940x"),
    ],
)
def test_a_table_may_leave_out_the_maker(device: str, printed: str) -> None:
    assert is_device(device, printed)


@pytest.mark.parametrize(
    ("device", "printed"),
    [
        ("NVIDIA GeForce RTX 3080", "GeForce RTX 3080 Ti"),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080"),
        ("NVIDIA GeForce RTX 2070", "RTX 2070 SUPER"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090 Laptop GPU"),
        ("NVIDIA A10", "A100"),
        ("NVIDIA H100 80GB HBM3", "H100 PCIe"),
        ("AMD EPYC", "AMD EPYC 7V13"),
        ("", "RTX 2080 Ti"),
    ],
)
def test_another_variant_or_a_name_of_many_is_another_device(device: str, printed: str) -> None:
    assert not is_device(device, printed)


def number_on(hardware: str) -> CheckableNumber:
    axes: dict[str, Value] = {"suite": "s", "model": "resnet18"}
    return CheckableNumber(("resnet18",), (), "ms", "12", "t.md", axes, "step_s", 0.012, hardware, "torch", "", {})


@pytest.mark.parametrize(
    ("hardware", "said"),
    [
        ("V100", "not on V100: no verdict on the printed number"),
        (UNNAMED, "the table names no hardware: no verdict on the printed number"),
        ("RTX 2080 Ti", "the same device"),
    ],
)
def test_a_comparison_says_on_which_hardware_the_number_was_printed(hardware: str, said: str) -> None:
    found = MeasuredNumber(
        "steady", Ratio(0.01, 0.009, 0.011), Ratio(0.83, 0.75, 0.92), 6, "NVIDIA GeForce RTX 2080 Ti"
    )
    assert f" ({said}; interval of my trials alone)" in _compared(found, number_on(hardware))
