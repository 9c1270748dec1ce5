"""The bar of the device: from measured limits and a data sheet, and what is measured for it."""

import math
import shutil
from pathlib import Path

import pytest

from tests.extras.explain.test_design import FACTORS, measured, planted, times
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.estimates.intervals import Term
from tsuishi.estimates.roofline import DeviceLimits
from tsuishi.extras.explain import device
from tsuishi.extras.explain.design import bars
from tsuishi.extras.explain.waterfall import drawing
from tsuishi.machine.compatibility import read_table
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.suite import read_suite

SHEETS = read_table(Checkout().images).data_sheets
(CARD, *_) = [sheet for sheet in SHEETS if "GeForce RTX 2080 Ti" in sheet.names]
PEAK, MEMORY = CARD.peak_tflops["fp32"] * 1e12, CARD.memory_gb_per_s * 1e9


@pytest.mark.parametrize("hardware", ["GeForce RTX 2080 Ti", "RTX 2080 Ti", "2080 Ti", "RTX 2080 Ti, a table"])
def test_a_card_is_found_by_the_end_of_its_name(hardware: str) -> None:
    assert device.printed_sheet(hardware, SHEETS) is CARD


@pytest.mark.parametrize("hardware", ["", "RTX 2080", "Ti 2080", "080 Ti", "CPU", "GeForce"])
def test_another_card_is_not(hardware: str) -> None:
    assert device.printed_sheet(hardware, SHEETS) is None


@pytest.mark.parametrize(
    ("flops", "copied", "times_as_long"),
    [
        (1e11, 1e9, PEAK / 1e11),  # both devices compute
        (1e9, 1e10, MEMORY / 1e10),  # both wait for their memory
        (1e11, None, PEAK / 1e11),  # of a network of a library, whose bytes are not counted
    ],
)
def test_the_bar_is_the_ratio_of_the_shortest_possible_times(
    flops: float, copied: float | None, times_as_long: float
) -> None:
    """My device has 1e11 FLOP/s and 1e10 B/s; the step here does half of that. The time of the step cancels."""
    rates = {"flops_per_s": Term(math.log(flops / 2), 3, None)}
    if copied:
        rates["bytes_per_s"] = Term(math.log(copied / 2), 3, None)
    found = device.bar(rates, DeviceLimits({"fp32": 1e11}, 1e10), CARD, "fp32", 100.0)
    assert found is not None
    assert math.exp(found.size.value) == pytest.approx(times_as_long)
    assert "0.100 TFLOP/s" in found.words


def test_a_step_above_my_limit_is_my_limit_and_shares_of_limits_are_said() -> None:
    """Products of an old MKL on an AMD CPU reach half of what its own convolutions do."""
    rates = {"flops_per_s": Term(math.log(8e10), 3, None)}
    found = device.bar(rates, DeviceLimits({"fp32": 4e10}, None), CARD, "fp32", PEAK / 8e10 / 2)
    assert found is not None
    assert math.exp(found.size.value) == pytest.approx(PEAK / 8e10)
    assert found.words == (
        "theirs by its data sheet (13.4 TFLOP/s), of which the printed step has 50 %; "
        "mine as measured here (0.0800 TFLOP/s), of which this step has 100 %"
    )


def test_no_limit_and_no_work_have_no_bar() -> None:
    rates = {"flops_per_s": Term(20.0, 3, None)}
    assert device.bar(rates, None, CARD, "fp32", 1.0) is None
    assert device.bar(rates, DeviceLimits({}, 1e10), CARD, "fp32", 1.0) is None
    assert device.bar(rates, DeviceLimits({"bf16": 1e11}, None), CARD, "amp_bf16", 1.0) is None  # Turing has no bf16
    assert device.bar({}, DeviceLimits({"fp32": 1e11}, 1e10), CARD, "fp32", 1.0) is None


def test_the_device_takes_its_part_from_the_remainder() -> None:
    terms = measured(planted, 0.0, 0)
    without = times(bars(FACTORS, terms, printed=10.0))
    rates = {"flops_per_s": Term(20.0, 3, None)}
    by_limits = device.bar(rates, DeviceLimits({"fp32": PEAK / 9}, None), CARD, "fp32", 1.0)
    found = bars(FACTORS, terms, 10.0, by_limits)
    named = times(found)
    assert named["device"] == pytest.approx(9.0)
    assert named["remainder"] == pytest.approx(without["remainder"] / 9)
    assert math.prod(named.values()) == pytest.approx(math.prod(without.values()))
    assert {bar.name: bar.level for bar in found if bar.name != "device"} == {
        bar.name: bar.level for bar in bars(FACTORS, terms, 10.0)
    }
    rows = drawing(found)["layer"][1]["data"]["values"]
    assert [row["name"] for row in rows][:3] == ["remainder", "device", "precision"]


@pytest.mark.parametrize("accelerator", ["cpu", "cuda"])
@pytest.mark.parametrize(("precision", "products"), [("amp_fp16", "fp16"), ("", "fp32")])
def test_nothing_but_products_and_copies_is_measured(
    accelerator: Accelerator, precision: str, products: str, tmp_path: Path
) -> None:
    path = tmp_path / f"{device.suite_of_limits(Checkout().suites)}.toml"
    shutil.copy(Checkout().suites / path.name, path)
    device.narrow(path, precision)
    cases = [case.values for case, _ in read_suite(path, WORDS).cases("quick", accelerator)]
    assert {(case["operation"], case.get("precision")) for case in cases} == {
        ("matmul", products),
        ("memory_copy", None),
    }
