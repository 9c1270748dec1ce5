"""The bar of the device: from data sheets and measured limits, and what is measured for it."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.extras.explain.test_design import FACTORS, PRINTED, measured, planted, times
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.estimates.intervals import Term
from tsuishi.estimates.roofline import Limit
from tsuishi.extras.explain import device
from tsuishi.extras.explain.design import bars
from tsuishi.extras.explain.device import Limits
from tsuishi.extras.explain.explanation_folder import write_limits
from tsuishi.extras.explain.sections import drawing
from tsuishi.extras.tables.check import Found
from tsuishi.extras.tables.checkable import CheckableNumber
from tsuishi.machine.compatibility import read_table
from tsuishi.plan.choice import Choice
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.suite import read_suite

SHEETS = read_table(Checkout().images).data_sheets
(CARD, *_) = [sheet for sheet in SHEETS if "GeForce RTX 2080 Ti" in sheet.names]
PEAK, MEMORY = CARD.peak_tflops["fp32"] * 1e12, CARD.memory_gb_per_s * 1e9
SHEET = Limits(most={"flops_per_s": PEAK, "bytes_per_s": MEMORY}, origin="by its data sheet")
MINE = Limits(most={"flops_per_s": 1e11, "bytes_per_s": 1e10}, origin="as measured here")


def rates(flops: float, copied: float | None = None) -> dict[str, Term]:
    known = {"flops_per_s": flops, "bytes_per_s": copied}
    return {name: Term(math.log(rate), 3, None) for name, rate in known.items() if rate}


@pytest.mark.parametrize(
    ("hardware", "quantity", "precision", "why_not"),
    [
        ("RTX 2080 Ti", "step_s", "amp_fp16", ""),
        ("RTX 2080 Ti", "throughput_images_per_s", "", ""),
        ("RTX 2080 Ti", "accuracy", "fp32", "accuracy is not the speed of a step"),
        ("RTX 2080 Ti", "step_s", "tf32", "the data sheet of 'RTX 2080 Ti' has no tf32"),
        ("one CPU", "step_s", "fp32", "images/compatibility.toml has no data sheet of 'one CPU'"),
    ],
)
def test_what_has_no_limits_says_why(hardware: str, quantity: str, precision: str, why_not: str) -> None:
    found, said = device.limits_of_card(hardware, quantity, precision, SHEETS)
    assert (found is None, said) == (bool(why_not), why_not)


def test_a_name_of_several_cards_has_the_limits_of_the_fastest_and_says_which() -> None:
    found, _ = device.limits_of_card("V100", "step_s", "fp32", SHEETS)
    assert found == Limits(
        most={"flops_per_s": 15.7e12, "bytes_per_s": 900e9},
        origin="by its data sheet, a Tesla V100-SXM2-16GB of 300 W as the fastest of this name",
    )


@pytest.mark.parametrize(
    ("flops", "copied", "times_as_long"),
    [
        (1e11, 1e9, PEAK / 1e11),  # both devices compute
        (1e9, 1e10, MEMORY / 1e10),  # both wait for their memory
        (1e11, None, PEAK / 1e11),  # of a network of a library, whose bytes are not counted
    ],
)
@pytest.mark.parametrize("devices", [1, 4])
def test_the_bar_is_the_ratio_of_the_shortest_possible_times(
    flops: float, copied: float | None, times_as_long: float, devices: int
) -> None:
    """My device has 1e11 FLOP/s and 1e10 B/s; the step here does half of that on each of its devices."""
    here = rates(flops / 2 * devices, copied and copied / 2 * devices)
    found = device.bar(here, devices, SHEET, MINE, times_as_long=1.0)
    assert found is not None
    assert math.exp(found.size.value) == pytest.approx(times_as_long)
    assert found.words.endswith(
        "mine as measured here (0.100 TFLOP/s" + (" and 10.0 GB/s" if copied else "") + "): this step reaches 50 %"
    )


@pytest.mark.parametrize("above", ["mine", "theirs", "both"])
def test_a_step_above_a_limit_is_that_limit_on_both_sides(above: str) -> None:
    """Products of an old MKL on an AMD CPU reach half of what its own convolutions do; cuDNN has Winograd's."""
    mine = Limits(most={"flops_per_s": 4e10 if above != "theirs" else 8e11}, origin="as measured here")
    times_as_long = PEAK / 8e10 * (1.25 if above != "mine" else 0.5)
    found = device.bar(rates(8e10), 1, SHEET, mine, times_as_long)
    assert found is not None
    share_here = 1.0 if above != "theirs" else 0.1
    share_there = 1.0 if above != "mine" else 0.5
    assert math.exp(found.size.value) == pytest.approx(times_as_long * share_here / share_there)
    assert f"the printed step reaches {100 * share_there:.0f} % of the nearer limit; mine" in found.words
    assert found.words.endswith(f"this step reaches {100 * share_here:.0f} %")


