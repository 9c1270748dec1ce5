"""Claims, their checks and the results, in words."""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tsuishi.base.language import in_language, in_words, mark, prose, t
from tsuishi.estimates.intervals import CONFIDENCE, FEWEST_TRIALS
from tsuishi.report.parts.wording import (
    NOTHING,
    capital,
    case_text,
    digits,
    label,
    no_number_text,
    status_text,
    unit_of,
    vocabulary_in_use,
    worded,
)
from tsuishi.specs.case import DEVICES, MODEL, PROTOCOL, SUITE
from tsuishi.specs.claims import Bounds, Check, Claim
from tsuishi.specs.selections import ENVIRONMENT, FRAMEWORK, OF_ENVIRONMENTS, Selection
from tsuishi.specs.statuses import OK
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts.checks import CheckResult
from tsuishi.verdicts.hypotheses import Missing
from tsuishi.verdicts.judge import Judgement

# The tone of each verdict, from which the page takes its colour. The colour says no more than the word.
TONES = {
    mark("reproduced"): "good",
    mark("direction only"): "part",
    mark("contradicted"): "bad",
    mark("inconclusive"): "open",
    mark("not tested"): "none",
}
_PARAMETERS = {
    "v0": mark("ideal speed v0"),
    "t_cost": mark("cost time t_cost"),
    "b_half": mark("batch size b_half"),
}


def claim_name(source: str, claim: str) -> str:
    """A claim by its source and id: "claim b of conv2d-gce"."""
    return t("claim {claim} of {source}", claim=claim, source=source)


def selection_text(selection: Mapping[str, Any], always: bool = False) -> str:
    """The cases of a selection: "torch, 2 devices, batch 128/256". always: with usual values too."""
    values = {axis: value if isinstance(value, tuple) else (value,) for axis, value in selection.items()}
    texts = ["/".join(map(str, values[axis])) for axis in OF_ENVIRONMENTS if axis in values]
    for axis in vocabulary_in_use().axes:
        if axis in values and axis not in (SUITE, PROTOCOL):
            wanted = values[axis][0] if len(values[axis]) == 1 else "/".join(map(str, values[axis]))
            texts.append(case_text({axis: wanted}, always=always))
    return ", ".join(filter(None, texts))


def _cases_text(selection: Selection) -> str:
    """The cases of a selection; with usual values if the text would be empty without them."""
    return selection_text(selection) or selection_text(selection, always=True) or t("all cases")


def _sides_text(first: Selection, second: Selection) -> tuple[str, str]:
    """Two sides in words. If a side's text would be empty, both have their values on each axis that either names."""
    texts = selection_text(first), selection_text(second)
    if all(texts) or not (first or second):
        return texts
    return _on_axes(first, {*first, *second}), _on_axes(second, {*first, *second})


def _on_axes(side: Selection, axes: Collection[str]) -> str:
    """The values of a side on these axes: those that it names, else the usual values, else any."""
    known = vocabulary_in_use().axes
    usual = {axis: known[axis].usual for axis in axes if axis in known and axis not in side}
    said = selection_text({**{axis: value for axis, value in usual.items() if value is not None}, **side}, always=True)
    anything = (t("any {axis}", axis=known[axis].called) for axis in known if usual.get(axis, "") is None)
    return ", ".join(filter(None, (said, *anything)))


