"""Rows of the files behind the verdict table: verdicts.csv, verdict_cases.csv and self_consistency.csv."""

import math
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from tsuishi.base.language import in_language
from tsuishi.estimates.intervals import UNBOUNDED, Contrast
from tsuishi.report.parts.declarations import FAMILY, HARDWARE, SOURCE, AxisColumns, Column, Declared, Tables, cells
from tsuishi.report.sections.claim_words import sentence, what
from tsuishi.specs.case import PROTOCOL
from tsuishi.specs.claims import Check
from tsuishi.verdicts.checks import CheckResult
from tsuishi.verdicts.judge import Judgement, PrintedVerdict

_CLAIM = Column("claim", "string", "its id in the source's file")
_CHECK = Column("check", "integer", "1, 2, …: of the claim's checks, all of which have to hold")
_REGIONS: Declared = tuple(
    Column(f"{region}_{end}", "number", f"{text}: {end} this; empty: no end")
    for region, text in (("hold", "where the claim holds"), ("direction", "where its direction does"))
    for end in ("above", "below")
)
_RESULT: Declared = (
    Column("estimate", "number", "of the check: its mean, or the comparison that decides"),
    Column("low", "number", "lower end of its 95 % interval per comparison, which decides nothing"),
    Column("high", "number", "upper end of that interval"),
    Column("trials", "integer", "of the case with the fewest"),
)
_JUDGED: Declared = (
    *_RESULT,
    Column("cases", "integer", "that are compared"),
    Column("statuses", "string", "of the cases, where statuses are judged"),
    Column("p_hold", "number", "the smallest a with which the 1 - a interval lies where the claim holds"),
    Column("p_direction", "number", "the smallest a with which it lies where the claim's direction does"),
    Column("p_against", "number", "the smallest a with which it lies outside of that"),
)
_ENVIRONMENTS = Column("environments", "string", "that it was judged on, joined by ' / '")
_JUDGEMENT: Declared = (SOURCE, _CLAIM, _ENVIRONMENTS, AxisColumns((PROTOCOL,)), _CHECK)
TABLES: Tables = {
    "verdicts": (
        *_JUDGEMENT,
        Column("kind", "string", "of check: ratio, order, equal, trend, presence, imbalance or fit"),
        Column("verdict", "string", "of the whole claim"),
        Column("hindrance", "string", "why it is not tested"),
        Column("stated", "boolean", "the source states it; else it follows from the source"),
        Column("what", "string", "the value that the check computes, in words"),
        *_REGIONS,
        *_JUDGED,
        *FAMILY,
        Column("text", "string", "the claim"),
        Column("sentence", "string", "the verdict in words"),
    ),
    "verdict_cases": (*_JUDGEMENT, AxisColumns(but=(PROTOCOL,)), *_RESULT),
    "self_consistency": (
        SOURCE,
        _CLAIM,
        Column("printed_by", "string", "the source of the numbers: the claim's own, or another that it names"),
        HARDWARE,
        Column("verdict", "string", "of these numbers on the claim"),
        _CHECK,
        *_REGIONS,
        *_JUDGED,
    ),
}


def verdict_rows(judgements: Iterable[Judgement]) -> dict[str, list[dict[str, Any]]]:
    """A row of verdicts.csv for each check of each judgement; a row of verdict_cases.csv for each comparison."""
    verdicts: list[dict[str, Any]] = []
    cases: list[dict[str, Any]] = []
    for judgement in judgements:
        claim, subject = judgement.claim, judgement.subject
        base = {"source": judgement.source, "claim": claim.id, "environments": environments_text(judgement)}
        base["protocol"] = subject.protocol if subject else ""
        texts = {"text": in_language(claim.text), "sentence": sentence(judgement)}
        given = {"verdict": judgement.verdict, "hindrance": judgement.hindrance, "stated": claim.stated, **texts}
        checks = claim.checks or (None,)
        for number, (check, outcome) in enumerate(zip_longest(checks, judgement.outcomes), start=1):
            row: dict[str, Any] = {**base, "check": number, **given, **_regions(check)}
            row |= {"kind": check.kind if check else "", "what": what(check) if check else ""}
            if isinstance(outcome, CheckResult):
                row |= _numbers(outcome, judgement.level)
                cases += [{**base, "check": number, **case} for case in _cases(outcome)]
            verdicts.append(row)
    return {"verdicts": verdicts, "verdict_cases": cases}


def printed_rows(printed: Iterable[PrintedVerdict]) -> Iterator[dict[str, Any]]:
    """A row of self_consistency.csv for each check of each claim that printed numbers were compared with."""
    for each in printed:
        base = {"claim": each.claim.id, "verdict": each.verdict or "no numbers published"}
        base = cells(TABLES["self_consistency"], each) | base
        for outcome in each.outcomes or (None,):
            check = outcome.check if outcome else None
            number = next((place for place, other in enumerate(each.claim.checks, start=1) if other is check), None)
            yield {**base, "check": number, **_regions(check), **(_numbers(outcome) if outcome else {})}


def environments_text(judgement: Judgement) -> str:
    """The environments of a judgement's subject: "a / b"; empty without a subject."""
    return " / ".join(judgement.subject.environments) if judgement.subject else ""


def _regions(check: Check | None) -> dict[str, float | None]:
    """The columns of a check's regions; an open end is empty."""
    regions = {"hold": check.hold, "direction": check.direction or check.hold} if check else {}
    pairs = ((name, bounds, end) for name, bounds in regions.items() if bounds for end in ("above", "below"))
    return {f"{name}_{end}": getattr(bounds, end) for name, bounds, end in pairs}


def _numbers(outcome: CheckResult, level: float = 0.0) -> dict[str, Any]:
    """The result of a check, in numbers; with the interval of its family, which has the confidence 1 - level."""
    row = cells(_JUDGED, outcome) | {"statuses": ", ".join(outcome.statuses)}
    if outcome.summary is not None:
        row |= _result(outcome, outcome.summary)
        family = outcome.summary.interval(1 - level) if level else None
        if family and math.isfinite(family.high - family.low):
            row |= {"level": level, "family_low": outcome.shown(family.low), "family_high": outcome.shown(family.high)}
    return row


def _cases(outcome: CheckResult) -> Iterator[dict[str, Any]]:
    for element in outcome.elements:
        yield {**element.axes, "trials": element.trials, **_result(outcome, element.contrast)}


def _result(outcome: CheckResult, contrast: Contrast) -> dict[str, float | None]:
    """The estimate with its interval, for readers; an open interval is left out."""
    interval = contrast.interval() or UNBOUNDED
    ends = interval if math.isfinite(interval.high - interval.low) else ()
    values = map(outcome.shown, (contrast.value, *ends))
    return dict(zip(("estimate", "low", "high"), values, strict=False))
