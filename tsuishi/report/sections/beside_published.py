"""Your card beside the published ones: how many times as fast as each published machine, over the cases both have.

Absolute times belong to their hardware: they are put side by side, and never judged.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tsuishi.base.language import prose, t
from tsuishi.base.statuses import OK
from tsuishi.estimates.intervals import Term, contrast
from tsuishi.estimates.ratios import Ratio, as_ratio
from tsuishi.report.parts.blocks import Block, Bullets, Heading, Text, View
from tsuishi.report.parts.ratio_words import ratio_text, short
from tsuishi.report.parts.wording import Cell, Table, header, text_cell, words
from tsuishi.results.frames import named_rows
from tsuishi.specs.case import DEVICES, MODEL, SUITE
from tsuishi.verdicts.evidence import Evidence

# Times of the same work in every case.
_TIMES = ("median_epoch_s", "first_run_s", "step_s")
_FLAGS = ("simulated", "synthetic", "derived")


class Which(NamedTuple):
    """What is compared: our device in an environment with published hardware, so many of each, at the same work."""

    device: str
    environment: str
    key: str
    suite: str
    model: str
    devices: int
    quantity: str


class Card(NamedTuple):
    """A comparison over the cases both have: the geometric mean of published times over ours."""

    which: Which
    cases: int
    times: Ratio
    simulated: bool
    synthetic: bool
    derived: bool


def cards_view(evidence: Evidence) -> View:
    """One sentence for each published machine and work, all environments in it; a table of everything."""
    found = list(cards(evidence))
    alone = [one for one in found if one.which.devices == 1 and not one.simulated]
    blocks: list[Block] = [
        Heading(t("Your card beside the published ones")),
        Text(t("How many times as fast, over the cases that both have. Other hardware, so no verdict follows.")),
        _bullets(evidence, alone),
    ]
    if found:
        blocks.append(_table(evidence, found))
    return View(tuple(blocks), {"cards": [_row(evidence, one) for one in found]})


def _bullets(evidence: Evidence, alone: list[Card]) -> Bullets | Text:
    sentences = (*_sentences(evidence, alone), *_not_shared(evidence, alone))
    return Bullets(sentences) if sentences else Text(t("Of the suites that ran here, no time was published."))


def cards(evidence: Evidence) -> Iterator[Card]:
    """Every comparison that some case allows, in the order of published hardware, work and environment."""
    terms, devices = evidence.terms, _devices(evidence)
    flags = {(row.case_id, row.column, row.quantity): [getattr(row, flag) for flag in _FLAGS] for row in named_rows(
        evidence.cases[evidence.cases["quantity"].isin(_TIMES)]
    )}  # fmt: skip
    shared: dict[Which, list[tuple[float, Term, list[bool]]]] = {}
    for case_id, environment, quantity in flags:
        axes, term = evidence.axes[case_id], terms.get((case_id, environment, quantity))
        for (key, name), value in evidence.published(case_id).items():
            if name == quantity and term:
                work = axes[SUITE], axes.get(MODEL, ""), axes.get(DEVICES, 1), quantity
                which = Which(devices[case_id, environment], environment, key, *work)
                shared.setdefault(which, []).append((value, term, flags[case_id, environment, quantity]))
    for which in sorted(shared, key=lambda one: (*one[2:], *one[:2])):
        cases = shared[which]
        ours = contrast([(-1 / len(cases), term) for _, term, _ in cases])
        published = math.fsum(math.log(value) for value, _, _ in cases) / len(cases)
        marks = [any(flag) for flag in zip(*(flags for *_, flags in cases), strict=True)]
        yield Card(which, len(cases), as_ratio(ours._replace(value=ours.value + published)), *marks)


def _devices(evidence: Evidence) -> dict[tuple[str, str], str]:
    """What computed a case in an environment: the GPU's name, or the CPU's."""
    trials = evidence.results.trials
    found = {}
    for row in named_rows(trials.loc[trials["status"] == OK, ["case_id", "column", "device", "machine_record"]]):
        machine = evidence.results.machines.get(row.machine_record)
        cpu = machine.cpu.model if machine and machine.cpu else ""
        found[row.case_id, row.column] = row.device if row.device != "cpu" else cpu or t("an unknown CPU")
    return found


def _sentences(evidence: Evidence, alone: Iterable[Card]) -> Iterator[str]:
    """Of one device beside one: all environments of the same device, hardware and work in one sentence."""
    together: dict[tuple[Any, ...], list[Card]] = {}
    for one in alone:
        together.setdefault((one.which.device, *one.which[2:]), []).append(one)
    for several in together.values():
        which = several[0].which
        times = "; ".join(map(_times_text, several))
        sentence = t(
            "{device} beside one {hardware} on {work}, {quantity}: {times}.",
            device=which.device,
            hardware=evidence.hardware[which.key].title,
            work=_work(which),
            quantity=header(which.quantity),
            times=times,
        )
        yield prose([sentence, *_marks(several)])


def _times_text(one: Card) -> str:
    environment, (value, low, high) = one.which.environment, one.times
    if low is None or high is None:
        return t(
            "{times}× in {environment} (cases: {cases})", times=short(value), environment=environment, cases=one.cases
        )
    return t(
        "{times}× [{low}, {high}] in {environment} (cases: {cases})",
        times=short(value),
        low=short(low),
        high=short(high),
        environment=environment,
        cases=one.cases,
    )


def _work(which: Which) -> str:
    return which.model or which.suite


def _marks(several: Iterable[Card]) -> list[str]:
    """What has to be known of our side."""
    cards_ = list(several)
    texts = {
        t("Epochs derived from steps or shortened ones."): any(one.derived for one in cards_),
        t("Synthetic data."): any(one.synthetic for one in cards_),
        t("Simulated devices."): any(one.simulated for one in cards_),
    }
    return [text for text, holds in texts.items() if holds]


def _not_shared(evidence: Evidence, alone: Iterable[Card]) -> Iterator[str]:
    """Published hardware of the suites that ran, of which no case of one device is shared."""
    shown = {one.which.key for one in alone}
    for key, hardware in evidence.hardware.items():
        times = [one for one in evidence.numbers if one.key == key and one.quantity in _TIMES]
        if times and key not in shown:
            yield t(
                "No case of one device is shared with {hardware} ({source}).",
                hardware=hardware.title,
                source=times[0].source,
            )


def _table(evidence: Evidence, found: list[Card]) -> Table:
    devices = words().axis(DEVICES).called
    columns = [t("device"), t("environment"), devices, t("published hardware"), t("work"), t("time")]
    rows = []
    for one in found:
        which = one.which
        texts = [which.device, which.environment, which.devices, evidence.hardware[which.key].title, _work(which)]
        notes = (t("cases: {count}", count=one.cases), *_marks([one]))
        times = Cell(ratio_text(one.times), one.times.value, notes, "number")
        rows.append([*map(text_cell, texts), text_cell(header(which.quantity)), times])
    title = t("All devices, environments and published machines")
    note = t("As many devices on both sides. In brackets: 95 % intervals, from the scatter of our trials alone.")
    return Table([*columns, t("times as fast")], rows, title, folded=True, notes=[note], filters=(1, 3, 4))


def _row(evidence: Evidence, one: Card) -> dict[str, Any]:
    """Of cards.csv."""
    which, times = one.which, one.times
    source = next(number.source for number in evidence.numbers if number.key == which.key)
    what = {"device": which.device, "environment": which.environment, "source": source}
    work = {name: getattr(which, name) for name in (SUITE, MODEL, DEVICES, "quantity")}
    ratios = {"times_as_fast": times.value, "times_as_fast_low": times.low, "times_as_fast_high": times.high}
    flags = {name: getattr(one, name) for name in _FLAGS}
    return {**what, "hardware": evidence.hardware[which.key].title, **work, "cases": one.cases, **ratios, **flags}
