"""The reader's card beside the published cards: how many times as fast it is, over the cases that both have.

Absolute times belong to their hardware: they are shown side by side, and never judged.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tsuishi.base.language import prose, t
from tsuishi.estimates.contrasts import contrast
from tsuishi.estimates.intervals import Term
from tsuishi.estimates.ratios import Ratio, as_ratio
from tsuishi.report.parts import declarations
from tsuishi.report.parts.blocks import Block, Bullets, Heading, Text, View
from tsuishi.report.parts.declarations import AxisColumns, Column, Tables, cells, interval, interval_cells
from tsuishi.report.parts.standing import device_names
from tsuishi.report.parts.wording import Cell, Table, digits, label, ratio_text, text_cell, vocabulary_in_use
from tsuishi.results.frames import named_rows
from tsuishi.specs.case import DEVICES, MODEL, PROTOCOL, SUITE
from tsuishi.specs.numbers_of_cases import of_usual_values
from tsuishi.specs.selections import Selector
from tsuishi.specs.source import Number
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts.evidence import Evidence

TABLES: Tables = {
    "cards": (
        Column("device", "string", "what computed: the CPU or the GPU"),
        *(declarations.ENVIRONMENT, declarations.SOURCE, declarations.HARDWARE),
        *(AxisColumns((SUITE, MODEL, DEVICES)), declarations.QUANTITY),
        Column("cases", "integer", "that both have"),
        *interval("times_as_fast", "geometric mean over these cases of the published time over ours"),
        *(declarations.SIMULATED, declarations.SYNTHETIC, declarations.DERIVED),
    )
}
# Quantities that time the same work on every machine.
_TIMES = ("median_epoch_s", "first_run_s", "step_s")
_FLAGS = ("simulated", "synthetic", "derived")


class Which(NamedTuple):
    """The subject of a comparison: our device in an environment, and published hardware, at the same work.

    `key`: the Number.key of the hardware. `devices`: the number of devices on each side.
    """

    device: str
    environment: str
    key: str
    suite: str
    model: str
    devices: int
    quantity: str


class Card(NamedTuple):
    """A comparison over the cases that both have. `times`: the geometric mean of published times divided by ours."""

    which: Which
    cases: int
    times: Ratio
    simulated: bool
    synthetic: bool
    derived: bool


class _Measured(NamedTuple):
    """A case that a published number belongs to: its axes, the term of its time, and its _FLAGS."""

    number: Number
    axes: Mapping[str, Any]
    term: Term
    flags: list[bool]


class MeasuredNumber(NamedTuple):
    """A printed number measured here: our mean, its ratio to the printed number, the trials, and the device."""

    protocol: str
    ours: Ratio
    times: Ratio
    trials: int
    device: str


def cases_of(words: Vocabulary, axes: Mapping[str, Any]) -> Selector:
    """Selects the cases with these axes. An axis of None: the case has its usual value, or does not have it."""
    wanted: dict[str, Any] = {
        axis: (None, words.axis(axis).usual) if value is None else (value,) for axis, value in axes.items()
    }
    return Selector(wanted, usual=words.usual, free=words.usual)


def terms_of(evidence: Evidence, quantity: str, axes: Mapping[str, Any]) -> list[tuple[str, str, Term]]:
    """(case id, environment, term) of the cases with these axes that have the quantity.

    `literal`, which is a source's own way, comes before `steady`. axes: as `cases_of` has them. Axes that are not given
    have usual values, where there are such cases.
    """
    selects = cases_of(evidence.words, axes)
    found = [
        (case_id, column, term)
        for (case_id, column, name), term in evidence.terms.items()
        if name == quantity and selects(evidence.axes[case_id])
    ]
    found = of_usual_values(found, lambda each: evidence.axes[each[0]], axes, evidence.words.usual)
    return sorted(found, key=lambda each: str(evidence.axes[each[0]].get(PROTOCOL)))


def measured_numbers(
    evidence: Evidence, quantity: str, axes: Mapping[str, Any], printed: float
) -> list[MeasuredNumber]:
    """The numbers of `terms_of` beside a printed number, which is in the quantity's unit."""
    found = []
    for case_id, column, term in terms_of(evidence, quantity, axes):
        ours, device = contrast([(1.0, term)]), evidence.devices.get((case_id, column), "")
        times = as_ratio(ours._replace(value=ours.value - math.log(printed)))
        protocol = str(evidence.axes[case_id].get(PROTOCOL, ""))
        found.append(MeasuredNumber(protocol, as_ratio(ours), times, term.trials, device))
    return found