def what(check: Check) -> str:
    """The value that a check computes, in words: a ratio of two sides, a slope, a parameter of a fit."""
    of, to = _sides_text(check.of, check.to or {})
    cases = _cases_text({**check.case, **check.of})
    quantity, to_quantity = (label(name) if name else "" for name in (check.quantity, check.to_quantity))
    models = "/".join(map(str, check.case.get(MODEL, ()))) if check.to is not None else ""
    if check.kind == "presence":
        return t("{cases}: {status}", cases=cases, status=status_text(check.status))
    if check.kind == "imbalance":
        return t("imbalance of the GPUs' load, {cases}", cases=cases)
    if check.kind == "fit" and check.parameter == "residual":
        return t("time of a step ÷ what the model's line says, {cases}", cases=cases)
    if check.kind == "fit":
        parameter = ", ".join(filter(None, [t(_PARAMETERS[check.parameter]), models]))
        return t("{what}: {of} ÷ {to}", what=parameter, of=_sided(of, quantity), to=_sided(to, to_quantity))
    if check.to is not None and not (check.of or check.to):
        return t("{what}: {compared}", what=f"{quantity} ÷ {to_quantity}", compared=cases)
    if check.to is None:
        unit = unit_of(check.quantity)
        than = f" ÷ {check.than:g}{'' if unit == '1' else ' ' + unit}" if check.than else ""
        compared = cases + than
    else:
        compared = f"{of} {'−' if check.scale == 'difference' else '÷'} {_sided(to, to_quantity)}"
    quantity = ", ".join(filter(None, [quantity, "" if check.at else models]))
    if check.at:
        at, against = _sides_text(check.at, check.against)
        compared = t("{compared}, with {at} over that with {against}", compared=compared, at=at, against=against)
    if check.kind == "trend":
        axis = vocabulary_in_use().axis(check.along).called
        return t("slope of log {what} over log {axis}: {compared}", what=quantity, axis=axis, compared=compared)
    if check.kind == "shrinks":
        axis = vocabulary_in_use().axis(check.along).called
        compared = t("{compared}, at the smallest {axis} over that at the largest", compared=compared, axis=axis)
    return t("{what}: {compared}", what=quantity, compared=compared)


def value_kind(check: Check) -> str:
    """The kind of value that a check computes, as the title of its axis in a chart."""
    if check.is_logarithmic:
        return t("ratio, log scale")
    if check.kind == "trend":
        return t("slope")
    return t("imbalance") if check.kind == "imbalance" else t("difference")


def judged_on(claim: Claim, words: Vocabulary) -> str:
    """The values that decide a claim, each with its region; why there are none, for a claim that no suite tests."""
    if claim.untestable:
        return in_language(claim.untestable)
    with worded(words):
        held = [
            (t("some of {what}", what=what(check)) if check.every == "some" else what(check), bounds_text(check.hold))
            for check in claim.checks
        ]
    return "; ".join(f"{value} ({region})" if region else value for value, region in held)


def _sided(cases: str, quantity: str) -> str:
    """The cases of a side, with the side's own quantity in brackets, if any."""
    return f"{cases} ({quantity})" if cases and quantity else cases or quantity


def bounds_text(bounds: Bounds | None) -> str:
    """A region: "0.88 to 0.95", "below 1"."""
    if bounds is None:
        return ""
    if bounds.above is None:
        return t("below {bound}", bound=_bound(bounds.below))
    if bounds.below is None:
        return t("above {bound}", bound=_bound(bounds.above))
    return t("{low} to {high}", low=_bound(bounds.above), high=_bound(bounds.below))


def _bound(bound: float | None) -> str:
    """A bound with three digits at most: 1.11 for 1.1111, as the reciprocal of 0.9 is written."""
    return "" if bound is None else f"{float(f'{bound:.3g}'):g}"


def value_text(outcome: CheckResult, level: float = 0.0) -> str:
    """The result of a check for a table: its value and interval, if any; for a check on statuses, the statuses.

    level: the interval has the confidence 1 - level; 0: 95 %, of a single look at a single comparison.
    """
    text, ends = _value_and_ends(outcome, level)
    return f"{text} [{', '.join(ends)}]" if ends else text


def _value_in_words(outcome: CheckResult, level: float = 0.0) -> str:
    """As `value_text`, for a sentence."""
    text, ends = _value_and_ends(outcome, level)
    return t("{value} (interval {low} to {high})", value=text, low=ends[0], high=ends[1]) if ends else text


def _value_and_ends(outcome: CheckResult, level: float) -> tuple[str, list[str]]:
    if outcome.summary is None:
        return in_words(status_text(status) for status in outcome.statuses), []
    interval = outcome.summary.interval(1 - level if level else CONFIDENCE)
    text = NOTHING if math.isnan(outcome.summary.value) else digits(outcome.shown(outcome.summary.value))
    return text, [_end_text(outcome, end) for end in interval or ()]


