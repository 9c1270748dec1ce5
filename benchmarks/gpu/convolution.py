"""Step 4: conv2d of source conv2d-gce, steady: at its own size, where launches decide, and where memory decides."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.gpu import cases
from benchmarks.gpu.findings import Finding, judged, not_here, unsupported, within
from benchmarks.gpu.inside import run_inside
from benchmarks.gpu.kit import Kit, trials_of
from benchmarks.gpu.limits import of_operation

# The bytes of an image of the source, read once and written once.
IMAGE_BYTES = 2 * 4 * 100 * 100
SOURCE_IMAGES = 840
# The seconds of traffic at which launches no longer decide.
LONG_S = 1e-3
LEAST_OF_COPY = 0.9
# The time beside the traffic that the source's size may take: a step of an eager framework is a call of some ten
# functions, a launch alone is one.
MOST_LAUNCHES = 10
_KERNELS = Path(__file__).parent / "kernels_of_conv2d.py"


def measured(kit: Kit) -> Iterator[Finding]:
    """Findings on both sizes. Needs the limits of step 3."""
    if "limits" not in kit.notes:
        yield not_here("conv2d against the copy's bandwidth", "step 3 measured no bandwidth")
        return
    limits = trials_of(kit.notes["limits"])
    copy, launch_s = of_operation(limits, "memory_copy", "bytes_per_s"), of_operation(limits, "kernel_launch", "step_s")
    if not copy or not launch_s:
        yield not_here("conv2d against the copy's bandwidth", "step 3 has no rate of memory_copy or kernel_launch")
        return
    images = long_size(copy)
    timing = cases.BRIEF if kit.dry else cases.SHORT
    text = cases.suite("conv2d of the kit", "conv2d", cases.CONVOLUTION, [{"images": [SOURCE_IMAGES, images]}], timing)
    for trial in sorted(trials_of(kit.measure("kit_conv2d", text)), key=lambda trial: trial["axes"]["images"]):
        finding = of_trial(trial, copy, launch_s)
        yield finding
        if trial["status"] == "ok" and trial["axes"]["images"] != SOURCE_IMAGES and finding.outcome == "FAIL":
            kit.journal.say(f"    why: {_kernels(kit, images)}")


def long_size(copy_bytes_per_s: float) -> int:
    """The images whose traffic takes LONG_S at this bandwidth; at least the source's."""
    return max(SOURCE_IMAGES + 1, round(copy_bytes_per_s * LONG_S / IMAGE_BYTES))


def of_trial(trial: Mapping[str, Any], copy_bytes_per_s: float, launch_s: float) -> Finding:
    """The source's size against its launches, the other size against the bandwidth of a copy."""
    images = trial["axes"]["images"]
    traffic_s = images * IMAGE_BYTES / copy_bytes_per_s
    small = images == SOURCE_IMAGES
    what = f"conv2d of {images} images, {'launches decide' if small else 'of a copy of as many bytes'}"
    if trial["status"] == "unsupported":
        return unsupported(what, trial["reason"])
    compute_s = trial["values"].get("compute_s")
    if trial["status"] != "ok" or not compute_s:
        return judged(what, False, f"{trial['status']}: {trial['reason']}; expected ok")
    if small:
        both = f"{traffic_s * 1e6:.3g} us of traffic, {launch_s * 1e6:.3g} us a launch"
        most = (traffic_s + MOST_LAUNCHES * launch_s) * 1e6
        return within(what, compute_s * 1e6, traffic_s * 1e6, most, unit="us", more=both, of_speed=True)
    both = f"{compute_s * 1e3:.3g} ms, a copy {traffic_s * 1e3:.3g} ms"
    return within(what, traffic_s / compute_s, LEAST_OF_COPY, more=both, of_speed=True)


def _kernels(kit: Kit, images: int) -> str:
    """The kernels of a step and their times, by PyTorch's profiler; or why it says nothing."""
    answer, why_not = run_inside(kit, _KERNELS, {"images": images, "device": kit.accelerator}, timeout_s=60.0)
    return "; ".join(f"{name} {1e6 * seconds:.0f} us" for name, seconds in answer["kernels"]) if answer else why_not
