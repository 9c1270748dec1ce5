"""The headline of the diagnosis: the step, how sure it is, and its cause, with a chart of runs by towers."""

from collections.abc import Iterator, Mapping
from typing import Any

from tsuishi.base.language import mark, t
from tsuishi.report.parts.explanation import Headline
from tsuishi.report.parts.two_sides import at_least, near_end, times

from .diagnosis import cause
from .observations import Observations
from .steps import Proof, Step, deciding, proof_of_folding, sides, the_step

_PROOFS: Mapping[Proof, str] = {
    "certain": mark("Its graph was folded on the fast side only, and with folding off the step is gone."),
    "alone": mark(
        "Its graph was folded on the fast side only. With folding off the step is gone, by an interval of 95 % for "
        "itself alone."
    ),
    "seen": mark("Its graph was folded on the fast side only. With folding off the step is gone (seen, not tested)."),
}


def headline(measured: Observations, level: float) -> Headline | None:
    """The step as a headline; None without a step.

    level: as `deciding` takes it.
    """
    step = the_step(measured)
    if step is None:
        return None
    decided = deciding(measured, step, level)
    confidence, look = decided
    slow, fast = sides(measured, step, look)
    interval = slow.over(fast).interval(confidence) if slow and fast else None
    sure = interval is not None and interval.low > 0
    least = near_end(interval) if interval is not None and sure else step.slow / step.fast
    fields = {"below": step.below, "above": step.above, "times": at_least(least) if sure else times(least)}
    title = _title(step, sure, **fields)
    proof = proof_of_folding(measured, step, decided)
    if proof == "certain":
        title = t("{finding}: this is constant folding", finding=title)
    elif proof:
        title = t("{finding}: it looks like constant folding", finding=title)
    why = t(_PROOFS[proof]) if proof else cause(measured, step, decided)
    points = tuple(_points(measured, step))
    caption = t("Trials by number of towers, log scale.")
    return Headline(title, why, sure, least, look or measured.most_trials, step.quantity, t("towers"), points, caption)


def _title(step: Step, sure: bool, **fields: Any) -> str:
    if step.quantity == "first_run_s" and sure:
        return t("From {below} to {above} towers a first run becomes at least {times} as fast", **fields)
    if step.quantity == "first_run_s":
        return t("From {below} to {above} towers a first run becomes {times} as fast", **fields)
    if sure:
        return t("From {below} to {above} towers a later run becomes at least {times} as fast", **fields)
    return t("From {below} to {above} towers a later run becomes {times} as fast", **fields)


def _points(measured: Observations, step: Step) -> Iterator[dict[str, Any]]:
    """The times by number of towers, as the source ran them and with folding switched off."""
    series: dict[str, dict[str, str]] = {
        t("folding on"): {},
        t("folding off"): {"graph_optimizers": "no_folding"},
    }
    for name, axes in series.items():
        for count, value in measured.by_towers(step.quantity, **axes).items():
            low, high = measured.spread(step.quantity, **{**axes, "devices": count}) or (None, None)
            yield {"x": count, "y": value, "low": low, "high": high, "series": name}
