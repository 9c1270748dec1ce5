"""Rows of the files behind the verdict table: verdicts.csv, verdict_cases.csv and self_consistency.csv."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tsuishi.base.language import in_language
from tsuishi.report.sections.claim_words import sentence, what
from tsuishi.specs.claims import Check
from tsuishi.verdicts.checks import CheckResult
from tsuishi.verdicts.hypotheses import Missing
from tsuishi.verdicts.judge import Judgement, PrintedVerdict


def verdict_rows(judgements: Iterable[Judgement]) -> dict[str, list[dict[str, Any]]]:
    """A row of verdicts.csv for each check of each judgement; a row of verdict_cases.csv for each comparison."""
    verdicts: list[dict[str, Any]] = []
    cases: list[dict[str, Any]] = []
    for judgement in judgements:
        base = {"source": judgement.source, "claim": judgement.claim.id, "environments": environments_text(judgement)}
        base["protocol"] = judgement.subject.protocol if judgement.subject else ""
        given = {"verdict": judgement.verdict, "hindrance": judgement.hindrance, "stated": judgement.claim.stated}
        texts = {"text": in_language(judgement.claim.text), "sentence": sentence(judgement)}
        without: list[None] = [None] * max(1, len(judgement.claim.checks))
        outcomes: Sequence[CheckResult | Missing | None] = judgement.outcomes or without
        for number, outcome in enumerate(outcomes, start=1):
            check = judgement.claim.checks[number - 1] if judgement.claim.checks else None
            row: dict[str, Any] = {**base, "check": number, "kind": check.kind if check else "", **given}
            row |= {"what": what(check) if check else "", **_regions(check)}
            row |= _numbers(outcome, judgement.level) if isinstance(outcome, CheckResult) else {}
            verdicts.append({**row, **texts})
            if isinstance(outcome, CheckResult):
                cases += [{**base, "check": number, **case} for case in _cases(outcome)]
    return {"verdicts": verdicts, "verdict_cases": cases}


def printed_rows(printed: Iterable[PrintedVerdict]) -> Iterator[dict[str, Any]]:
    """A row of self_consistency.csv for each check of each claim that printed numbers were compared with."""
    for each in printed:
        claim, verdict = each.claim, each.verdict or "no numbers published"
        base = {"source": each.source, "claim": claim.id, "printed_by": each.printed_by}
        base |= {"hardware": each.hardware, "verdict": verdict}
        for outcome in each.outcomes or (None,):
            check = outcome.check if outcome else None
            number = next((place for place, other in enumerate(claim.checks, start=1) if other is check), None)
            yield {**base, "check": number, **_regions(check), **(_numbers(outcome) if outcome else {})}


def environments_text(judgement: Judgement) -> str:
    """The environments of a judgement's subject: "a / b"; empty without a subject."""
    return " / ".join(judgement.subject.environments) if judgement.subject else ""


def _regions(check: Check | None) -> dict[str, float | None]:
    """The columns of a check's regions; an open end is empty."""
    regions = {"hold": check.hold, "direction": check.direction or check.hold} if check else {}
    ends = [(name, bounds) for name, bounds in regions.items() if bounds]
    above = {f"{name}_above": bounds.above for name, bounds in ends}
    return above | {f"{name}_below": bounds.below for name, bounds in ends}


def _numbers(outcome: CheckResult, level: float = 0.0) -> dict[str, Any]:
    """The result of a check, in numbers; with the interval of its family, which has the confidence 1 - level."""
    row: dict[str, Any] = {"cases": outcome.cases, "trials": outcome.trials, "statuses": ", ".join(outcome.statuses)}
    row |= {"p_hold": outcome.p_hold, "p_direction": outcome.p_direction, "p_against": outcome.p_against}
    if outcome.summary is not None:
        interval = outcome.summary.interval()
        row["estimate"] = outcome.shown(outcome.summary.value)
        if interval and math.isfinite(interval.high - interval.low):
            row |= {"low": outcome.shown(interval.low), "high": outcome.shown(interval.high)}
        family = outcome.summary.interval(1 - level) if level else None
        if family and math.isfinite(family.high - family.low):
            row |= {"level": level, "family_low": outcome.shown(family.low), "family_high": outcome.shown(family.high)}
    return row


def _cases(outcome: CheckResult) -> Iterator[dict[str, Any]]:
    for element in outcome.elements:
        interval = element.contrast.interval()
        row = {**element.axes, "estimate": outcome.shown(element.contrast.value), "trials": element.trials}
        if interval and math.isfinite(interval.high - interval.low):
            row |= {"low": outcome.shown(interval.low), "high": outcome.shown(interval.high)}
        yield row