def cards_view(evidence: Evidence) -> View:
    """A sentence for each published machine and work, on all environments; then a table of all comparisons."""
    every_card = list(cards(evidence))
    single = [card for card in every_card if card.which.devices == 1 and not card.simulated]
    sentences = (*_sentences(evidence, single), *_not_shared(evidence, single), *_impossible(evidence))
    blocks: list[Block] = [
        Heading(t("Your card beside the published ones")),
        Text(t("How many times as fast, over the cases that both have. Other hardware, so no verdict follows.")),
        Bullets(sentences) if sentences else Text(t("No time was published for the suites that ran here.")),
    ]
    if every_card:
        blocks.append(_table(evidence, every_card))
    sources = {number.key: number.source for number in evidence.numbers}
    return View(tuple(blocks), {"cards": [_row(evidence, card, sources) for card in every_card]})


def first_card(evidence: Evidence) -> str:
    """The sentence on the reader's GPU and the published machine with which it shares most cases; empty without."""
    single = [card for card in cards(evidence) if card.which.devices == 1 and not card.simulated]
    on_gpus = [card for card in single if card.which.device in evidence.gpu_names]
    most = max(on_gpus, key=lambda card: card.cases, default=None)
    return next(_sentences(evidence, [most]), "") if most else ""


def cards(evidence: Evidence) -> Iterator[Card]:
    """All comparisons that have a case, in the order of published hardware, work and environment.

    Cases with unusual settings that the number does not name (untuned, fed from the host) stand beside it only where
    no case of their protocol has the usual settings.
    """
    terms, devices = evidence.terms, device_names(evidence)
    flags = {(row.case_id, row.column, row.quantity): [getattr(row, flag) for flag in _FLAGS] for row in named_rows(
        evidence.cases.loc[evidence.cases["quantity"].isin(_TIMES), ["case_id", "column", "quantity", *_FLAGS]]
    )}  # fmt: skip
    shared: dict[Which, dict[frozenset[Any], list[_Measured]]] = {}
    literal = {
        (_without_protocol(evidence.axes[case_id]), environment)
        for case_id, environment, quantity in flags
        if quantity == "step_s" and evidence.axes[case_id].get(PROTOCOL) == "literal"
    }
    for case_id, environment, quantity in flags:
        axes, term = evidence.axes[case_id], terms.get((case_id, environment, quantity))
        both = quantity == "step_s" and (_without_protocol(axes), environment) in literal
        if both and axes.get(PROTOCOL) != "literal":
            continue  # the source's own way is nearer to its number, and may be of other images
        for (key, name), number in evidence.published(case_id).items():
            if name == quantity and term and number.value > 0 and not number.impossible:
                work = axes[SUITE], axes.get(MODEL, ""), axes.get(DEVICES, 1), quantity
                which = Which(devices[case_id, environment], environment, key, *work)
                of_number = shared.setdefault(which, {}).setdefault(number.case, [])
                of_number.append(_Measured(number, axes, term, flags[case_id, environment, quantity]))
    for which in sorted(shared, key=lambda each: (*each[2:], *each[:2])):
        cases = [
            each
            for measured in shared[which].values()
            for each in of_usual_values(measured, lambda each: each.axes, measured[0].number.axes, evidence.words.usual)
        ]
        ours = contrast([(-1 / len(cases), each.term) for each in cases])
        published = math.fsum(math.log(each.number.value) for each in cases) / len(cases)
        marks = [any(flag) for flag in zip(*(each.flags for each in cases), strict=True)]
        yield Card(which, len(cases), as_ratio(ours._replace(value=ours.value + published)), *marks)


