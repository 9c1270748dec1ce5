"""The verdict table: every claim, what was found of it, and what could not be tested; and sources on themselves."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tsuishi.base.language import in_language, in_words, mark, prose, t
from tsuishi.report.parts.blocks import Bullets, ClaimVerdict, Heading, View
from tsuishi.report.parts.wording import NOTHING, Cell, Table, status_text, text_cell
from tsuishi.report.sections.claim_words import (
    TONES,
    bounds_text,
    published_text,
    sentence,
    takes,
    value_text,
    what,
)
from tsuishi.specs.claims import VERDICTS, Check, Claim
from tsuishi.verdicts.checks import CheckResult
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.hypotheses import Missing
from tsuishi.verdicts.judge import Judgement, SelfConsistency, judge, self_consistency

_NOTES = (
    mark(
        "Found: with its 95 % interval, of means of logarithms over trials; the scatter is that of all cases of a "
        "suite and environment together. The claims of a source on one environment are judged as a family (Holm)."
    ),
    mark("Direction only: the interval lies in the claimed direction, but not within the published size."),
    mark("n: trials of the case with the fewest. Regions and their reasons were fixed before anything was run."),
)


class Verdicts:
    """All judgements of a report's evidence, and of its sources on their own numbers; their views."""

    def __init__(self, evidence: Evidence) -> None:
        self.judgements = judge(evidence)
        self.own = list(self_consistency(evidence.sources))
        self._environments = set(evidence.environments)
        titles = [(source.name, one.name, one.title) for source in evidence.sources for one in source.hardware]
        self._titles = {(source, hardware): title for source, hardware, title in titles}

    @property
    def of_claims(self) -> tuple[ClaimVerdict, ...]:
        """Every verdict, in the order of the judgements."""
        return tuple(ClaimVerdict(one.verdict, one.source, one.claim.id, _environments(one)) for one in self.judgements)

    @property
    def headline(self) -> str:
        """How many claims were tested, and how many comparisons gave which verdict."""
        claims = {(one.source, one.claim.id) for one in self.judgements}
        tested = [one for one in self.judgements if one.verdict != "not tested"]
        if not tested:
            return t("None of the {all} published claims could be tested here.", all=len(claims))
        counted = Counter(one.verdict for one in tested)
        return t(
            "Of {all} published claims {tested} were tested here, environment by environment: {verdicts}.",
            all=len(claims),
            tested=len({(one.source, one.claim.id) for one in tested}),
            verdicts=in_words(
                t("{count} {what}", count=counted[verdict], what=t(verdict)) for verdict in VERDICTS if counted[verdict]
            ),
        )

    def views(self) -> Iterator[View]:
        """Verdicts, what could not be tested, and how sources agree with themselves."""
        if not self.judgements:
            return
        yield View((Heading(t("Which published claims hold here")), self._table()), self._rows())
        open_ones = self._not_tested()
        if open_ones:
            yield View((Bullets(open_ones, t("Not tested, and what it would take")),))
        yield View((self._own_table(),), {"self_consistency": list(self._own_rows())})
        yield View((self._regions_table(),))

    def _table(self) -> Table:
        columns = [
            t("claim"),
            t("source"),
            t("verdict"),
            t("in words"),
            t("on"),
            t("holds if"),
            t("found"),
            t("published"),
        ]
        rows = [self._row(alike) for alike in _alike(self.judgements)]
        return Table([*columns, "n"], rows, t("Verdicts"), notes=list(map(t, _NOTES)), filters=(1, 2))

    def _row(self, alike: Sequence[Judgement]) -> list[Cell]:
        one = alike[0]
        outcomes = [outcome for outcome in one.outcomes if isinstance(outcome, CheckResult)]
        told = one.verdict != "not tested"
        trials = [outcome.trials for outcome in outcomes] if told else []
        return [
            text_cell(_claim_text(one.claim)),
            text_cell(one.source, "label"),
            Cell(t(one.verdict), kind="verdict", tone=TONES[one.verdict]),
            text_cell(sentence(one)),
            self._on(alike),
            text_cell(_holds_if(one.claim)),
            _found_cell(outcomes if told else []),
            text_cell(self._published(one)),
            text_cell(min(trials) if trials else NOTHING, "label"),
        ]

    def _on(self, alike: Sequence[Judgement]) -> Cell:
        """The subject; of several without a verdict, their environments."""
        subjects = [one.subject for one in alike if one.subject]
        if len(subjects) == 1:
            return text_cell(subjects[0], "label")
        if {name for subject in subjects for name in subject.environments} == self._environments:
            return text_cell(t("all environments"), "label")
        return text_cell(in_words(dict.fromkeys(" / ".join(subject.environments) for subject in subjects)))

    def _published(self, judgement: Judgement) -> str:
        """What the source's own numbers say of every check."""
        texts = []
        for check in judgement.claim.checks:
            own = [
                (self._titles[one.source, one.hardware], outcome)
                for one in self.own
                if (one.source, one.claim.id) == (judgement.source, judgement.claim.id)
                for outcome in one.outcomes
                if outcome.check is check
            ]
            texts.append(published_text(check, own))
        return "; ".join(dict.fromkeys(filter(None, texts)))

    def _not_tested(self) -> tuple[str, ...]:
        """Reasons, each with the claims it is the reason for; of a claim tested anywhere, none."""
        tested = {(one.source, one.claim.id) for one in self.judgements if one.verdict != "not tested"}
        reasons: dict[str, dict[str, None]] = {}
        for one in self.judgements:
            if (one.source, one.claim.id) not in tested:
                reasons.setdefault(takes(one), {})[f"{one.source} {one.claim.id}"] = None
        return tuple(
            t("{reason} ({claims})", reason=reason, claims=in_words(claims)) for reason, claims in reasons.items()
        )

    def _rows(self) -> dict[str, list[dict[str, Any]]]:
        """For verdicts.csv, a row per check of every judgement; for verdict_cases.csv, one per comparison in it."""
        verdicts: list[dict[str, Any]] = []
        cases: list[dict[str, Any]] = []
        for one in self.judgements:
            base = {"source": one.source, "claim": one.claim.id, "environments": _environments(one)}
            base["protocol"] = one.subject.protocol if one.subject else ""
            told = {"verdict": one.verdict, "hindrance": one.hindrance, "stated": one.claim.stated}
            said = {"text": in_language(one.claim.text), "sentence": sentence(one)}
            outcomes: Sequence[CheckResult | Missing | None] = one.outcomes or [None] * max(1, len(one.claim.checks))
            for number, outcome in enumerate(outcomes, start=1):
                check = one.claim.checks[number - 1] if one.claim.checks else None
                row: dict[str, Any] = {**base, "check": number, "kind": check.kind if check else "", **told}
                row |= {"what": what(check) if check else "", **_regions(check)}
                row |= _numbers(outcome) if isinstance(outcome, CheckResult) else {}
                verdicts.append({**row, **said})
                if isinstance(outcome, CheckResult):
                    cases += [{**base, "check": number, **case} for case in _cases(outcome)]
        return {"verdicts": verdicts, "verdict_cases": cases}

    def _own_table(self) -> Table:
        columns = [t("claim"), t("source"), t("on its own numbers"), t("of"), t("found"), t("holds if")]
        notes = [t("Published numbers have no scatter: the value is within a region, or it is not.")]
        rows = [
            [
                text_cell(_claim_text(one.claim)),
                text_cell(one.source, "label"),
                self._own_verdict(one),
                text_cell(self._titles.get((one.source, one.hardware))),
                text_cell("; ".join(map(value_text, one.outcomes))),
                text_cell(
                    "; ".join(dict.fromkeys(bounds_text(check.hold) for check in one.claim.checks if check.hold))
                ),
            ]
            for one in self.own
        ]
        title = t("Whether the sources' own numbers bear out their claims")
        return Table(columns, rows, title, folded=True, notes=notes, filters=(1, 2))

    def _regions_table(self) -> Table:
        """What every check is held to, and the reason, as the sources' files give it."""
        columns = [t("claim"), t("source"), t("what is reckoned"), t("holds if"), t("direction"), t("why")]
        claims = {(one.source, one.claim.id): one.claim for one in self.judgements}
        rows = [
            [
                text_cell(_claim_text(claim)),
                text_cell(source, "label"),
                text_cell(what(check)),
                text_cell(bounds_text(check.hold) or status_text(check.status)),
                text_cell(bounds_text(check.direction)),
                text_cell(in_language(check.why)),
            ]
            for (source, _), claim in claims.items()
            for check in claim.checks
        ]
        return Table(columns, rows, t("What every claim is held to, and why"), folded=True, filters=(1,))

    def _own_verdict(self, one: SelfConsistency) -> Cell:
        if one.verdict is None:
            return Cell(t("no numbers published"), kind="verdict", tone=TONES["not tested"])
        verdict = t("{verdict}, in part", verdict=t(one.verdict)) if one.partial else t(one.verdict)
        return Cell(verdict, kind="verdict", tone=TONES[one.verdict])

    def _own_rows(self) -> Iterator[dict[str, Any]]:
        for one in self.own:
            base: dict[str, Any] = {"source": one.source, "claim": one.claim.id, "hardware": one.hardware}
            base["verdict"] = one.verdict or "no numbers published"
            for outcome in one.outcomes or (None,):
                check = outcome.check if outcome else None
                number = next((place for place, of in enumerate(one.claim.checks, start=1) if of is check), None)
                yield {**base, "check": number, **_regions(check), **(_numbers(outcome) if outcome else {})}


