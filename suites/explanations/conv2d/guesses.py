"""The source's guesses, each with the answer of the measurements, if they answer it."""

import math
from typing import NamedTuple

from tsuishi.base.language import in_words, mark, prose, t
from tsuishi.estimates.contrasts import contrast
from tsuishi.estimates.intervals import CONFIDENCE, Contrast
from tsuishi.report.parts.two_sides import SAME, Timed, compared, times
from tsuishi.report.parts.wording import label

from . import overhead
from .equal_terms import COPY_AND_COMPUTE, copies, input_bytes, least_towers
from .observations import (
    SCIPY,
    SCIPY_ALL_CORES,
    STEADY,
    NotTested,
    Observations,
    amounts,
    per_cent,
    towers,
)


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
        t("Guess: the framework's own overhead"): overhead.about_overhead(measured),
        t("Calling the session otherwise"): overhead.about_call(measured),
        t("Guess: Keras gives the same"): overhead.about_keras(measured),
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
    held = t(
        "One GPU held all data (input and output are {held_mib:.0f} MiB together) and convolved them in {seconds}: "
        "nothing was swapped.",
        held_mib=held_mib,
        seconds=amounts([compute], "compute_s"),
    )
    return prose([held, _peak(measured)])


def _peak(measured: Observations) -> str:
    """The most GPU memory that runs as the source made them took, beside the GPU's memory."""
    peaks = measured.by_towers("peak_device_memory_mib")
    if not peaks or measured.gpu_mib is None:
        return ""
    values = {
        "towers": towers(peaks),
        "peaks": in_words(f"{peak:,.0f}" for peak in peaks.values()),
        "memory": f"{measured.gpu_mib:,.0f}",
    }
    if max(peaks.values()) < measured.gpu_mib / 2:
        return t(
            "At most {peaks} MiB were taken on a GPU with {towers}, of {memory} MiB: there was room for more.", **values
        )
    return t("At most {peaks} MiB were taken on a GPU with {towers}, of {memory} MiB.", **values)


def about_frameworks(measured: Observations, every: dict[str, Observations]) -> str:
    """The time of computing alone, in every environment that measured it with as many towers."""
    case = least_towers(measured)
    computing = {
        name: timed for name, other in every.items() if (timed := other.timed("compute_s", **case)) is not None
    }
    mine = computing.pop(measured.environment, None)
    if mine is None or not computing:
        return NotTested(t("a test needs the steady case in this environment and in another"))
    others = [
        t("{seconds} in {environment}", seconds=amounts([timed.value], "compute_s"), environment=name)
        for name, timed in computing.items()
    ]
    fastest = min(computing, key=lambda name: computing[name].value)
    them = fastest if len(computing) == 1 else t("the fastest other")
    return t(
        "Computing alone takes {seconds} here, {others}: {verdict}.",
        seconds=amounts([mine.value], "compute_s"),
        others=in_words(others),
        verdict=compared(mine, computing[fastest], t("this environment"), them),
    )


def about_size(measured: Observations, change: Change) -> str:
    """The ratio of SciPy's time on all cores to the framework's time of computing, and whether it grows with size."""
    base = _advantage(measured, {})
    larger = [axes for axes in measured.other_sizes if _is_larger(measured, change, axes)]
    advantages = {_size(measured, axes): sides for axes in larger if (sides := _advantage(measured, axes)) is not None}
    if base is None or not advantages:
        return NotTested(t("a test needs the steady case and SciPy on all cores, of both sizes"))
    values = {
        "times": times(base.ratio),
        "size": _size(measured, {}),
        "others": in_words(
            t("{times} {size}", times=times(sides.ratio), size=size) for size, sides in advantages.items()
        ),
        "verdict": _grown(base, next(iter(advantages.values())), change),
    }
    if measured.on_gpu:
        text = t("SciPy on all cores takes {times} as long as the framework {size}, {others}: {verdict}.", **values)
    else:
        text = t(
            "SciPy on all cores takes {times} as long as the framework {size}, {others}: {verdict}, on this CPU; a GPU "
            "was not tested.",
            **values,
        )
    return prose([text, _as_the_source_compares(measured, larger)])


