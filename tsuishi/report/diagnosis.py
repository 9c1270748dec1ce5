"""Diagnosis of suite conv2d: why the source's towers were slow and then fast, in words.

Every sentence follows from cases that were measured, in the environment it is about; where they are missing it says so.
What is known beforehand about any framework is in none of them.
"""

from dataclasses import dataclass

from tsuishi.analysis.evidence import Evidence
from tsuishi.report import guesses
from tsuishi.report.measured import (
    SAME,
    SOURCE_CASE,
    SUITE,
    Measured,
    NotTested,
    amounts,
    in_words,
    per_cent,
    times,
    towers,
)
from tsuishi.report.steps import STEP, Step, find_step, folded, folded_only_above, gone_without_folding, the_step

# Of the edge that the search finds, as its metrics begin.
SIDES = ("largest_folded", "smallest_unfolded")
# A case with one trial has no spread that would say what the next one does.
ONE_TRIAL = " (Every time is from a single trial: a busy machine can make or hide such differences.)"


@dataclass(frozen=True)
class Paragraph:
    topic: str
    text: str


def diagnose(evidence: Evidence, suite: str) -> dict[str, list[Paragraph]]:
    """Paragraphs by environment, for those in which anything was measured; none for any suite but conv2d."""
    columns = set(evidence.cases.loc[evidence.cases["suite"] == suite, "column"]) if suite == SUITE else set()
    every = {name: Measured(evidence, name) for name in evidence.environments if name in columns}
    return {name: paragraphs(measured, every) for name, measured in every.items()}


def paragraphs(measured: Measured, every: dict[str, Measured]) -> list[Paragraph]:
    """The diagnosis of one environment; `every`: all of them, itself included, by name."""
    step = the_step(measured)
    texts = {
        "In short": in_short(measured, step) + (ONE_TRIAL if measured.most_trials == 1 else ""),
        "The step": about_step(measured, step),
        "The graph that ran": about_graph(measured),
        "Folding switched off": about_folding_off(measured, step),
        "All graph optimisers switched off": about_no_optimisers(measured, step),
        "Towers that are not alike": about_random_data(measured),
        "Input fed in every run": about_fed_input(measured),
        "First run and running": about_first_run(measured),
        "Where folding stops": about_edge(measured, step),
        **guesses.texts(measured, every),
        "What this does not explain": about_the_rest(measured),
    }
    told = [Paragraph(topic, text) for topic, text in texts.items() if text and not isinstance(text, NotTested)]
    missing = [f"{topic}: {why}." for topic, why in texts.items() if isinstance(why, NotTested)]
    return [*told, Paragraph("Not tested here", " ".join(missing))] if missing else told


def in_short(measured: Measured, step: Step | None) -> str:
    if len(measured.by_towers("first_run_s")) < 2:
        return "Fewer than two numbers of towers were measured as the source ran them: there is nothing to explain yet."
    if step is None:
        return f"There is no step here to explain: {_without_step(measured)}."
    reasons = {
        "the graph that ran was folded on the fast side and not on the slow one": folded_only_above(measured, step),
        "with folding switched off the fast side is as slow": gone_without_folding(measured, step),
    }
    where = f"{'Later' if step.quantity == 'later_run_s' else 'First'} runs step {step}"
    if step.quantity == "later_run_s":
        first = [measured.value("first_run_s", devices=count) for count in (step.below, step.above)]
        where += f" (first runs, all that the source timed: {amounts(filter(None, first), 'first_run_s')})"
    if not measured.by_towers("convolutions_in_graph"):
        return f"{where}. This is not constant folding: no graph was reported in which anything could be folded."
    if all(reasons.values()):
        return f"{where}. This is constant folding: {', and '.join(reasons)}.{_in_vain(measured)}"
    if False in reasons.values():
        wrong = [reason for reason, holds in reasons.items() if holds is False]
        return f"{where}. This is not, or not only, constant folding: it is not so that {in_words(wrong)}."
    missing = [reason for reason, holds in reasons.items() if holds is None]
    return f"{where}. Why is open: it was not tested whether {in_words(missing)}."


def _in_vain(measured: Measured) -> str:
    """What folding adds to first runs where the graph was not folded in the end; empty where that is nothing."""
    on, off = measured.by_towers("first_run_s"), measured.by_towers("first_run_s", graph_optimizers="no_folding")
    added = {
        count: on[count] - off[count]
        for count, gone in folded(measured).items()
        if not gone and count in on and count in off and on[count] > SAME * off[count]
    }
    if not added:
        return ""
    more = amounts(added.values(), "first_run_s")
    return f" It makes first runs longer also where nothing is folded in the end: by {more} with {towers(added)}."


