"""The source's guesses, each with the answer of the measurements, if they answer it."""

from typing import NamedTuple

from tsuishi.base.language import in_words, mark, prose, t
from tsuishi.report.explanations.conv2d.equal_terms import COPY_AND_COMPUTE, compared, copies, input_bytes, least_towers
from tsuishi.report.explanations.conv2d.observations import (
    SAME,
    SCIPY,
    SCIPY_ALL_CORES,
    STEADY,
    NotTested,
    Observations,
    amounts,
    per_cent,
    times,
    towers,
)
from tsuishi.report.parts.wording import label


class Change(NamedTuple):
    """A guess about larger cases: the axis in which they are larger, and the three possible verdicts."""

    larger: str
    # Other axes in which these cases may differ: they have fewer images where SciPy would take long.
    also: frozenset[str]
    same: str
    for_scipy: str
    for_framework: str


LARGER_FILTER = Change(
    "filter_size",
    frozenset({"images"}),
    mark("a larger filter makes no difference"),
    mark("a larger filter favours SciPy"),
    mark("a larger filter favours the framework"),
)
MORE_CHANNELS = Change(
    "channels",
    frozenset({"images", "filter_size"}),
    mark("more channels make no difference"),
    mark("more channels favour SciPy"),
    mark("more channels favour the framework"),
)


def texts(measured: Observations, every: dict[str, Observations]) -> dict[str, str]:
    """The answers by topic. every: the observations of all environments by name, for the guess about frameworks."""
    return {
        t("Guess: GPU memory is too small for 1 to 3 GPUs"): about_memory(measured),
        t("Guess: TensorFlow is not made for this, others are"): about_frameworks(measured, every),
        t("Guess: a larger filter favours the GPU"): about_size(measured, LARGER_FILTER),
        t("Guess: more channels favour the GPU"): about_size(measured, MORE_CHANNELS),
        t("Guess: copying results back is the bottleneck"): about_results(measured),
        t("Guess: staying on the device hides the overhead"): about_staying(measured),
    }


def about_memory(measured: Observations) -> str:
    held_mib = 2 * input_bytes(measured) / 2**20
    compute = measured.value("compute_s", **STEADY)
    if not measured.on_gpu:
        return NotTested(t("there was no GPU (input and output are {held_mib:.0f} MiB together)", held_mib=held_mib))
    if compute is None:
        return measured.why_not(**STEADY)
    return t(
        "One GPU held it all (input and output are {held_mib:.0f} MiB together) and convolved it in {seconds}: nothing "
        "was swapped.",
        held_mib=held_mib,
        seconds=amounts([compute], "compute_s"),
    )


def about_frameworks(measured: Observations, every: dict[str, Observations]) -> str:
    """The time of computing alone, in every environment that measured it with as many towers."""
    case = least_towers(measured)
    compute_s = {
        name: value for name, other in every.items() if (value := other.value("compute_s", **case)) is not None
    }
    mine = compute_s.pop(measured.environment, None)
    if mine is None or not compute_s:
        return NotTested(t("it takes the steady case in this environment and in another"))
    others = [
        t("{seconds} in {environment}", seconds=amounts([value], "compute_s"), environment=name)
        for name, value in compute_s.items()
    ]
    fastest = min(compute_s, key=lambda name: compute_s[name])
    them = fastest if len(compute_s) == 1 else t("the fastest other")
    return t(
        "Computing alone takes {seconds} here, {others}: {verdict}.",
        seconds=amounts([mine], "compute_s"),
        others=in_words(others),
        verdict=compared(mine, compute_s[fastest], t("this environment"), them),
    )


def about_size(measured: Observations, change: Change) -> str:
    """The ratio of SciPy's time on all cores to the framework's time of computing, and whether it grows with size."""
    base = _advantage(measured, {})
    larger = [axes for axes in measured.other_sizes if _is_larger(measured, change, axes)]
    advantages = {_size(measured, axes): value for axes in larger if (value := _advantage(measured, axes)) is not None}
    if base is None or not advantages:
        return NotTested(t("it takes the steady case and SciPy on all cores, of both sizes"))
    grown = next(iter(advantages.values())) / base
    verdict = change.same if 1 / SAME <= grown <= SAME else change.for_scipy if grown < 1 else change.for_framework
    values = {
        "times": times(base),
        "size": _size(measured, {}),
        "others": in_words(t("{times} {size}", times=times(value), size=size) for size, value in advantages.items()),
        "verdict": t(verdict),
    }
    if measured.on_gpu:
        return t("SciPy on all cores takes {times} as long as the framework {size}, {others}: {verdict}.", **values)
    return t(
        "SciPy on all cores takes {times} as long as the framework {size}, {others}: {verdict}, on this CPU; a GPU was "
        "not tested.",
        **values,
    )


def _advantage(measured: Observations, axes: dict[str, int]) -> float | None:
    scipy = measured.value("later_run_s", **{**SCIPY_ALL_CORES, **axes})
    compute = measured.value("compute_s", **{**STEADY, **axes})
    return None if scipy is None or compute is None else scipy / compute


def _is_larger(measured: Observations, change: Change, axes: dict[str, int]) -> bool:
    """Whether a guess is about the sizes that differ from the base case by `axes`."""
    grows = axes.get(change.larger, 0) > measured.base[change.larger]
    return grows and {*axes} <= {change.larger, *change.also}


def _size(measured: Observations, axes: dict[str, int]) -> str:
    of = {**measured.base, **axes}
    if of["channels"] == 1:
        return t("with {filter}×{filter} and 1 channel", filter=of["filter_size"])
    return t("with {filter}×{filter} and {channels} channels", filter=of["filter_size"], channels=of["channels"])


def about_results(measured: Observations) -> str:
    count = least_towers(measured)["devices"]
    seconds = copies(measured, devices=count)
    if len(seconds) < len(COPY_AND_COMPUTE):
        return measured.why_not(**STEADY)
    most = max(seconds, key=lambda name: seconds[name])
    values = {"towers": towers([count]), "share": per_cent(seconds["device_to_host_s"] / sum(seconds.values()))}
    if most == "device_to_host_s":
        answer = t("With {towers} it takes {share} of copying, computing and copying back: it is.", **values)
    else:
        answer = t(
            "With {towers} it takes {share} of copying, computing and copying back: it is not, {phase} is.",
            **values,
            phase=label(most),
        )
    no_bus = "" if measured.on_gpu else t("But device and host are one here, and a bus was not tested.")
    return prose([answer, no_bus])


def about_staying(measured: Observations) -> str:
    case = least_towers(measured)
    compute, first = measured.value("compute_s", **case), measured.value("first_run_s", devices=case["devices"])
    if compute is None:
        return measured.why_not(**STEADY)
    computing = {
        "images": f"{measured.base['images']:,}",
        "towers": towers([case["devices"]]),
        "compute": amounts([compute], "compute_s"),
    }
    if first is None:
        warm = t("Warm, all {images} images on {towers}, computing takes {compute}.", **computing)
    else:
        warm = t(
            "Warm, all {images} images on {towers}, computing takes {compute}; a first run, as the source timed it, "
            "{first}.",
            **computing,
            first=amounts([first], "first_run_s"),
        )
    scipy = measured.value("later_run_s", **SCIPY)
    if scipy is None:
        return warm
    verdict = compared(compute, scipy, t("the framework"), "SciPy")
    return prose([warm, t("Beside the source's SciPy loop: {verdict}.", verdict=verdict)])