def _end_text(outcome: CheckResult, end: float) -> str:
    if math.isinf(end):
        return "∞" if end > 0 else "0" if outcome.check.is_logarithmic else "−∞"
    return digits(outcome.shown(end))


def claim_anchor(source: str, claim: str, own: bool = False) -> str:
    """The target of links to a claim's row in the verdicts, or (own) in the table of the source's own numbers."""
    return f"{'own' if own else 'claim'}-{source}-{claim}"


def sentence(judgement: Judgement) -> str:
    """The reasons for the verdict; for a claim that was not tested, what a test needs."""
    if judgement.verdict == "not tested":
        return prose([takes(judgement), _all_the_same(judgement)])
    outcomes = [outcome for outcome in judgement.outcomes if isinstance(outcome, CheckResult)]
    if judgement.hindrance == "too few":
        return t(
            "{found}: no verdict, as a case has {trials} trials and a verdict needs {fewest} (--repetitions "
            "{fewest}).",
            found="; ".join(map(_result_text, outcomes)), trials=judgement.trials, fewest=FEWEST_TRIALS,
        )  # fmt: skip
    first, *others = (_explained(outcome, judgement.level) for outcome in outcomes)
    return prose([first, *map(capital, others), _too_large_text(outcomes)])


def _too_large_text(outcomes: Iterable[CheckResult]) -> str:
    """The cases that ran out of memory, and are none of the claim here; empty where there are none."""
    cases = [selection_text(absent.selection) for each in outcomes for absent in each.absent if absent.is_too_large]
    return t("Without cases that ran out of memory: {cases}.", cases="; ".join(dict.fromkeys(cases))) if cases else ""


def _result_text(outcome: CheckResult) -> str:
    return f"{what(outcome.check)}: {_value_in_words(outcome)}"


def _explained(outcome: CheckResult, level: float) -> str:
    """The result of a check, compared with the regions of the claim by the interval of confidence 1 - level."""
    check = outcome.check
    fields = {"what": what(check), "found": _value_in_words(outcome, level)}
    if outcome.summary is None:
        if outcome.p_hold <= level and outcome.check.every != "some":
            return t("{what}: so in {count} of {count} trials.", count=outcome.counted, **fields)
        return t("{what}: found {found}.", **fields)
    if outcome.summary.error == math.inf and check.kind != "fit":
        found = digits(outcome.shown(outcome.summary.value))
        return t(
            "{what}: {found}, measured in different sessions: no verdict before {count} days on each side.",
            what=fields["what"], found=found, count=FEWEST_TRIALS,
        )  # fmt: skip
    fields |= {"hold": bounds_text(check.hold), "direction": bounds_text(check.direction or check.hold)}
    lacking = [absent for absent in outcome.absent if not absent.is_too_large]
    if lacking and outcome.p_hold > level and outcome.p_against > level:
        absent = "; ".join(dict.fromkeys(map(_absent_text, lacking)))
        return t("{what}: {found}. It needs cases that have no number: {absent}.", absent=absent, **fields)
    if outcome.p_hold <= level:
        return t("{what}: {found}, entirely {hold}, where the claim holds.", **fields)
    if outcome.p_direction <= level:
        return t("{what}: {found}, in the claimed direction ({direction}), not surely {hold}.", **fields)
    if outcome.p_against <= level:
        return t("{what}: {found}, nowhere {direction}, where the claim would hold.", **fields)
    return t("{what}: {found}, partly {hold} and partly not.", **fields)


def _absent_text(absent: Missing) -> str:
    """A case without a number, and why."""
    why = no_number_text(absent) or t("not measured")
    return t("{case} ({why})", case=selection_text(absent.selection), why=why)