def _without_step(measured: Measured) -> str:
    known = folded(measured)
    if not known:
        return "no graph was reported in which anything could have been folded"
    if all(known.values()):
        return f"the convolutions were folded away with {towers(known)} alike"
    if not any(known.values()):
        return f"the graph that ran had convolutions to do with {towers(known)} alike"
    return f"though the graph that ran was folded with {towers(count for count in known if known[count])} only"


def about_step(measured: Measured, step: Step | None) -> str:
    first, later = measured.by_towers("first_run_s"), measured.by_towers("later_run_s")
    if not first:
        return measured.why_not()
    text = f"With {towers(first)} a first run takes {amounts(first.values(), 'first_run_s')}"
    if later:
        text += f"; a later one of the same session {amounts(later.values(), 'later_run_s')}"
    if len(first) < 2:
        return f"{text}."
    here = find_step(measured, "first_run_s"), find_step(measured, "later_run_s")
    told = [f"{name} runs step {one}" for name, one in zip(("First", "Later"), here, strict=True) if one]
    if None in here:
        none = [name for name, one in zip(("first", "later"), here, strict=True) if one is None]
        told += [
            f"There is no step in {' or '.join(none)} runs: none that parts slow ones from fast ones and saves {STEP} "
            "times what sharing the work would"
        ]
    if here[0] is None and here[1] is not None:
        beside = Step("first_run_s", here[1].below, here[1].above, first[here[1].below], first[here[1].above])
        told += [f"First runs change {beside}"]
    return f"{text}. {'. '.join(told)}."


def about_graph(measured: Measured) -> str:
    """Convolutions asked for and left, by what became of them."""
    asked = measured.by_towers("convolutions_in_graph")
    left = measured.by_towers("convolutions_left_in_graph")
    if not left:
        return "No graph was reported, so none was folded."
    gone = [count for count in left if left[count] == 0]
    whole = [count for count in left if left[count] == asked[count]]
    merged = [count for count in left if 0 < left[count] < asked[count]]
    texts = (
        [f"no convolution was left with {towers(gone)}: they had been computed before, as constants"] if gone else []
    )
    texts += [f"all of them were left with {towers(whole)}"] if whole else []
    texts += [f"{left[count]:.0f} of {asked[count]:.0f} was left with {towers([count])}" for count in merged]
    return f"Looked at after it had run, {'; '.join(texts)}."


def about_folding_off(measured: Measured, step: Step | None) -> str:
    axes = {"graph_optimizers": "no_folding"}
    off = {quantity: measured.by_towers(quantity, **axes) for quantity in ("first_run_s", "later_run_s")}
    if not off["later_run_s"]:
        return measured.why_not(**axes)
    texts = [f"{name} runs {_instead(measured, q, off[q])}" for name, q in zip(("first", "later"), off, strict=True)]
    still = [count for count, gone in folded(measured, **axes).items() if gone]
    wrong = f" But the switch did nothing: the graph was folded all the same with {towers(still)}." if still else ""
    return (
        f"With {towers(off['later_run_s'])}: {'; '.join(texts)}.{wrong} {_what_becomes(measured, step, axes)}".strip()
    )


def _instead(measured: Measured, quantity: str, values: dict[int, float]) -> str:
    """What they take, and what they take as the source ran them."""
    ordinary = measured.by_towers(quantity)
    both = [ordinary[count] for count in values if count in ordinary]
    instead = f", instead of {amounts(both, quantity)}" if len(both) == len(values) else ""
    return f"take {amounts(values.values(), quantity)}{instead}"


def about_no_optimisers(measured: Measured, step: Step | None) -> str:
    axes = {"graph_optimizers": "none"}
    first, later = measured.by_towers("first_run_s", **axes), measured.by_towers("later_run_s", **axes)
    if not first:
        return measured.why_not(**axes)
    text = f"With {towers(first)}: first runs {_instead(measured, 'first_run_s', first)}"
    start_up = max((first[count] - later[count] for count in later if count in first), default=None)
    if start_up is not None:
        most = amounts([max(start_up, 0.0)], "first_run_s")
        text += f". They are at most {most} longer than later runs: start-up that no optimiser has a part in"
    return f"{text}. {_what_becomes(measured, step, axes)}".strip()