def _without_protocol(axes: Mapping[str, Any]) -> frozenset[tuple[str, Any]]:
    return frozenset(item for item in axes.items() if item[0] != PROTOCOL)


def _sentences(evidence: Evidence, single: Iterable[Card]) -> Iterator[str]:
    """A sentence for each device, published hardware and work, on all environments. single: cards of one device."""
    groups: dict[tuple[Any, ...], list[Card]] = {}
    for card in single:
        groups.setdefault((card.which.device, *card.which[2:]), []).append(card)
    for group in groups.values():
        which = group[0].which
        times = "; ".join(map(_times_text, group))
        sentence = t(
            "{device} beside one {hardware} on {work}, {quantity}: {times}.",
            device=which.device,
            hardware=evidence.hardware[which.key].title,
            work=_work(which),
            quantity=label(which.quantity),
            times=times,
        )
        yield prose([sentence, *_marks(group)])


def _times_text(card: Card) -> str:
    environment, (value, low, high) = card.which.environment, card.times
    if low is None or high is None:
        return t(
            "{times}× in {environment} (cases: {cases})", times=digits(value), environment=environment, cases=card.cases
        )
    return t(
        "{times}× in {environment} (interval {low} to {high}; cases: {cases})",
        times=digits(value),
        low=digits(low),
        high=digits(high),
        environment=environment,
        cases=card.cases,
    )


def _work(which: Which) -> str:
    return which.model or which.suite


def _marks(group: Sequence[Card]) -> list[str]:
    """Warnings about our trials."""
    texts = {
        t("Epochs derived from steps or shortened ones."): any(card.derived for card in group),
        t("Synthetic data."): any(card.synthetic for card in group),
        t("Simulated devices."): any(card.simulated for card in group),
    }
    return [text for text, holds in texts.items() if holds]


def _not_shared(evidence: Evidence, single: Iterable[Card]) -> Iterator[str]:
    """A sentence for each published hardware of the suites that ran, if our runs share no case of one device."""
    shown = {card.which.key for card in single}
    timed = {number.key: number.source for number in evidence.numbers if number.quantity in _TIMES}
    for key, hardware in evidence.hardware.items():
        if key in timed and key not in shown:
            yield t(
                "No case of one device is shared with {hardware} ({source}).",
                hardware=hardware.title,
                source=timed[key],
            )


def _impossible(evidence: Evidence) -> Iterator[str]:
    """A sentence for each hardware with numbers that cannot be right, and the first reason."""
    reasons: dict[str, list[str]] = {}
    for number in evidence.impossible:
        reasons.setdefault(number.key, []).append(number.impossible)
    for key, several in reasons.items():
        yield t(
            "Numbers of {hardware} that are impossible, and compared with nothing: {count}; {reason}.",
            hardware=evidence.hardware[key].title,
            count=len(several),
            reason=several[0],
        )


def _table(evidence: Evidence, every_card: list[Card]) -> Table:
    devices = vocabulary_in_use().axis(DEVICES).called
    columns = [t("device"), t("environment"), devices, t("published hardware"), t("work"), t("time")]
    rows = []
    for card in every_card:
        which = card.which
        texts = [which.device, which.environment, which.devices, evidence.hardware[which.key].title, _work(which)]
        notes = (t("cases: {count}", count=card.cases), *_marks([card]))
        times = Cell(ratio_text(card.times), card.times.value, notes, "number")
        rows.append([*map(text_cell, texts), text_cell(label(which.quantity)), times])
    title = t("All devices, environments and published machines")
    note = t(
        "Both sides have the same number of devices. In brackets: 95 % intervals from the scatter of our trials, "
        "all of the same days."
    )
    return Table([*columns, t("times as fast")], rows, title=title, folded=True, notes=[note], filters=(1, 3, 4))


def _row(evidence: Evidence, card: Card, sources: Mapping[str, str]) -> dict[str, Any]:
    """A row of cards.csv. sources: by Number.key."""
    row = card.which._asdict() | cells(TABLES["cards"], card) | interval_cells("times_as_fast", card.times)
    hardware = evidence.hardware[key := row.pop("key")].title
    return row | {"hardware": hardware, "source": sources[key]}
