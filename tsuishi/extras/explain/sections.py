"""What a report says of the difference that its run was made to explain: a sentence, the waterfall, a table."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tsuishi.base.errors import UserError
from tsuishi.base.language import prose, t
from tsuishi.estimates.ratios import as_ratio
from tsuishi.extras.explain.design import ERROR, Bar, Finding
from tsuishi.extras.explain.difference import NAME, Between, Difference, Explained, Unsaid, difference_of, explained
from tsuishi.report.charts import figures
from tsuishi.report.parts.blocks import Block, Heading, Text, View
from tsuishi.report.parts.wording import Cell, Table, digits, ratio_text, text_cell
from tsuishi.report.sections.pairs import Matchup
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.judge import Judgement

_ROW_HEIGHT, _WIDTH = 28, 460


def summary_views(evidence: Evidence, compared: Sequence[Matchup], judgements: Sequence[Judgement]) -> Iterator[View]:
    """A view of each run that explains a difference; what cannot be explained is said there."""
    runs = evidence.directories
    explaining = {name: record for name, record in evidence.results.runs.items() if record.task == NAME}
    for name, record in explaining.items():
        which = f" ({name})" if len(explaining) > 1 else ""
        # The corners of an explanation are of its own run, also where other runs have the same cases.
        of_run = Evidence([runs[name]], evidence.sources, evidence.words) if len(runs) > 1 else evidence
        title = t("Why my number is another")
        try:
            asked = difference_of(record)
            title = _Words.of(asked).title
            blocks = _blocks(explained(of_run, asked, len(explaining)), asked, which)
        except UserError as error:
            blocks = [Text(str(error))]
        yield View((Heading(title + which), *blocks))


class _Words(NamedTuple):
    """How a report calls the ends and the ratio of an explanation: of a printed number, or of two runs."""

    title: str
    ratio: str
    last: str
    scale: str
    drawing: str
    caption: str
    of_intervals: str

    @classmethod
    def of(cls, asked: Difference) -> "_Words":
        kept = f"{100 * (1 - ERROR):g}"
        if asked.between:
            return cls(
                t(
                    "Why {second} takes another time than {first}",
                    first=asked.between.first,
                    second=asked.between.second,
                ),
                t("second run over first"),
                t("second run"),
                t("times the first run (log scale)"),
                t("From the first run to the second"),
                t("The bars of the sum, each from the end of the last: from the first run, at 1, to the second."),
                t("All intervals hold together in {percent} of 100 reports.", percent=kept),
            )
        return cls(
            t("Why mine is not the printed {text} ({column})", text=asked.text, column=asked.column),
            t("mine over printed"),
            t("mine"),
            t("times the printed number (log scale)"),
            t("From the printed number to mine"),
            t("The bars of the sum, each from the end of the last: from the printed number, at 1, to mine."),
            t(
                "Intervals are of my trials alone, and hold together in {percent} of 100 reports; a printed number has "
                "none.",
                percent=kept,
            ),
        )


def plain(explanation: Explained, asked: Difference) -> Iterator[str]:
    """The sentence and the table, for the screen."""
    yield _sentences(explanation, asked)
    yield ""
    table = _table(explanation.bars, asked)
    for row in (table.columns, ["---"] * len(table.columns), *([cell.text for cell in row] for row in table.rows)):
        yield f"| {' | '.join(row)} |"
    yield ""
    yield _notes(explanation, asked)


def _sentences(explanation: Explained, asked: Difference) -> str:
    of_unsaid = _of_unsaid(explanation, asked.unsaid) if asked.unsaid else ""
    return prose([_sentence(explanation.bars, asked), of_unsaid])


def _blocks(explanation: Explained, asked: Difference, which: str) -> list[Block]:
    """which: the run in brackets, where a report explains several."""
    words, found = _Words.of(asked), explanation.bars
    return [
        Text(_sentences(explanation, asked)),
        figures.block(drawing(found, asked), words.drawing + which, f"explanation{which}", words.caption),
        _table(found, asked),
        Text(_notes(explanation, asked), kind="note"),
        *([_suspects(asked.between)] if asked.between and asked.between.suspects else []),
    ]


def _suspects(between: Between) -> Table:
    names = [t("differs"), between.first, between.second, t("how to separate it")]
    rows = [[*map(text_cell, suspect)] for suspect in between.suspects]
    return Table(names, rows, title=t("What differs in the records of both runs"), folded=True)


def _notes(explanation: Explained, asked: Difference) -> str:
    words, more, why_no_device = _Words.of(asked), "", explanation.why_no_device
    if asked.between is None:
        more = t("The bar of the device is computed from limits.")
    elif asked.between.error is None:
        more = t("The remainder has none: that needs three days of each run, and a case that --row names.")
    product = t("Effects are those on this machine. The product down to the remainder is {ratio}.", ratio=words.ratio)
    if asked.may_be:
        product = t(
            "Effects are those on this machine. Settings that the printed number does not state are no part of "
            "mine over printed."
        )
    no_device = t("The device has no bar: {why}.", why=why_no_device) if why_no_device else more
    return prose([product, words.of_intervals, no_device, explanation.not_separated])


def _sentence(found: Sequence[Bar], asked: Difference) -> str:
    *settings, left = [bar for bar in found if bar.is_part]
    whole = digits(math.exp(math.fsum(bar.size.value for bar in (*settings, left))))
    named = sorted(
        (bar for bar in settings if bar.finding in ("certain", "computed")), key=lambda bar: -abs(bar.size.value)
    )
    explaining = [t("{name} explains {ratio}", name=bar.name, ratio=_ratio(bar)) for bar in named]
    parts = ", ".join(explaining) or t("nothing is certain to explain a part")
    if asked.between:
        said = t(
            "The second run takes {times} times as long ({case}): {parts}; {left} remains, with all that is not named.",
            times=whole,
            case=asked.case,
            parts=parts,
            left=_ratio(left),
        )
    else:
        said = _of_number(found, asked, whole, parts if settings else "")
    no_effect = ", ".join(bar.name for bar in settings if bar.finding == "no effect")
    undecided = ", ".join(bar.name for bar in settings if bar.finding == "undecided")
    of_others = [
        t("No effect: {names}.", names=no_effect) if no_effect else "",
        t("Undecided: {names}.", names=undecided) if undecided else "",
    ]
    return prose([said, *of_others])


def _of_number(found: Sequence[Bar], asked: Difference, whole: str, parts: str) -> str:
    """Mine over a printed number, in words. parts: what explains it; empty: nothing could."""
    where = t("all that is not named")
    if not any(bar.finding == "computed" for bar in found):
        where = t("{device} and all that is not named", device=asked.hardware or t("the device"))
    left = next(_ratio(bar) for bar in reversed(found) if bar.is_part)
    printed = {"text": asked.text, "column": asked.column, "where": where, "left": left}
    if not parts:
        return t("Mine is {left} times the printed {text} ({column}), with {where}.", **printed)
    return t(
        "Mine is {times} times the printed {text} ({column}): {parts}; {left} remains, with {where}.",
        times=whole,
        parts=parts,
        **printed,
    )


def _of_unsaid(explanation: Explained, unsaid: Unsaid) -> str:
    """What the settings would explain that the printed number does not state."""
    left_out = t("Not measured: {which}.", which="; ".join(unsaid.left_out)) if unsaid.left_out else ""
    if not explanation.factors:
        return left_out
    bars = {bar.name: bar for bar in explanation.bars}
    certain = [factor for factor in explanation.factors if bars[factor.name].finding == "certain"]
    would = [
        t("{name} ({value}) would explain {ratio}", name=each.name, value=each.theirs, ratio=_ratio(bars[each.name]))
        for each in sorted(certain, key=lambda each: -abs(bars[each.name].size.value))
    ]
    stated = t(
        "The printed number does not state {names}: {would}.",
        names=", ".join(each.name for each in explanation.factors),
        would=", ".join(would) or t("no other value is certain to explain a part"),
    )
    reached, measured = explanation.reached
    share = t(
        "{reached} of the {measured} combinations that were measured come within 5 % of {target}; suites/axes.toml "
        "names {combinations}.",
        measured=measured,
        reached=reached,
        target=t("the printed number")
        if explanation.why_no_device
        else t("the printed number times the bar of the device"),
        combinations=unsaid.combinations,
    )
    return prose([stated, share, left_out])


def _table(found: Sequence[Bar], asked: Difference) -> Table:
    words = _findings()
    rows = [
        [
            text_cell(bar.name),
            Cell(_ratio(bar), math.exp(bar.size.value), kind="number"),
            text_cell(words[bar.finding]),
            text_cell(bar.words),
        ]
        for bar in found
    ]
    names = [t("bar"), _Words.of(asked).ratio, t("finding"), t("what it is")]
    return Table(names, rows, title=t("All bars, and how pairs work together"))


def _ratio(bar: Bar) -> str:
    return ratio_text(as_ratio(bar.size, bar.level))


def _findings() -> dict[Finding, str]:
    """The findings in words, in the order of the legend."""
    return {
        "certain": t("certain"),
        "undecided": t("undecided"),
        "no effect": t("no effect"),
        "computed": t("computed"),
    }


def drawing(found: Sequence[Bar], asked: Difference) -> dict[str, Any]:
    """The bars of the sum, each from where the last has ended: from the printed number, at 1, to mine. Logarithmic."""
    said = _Words.of(asked)
    *settings, left = [bar for bar in found if bar.is_part]
    steps, words, whole = [left, *settings], _findings(), said.ratio
    ends = [math.exp(end) for end in itertools.accumulate((bar.size.value for bar in steps), initial=0.0)]
    rows = [
        {"name": bar.name, "from": begin, "to": end, "finding": words[bar.finding]}
        for bar, (begin, end) in zip(steps, itertools.pairwise(ends), strict=True)
    ]
    rows.append({"name": said.last, "from": 1.0, "to": ends[-1], "finding": whole})
    x = {"type": "quantitative", "title": said.scale, "scale": {"type": "log", "nice": False, "padding": 20}}
    y = {"field": "name", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 0}}
    colours = [*figures.PALETTE[:2], figures.PALETTE[5], figures.PALETTE[2], figures.PUBLISHED_GREYS[0]]
    color = {
        "field": "finding",
        "type": "nominal",
        "scale": {"domain": [*words.values(), whole], "range": colours},
        "legend": {"title": None, "orient": "bottom"},
    }
    bars = {"x": {**x, "field": "from"}, "x2": {"field": "to"}, "y": y, "color": color}
    layers = [
        figures.once(figures.REFERENCE, {"x": {**x, "datum": 1}}),
        {"mark": {"type": "bar", "height": {"band": 0.6}}, "encoding": bars},
    ]
    return {**figures.data_of(rows), "layer": layers, "width": _WIDTH, "height": _ROW_HEIGHT * len(rows)}
