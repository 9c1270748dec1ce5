"""Interventions: cases that differ from the base case in a single axis, and the effects on the runs and their step."""

from typing import Any

from tsuishi.base.language import in_words, mark, prose, t
from tsuishi.report.parts.two_sides import times

from .observations import Observations, amounts, towers
from .steps import STEP, Step, find_step, folded

_RUNS = {"first_run_s": mark("first runs"), "later_run_s": mark("later runs")}


def folding_off(measured: Observations, step: Step | None) -> str:
    axes = {"graph_optimizers": "no_folding"}
    if not measured.by_towers("later_run_s", **axes):
        return measured.why_not(**axes)
    still = [count for count, gone in folded(measured, **axes).items() if gone]
    in_vain = t("But the switch did nothing: the graph was still folded with {towers}.", towers=towers(still))
    return prose(
        [
            *(runs(measured, quantity, **axes) for quantity in _RUNS),
            in_vain if still else "",
            _what_becomes(measured, step, axes),
            _also_unmerged(measured),
        ]
    )


def _also_unmerged(measured: Observations) -> str:
    """Says that the switch drops more than folding, with the evidence in the graphs that ran."""
    more = t(
        "The switch drops the other rewrites of the session's older optimiser too: it changes more than one thing."
    )
    off, on = (
        measured.by_towers("convolutions_left_in_graph", graph_optimizers=name) for name in ("no_folding", "default")
    )
    unmerged = [count for count in off if 0 < on.get(count, 0) < off[count]]
    if not unmerged:
        return more
    shown = t(
        "With {towers} identical towers are no longer merged: {convolutions} convolutions are left.",
        towers=towers(unmerged),
        convolutions=in_words(
            t("{left} instead of {before}", left=round(off[n]), before=round(on[n])) for n in unmerged
        ),
    )
    return prose([more, shown, _merging_apart(measured)])


def _merging_apart(measured: Observations) -> str:
    """Says that towers that are not merged still have the step: then the switch acts by folding."""
    step = find_step(measured, "later_run_s", data="random")
    asked, left = (measured.by_towers(f"convolutions_{name}", data="random") for name in ("in_graph", "left_in_graph"))
    if step is None or step.below not in left or left[step.below] != asked.get(step.below):
        return ""
    return t("Towers that are not alike were not merged, and still step {step}.", step=step)


def no_optimisers(measured: Observations, step: Step | None) -> str:
    axes = {"graph_optimizers": "none"}
    first, later = measured.by_towers("first_run_s", **axes), measured.by_towers("later_run_s", **axes)
    if not first:
        return measured.why_not(**axes)
    sentences = [runs(measured, "first_run_s", **axes)]
    start_up = max((first[count] - later[count] for count in later if count in first), default=None)
    if start_up is not None:
        text = t(
            "They are at most {seconds} longer than later runs: start-up without any part of an optimiser.",
            seconds=amounts([max(start_up, 0.0)], "first_run_s"),
        )
        sentences.append(text)
    return prose([*sentences, _what_becomes(measured, step, axes)])


def random_data(measured: Observations) -> str:
    """Whether identical towers were merged: data full of 1 leave fewer convolutions than random data."""
    random, equal = (measured.by_towers("convolutions_left_in_graph", data=data) for data in ("random", "ones"))
    if not measured.by_towers("later_run_s", data="random"):
        return measured.why_not(data="random")
    taken = runs(measured, "later_run_s", data="random")
    merged = [count for count in random if count in equal and equal[count] < random[count]]
    if merged:
        left = [t("{fewer} instead of {all}", fewer=round(equal[count]), all=round(random[count])) for count in merged]
        text = t(
            "Towers full of ones are the same and had been merged: with {towers} {convolutions} were left.",
            towers=towers(merged),
            convolutions=in_words(left),
        )
        return prose([taken, text])
    return prose([taken, t("No towers were merged: as many convolutions were left.") if random else ""])


def fed_input(measured: Observations) -> str:
    if not measured.by_towers("later_run_s", feed="fed"):
        return measured.why_not(feed="fed")
    sentences = [runs(measured, "later_run_s", feed="fed")]
    left = measured.by_towers("convolutions_left_in_graph", feed="fed")
    if left and all(left.values()):
        sentences.append(t("With {towers} the graph that ran had convolutions to do every time.", towers=towers(left)))
    return prose(sentences)


def runs(measured: Observations, quantity: str, **axes: Any) -> str:
    """The times of runs in a case and in the base case; empty where they were not measured."""
    values, ordinary = measured.by_towers(quantity, **axes), measured.by_towers(quantity)
    if not values:
        return ""
    taken = {
        "towers": towers(values),
        "runs": t(_RUNS[quantity]),
        "seconds": amounts(values.values(), quantity),
    }
    if set(values) <= set(ordinary):
        ordinarily = amounts((ordinary[count] for count in values), quantity)
        return t("With {towers} {runs} take {seconds}, instead of {ordinarily}.", **taken, ordinarily=ordinarily)
    return t("With {towers} {runs} take {seconds}.", **taken)


def _what_becomes(measured: Observations, step: Step | None, axes: dict[str, str]) -> str:
    """Whether the step is still there under an intervention, by the numbers of towers on its two sides."""
    if step is None:
        return ""
    slow, fast = (measured.value(step.quantity, **{**axes, "devices": count}) for count in (step.below, step.above))
    above = towers([step.above])
    if fast is None:
        return t("Whether the step is still there is open: it was not tested with {towers}.", towers=above)
    if slow is None:
        if Step(step.quantity, step.below, step.above, step.slow, fast).excess < STEP:
            return t("With {towers} a run is as slow as below the step.", towers=above)
        return t("With {towers} a run is still faster than below the step.", towers=above)
    now = Step(step.quantity, step.below, step.above, slow, fast)
    before = times(step.slow / step.fast)
    if now.excess < STEP:
        return t("The step is gone: {step}, where it was {before}.", step=now, before=before)
    return t("The step is still there: {step}, where it was {before}.", step=now, before=before)