def test_no_limit_and_no_work_have_no_bar() -> None:
    assert device.bar(rates(1e9), 1, SHEET, Limits(most={"bytes_per_s": 1e10}, origin=""), 1.0) is None
    assert device.bar(rates(1e9, 1e9), 1, SHEET, Limits(most={"flops_per_s": 1e11}, origin=""), 1.0) is None
    assert device.bar({}, 1, SHEET, MINE, 1.0) is None
    assert device.measured_limits({("flops_per_s", "bf16"): Limit(1e11)}, "fp32").most == {}
    both = {("flops_per_s", "fp16"): Limit(1e11), ("bytes_per_s", ""): Limit(1e9)}
    assert device.measured_limits(both, "amp_fp16").most == {
        "flops_per_s": 1e11,
        "bytes_per_s": 1e9,
    }


def test_the_device_takes_its_part_from_the_remainder() -> None:
    terms = measured(planted, 0.0, 0)
    without = times(bars(FACTORS, terms, printed=10.0))
    by_limits = device.bar(
        rates(PEAK / 9), 1, SHEET, Limits(most={"flops_per_s": PEAK / 9}, origin="as measured here"), 2.0
    )
    found = bars(FACTORS, terms, 10.0, by_limits)
    named = times(found)
    assert named["device"] == pytest.approx(9.0)
    assert named["remainder"] == pytest.approx(without["remainder"] / 9)
    assert math.prod(named.values()) == pytest.approx(math.prod(without.values()))
    assert {bar.name: bar.level for bar in found if bar.name != "device"} == {
        bar.name: bar.level for bar in bars(FACTORS, terms, 10.0)
    }
    rows = drawing(found, PRINTED)["datasets"]["rows"]
    assert [row["name"] for row in rows][:3] == ["remainder", "device", "precision"]


@pytest.mark.parametrize("accelerator", ["cpu", "cuda"])
@pytest.mark.parametrize(("precision", "products"), [("amp_fp16", "fp16"), ("", "fp32"), ("fp64", "")])
def test_nothing_but_products_and_copies_is_measured(
    accelerator: Accelerator, precision: str, products: str, tmp_path: Path
) -> None:
    session = SimpleNamespace(
        checkout=Checkout(),
        words=WORDS,
        choice=Choice(profile="quick", accelerator=accelerator),
        nvml=(object(),) if accelerator == "cuda" else (),
    )
    number = CheckableNumber((), (), "", "", "", {"precision": precision}, "", 1.0, "", "", "", {})
    name = write_limits(Found(number, "", session, "", ()), tmp_path)  # type: ignore[arg-type]
    cases = [case.values for case, _ in read_suite(tmp_path / f"{name}.toml", WORDS).cases("quick", accelerator)]
    # No suite has products in FP64: its copies alone are measured.
    wanted = {("matmul", products), ("memory_copy", None)} if products else {("memory_copy", None)}
    assert {(case["operation"], case.get("precision")) for case in cases} == wanted