def _as_the_source_compares(measured: Observations, larger: list[dict[str, int]]) -> str:
    """First runs over SciPy's loop, of the base case and of these larger cases; empty without measurements."""
    ratios = {}
    for axes in ({}, *larger):
        first, loop = measured.value("first_run_s", **axes), measured.value("later_run_s", **{**SCIPY, **axes})
        if first and loop:
            ratios[_size(measured, axes), {**measured.base, **axes}["images"]] = first / loop
    if len(ratios) < 2:
        return ""
    return t(
        "As the source compares, a first run in one tower takes {ratios} as long as SciPy's loop.",
        ratios=in_words(
            t("{times} {size} ({images:,} images)", times=times(ratio), size=size, images=images)
            for (size, images), ratio in ratios.items()
        ),
    )


class _Advantage(NamedTuple):
    """SciPy's time on all cores, and the framework's time of computing."""

    scipy: Timed
    compute: Timed

    @property
    def ratio(self) -> float:
        return self.scipy.value / self.compute.value


def _advantage(measured: Observations, axes: dict[str, int]) -> _Advantage | None:
    scipy = measured.timed("later_run_s", **{**SCIPY_ALL_CORES, **axes})
    compute = measured.timed("compute_s", **{**STEADY, **axes})
    return None if scipy is None or compute is None else _Advantage(scipy, compute)


def _ratio_of_ratios(above: tuple[Timed, Timed], below: tuple[Timed, Timed]) -> Contrast:
    """The logarithm of a ratio of two times over another such ratio; without an error for too few trials."""
    first, second = (one.over(other) for one, other in (above, below))
    if first.error is None or second.error is None:
        return Contrast(first.value - second.value, None, math.inf)
    weights = zip((1.0, -1.0, -1.0, 1.0), (*above, *below), strict=True)
    return contrast([(weight, timed.term) for weight, timed in weights if timed.term])


def _grown(base: _Advantage, larger: _Advantage, change: Change) -> str:
    """The verdict on a guess, from the ratio of two advantages."""
    grown = _ratio_of_ratios((larger.scipy, larger.compute), (base.scipy, base.compute))
    interval, same = grown.interval(CONFIDENCE), math.log(SAME)
    favoured = t(change.for_scipy if grown.value < 0 else change.for_framework)
    if interval is None:
        seen = t(change.same) if -same <= grown.value <= same else favoured
        return t("{seen} (seen, not tested)", seen=seen)
    if interval.low >= -same and interval.high <= same:
        return t(change.same)
    return t("what it favours is open") if 0.0 in interval else favoured


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
        answer = t(
            "With {towers} it takes {share} of copying, computing and copying back: it is the bottleneck.", **values
        )
    else:
        answer = t(
            "With {towers} it takes {share} of copying, computing and copying back: the bottleneck is {phase}.",
            **values,
            phase=label(most),
        )
    no_bus = "" if measured.on_gpu else t("But device and host are one here, and a bus was not tested.")
    return prose([answer, _of_first_run(measured, count, seconds["device_to_host_s"]), no_bus])


def _of_first_run(measured: Observations, count: int, warm_s: float) -> str:
    """Copying back beside the first run, which is all that the source timed: warm, and the first time."""
    first, cold_s = (
        measured.value("first_run_s", devices=count),
        measured.value("device_to_host_first_step_s", **{**STEADY, "devices": count}),
    )
    if first is None:
        return ""
    return t(
        "Beside the first run, which is all that the source timed ({first}): {copies}, {shares} of it.",
        first=amounts([first], "first_run_s"),
        copies=t(
            "warm {warm}, the first time {cold}",
            warm=amounts([warm_s], "device_to_host_s"),
            cold=amounts([cold_s], "device_to_host_s"),
        )
        if cold_s
        else t("warm {warm}", warm=amounts([warm_s], "device_to_host_s")),
        shares=in_words(per_cent(part / first) for part in (warm_s, cold_s) if part),
    )


def about_staying(measured: Observations) -> str:
    case = least_towers(measured)
    compute, first = measured.timed("compute_s", **case), measured.value("first_run_s", devices=case["devices"])
    if compute is None:
        return measured.why_not(**STEADY)
    computing = {
        "images": f"{measured.base['images']:,}",
        "towers": towers([case["devices"]]),
        "compute": amounts([compute.value], "compute_s"),
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
    scipy = measured.timed("later_run_s", **SCIPY)
    if scipy is None:
        return warm
    verdict = compared(compute, scipy, t("the framework"), "SciPy")
    return prose([warm, t("Beside the source's SciPy loop: {verdict}.", verdict=verdict)])