def _claim_text(claim: Claim) -> str:
    follows = t("(not stated, but it follows)") if not claim.stated else ""
    return prose([f"({claim.id})", in_language(claim.text), follows])


def _found_cell(outcomes: Sequence[CheckResult]) -> Cell:
    """What was found; of one check it is a number, with its interval."""
    if len(outcomes) != 1 or outcomes[0].summary is None:
        return text_cell("; ".join(map(value_text, outcomes)))
    text, _, interval = value_text(outcomes[0]).partition(" ")
    value = outcomes[0].shown(outcomes[0].summary.value)
    return Cell(text, value, (interval,) if interval else (), "number")


def _holds_if(claim: Claim) -> str:
    return "; ".join(dict.fromkeys(bounds_text(check.hold) for check in claim.checks if check.hold))


def _alike(judgements: Iterable[Judgement]) -> Iterator[list[Judgement]]:
    """Judgements of a claim that say the same of several subjects are told once: those without a verdict."""
    found: dict[tuple[str, ...], list[Judgement]] = {}
    for number, one in enumerate(judgements):
        told_apart = str(number) if one.verdict != "not tested" else sentence(one)
        found.setdefault((one.source, one.claim.id, told_apart), []).append(one)
    yield from found.values()


def _environments(judgement: Judgement) -> str:
    return " / ".join(judgement.subject.environments) if judgement.subject else ""


