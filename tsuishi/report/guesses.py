"""The source's guesses about conv2d, each answered by what was measured, or not; and the comparisons they rest on."""

from typing import Any

from tsuishi.report.measured import (
    SAME,
    SCIPY,
    SCIPY_ALL_CORES,
    SOURCE_CASE,
    STEADY,
    Measured,
    NotTested,
    amounts,
    in_words,
    per_cent,
    times,
    towers,
)

COPY_AND_COMPUTE = {"host_to_device_s": "host to device", "compute_s": "compute", "device_to_host_s": "device to host"}
_IMAGES, _PIXELS = SOURCE_CASE["images"], SOURCE_CASE["height"] * SOURCE_CASE["width"]
_IMAGE_BYTES = 4 * _PIXELS

# How cases with a larger filter or more channels differ; few images, as SciPy takes long.
LARGER_FILTER = {"filter_size": 10}
MORE_CHANNELS = {"channels": 10, "images": 84}
BOTH = {"channels": 10, "filter_size": 10, "images": 12}


def texts(measured: Measured, every: dict[str, Measured]) -> dict[str, str]:
    """By topic. `every`: all environments by name, for the guess about other frameworks."""
    return {
        "Transfer and compute": about_copies(measured),
        "SciPy on equal terms": about_scipy(measured),
        "Guess: GPU memory is too small for 1 to 3 GPUs": about_memory(measured),
        "Guess: TensorFlow is not made for this, others are": about_frameworks(measured, every),
        "Guess: a larger filter favours the GPU": about_size(measured, "a larger filter", LARGER_FILTER),
        "Guess: more channels favour the GPU": about_size(measured, "more channels", MORE_CHANNELS, BOTH),
        "Guess: copying results back is the bottleneck": about_results(measured),
        "Guess: staying on the device hides the overhead": about_staying(measured),
    }


def about_copies(measured: Measured) -> str:
    """Shares of the three steady phases, by number of towers."""
    counts = list(measured.by_towers("compute_s", **STEADY))
    if not counts:
        return measured.why_not(**STEADY)
    told = []
    for count in counts:
        found = _copies(measured, devices=count)
        shares = in_words(f"{COPY_AND_COMPUTE[name]} {per_cent(s / sum(found.values()))}" for name, s in found.items())
        told.append(f"with {towers([count])} {shares} of {amounts([sum(found.values())], 'compute_s')}")
    where = "" if measured.on_gpu else " The copies are within host memory."
    return f"Warm, each timed on its own: {'; '.join(told)}.{where}"


def _least_towers(measured: Measured) -> dict[str, Any]:
    """The steady case on the fewest towers that it was measured with."""
    return {**STEADY, "devices": next(iter(measured.by_towers("compute_s", **STEADY)), 1)}


def _copies(measured: Measured, **axes: Any) -> dict[str, float]:
    values = {name: measured.value(name, **STEADY, **axes) for name in COPY_AND_COMPUTE}
    return {name: value for name, value in values.items() if value is not None}


def about_scipy(measured: Measured) -> str:
    one, every = (measured.value("later_run_s", **axes) for axes in (SCIPY, SCIPY_ALL_CORES))
    if one is None:
        return measured.why_not(**SCIPY)
    text = (
        f"The source's SciPy loop convolves one image of {_IMAGE_BYTES / 1e3:.0f} kB {_IMAGES} times on one core: "
        f"{amounts([one], 'later_run_s')}; the towers read {_IMAGES * _IMAGE_BYTES / 1e6:.1f} MB and write as much."
    )
    if every is None:
        return f"{text} SciPy on all images was not tested ({measured.why_not(**SCIPY_ALL_CORES)})."
    text += f" On all {_IMAGES} images and all cores SciPy takes {amounts([every], 'later_run_s')}"
    fed = measured.value("later_run_s", feed="fed")
    if fed is None:
        return f"{text}. The framework on the same terms (input fed, one tower) was not tested."
    compared = _compared(fed, every, "the framework", "SciPy")
    return f"{text}; the framework, fed the same images in one tower, {amounts([fed], 'later_run_s')}: {compared}."


def _compared(ours: float, theirs: float, us: str, them: str) -> str:
    if max(ours, theirs) / min(ours, theirs) <= SAME:
        return f"{us} and {them} are about as fast"
    slower, faster = (us, them) if ours > theirs else (them, us)
    return f"{slower} takes {times(max(ours, theirs) / min(ours, theirs))} as long as {faster}"


