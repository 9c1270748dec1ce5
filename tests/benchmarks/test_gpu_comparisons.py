"""The kit for a first GPU, steps 2 to 9: what is compared, each comparison shown to fail by a planted fault."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import psutil
import pytest

from benchmarks.gpu import convolution, correctness, faults, limits, rivals, sweeps, whole
from benchmarks.gpu.findings import FAIL, NOT_HERE, PASS
from tests.benchmarks.found import GPU, failed, outcome
from tests.words import shipped_sources
from tsuishi.base.checkout import Checkout
from tsuishi.estimates.line_fit import Point, fit
from tsuishi.machine.compatibility import read_table
from tsuishi.specs.data_sheets import DataSheet


def sheets() -> Sequence[DataSheet]:
    return read_table(Checkout().images).data_sheets


def sheet() -> DataSheet:
    found, why_not = limits.sheet_of(GPU, sheets())
    assert found, why_not
    return found


def trial(status: str = "ok", reason: str = "", **fields: Any) -> dict[str, Any]:
    return {"status": status, "reason": reason, "axes": {}, "metrics": {}, "values": {}, **fields}


@pytest.mark.parametrize(("limit_w", "fp32"), [(250.0, 13.4), (260.0, 14.2), (258.0, 14.2)])
def test_cards_of_one_name_are_told_apart_by_their_power_limit(limit_w: float, fp32: float) -> None:
    found, why_not = limits.sheet_of({"name": "NVIDIA GeForce RTX 2080 Ti", "power_limit_w": limit_w}, sheets())
    assert found is not None
    assert (found.peak_tflops["fp32"], why_not) == (fp32, "")


@pytest.mark.parametrize(
    ("name", "limit_w", "why_not"),
    [
        ("NVIDIA H100 80GB HBM3", 500.0, "this 'H100 80GB HBM3' has 500 W, and its data sheet is of 700 W"),
        ("NVIDIA H200", None, "this 'H200' has an unknown power limit, and its data sheet is of 700 W"),
        ("GeForce RTX 2080 Ti", 400.0, "this 'GeForce RTX 2080 Ti' has 400 W, and its data sheet is of 250 or 260 W"),
        ("NVIDIA H100 PCIe", 350.0, "no data sheet of 'H100 PCIe' in images/compatibility.toml"),
    ],
)
def test_a_card_that_no_sheet_describes_says_why(name: str, limit_w: float | None, why_not: str) -> None:
    assert limits.sheet_of({"name": name, "power_limit_w": limit_w}, sheets()) == (None, why_not)


def test_a_card_may_be_clocked_higher_than_its_sheet_says_and_never_counts_as_lower() -> None:
    card = next(card for card in sheets() if card.power_limit_w == 250 and "GeForce RTX 2080 Ti" in card.names)
    assert limits.clock_share(card, 2100) == pytest.approx(2100 / 1545)
    assert limits.clock_share(card, 300) == limits.clock_share(card, None) == 1.0


# Step 2.


def parity_trial(status: str = "ok", reason: str = "", **axes: str) -> dict[str, Any]:
    errors = {f"{name}_relative_error": 1e-6 for name in ("logits", "loss", "gradient")}
    usual = {"model": "cnn10", "precision": "fp32", "layout": "native", "execution": "native"}
    return trial(status, reason, axes={**usual, **axes}, metrics=errors)


def test_a_case_of_parity_is_what_its_trial_is() -> None:
    good = correctness.of_trial(parity_trial(precision="amp_bf16", layout="channels_last"))
    assert (good.what, good.outcome) == ("parity of cnn10, amp_bf16, channels_last", PASS)
    reason = "ArithmeticError: loss_relative_error is 0.01; at most 0.0001 is rounding"
    wrong = correctness.of_trial(parity_trial("failed", reason))
    assert outcome(wrong, "loss_relative_error is 0.01; at most 0.0001 is rounding") == FAIL
    assert correctness.of_trial(parity_trial("unsupported", "no TF32 here")).outcome == NOT_HERE
    assert correctness.of_trial({**parity_trial(), "metrics": {}}).outcome == FAIL


# Step 3.


@pytest.mark.parametrize(
    ("share", "clock_mhz", "expected"),
    [(0.8, 1980, PASS), (0.4, 1980, FAIL), (1.2, 1980, FAIL), (1.2, 2400, PASS)],
)
def test_a_limit_is_held_to_the_dense_peak_of_the_sheet(share: float, clock_mhz: float, expected: str) -> None:
    gpu = {**GPU, "sm_clock_max_mhz": clock_mhz}
    found = limits.of_peak("bf16", share * 989.4e12, "bf16", gpu, sheet(), "")
    assert outcome(found, f"of {989.4:.4g} TFLOP/s (h100-whitepaper)") == expected


def test_the_sparse_peak_would_not_be_taken_for_a_measured_one() -> None:
    assert limits.of_peak("bf16", 1978.9e12, "bf16", GPU, sheet(), "").outcome == FAIL


def test_copies_are_held_to_the_memory_and_to_the_link() -> None:
    assert limits.of_bandwidth("copy", 3.0e12, sheet(), "").outcome == PASS
    assert outcome(limits.of_bandwidth("copy", 1.5e12, sheet(), ""), "1500 of 3352 GB/s") == FAIL
    assert limits.of_link("up", 50e9, GPU).outcome == PASS
    assert outcome(limits.of_link("up", 12e9, GPU), "12 of 63.01 GB/s (PCIe 5.0 x16)") == FAIL
    assert limits.of_link("up", 12e9, {}).outcome == NOT_HERE
    joined = {**GPU, "c2c_links": 10}  # a GH200, whose copies are faster than any PCIe link
    assert outcome(limits.of_link("up", 375e9, joined), "375 of 450 GB/s (NVLink-C2C)") == PASS


def test_without_a_sheet_or_a_precision_on_it_nothing_is_judged() -> None:
    assert limits.of_peak("fp32", 1e12, "fp32", GPU, None, "no data sheet of 'X'").words == "no data sheet of 'X'"
    assert limits.of_bandwidth("copy", 1e12, None, "no data sheet of 'X'").outcome == NOT_HERE
    t4, _ = limits.sheet_of({"name": "Tesla T4", "power_limit_w": 70.0}, sheets())
    assert limits.of_peak("tf32", 1e12, "tf32", GPU, t4, "").words == "the data sheet has no tf32"


def limit(operation: str, status: str = "ok", precision: str = "", **values: float) -> dict[str, Any]:
    axes = {"operation": operation, **({"precision": precision} if precision else {})}
    return trial(status, "it died", axes=axes, values=values)


def test_a_limit_that_was_not_measured_is_a_fail_and_launches_have_bounds() -> None:
    assert failed(limits.of_trial(limit("matmul", "failed", "fp32"), GPU, sheet(), "")) == [
        "limit of matmul fp32: FAIL: failed: it died; expected a rate"
    ]
    good = limit("matmul", precision="fp32", flops_per_s=50e12)
    assert [finding.outcome for finding in limits.of_trial(good, GPU, sheet(), "")] == [PASS, PASS]
    assert failed(limits.of_trial(limit("kernel_launch", step_s=4e-6), GPU, sheet(), "")) == []
    assert len(failed(limits.of_trial(limit("kernel_launch", step_s=4e-3), GPU, sheet(), ""))) == 1
    assert len(failed(limits.of_trial(limit("memory_copy"), GPU, sheet(), ""))) == 2


# Step 4.


def convolved(images: int, compute_s: float, status: str = "ok") -> dict[str, Any]:
    return trial(status, "it died", axes={"images": images}, values={"compute_s": compute_s})


def test_a_convolution_is_held_to_a_copy_of_as_many_bytes() -> None:
    images = convolution.long_size(3e12)
    assert images * convolution.IMAGE_BYTES / 3e12 == pytest.approx(1e-3, rel=1e-3)
    assert convolution.of_trial(convolved(images, 1.05e-3), 3e12, 4e-6).outcome == PASS
    slow = convolution.of_trial(convolved(images, 2e-3), 3e12, 4e-6)
    assert outcome(slow, "0.5, at least 0.9; 2 ms, a copy 1 ms") == FAIL


def test_at_the_sources_size_launches_decide() -> None:
    assert convolution.of_trial(convolved(840, 40e-6), 3e12, 4e-6).outcome == PASS
    slow = convolution.of_trial(convolved(840, 4e-3), 3e12, 4e-6)
    assert outcome(slow, "22.4 us of traffic, 4 us a launch") == FAIL
    # Faster than the memory: it did not do the work.
    assert convolution.of_trial(convolved(840, 10e-6), 3e12, 4e-6).outcome == FAIL
    assert convolution.of_trial(convolved(840, 1e-3, "failed"), 3e12, 4e-6).outcome == FAIL
    assert convolution.of_trial(convolved(840, 1e-3, "unsupported"), 3e12, 4e-6).outcome == NOT_HERE


# Step 5.


def test_a_kink_in_the_line_is_a_fail_with_its_batch() -> None:
    straight = [Point(batch, batch / 1e4 + 0.01) for batch in (128, 512, 2048)]
    assert outcome(sweeps.of_line("cnn10", fit(straight)), "v0 1e+04 images/s, t_cost 10 ms") == PASS
    kinked = [*straight[:1], Point(512, 0.2), straight[2]]
    assert outcome(sweeps.of_line("cnn10", fit(kinked)), "the furthest is batch") == FAIL
    assert sweeps.of_line("cnn10", fit([Point(1, 2.0), Point(2, 1.0)])).outcome == FAIL


def swept(**values: float) -> dict[str, Any]:
    return trial(axes={"model": "cnn10", "batch_size": 2048}, values=values)


def test_training_must_use_the_device_and_its_power() -> None:
    measured = [limit("matmul", precision="fp32", flops_per_s=50e12), limit("memory_copy", bytes_per_s=3e12)]
    busy = swept(flops_per_s=25e12, bytes_per_s=0.1e12)
    assert outcome(sweeps.of_limit(busy, measured), "25 of 50 TFLOP/s, by arithmetic") == PASS
    idle = swept(flops_per_s=2e12, bytes_per_s=0.01e12)
    assert outcome(sweeps.of_limit(idle, measured), "0.04, at least 0.15") == FAIL
    assert sweeps.of_limit(busy, []).outcome == NOT_HERE
    power = swept(energy_per_image_j=0.02, throughput_images_per_s=30_000)
    assert outcome(sweeps.of_energy(power, GPU), "600 W, at least 105 and at most 770; 50 images/J") == PASS
    wrong = swept(energy_per_image_j=0.2, throughput_images_per_s=30_000)
    assert outcome(sweeps.of_energy(wrong, GPU), "6000 W") == FAIL
    assert sweeps.of_energy(swept(throughput_images_per_s=30_000), GPU).outcome == FAIL
    assert sweeps.of_energy(power, {}).outcome == NOT_HERE


def test_a_faster_card_than_the_published_one_must_be_faster() -> None:
    sources = shipped_sources()
    published = sweeps.published_point(sources, "wrn28_10")
    assert published is not None
    assert (published[0], round(published[1], 1)) == (256, 474.1)
    fast, slow = ([swept(throughput_images_per_s=speed)] for speed in (3000.0, 300.0))
    assert sweeps.beside_published("wrn28_10", fast, published, 66.9).outcome == PASS
    found = sweeps.beside_published("wrn28_10", slow, published, 66.9)
    assert outcome(found, "0.6328, at least 1; 300 images/s, published 474.1 at batch 256") == FAIL
    # A T4 has 60 % of the published card's peak.
    assert sweeps.beside_published("wrn28_10", slow, published, 8.1).outcome == PASS
    assert sweeps.beside_published("wrn28_10", slow, published, None).outcome == NOT_HERE
    assert sweeps.published_point(sources, "mlp") is None


# Step 6.


@pytest.mark.parametrize(
    ("speeds", "expected", "words"),
    [
        ({"tsuishi": [120.0, 122.0], "timm": [100.0, 90.0], "torchbench": [80.0]}, PASS, "1.274, at least 1.1"),
        ({"tsuishi": [100.0], "timm": [50.0], "torchbench": [95.0]}, FAIL, "tsuishi 100, timm 50, torchbench 95"),
        ({"timm": [50.0]}, FAIL, "timm ran; expected tsuishi and a rival"),
        ({"tsuishi": [50.0]}, FAIL, "tsuishi ran; expected tsuishi and a rival"),
    ],
)
def test_the_best_mode_is_held_to_the_better_of_both_loops(
    speeds: Mapping[str, Sequence[float]], expected: str, words: str
) -> None:
    assert outcome(rivals.compared("compiled", speeds), words) == expected


# Steps 7 and 8.


def sized(batch_size: int, status: str) -> dict[str, Any]:
    return trial(status, "why", axes={"batch_size": batch_size})


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (("ok", "ok", "out_of_memory"), PASS),
        (("ok", "failed"), FAIL),
        (("out_of_memory",), FAIL),
        (("ok", "ok"), FAIL),
    ],
)
def test_doubling_must_end_out_of_memory_after_something_fitted(statuses: Sequence[str], expected: str) -> None:
    tried = [sized(64 << place, status) for place, status in enumerate(statuses)]
    assert faults.first_that_failed(tried).outcome == expected
    assert faults.usable_after(sized(8, "failed")).outcome == FAIL


def test_memory_must_come_back_and_must_have_been_taken() -> None:
    assert faults.memory_back(500.0, 9000.0, 510.0).outcome == PASS
    assert outcome(faults.memory_back(500.0, 9000.0, 8990.0), "8990 MiB, ") == FAIL
    assert outcome(faults.memory_back(500.0, 510.0, 500.0), "510 MiB during the trial, 500 before") == FAIL


def test_a_process_that_outlives_its_runner_is_found() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as orphan:
        process = psutil.Process(orphan.pid)
        _, _, alive = faults.awaited(lambda: 0.0, 0.0, [process], most_s=0.5)
        assert alive == [orphan.pid]
        assert outcome(faults.no_orphan(1, alive, 0.5), "1 of 1 processes left") == FAIL
        orphan.kill()
    _, _, alive = faults.awaited(lambda: 0.0, 0.0, [process], most_s=5.0)
    assert faults.no_orphan(1, alive, 0.1).outcome == PASS
    assert faults.no_orphan(0, [], 0.1).outcome == FAIL


# Step 9.


@pytest.mark.parametrize(
    ("code", "statuses", "expected"),
    [
        (0, ("ok", "unsupported"), PASS),
        (3, ("ok", "failed"), FAIL),
        (0, ("ok", "interrupted"), FAIL),
        (0, ("unsupported",), FAIL),
        (0, (), FAIL),
    ],
)
def test_a_whole_run_needs_times_and_no_failure(code: int, statuses: Sequence[str], expected: str) -> None:
    assert whole.of_run(code, statuses).outcome == expected
