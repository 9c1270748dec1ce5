"""Highlights from claims: those that a run decided, and those that their own source's numbers do not bear out."""

from collections.abc import Iterator, Sequence
from typing import Any

from tsuishi.base.language import in_language, in_words, t
from tsuishi.report.charts import figures
from tsuishi.report.charts.small import ratios_chart
from tsuishi.report.parts.blocks import Chart, Highlight
from tsuishi.report.parts.ranking import Candidate, Rank, of_the_family
from tsuishi.report.parts.wording import capital
from tsuishi.report.sections.claim_words import claim_anchor, claim_name, sentence, value_kind, value_text, what
from tsuishi.report.sections.verdict_table import Verdicts
from tsuishi.specs.case import SUITE
from tsuishi.specs.claims import DECIDED, Claim
from tsuishi.verdicts.answers import is_about
from tsuishi.verdicts.checks import CheckResult
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.judge import Judgement, PrintedVerdict, results

# The surprise of a verdict, on the scale of logarithms of ratios: a contradicted claim is a factor of 3.
_SURPRISES = {"contradicted": 1.1, "direction only": 0.4, "reproduced": 0.2}
# The section with the reasons of all verdicts.
CLAIMS = "claims"


def from_claims(verdicts: Verdicts) -> Iterator[Candidate]:
    """A highlight for each claim with a verdict, in all environments where it has one."""
    decided: dict[tuple[str, str], list[Judgement]] = {}
    for judgement in verdicts.judgements:
        if judgement.verdict in DECIDED:
            decided.setdefault((judgement.source, judgement.claim.id), []).append(judgement)
    for alike in decided.values():
        main = any(
            answer.asked.main and is_about(judgement, answer)
            for judgement in alike
            for answer in verdicts.conclusions.answers
        )
        yield Candidate(
            Rank.ANSWER if main else Rank.CERTAIN, max(_SURPRISES[each.verdict] for each in alike), _claim(alike)
        )


def _claim(judgements: Sequence[Judgement]) -> Highlight:
    claim, source = judgements[0].claim, judgements[0].source
    by_verdict: dict[str, list[str]] = {}
    for each in judgements:
        by_verdict.setdefault(each.verdict, []).append(" / ".join(each.subject.environments if each.subject else ()))
    where = in_words(
        t("{verdict} in {environments}", verdict=t(verdict), environments=in_words(dict.fromkeys(names)))
        for verdict, names in by_verdict.items()
    )
    title = t("“{claim}” {verdicts}", claim=_quoted(claim), verdicts=where)
    topic = claim_name(source, claim.id)
    trials = min((outcome.trials for each in judgements for outcome in results(each)), default=0)
    chart = _chart(judgements, topic, f"highlight-{source}-{claim.id}")
    anchor = claim_anchor(source, claim.id)
    return Highlight(topic, title, capital(sentence(judgements[0])), "certain", of_the_family(trials), anchor, chart)


def _chart(judgements: Sequence[Judgement], topic: str, name: str) -> tuple[Chart, ...]:
    """The first check that has a value, of each judgement: the value with the family's interval, and the region."""
    rows, check = [], None
    for judgement in judgements:
        outcome = next((each for each in results(judgement) if each.summary), None)
        if outcome is None or (check is not None and outcome.check is not check) or judgement.subject is None:
            continue
        check = outcome.check
        rows.append(_row(" / ".join(judgement.subject.environments), *_ends(outcome, judgement.level)))
    if check is None:
        return ()
    if check.published is not None:
        rows.append(_row(t("published"), check.published, published=True))
    chart = ratios_chart(rows, value_kind(check), check.hold, check.is_logarithmic)
    caption = t("{what}. Band: where the claim holds; bars: the intervals that decide.", what=what(check))
    return (figures.block(chart, topic, name, caption),)


def _quoted(claim: Claim) -> str:
    return in_language(claim.text).rstrip(".。")


def _row(
    name: str, value: float, low: float | None = None, high: float | None = None, published: bool = False
) -> dict[str, Any]:
    """A row of small.ratios_chart."""
    return {"name": name, "value": value, "low": low, "high": high, "published": published}


def _ends(outcome: CheckResult, level: float) -> tuple[float, float | None, float | None]:
    """The result of a check, with the ends of its interval of confidence 1 - level; without one for level 0."""
    assert outcome.summary
    interval = outcome.summary.interval(1 - level) if level else None
    low, high = (outcome.shown(end) for end in interval) if interval else (None, None)
    return outcome.shown(outcome.summary.value), low, high


def from_sources(evidence: Evidence, verdicts: Verdicts) -> Iterator[Candidate]:
    """A highlight for each claim that its own source's numbers do not bear out, where a suite of it ran."""
    for each in verdicts.printed:
        ran = {*map(str, each.claim.named(SUITE))} & {*evidence.suites}
        if ran and each.is_own and each.verdict in ("contradicted", "direction only"):
            yield Candidate(Rank.SEEN, _SURPRISES[each.verdict], _printed(each))


def _printed(printed: PrintedVerdict) -> Highlight:
    claim = printed.claim
    values = "; ".join(map(value_text, printed.outcomes))
    title = t(
        "“{claim}”: by the source's own numbers it is {found}",
        claim=_quoted(claim),
        found=values,
    )
    topic = claim_name(printed.source, claim.id)
    text = " ".join(in_language(outcome.check.why) for outcome in printed.outcomes if outcome.check.why)
    outcome = next((each for each in printed.outcomes if each.summary), None)
    charts: tuple[Chart, ...] = ()
    if outcome and outcome.summary:
        rows = [_row(t("its numbers"), outcome.shown(outcome.summary.value), published=True)]
        if outcome.check.published is not None:
            rows.append(_row(t("its sentence"), outcome.check.published, published=True))
        chart = ratios_chart(rows, value_kind(outcome.check), outcome.check.hold, outcome.check.is_logarithmic)
        caption = t("Band: what counts as the claim.")
        charts = (figures.block(chart, topic, f"highlight-own-{printed.source}-{claim.id}", caption),)
    anchor = claim_anchor(printed.source, claim.id, own=True)
    return Highlight(topic, title, text, "printed", t("Printed: no measurement of this report"), anchor, charts)
