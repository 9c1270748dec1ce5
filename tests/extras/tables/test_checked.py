"""The words of an answer of `check`."""

import pytest

from tsuishi.extras.tables.checked import is_device


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