def takes(judgement: Judgement) -> str:
    """Why a claim was not tested, and what a test needs."""
    claim = judgement.claim
    if judgement.hindrance == "untestable":
        assert claim.untestable is not None
        return in_language(claim.untestable)
    if judgement.hindrance == "no gpu":
        return t(
            "The claim is about GPUs, and these runs used a CPU or simulated devices. A test needs NVIDIA GPUs, "
            "at least {count}.",
            count=_gpus(claim),
        )
    if judgement.hindrance == "synthetic":
        return t("The claim is about accuracy, and the data were made up: `invoke fetch-data`, or --data.")
    if judgement.hindrance == "shortened" and judgement.epochs and judgement.epochs.count:
        return t(
            "The claim is about the accuracy after {epochs} epochs of {images} images, and this run trained less: "
            "--profile full.",
            epochs=judgement.epochs.count, images=f"{judgement.epochs.images:,}",
        )  # fmt: skip
    if judgement.hindrance == "shortened":
        return t("The claim is about the accuracy after the whole training, and this run trained less: --profile full.")
    if judgement.hindrance == "other hardware":
        return _scope_text(claim)
    if judgement.hindrance == "no environment":
        of_gpus = t("It is about GPUs, and takes at least {count} of NVIDIA.", count=_gpus(claim))
        return prose([_not_run(claim), of_gpus if "gpu" in claim.about else ""])
    missing = [outcome for outcome in judgement.outcomes if isinstance(outcome, Missing)]
    return prose(map(_missing_text, missing[:1]))


def _gpus(claim: Claim) -> int:
    """The GPUs that a claim takes."""
    return max(map(int, claim.named(DEVICES)), default=1)


def _not_run(claim: Claim) -> str:
    """The suite and the environments that a claim of which nothing ran takes."""
    suites, frameworks, named = (sorted(map(str, claim.named(axis))) for axis in (SUITE, FRAMEWORK, ENVIRONMENT))
    if named:
        return t(
            "No case of the claim was run. A test needs suite {suites} in each of {environments}.",
            suites=in_words(suites), environments=in_words(named),
        )  # fmt: skip
    if frameworks:
        return t(
            "No case of the claim was run. A test needs suite {suites} in an environment with {frameworks}.",
            suites=in_words(suites), frameworks=in_words(frameworks),
        )  # fmt: skip
    return t("No case of the claim was run. A test needs suite {suites}.", suites=in_words(suites))


def _scope_text(claim: Claim) -> str:
    """The hardware on which a claim can be judged, which is not that of the run."""
    scope = claim.scope
    if "cpu" in claim.about:
        return t("The claim is about CPUs, and these cases ran on GPUs.")
    if scope and scope.gpu_memory_gib:
        memory = bounds_text(scope.gpu_memory_gib)
        return t(
            "The claim is about GPUs with {memory} GiB of memory, and these GPUs have another size.", memory=memory
        )
    if scope and scope.peer_to_peer is False:
        return t("The claim is about GPUs that cannot reach each other's memory, and these can, or did not say.")
    return t("The claim is about GPUs that can reach each other's memory, and these cannot, or did not say.")


def _missing_text(missing: Missing) -> str:
    cases = selection_text(missing.selection)
    if (missing.without_ratio or missing.statuses != (OK,)) and (why := no_number_text(missing)):
        return t("{case}: {why}.", case=cases, why=why)
    if missing.side in ("both", "along"):
        return t("Too few cases that can be compared: {cases}.", cases=cases)
    return t("Not measured: {cases}. It takes a larger profile, another environment, or other hardware.", cases=cases)


def _all_the_same(judgement: Judgement) -> str:
    """The results that cannot support the claim; empty without such results."""
    outcomes = [outcome for outcome in judgement.outcomes if isinstance(outcome, CheckResult)]
    if not outcomes or judgement.hindrance not in ("no gpu", "synthetic", "shortened", "other hardware"):
        return ""
    return t("Measured anyway, but no evidence for or against: {found}.", found="; ".join(map(_result_text, outcomes)))


def published_text(check: Check, results: Iterable[tuple[str, CheckResult]]) -> str:
    """The result by the source's own numbers for each hardware, then the value that the source states."""
    texts = [f"{hardware}: {value_text(outcome)}" for hardware, outcome in results]
    texts += [t("about {value}", value=f"{check.published:g}")] if check.published is not None else []
    return "; ".join(texts)
