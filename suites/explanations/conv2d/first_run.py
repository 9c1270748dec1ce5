"""First runs beside later runs, and beside first runs on a device that has done something before."""

from typing import Any

from tsuishi.base.language import in_words, mark, prose, t
from tsuishi.report.parts.two_sides import compared

from .interventions import runs
from .observations import Observations, amounts, per_cent, towers

# Axes of first runs that leave out a part, each with the change in words.
_WARMED = {"warmed": "device"}
_CONVOLVED = {"warmed": "convolution"}
_NO_SEARCH = {"autotune": "off"}
_DONE = (
    (_WARMED, mark("Where the device has added numbers in the same session before")),
    (_CONVOLVED, mark("Where it has convolved an image before")),
    (_NO_SEARCH, mark("Where cuDNN does not search for the fastest algorithm")),
)


def about_first_run(measured: Observations) -> str:
    """The part of a first run that later runs do not repeat."""
    first, later = measured.by_towers("first_run_s"), measured.by_towers("later_run_s")
    counts = [count for count in first if count in later]
    if not counts:
        return ""
    shares = [max(0.0, 1 - later[count] / first[count]) for count in counts]
    once = {
        "shares": in_words(map(per_cent, shares)),
        "seconds": amounts([max(0.0, first[count] - later[count]) for count in counts], "first_run_s"),
        "towers": towers(counts),
    }
    if measured.published:
        return t(
            "The source timed the first run only. With {towers}, {shares} of it ({seconds}) do not recur in a "
            "later run: the preparation of the graph and all else that is done once.",
            **once,
        )
    return t(
        "With {towers}, {shares} of the first run ({seconds}) do not recur in a later run: the preparation of the"
        " graph and all else that is done once.",
        **once,
    )


def about_start(measured: Observations) -> str:
    """First runs without the start of the device, without the loading of its libraries, and without a search."""
    sentences = [_first_runs(measured, axes, t(done)) for axes, done in _DONE]
    if not any(sentences):
        return measured.why_not(**_WARMED)
    missing = [
        t("{case}: not tested ({why}).", case=t(done), why=measured.why_not(**axes))
        for (axes, done), sentence in zip(_DONE, sentences, strict=True)
        if not sentence
    ]
    return prose([*filter(None, sentences), _recurs(measured), *missing])


def _first_runs(measured: Observations, axes: dict[str, Any], done: str) -> str:
    """The times of first runs with these axes, beside those of the base case; empty without measurements."""
    counts = [*measured.by_towers("first_run_s", **axes)]
    pairs = {
        count: (cold, warm)
        for count in counts
        if (cold := measured.timed("first_run_s", devices=count))
        and (warm := measured.timed("first_run_s", **{**axes, "devices": count}))
    }
    if not pairs:
        return ""
    verdicts = in_words(
        t(
            "{verdict} with {towers}",
            verdict=compared(cold, warm, t("a usual first run"), t("a first run then")),
            towers=towers([n]),
        )
        for n, (cold, warm) in pairs.items()
    )
    return prose(
        [t("{done}: {verdicts}.", done=done, verdicts=verdicts), runs(measured, "first_run_s", **axes)],
    )


def _recurs(measured: Observations) -> str:
    """The share of one-time work left after a convolution; empty where later runs take half of a first run."""
    later = measured.by_towers("later_run_s")
    cold, warm = measured.by_towers("first_run_s"), measured.by_towers("first_run_s", **_CONVOLVED)
    counts = [count for count in warm if count in cold and count in later and cold[count] > 2 * later[count]]
    if not counts:
        return ""
    left = [max(0.0, warm[count] - later[count]) / (cold[count] - later[count]) for count in counts]
    return t(
        "So {shares} of the time that does not recur remain with {towers} where the device has convolved before: this "
        "part is neither its start nor the loading of its libraries.",
        shares=in_words(per_cent(min(1.0, share)) for share in left),
        towers=towers(counts),
    )