def _regions(check: Check | None) -> dict[str, float | None]:
    """Columns of a check's regions; an end that is not there is empty."""
    regions = {"hold": check.hold, "direction": check.direction or check.hold} if check else {}
    ends = [(name, bounds) for name, bounds in regions.items() if bounds]
    above = {f"{name}_above": bounds.above for name, bounds in ends}
    return above | {f"{name}_below": bounds.below for name, bounds in ends}


def _numbers(outcome: CheckResult) -> dict[str, Any]:
    """What a check came to, in numbers."""
    row: dict[str, Any] = {"cases": outcome.cases, "trials": outcome.trials, "statuses": ", ".join(outcome.statuses)}
    row |= {"p_hold": outcome.p_hold, "p_direction": outcome.p_direction, "p_against": outcome.p_against}
    if outcome.summary is not None:
        interval = outcome.summary.interval()
        row["estimate"] = outcome.shown(outcome.summary.value)
        if interval and math.isfinite(interval.high - interval.low):
            row |= {"low": outcome.shown(interval.low), "high": outcome.shown(interval.high)}
    return row


def _cases(outcome: CheckResult) -> Iterator[dict[str, Any]]:
    for one in outcome.elements:
        interval = one.contrast.interval()
        row = {**one.axes, "estimate": outcome.shown(one.contrast.value), "trials": one.trials}
        if interval and math.isfinite(interval.high - interval.low):
            row |= {"low": outcome.shown(interval.low), "high": outcome.shown(interval.high)}
        yield row
