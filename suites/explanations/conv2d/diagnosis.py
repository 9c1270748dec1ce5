"""Diagnosis in words: why runs with few towers are slow, and runs with more towers are fast.

Every sentence follows from cases measured in its environment, or says that they are missing. No sentence contains
knowledge about frameworks from elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from tsuishi.base.language import in_words, mark, prose, t
from tsuishi.estimates.intervals import CONFIDENCE
from tsuishi.report.parts.explanation import Paragraph
from tsuishi.report.parts.two_sides import SAME, how_sure

from . import equal_terms, guesses, interventions
from .edge import about_edge, about_more_images
from .first_run import about_first_run, about_start
from .observations import NotTested, Observations, amounts, towers
from .steps import (
    Deciding,
    Proof,
    Step,
    about_step,
    deciding,
    folded,
    folded_only_above,
    gone_without_folding,
    proof_of_folding,
    sides,
    the_step,
)

# A case with a single trial has no spread, so nothing says what the next trial would take.
ONE_TRIAL = mark("(Every time is from a single trial: a busy machine can make or hide such differences.)")

_FOLDED_ON_THE_FAST_SIDE = mark("the graph that ran was folded on the fast side and not on the slow one")
_GONE_WITHOUT_FOLDING = mark("with folding switched off the step is gone")
_PROOFS: Mapping[Proof, str] = {
    "certain": mark(
        "This is constant folding: the graph that ran was folded on the fast side and not on the slow one, and "
        "with folding switched off the step is gone."
    ),
    "alone": mark(
        "It looks like constant folding: the graph that ran was folded on the fast side and not on the slow one, "
        "and with folding switched off the step is gone, by an interval of 95 % for itself alone."
    ),
    "seen": mark(
        "It looks like constant folding: the graph that ran was folded on the fast side and not on the slow one, "
        "and with folding switched off the step is gone (seen, not tested)."
    ),
}


def diagnose(
    every: dict[str, Observations], level: Callable[[str], float] = lambda _: 1 - CONFIDENCE
) -> dict[str, list[Paragraph]]:
    """The paragraphs by environment. every: as `observations` has them. level: of an environment, see `deciding`."""
    texts = {name: _texts(measured, every, level(name)) for name, measured in every.items()}
    nowhere = set.intersection(*({*_missing(own)} for own in texts.values())) if texts else set()
    return {
        name: [
            *(Paragraph(topic, text) for topic, text in own.items() if text and not isinstance(text, NotTested)),
            *_not_tested(each for each in _missing(own) if each in nowhere),
            *_not_tested(each for each in _missing(own) if each not in nowhere),
        ]
        for name, own in texts.items()
    }


def _missing(texts: Mapping[str, str | NotTested]) -> list[tuple[str, NotTested]]:
    return [(topic, why) for topic, why in texts.items() if isinstance(why, NotTested)]


def _not_tested(missing: Iterable[tuple[str, NotTested]]) -> Iterator[Paragraph]:
    """A paragraph of the topics that were not tested, by reason. Topics that no environment tested have their own: a
    page shows once what is the same for all environments."""
    topics: dict[str, list[str]] = {}
    for topic, why in missing:
        topics.setdefault(why, []).append(topic)
    if topics:
        reasons = [t("{topic}: {why}.", topic="; ".join(several), why=why) for why, several in topics.items()]
        yield Paragraph(t("Not tested here"), prose(reasons))


def _texts(measured: Observations, every: dict[str, Observations], level: float) -> dict[str, str | NotTested]:
    """The texts on an environment by topic. every: the observations by name, of all environments including this."""
    step, started = the_step(measured), about_start(measured)
    was_started = not isinstance(started, NotTested)
    return {
        t("In short"): prose([in_short(measured, step, level), t(ONE_TRIAL) if measured.most_trials == 1 else ""]),
        t("The step"): about_step(measured),
        t("The graph that ran"): about_graph(measured),
        t("Folding switched off"): interventions.folding_off(measured, step),
        t("All graph optimisers switched off"): interventions.no_optimisers(measured, step),
        t("Towers that are not alike"): interventions.random_data(measured),
        t("Input fed in every run"): interventions.fed_input(measured),
        t("First run and running"): prose([about_first_run(measured), started if was_started else ""]),
        t("A device that is warm already"): "" if was_started else started,
        t("Where folding stops"): about_edge(measured, step),
        t("More images"): about_more_images(measured, step),
        t("Transfer and compute"): equal_terms.about_copies(measured),
        t("Pinned host memory"): equal_terms.about_host_memory(measured),
        t("SciPy on equal terms"): equal_terms.about_scipy(measured),
        **(guesses.texts(measured, every) if measured.published else {}),
        t("What this does not explain"): about_the_rest(measured),
    }


def in_short(measured: Observations, step: Step | None, level: float) -> str:
    if len(measured.by_towers("first_run_s")) < 2:
        if measured.published:
            return t(
                "Fewer than two numbers of towers were measured as the source ran them: there is nothing to explain "
                "yet."
            )
        return t("Fewer than two numbers of towers were measured with constants: there is nothing to explain yet.")
    if step is None:
        return _without_step(measured)
    decided = deciding(measured, step, level)
    step = replace(step, sure=how_sure(*sides(measured, step, decided.look), decided.confidence))
    in_vain = _in_vain(measured) if proof_of_folding(measured, step, decided) else ""
    return prose([_where(measured, step), cause(measured, step, decided), in_vain])


def _where(measured: Observations, step: Step) -> str:
    if step.quantity == "first_run_s":
        return t("First runs step {step}.", step=step)
    first = [measured.value("first_run_s", devices=count) for count in (step.below, step.above)]
    seconds = amounts(filter(None, first), "first_run_s")
    if measured.published:
        return t(
            "Later runs become faster {step}. First runs, which are all that the source timed: {seconds}.",
            step=step,
            seconds=seconds,
        )
    return t("Later runs become faster {step}. First runs: {seconds}.", step=step, seconds=seconds)


def cause(measured: Observations, step: Step, decided: Deciding) -> str:
    """Whether the step comes from constant folding: then two statements have to be true."""
    if not measured.by_towers("convolutions_in_graph"):
        return t("This is not constant folding: no graph was reported in which anything could be folded.")
    proof = proof_of_folding(measured, step, decided)
    if proof:
        return t(_PROOFS[proof])
    reasons = {
        t(_FOLDED_ON_THE_FAST_SIDE): folded_only_above(measured, step),
        t(_GONE_WITHOUT_FOLDING): gone_without_folding(measured, step, decided),
    }
    if False in reasons.values():
        wrong = in_words(reason for reason, holds in reasons.items() if holds is False)
        return t("This is not, or not only, constant folding: it is not true that {reasons}.", reasons=wrong)
    missing = in_words(reason for reason, holds in reasons.items() if holds is None)
    return t("The reason is open: the measurements do not show whether {reasons}.", reasons=missing)


def _in_vain(measured: Observations) -> str:
    """The seconds that folding adds to first runs whose graph was not folded in the end; empty without such runs."""
    on, off = measured.by_towers("first_run_s"), measured.by_towers("first_run_s", graph_optimizers="no_folding")
    added = {
        count: on[count] - off[count]
        for count, gone in folded(measured).items()
        if not gone and count in on and count in off and on[count] > SAME * off[count]
    }
    if not added:
        return ""
    return t(
        "The attempt to fold makes first runs longer even where nothing is folded in the end: by {seconds} with "
        "{towers}.",
        seconds=amounts(added.values(), "first_run_s"),
        towers=towers(added),
    )


def _without_step(measured: Observations) -> str:
    known = folded(measured)
    if not known:
        return t("There is no step here to explain: no graph was reported in which anything could have been folded.")
    if all(known.values()):
        return t(
            "There is no step here to explain: the convolutions were folded away with {towers} alike.",
            towers=towers(known),
        )
    if not any(known.values()):
        return t(
            "There is no step here to explain: the graph that ran had convolutions to do with {towers} alike.",
            towers=towers(known),
        )
    return t(
        "There is no step here to explain, though the graph that ran was folded with {towers} only.",
        towers=towers(count for count in known if known[count]),
    )


def about_graph(measured: Observations) -> str:
    """The numbers of towers with no, some or all convolutions left in the graph that ran."""
    asked = measured.by_towers("convolutions_in_graph")
    left = measured.by_towers("convolutions_left_in_graph")
    if not left:
        return t("No graph was reported, so none was folded.")
    gone = [count for count in left if left[count] == 0]
    whole = [count for count in left if left[count] == asked[count]]
    merged = [count for count in left if 0 < left[count] < asked[count]]
    sentences = []
    if gone:
        text = t(
            "No convolution remained in the graph that ran with {towers}: they had been computed before, as constants.",
            towers=towers(gone),
        )
        sentences.append(text)
    if whole:
        sentences.append(t("All convolutions remained in the graph that ran with {towers}.", towers=towers(whole)))
    if merged:
        text = t(
            "{shares} convolutions remained in the graph that ran with {towers}.",
            shares=in_words(
                t("{left} of {asked}", left=round(left[count]), asked=round(asked[count])) for count in merged
            ),
            towers=towers(merged),
        )
        sentences.append(text)
    return prose(sentences)


def about_the_rest(measured: Observations) -> str:
    if measured.on_gpu and measured.by_towers("first_run_s", warmed="convolution"):
        return t(
            "On a warm GPU, with all graph optimisers off, the rest of a first run is the graph's preparation, the "
            "memory that it allocates, and its kernels: the cases here do not separate these."
        )
    if measured.on_gpu:
        return t(
            "On a GPU a first run also starts the device, loads kernels and allocates memory: with all graph "
            "optimisers off, the rest of the run is these three, and the cases here do not separate them."
        )
    if measured.simulated:
        nothing = t("Nothing about GPUs was measured: the towers are simulated, and all of them run on the CPU.")
    else:
        nothing = t("Nothing about GPUs was measured: everything ran on the CPU.")
    if measured.published:
        unexplained = t(
            "These cases do not explain how much the start of a GPU, copies to it and its memory add to a first "
            "run, and so do not explain all of the published times."
        )
    else:
        unexplained = t(
            "These cases do not explain how much the start of a GPU, copies to it and its memory add to a first run."
        )
    return prose([nothing, unexplained])