def about_memory(measured: Measured) -> str:
    held = f"input and output are {2 * _IMAGES * _IMAGE_BYTES / 2**20:.0f} MiB together"
    compute = measured.value("compute_s", **STEADY)
    if not measured.on_gpu:
        return NotTested(f"there was no GPU ({held})")
    if compute is None:
        return measured.why_not(**STEADY)
    return f"One GPU held it all ({held}) and convolved it in {amounts([compute], 'compute_s')}: nothing was swapped."


def about_frameworks(measured: Measured, every: dict[str, Measured]) -> str:
    """Computing alone, in every environment that measured it on as many towers."""
    case = _least_towers(measured)
    found = {name: value for name, one in every.items() if (value := one.value("compute_s", **case)) is not None}
    mine = found.pop(measured.environment, None)
    if mine is None or not found:
        return NotTested("it takes the steady case in this environment and in another")
    told = in_words(f"{amounts([value], 'compute_s')} in {name}" for name, value in found.items())
    fastest = min(found, key=lambda name: found[name])
    verdict = _compared(mine, found[fastest], "this environment", fastest if len(found) == 1 else "the fastest other")
    return f"Computing alone takes {amounts([mine], 'compute_s')} here, {told}: {verdict}."


def about_size(measured: Measured, what: str, *variants: dict[str, int]) -> str:
    """How many times as long SciPy on all cores takes as the framework computes, and whether that grows."""
    base = _advantage(measured, {})
    found = {_size(axes): value for axes in variants if (value := _advantage(measured, axes)) is not None}
    if base is None or not found:
        return NotTested("it takes the steady case and SciPy on all cores, of both sizes")
    told = in_words(f"{times(value)} {size}" for size, value in found.items())
    where = "" if measured.on_gpu else ", on this CPU; a GPU was not tested"
    change = next(iter(found.values())) / base
    s = "" if what.endswith("s") else "s"
    if 1 / SAME <= change <= SAME:
        verdict = f"{what} make{s} no difference"
    else:
        verdict = f"{what} favour{s} {'SciPy' if change < 1 else 'the framework'}"
    return f"SciPy on all cores takes {times(base)} as long as the framework {_size({})}, {told}: {verdict}{where}."


def _advantage(measured: Measured, axes: dict[str, int]) -> float | None:
    scipy = measured.value("later_run_s", **{**SCIPY_ALL_CORES, **axes})
    compute = measured.value("compute_s", **{**STEADY, **axes})
    return None if scipy is None or compute is None else scipy / compute


def _size(axes: dict[str, int]) -> str:
    of = {**SOURCE_CASE, **axes}
    channels = f"{of['channels']} channel{'s' if of['channels'] != 1 else ''}"
    return f"with {of['filter_size']}×{of['filter_size']} and {channels}"


def about_results(measured: Measured) -> str:
    count = _least_towers(measured)["devices"]
    found = _copies(measured, devices=count)
    if len(found) < len(COPY_AND_COMPUTE):
        return measured.why_not(**STEADY)
    share = found["device_to_host_s"] / sum(found.values())
    most = max(found, key=lambda name: found[name])
    verdict = "it is" if most == "device_to_host_s" else f"it is not, {COPY_AND_COMPUTE[most]} is"
    where = "" if measured.on_gpu else "; but device and host are one here, and a bus was not tested"
    return (
        f"With {towers([count])} it takes {per_cent(share)} of copying, computing and copying back: {verdict}{where}."
    )


def about_staying(measured: Measured) -> str:
    case = _least_towers(measured)
    compute, first = measured.value("compute_s", **case), measured.value("first_run_s", devices=case["devices"])
    if compute is None:
        return measured.why_not(**STEADY)
    text = (
        f"Warm, all {_IMAGES} images on {towers([case['devices']])}, computing takes {amounts([compute], 'compute_s')}"
    )
    if first is not None:
        text += f"; a first run, as the source timed it, {amounts([first], 'first_run_s')}"
    scipy = measured.value("later_run_s", **SCIPY)
    if scipy is None:
        return f"{text}."
    return f"{text}. Beside the source's SciPy loop: {_compared(compute, scipy, 'the framework', 'SciPy')}."
