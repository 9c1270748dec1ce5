"""Comparisons on equal terms: copying apart from computing; SciPy and the framework on the same input."""

import math
from typing import Any

from tsuishi.base.language import in_words, prose, t
from tsuishi.report.parts.two_sides import compared
from tsuishi.report.parts.wording import capital, label

from .observations import (
    SCIPY,
    SCIPY_ALL_CORES,
    STEADY,
    Observations,
    amounts,
    per_cent,
    towers,
)

COPY_AND_COMPUTE = ("host_to_device_s", "compute_s", "device_to_host_s")
_FLOAT32_BYTES = 4


def _image_bytes(measured: Observations) -> int:
    return math.prod((_FLOAT32_BYTES, *(int(measured.base[axis]) for axis in ("height", "width", "channels"))))


def input_bytes(measured: Observations) -> int:
    """The bytes of all images of the base case."""
    return int(measured.base["images"]) * _image_bytes(measured)


def about_copies(measured: Observations) -> str:
    """The shares of the three steady phases, by number of towers."""
    counts = list(measured.by_towers("compute_s", **STEADY))
    if not counts:
        return measured.why_not(**STEADY)
    sentences: list[str] = []
    for count in counts:
        phases = copies(measured, devices=count)
        total = sum(phases.values())
        shares = [
            t("{phase} {share}", phase=label(name), share=per_cent(seconds / total)) for name, seconds in phases.items()
        ]
        values = {"towers": towers([count]), "shares": in_words(shares), "total": amounts([total], "compute_s")}
        if sentences:
            sentences.append(t("With {towers}: {shares} of {total}.", **values))
        else:
            sentences.append(t("Warm, each timed on its own: with {towers} {shares} of {total}.", **values))
    return prose([*sentences, "" if measured.on_gpu else t("The copies are within host memory.")])


def about_host_memory(measured: Observations) -> str:
    """The copies from pageable and from pinned host memory."""
    sentences = []
    for quantity in ("host_to_device_s", "device_to_host_s"):
        pageable, pinned = (measured.timed(quantity, **STEADY, host_memory=kind) for kind in ("pageable", "pinned"))
        if pageable and pinned:
            text = t(
                "{phase}: {pageable} with pageable host memory, {pinned} with pinned: {verdict}.",
                phase=label(quantity),
                pageable=amounts([pageable.value], quantity),
                pinned=amounts([pinned.value], quantity),
                verdict=compared(pageable, pinned, t("pageable memory"), t("pinned memory")),
            )
            sentences.append(capital(text))
    return prose(sentences) if sentences else measured.why_not(**STEADY, host_memory="pinned")


def least_towers(measured: Observations) -> dict[str, Any]:
    """The axes of the steady case with the fewest towers that were measured."""
    return {**STEADY, "devices": next(iter(measured.by_towers("compute_s", **STEADY)), 1)}


def copies(measured: Observations, **axes: Any) -> dict[str, float]:
    """The seconds of each steady phase that was measured of a case."""
    values = {name: measured.value(name, **STEADY, **axes) for name in COPY_AND_COMPUTE}
    return {name: value for name, value in values.items() if value is not None}


def about_scipy(measured: Observations) -> str:
    """The work of SciPy's loop compared with the work of the towers; and both on all images and all cores."""
    loop_s, all_cores = measured.value("later_run_s", **SCIPY), measured.timed("later_run_s", **SCIPY_ALL_CORES)
    if loop_s is None:
        return measured.why_not(**SCIPY)
    images = f"{measured.base['images']:,}"
    work = {
        "size_kb": _image_bytes(measured) / 1e3,
        "images": images,
        "seconds": amounts([loop_s], "later_run_s"),
        "read_mb": input_bytes(measured) / 1e6,
    }
    if measured.published:
        loop = t(
            "The source's SciPy loop convolves one image of {size_kb:.0f} kB {images} times on one core: {seconds}; "
            "the towers read {read_mb:.1f} MB and write as much.",
            **work,
        )
    else:
        loop = t(
            "SciPy's loop convolves one image of {size_kb:.0f} kB {images} times on one core: {seconds}; the towers "
            "read {read_mb:.1f} MB and write as much.",
            **work,
        )
    if all_cores is None:
        why = measured.why_not(**SCIPY_ALL_CORES)
        return prose([loop, t("SciPy on all images was not tested ({why}).", why=why)])
    on_all = {"images": images, "scipy": amounts([all_cores.value], "later_run_s")}
    fed = measured.timed("later_run_s", feed="fed")
    if fed is None:
        alone = t("On all {images} images and all cores SciPy takes {scipy}.", **on_all)
        missing = t("The framework on the same terms (input fed, one tower) was not tested.")
        return prose([loop, alone, missing])
    beside = t(
        "On all {images} images and all cores SciPy takes {scipy}; the framework, fed the same images in one tower, "
        "{framework}: {verdict}.",
        **on_all,
        framework=amounts([fed.value], "later_run_s"),
        verdict=compared(fed, all_cores, t("the framework"), "SciPy"),
    )
    return prose([loop, beside])