def _what_becomes(measured: Measured, step: Step | None, axes: dict[str, str]) -> str:
    """Of the step, under an intervention, by the two numbers of towers on either side of it."""
    if step is None:
        return ""
    slow, fast = (measured.value(step.quantity, **{**axes, "devices": count}) for count in (step.below, step.above))
    if fast is None:
        return f"What becomes of the step cannot be said: it was not tested with {towers([step.above])}."
    if slow is None:
        gone = Step(step.quantity, step.below, step.above, step.slow, fast).excess < STEP
        return f"With {towers([step.above])} a run is {'as slow as' if gone else 'still faster than'} below the step."
    now = Step(step.quantity, step.below, step.above, slow, fast)
    before = times(step.slow / step.fast)
    return f"The step is {'gone' if now.excess < STEP else 'still there'}: {now}, where it was {before}."


def about_random_data(measured: Measured) -> str:
    """Whether identical towers were merged: fewer convolutions left with ones than with random data."""
    random, ones = (measured.by_towers("convolutions_left_in_graph", data=data) for data in ("random", "ones"))
    later = measured.by_towers("later_run_s", data="random")
    if not later:
        return measured.why_not(data="random")
    text = f"With {towers(later)}: later runs {_instead(measured, 'later_run_s', later)}"
    merged = [count for count in random if count in ones and ones[count] < random[count]]
    if merged:
        what = in_words(f"{ones[count]:.0f} instead of {random[count]:.0f}" for count in merged)
        return f"{text}. Towers full of ones had been merged, being the same: with {towers(merged)} {what} were left."
    return f"{text}. {'No towers were merged: as many convolutions were left.' if random else ''}".strip()


def about_fed_input(measured: Measured) -> str:
    fed = measured.by_towers("later_run_s", feed="fed")
    if not fed:
        return measured.why_not(feed="fed")
    text = f"With {towers(fed)}: later runs {_instead(measured, 'later_run_s', fed)}"
    left = measured.by_towers("convolutions_left_in_graph", feed="fed")
    if left and all(left.values()):
        text += "; the graph that ran had convolutions to do every time"
    return f"{text}."


def about_first_run(measured: Measured) -> str:
    """The part of a first run that a later one does not repeat."""
    first, later = measured.by_towers("first_run_s"), measured.by_towers("later_run_s")
    counts = [count for count in first if count in later]
    if not counts:
        return ""
    shares = [max(0.0, 1 - later[count] / first[count]) for count in counts]
    once = amounts([max(0.0, first[count] - later[count]) for count in counts], "first_run_s")
    return (
        f"Of the first run, which is all the source timed, {in_words(map(per_cent, shares))} ({once}) with "
        f"{towers(counts)} is not repeated by a later run: preparing the graph and whatever else is done once."
    )


def about_edge(measured: Measured, step: Step | None) -> str:
    """The search's result, and whether the step is where it would put it."""
    folded_images, unfolded_images = (measured.search(f"{side}_images") for side in SIDES)
    if folded_images is None and unfolded_images is None:
        return measured.why_not(search="folding_edge", data="random")
    sizes = {side: amounts([measured.search(f"{side}_input_mib") or 0.0], "input_mib") for side in SIDES}
    if unfolded_images is None:
        return f"One tower is folded with {folded_images:.0f} images ({sizes[SIDES[0]]}), the most that was tried."
    text = f"One tower is not folded with {unfolded_images:.0f} images ({sizes[SIDES[1]]})"
    if folded_images is None:
        return f"{text}, and not with fewer."
    runs = [measured.search(f"{side}_run_s") or 0.0 for side in SIDES]
    text += f" and is with {folded_images:.0f} ({sizes[SIDES[0]]}), where later runs take {amounts(runs[:1], 'run_s')} "
    text += f"instead of {amounts(runs[1:], 'run_s')}"
    total = SOURCE_CASE["images"]
    least = next(count for count in range(1, total + 1) if total / count <= folded_images)
    there = "" if step is None else ", where the step is" if step.above == least else "; the step is elsewhere"
    return f"{text}. {total} images are that few a tower from {towers([least])} on{there}."


def about_the_rest(measured: Measured) -> str:
    if measured.on_gpu:
        return (
            "On a GPU a first run also starts the device, loads kernels and allocates memory: what remains of it with "
            "all graph optimisers off is that, and the cases here do not take it apart."
        )
    several = "the towers are simulated: all are the CPU" if measured.simulated else "all is done by the CPU"
    return (
        f"Nothing about GPUs was measured: {several}. What starting a GPU, copies to it and its memory add to a first "
        "run, and so how the published times of a GPU come about in full, is not explained by these cases."
    )
