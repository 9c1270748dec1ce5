"""Step 5: training over batch sizes: the fitted line, the share of the limit, images per joule, a published card."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.gpu import cases
from benchmarks.gpu.findings import Finding, judged, not_here, within
from benchmarks.gpu.kit import Kit, trials_of
from benchmarks.gpu.limits import of_operation, sheet_of
from tsuishi.base.checkout import Checkout
from tsuishi.estimates.line_fit import KINK_PERCENT, Fit, Point, fit
from tsuishi.estimates.roofline import Limit, roofline
from tsuishi.machine.compatibility import read_table
from tsuishi.specs.source import Source, read_sources

BATCHES = {"cnn10": (128, 512, 2048), "wrn28_10": (64, 128, 256)}
DRY_BATCHES = (2, 4, 8)
# The share of FP32's limit that training reaches: less shows a device that waits. Convolutions by Winograd's algorithm
# take fewer operations than are counted, at best 1 / 2.25 of them (Lavin and Gray, CVPR 2016, F(2x2, 3x3)).
LEAST_OF_LIMIT, MOST_OF_LIMIT = 0.15, 2.25
# The published card, its source and its power.
PUBLISHED = ("torch-2080ti", "rtx-2080ti")
PUBLISHED_FP32_TFLOPS = 13.4
# A GPU under load takes at least this share of its limit of power, and may exceed the limit for moments.
POWER_SHARES = (0.15, 1.1)


def measured_of(model: str) -> Any:
    """The part of a network: its work on a kit."""

    def measured(kit: Kit) -> Iterator[Finding]:
        batches = DRY_BATCHES if kit.dry else BATCHES[model]
        groups = [{"model": model, "batch_size": list(batches)}]
        timing = cases.ONCE if kit.dry else cases.STEADY
        text = cases.suite(f"{model} over batch sizes", "training", cases.TRAINING, groups, timing)
        trials = sorted(
            trials_of(kit.measure(f"kit_sweep_{model}", text)), key=lambda trial: trial["axes"]["batch_size"]
        )
        for trial in trials:
            if trial["status"] != "ok":
                yield judged(_named(trial), False, f"{trial['status']}: {trial['reason']}; expected ok")
        usable = [trial for trial in trials if trial["status"] == "ok"]
        if not kit.cut_off:
            yield of_line(model, fit(Point(trial["axes"]["batch_size"], trial["values"]["step_s"]) for trial in usable))
        for trial in usable[-1:]:
            yield of_limit(trial, trials_of(kit.notes["limits"]) if "limits" in kit.notes else [])
            yield of_energy(trial, kit.gpu)
        published = published_point(read_sources(Checkout().published, kit.words), model)
        yield beside_published(model, usable, published, _fp32_tflops(kit))

    return measured


def _fp32_tflops(kit: Kit) -> float | None:
    sheet = sheet_of(kit.gpu, read_table(kit.checkout.images).data_sheets)[0] if kit.gpu else None
    return sheet.peak_tflops["fp32"] if sheet else None


def _named(trial: Mapping[str, Any]) -> str:
    return f"training {trial['axes']['model']}, batch {trial['axes']['batch_size']}"


def of_line(model: str, found: Fit | None) -> Finding:
    """Whether a line t(b) = b / v0 + t_cost fits: no batch size is further off it than a kink."""
    what = f"training {model}, the line over batch sizes, % off it"
    if found is None:
        words = "no line: the time of a step does not grow with the batch, expected one"
        return Finding(what, "FAIL", words, of_speed=True)
    worst = max(found.residuals, key=lambda residual: abs(residual.percent))
    line = f"v0 {found.v0:.4g} images/s, t_cost {found.t_cost * 1e3:.3g} ms; the furthest is batch {worst.batch_size}"
    return within(what, abs(worst.percent), 0.0, KINK_PERCENT, more=line, of_speed=True)


def of_limit(trial: Mapping[str, Any], limits: Sequence[Mapping[str, Any]]) -> Finding:
    """The share of the device's measured limit, by the roofline model, of the largest batch."""
    what = f"{_named(trial)}, share of the limit"
    rates = {name: trial["values"][name] for name in ("flops_per_s", "bytes_per_s") if name in trial["values"]}
    products = [each for each in limits if each["axes"].get("precision") == "fp32"]
    most = of_operation(products, "matmul", "flops_per_s")
    if most is None:
        return not_here(what, "step 3 measured no limit of fp32")
    moved = of_operation(limits, "memory_copy", "bytes_per_s")
    device = {("flops_per_s", "fp32"): Limit(most)} | ({("bytes_per_s", ""): Limit(moved)} if moved else {})
    share = roofline(rates, device, "fp32", 1)
    both = f"{rates.get('flops_per_s', 0) / 1e12:.4g} of {most / 1e12:.4g} TFLOP/s"
    both += f", by {share.bound}" if share else ""
    return within(what, share and share.value, LEAST_OF_LIMIT, MOST_OF_LIMIT, more=both, of_speed=True)


def of_energy(trial: Mapping[str, Any], gpu: Mapping[str, Any]) -> Finding:
    """Images per joule: whether the energy that they imply is that of a GPU at work within its limit of power."""
    what = f"{_named(trial)}, power by its energy"
    per_image_j, speed = trial["values"].get("energy_per_image_j"), trial["values"].get("throughput_images_per_s")
    if not gpu:
        return not_here(what, "--dry: no energy is measured on a CPU")
    if not per_image_j or not speed:
        return judged(what, False, f"{per_image_j} J an image at {speed} images/s, expected both")
    limit_w = gpu.get("power_limit_w")
    if not limit_w:
        return not_here(what, "this GPU says no power limit")
    low, high = (share * limit_w for share in POWER_SHARES)
    return within(what, speed * per_image_j, low, high, unit="W", more=f"{1 / per_image_j:.4g} images/J")


def published_point(sources: Sequence[Source], model: str) -> tuple[int, float] | None:
    """The largest published batch of one device, and its images/s; None where there is none."""
    found: dict[int, float] = {}
    for source in sources:
        for number in source.flat() if source.name == PUBLISHED[0] else ():
            axes = number.axes
            single = (axes.get("model"), axes.get("devices")) == (model, 1)
            if single and number.quantity == "median_epoch_s" and number.hardware == PUBLISHED[1] and number.epochs:
                found[int(axes["batch_size"])] = number.epochs.images / number.value
    return max(found.items(), default=None)


def beside_published(
    model: str, trials: Sequence[Mapping[str, Any]], published: tuple[int, float] | None, fp32_tflops: float | None
) -> Finding:
    """The fastest batch beside the published RTX 2080 Ti: a card with a higher peak should not be slower.

    The source's epochs are fed by a loader from the host, which ours are not: both are FP32 without TF32.
    """
    what = f"training {model}, images/s beside the published RTX 2080 Ti"
    speed = max((trial["values"].get("throughput_images_per_s", math.nan) for trial in trials), default=None)
    if published is None or speed is None:
        return not_here(what, "no published number" if published is None else "no batch ran")
    both = f"{speed:.4g} images/s, published {published[1]:.4g} at batch {published[0]}"
    if fp32_tflops is None:
        return not_here(what, f"{both}; no data sheet says what this device can do")
    ratio = speed / published[1]
    expected = min(1.0, fp32_tflops / PUBLISHED_FP32_TFLOPS)
    return within(what, ratio, expected, more=both)
