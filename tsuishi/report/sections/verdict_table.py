"""The verdict table: every claim with its verdict, the claims not tested, and the sources' own numbers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tsuishi.base.language import in_language, in_words, mark, prose, t
from tsuishi.report.parts.blocks import Bullets, ClaimVerdict, Heading, Section, Text, View
from tsuishi.report.parts.wording import NOTHING, Cell, Table, protocol_words, status_text, text_cell
from tsuishi.report.sections.claim_words import (
    TONES,
    bounds_text,
    claim_anchor,
    published_text,
    sentence,
    takes,
    value_text,
    what,
)
from tsuishi.report.sections.deviations import declared
from tsuishi.report.sections.verdict_rows import environments_text, printed_rows, verdict_rows
from tsuishi.specs.case import PROTOCOL, SUITE
from tsuishi.specs.claims import DECIDED, VERDICTS, Claim, Verdict
from tsuishi.verdicts.checks import CheckResult
from tsuishi.verdicts.conclusions import conclude
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.judge import Hindrance, Judgement, PrintedVerdict, by_printed_numbers

_NOTES = (
    mark(
        "Found: the value with the interval that decides the verdict, from means of logarithms over trials. All "
        "verdicts of a report share one error limit: of 100 reports on environments that do not differ, at most 5 "
        "state a difference. So the intervals are wider than 95 % (docs/certainty.md)."
    ),
    mark("Direction only: the interval lies in the claimed direction, but not within the claimed size."),
    mark(
        "n: number of trials of the case with the fewest. Regions and their reasons were written down before any run."
    ),
)


# The needs of claims that were not tested, by the reason; the first reason of a claim counts.
_NEEDS: dict[Hindrance, str] = {
    "no gpu": mark("NVIDIA GPUs ({count})"),
    "other hardware": mark("other GPUs ({count})"),
    "synthetic": mark("real data ({count})"),
    "shortened": mark("whole trainings ({count})"),
    "no environment": mark("suites or environments that were not run ({count})"),
    "no cases": mark("cases that were not run ({count})"),
    "untestable": mark("something that no suite has ({count})"),
}


# Of the verdicts on a claim in several environments or protocols the first in this order counts: a claim that fails
# somewhere fails.
_ORDER: tuple[Verdict, ...] = ("contradicted", "reproduced", "direction only", "inconclusive", "not tested")


def verdict_that_counts(of_claim: Iterable[Judgement]) -> Verdict:
    """The verdict on a claim, of those in all environments."""
    return min((judgement.verdict for judgement in of_claim), key=_ORDER.index)


class Verdicts:
    """The judgements on the claims, by a report's evidence and by printed numbers, and their views."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.conclusions = conclude(evidence)
        self.judgements = self.conclusions.judgements
        self.printed = list(by_printed_numbers(evidence.sources))
        # By source and claim, in the order of the judgements.
        self.of_each_claim: dict[tuple[str, str], list[Judgement]] = {}
        for each in self.judgements:
            self.of_each_claim.setdefault((each.source, each.claim.id), []).append(each)
        self._environments = set(evidence.environments)
        self._tested_in = {
            (each.source, each.claim.id, *each.subject)
            for each in self.judgements
            if each.subject and each.verdict != "not tested"
        }
        self._titles = {
            (source.name, hardware.name): hardware.title for source in evidence.sources for hardware in source.hardware
        }

    @property
    def of_claims(self) -> tuple[ClaimVerdict, ...]:
        """Every verdict, in the order of the judgements."""
        return tuple(
            ClaimVerdict(judgement.verdict, judgement.source, judgement.claim.id, environments_text(judgement))
            for judgement in self.judgements
        )

    @property
    def headline(self) -> str:
        """The number of tested claims, of judgements with each verdict, and of claims that no source states."""
        claims = {(judgement.source, judgement.claim.id): judgement.claim.stated for judgement in self.judgements}
        stated = sum(claims.values())
        apart = t(
            "Stated by a source: {stated}; derived from its numbers: {derived}.",
            stated=stated,
            derived=len(claims) - stated,
        )
        return prose([self._tested(len(claims)), apart if stated < len(claims) else ""])

    def _tested(self, claims: int) -> str:
        tested = [judgement for judgement in self.judgements if judgement.verdict != "not tested"]
        if not tested:
            return t("None of the {all} published claims could be tested here.", all=claims)
        counted = Counter(judgement.verdict for judgement in tested)
        return t(
            "Claims tested: {tested} of {all}, environment by environment ({verdicts}).",
            all=claims,
            tested=len({(judgement.source, judgement.claim.id) for judgement in tested}),
            verdicts=in_words(
                t("{count} {what}", count=counted[verdict], what=t(verdict)) for verdict in VERDICTS if counted[verdict]
            ),
        )

    @property
    def is_any_tested(self) -> bool:
        return any(judgement.verdict != "not tested" for judgement in self.judgements)

    @property
    def needs(self) -> str:
        """A line on the claims that were not tested: with the number for each need.

        Empty where all were tested, and where no suite ran that a claim names: a user's own suites are about none.
        """
        ran = {*self._evidence.suites}
        is_about_claims = any(ran & {*map(str, each.claim.named(SUITE))} for each in self.judgements)
        without = [each for each in self.of_each_claim.values() if verdict_that_counts(each) == "not tested"]
        if not without or not is_about_claims:
            return ""
        has_gpus = any(record.gpus for record in self._evidence.machine_records.values())
        counted = Counter(_need(each, has_gpus) for each in without)
        needs = in_words(t(_NEEDS[need], count=counted[need]) for need in _NEEDS if counted[need])
        return t(
            "Published claims that were not tested: {count} of {all}. They need {needs}.",
            count=len(without), all=len(self.of_each_claim), needs=needs,
        )  # fmt: skip

    @property
    def answer(self) -> str:
        """How many published claims have each verdict here that decides; empty where none is decided."""
        counted = Counter(map(verdict_that_counts, self.of_each_claim.values()))
        verdicts = [t("{count} {what}", count=counted[each], what=t(each)) for each in DECIDED if counted[each]]
        if not verdicts:
            return ""
        if others := sum(count for verdict, count in counted.items() if verdict not in DECIDED):
            verdicts.append(t("{count} not decided", count=others))
        return t("{all} published claims: {verdicts} here", all=len(self.of_each_claim), verdicts=in_words(verdicts))

    def section(self) -> Section:
        """The claims of all sources."""
        views = tuple(self.views()) or (View((Text(t("No source has a claim.")),)),)
        return Section("claims", t("Claims"), views, self.headline)

    def views(self) -> Iterator[View]:
        """The verdicts, the claims that were not tested, the sources' own numbers, and the regions of all checks."""
        if not self.judgements:
            return
        yield View((Heading(t("Which published claims hold here")), self._table()), verdict_rows(self.judgements))
        if differences := tuple(self._deviations()):
            yield View(
                (Bullets(differences, title=t("What the cases of these verdicts do differently from the source")),)
            )
        reasons = self._not_tested()
        if reasons:
            yield View((Bullets(reasons, title=t("Not tested, and what a test needs")),))
        yield View((self._printed_table(),), {"self_consistency": list(printed_rows(self.printed))})
        yield View((self._regions_table(),))

    def _table(self) -> Table:
        columns = [t("claim"), t("source"), t("verdict"), t("in words"), t("on")]
        columns += [t("holds if"), t("found"), t("published"), "n"]
        every = list(_alike(self.judgements))
        rows, anchors = [self._row(alike) for alike in every], _anchors(alike[0] for alike in every)
        return Table(columns, rows, title=t("Verdicts"), notes=list(map(t, _NOTES)), filters=(1, 2), anchors=anchors)

    def _row(self, alike: Sequence[Judgement]) -> list[Cell]:
        judgement = alike[0]
        outcomes = [outcome for outcome in judgement.outcomes if isinstance(outcome, CheckResult)]
        tested = judgement.verdict != "not tested"
        trials = [outcome.trials for outcome in outcomes] if tested else []
        return [
            text_cell(_claim_text(judgement.claim)),
            text_cell(judgement.source, "label"),
            Cell(t(judgement.verdict), kind="verdict", tone=TONES[judgement.verdict]),
            text_cell(prose([sentence(judgement), self._without_literal(judgement)])),
            self._on(alike),
            text_cell(_holds_if(judgement.claim)),
            _found_cell(outcomes if tested else [], judgement.level),
            text_cell(self._published(judgement)),
            text_cell(min(trials) if trials else NOTHING, "label"),
        ]

    def _without_literal(self, judgement: Judgement) -> str:
        """Says that a verdict on a source's whole trainings is of steady steps, where no literal training is judged."""
        subject = judgement.subject
        if subject is None or subject.protocol != "steady" or judgement.verdict == "not tested":
            return ""
        suites = judgement.claim.named(SUITE)
        trained = any(
            epochs.count and suites & {*epochs.case.get(SUITE, ())}
            for source in self._evidence.sources
            if source.name == judgement.source
            for epochs in source.epochs
        )
        literal = (judgement.source, judgement.claim.id, subject.environments, "literal") in self._tested_in
        if literal or not trained or judgement.claim.named(PROTOCOL):
            return ""
        return t("Of warm steps alone: no training as the source timed it is judged here (--profile full).")

    def _on(self, alike: Sequence[Judgement]) -> Cell:
        """A judgement's subject; for several judgements without a verdict, the environments of their subjects."""
        subjects = [judgement.subject for judgement in alike if judgement.subject]
        if len(subjects) == 1:
            (subject,) = subjects
            text = f"{' / '.join(subject.environments)}, {protocol_words(subject.protocol)}"
            return text_cell(text, "label")
        if {name for subject in subjects for name in subject.environments} == self._environments:
            return text_cell(t("all environments"), "label")
        return text_cell(in_words(dict.fromkeys(" / ".join(subject.environments) for subject in subjects)))

    def _published(self, judgement: Judgement) -> str:
        """The result of every check by printed numbers."""
        texts = []
        for check in judgement.claim.checks:
            printed = [
                (self._printed_on(each), outcome)
                for each in self.printed
                if (each.source, each.claim.id) == (judgement.source, judgement.claim.id)
                for outcome in each.outcomes
                if outcome.check is check
            ]
            texts.append(published_text(check, printed))
        return "; ".join(dict.fromkeys(filter(None, texts)))

    def _deviations(self) -> Iterator[str]:
        """What a source declares to be different in the cases of verdicts."""
        for source in self._evidence.sources:
            tested = {
                judgement.claim.id
                for judgement in self.judgements
                if judgement.source == source.name and judgement.verdict != "not tested"
            }
            for text in declared(self._evidence, source, tested):
                yield f"{source.name}: {text}"

    def _not_tested(self) -> tuple[str, ...]:
        """The reasons why claims were tested in no environment, each with its claims."""
        tested = {
            (judgement.source, judgement.claim.id) for judgement in self.judgements if judgement.verdict != "not tested"
        }
        reasons: dict[str, dict[str, None]] = {}
        for judgement in self.judgements:
            if (judgement.source, judgement.claim.id) not in tested:
                reasons.setdefault(takes(judgement), {})[f"{judgement.source} {judgement.claim.id}"] = None
        return tuple(
            t("{reason} ({claims})", reason=reason, claims=in_words(claims)) for reason, claims in reasons.items()
        )

    def _printed_on(self, printed: PrintedVerdict) -> str:
        """The hardware of printed numbers, with their source where it is not that of the claim."""
        title = self._titles.get((printed.printed_by, printed.hardware), "")
        return title if printed.is_own else t("{hardware} in {source}", hardware=title, source=printed.printed_by)

    def _printed_table(self) -> Table:
        columns = [t("claim"), t("source"), t("on printed numbers"), t("of"), t("found"), t("holds if")]
        notes = [
            t("Published numbers have no scatter: a value lies within its region or outside."),
            t(
                "A row that names another source holds the claim against that source's numbers, which are of an "
                "experiment of the same kind on its hardware."
            ),
        ]
        rows = [
            [
                text_cell(_claim_text(each.claim)),
                text_cell(each.source, "label"),
                self._printed_verdict(each),
                text_cell(self._printed_on(each)),
                text_cell("; ".join(map(value_text, each.outcomes))),
                text_cell(_holds_if(each.claim)),
            ]
            for each in self.printed
        ]
        title = t("Whether the sources' own numbers bear out their claims")
        anchors = _anchors(self.printed, own=True)
        return Table(columns, rows, title=title, folded=True, notes=notes, filters=(1, 2), anchors=anchors)

    def _regions_table(self) -> Table:
        """The regions of every check, with the reasons in the sources' files."""
        columns = [t("claim"), t("source"), t("quantity compared"), t("holds if"), t("direction"), t("why")]
        claims = {(judgement.source, judgement.claim.id): judgement.claim for judgement in self.judgements}
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
        return Table(columns, rows, title=t("What each claim is compared with, and why"), folded=True, filters=(1,))

    def _printed_verdict(self, printed: PrintedVerdict) -> Cell:
        if printed.verdict is None:
            return Cell(t("no numbers published"), kind="verdict", tone=TONES["not tested"])
        verdict = t("{verdict}, in part", verdict=t(printed.verdict)) if printed.partial else t(printed.verdict)
        return Cell(verdict, kind="verdict", tone=TONES[printed.verdict])


def _need(judgements: Sequence[Judgement], has_gpus: bool) -> Hindrance:
    """The first need of a claim that was not tested. has_gpus: whether a machine of the report has any."""
    found = {judgement.hindrance for judgement in judgements}
    if "gpu" in judgements[0].claim.about and not has_gpus and "untestable" not in found:
        return "no gpu"
    return next((need for need in _NEEDS if need in found), "no cases")


def _anchors(rows: Iterable[Judgement | PrintedVerdict], own: bool = False) -> tuple[str, ...]:
    """The anchor of each claim's first row; empty for its other rows."""
    known: set[str] = set()
    anchors = []
    for row in rows:
        anchor = claim_anchor(row.source, row.claim.id, own)
        anchors.append("" if anchor in known else anchor)
        known.add(anchor)
    return tuple(anchors)


def _claim_text(claim: Claim) -> str:
    follows = t("(not stated, but it follows)") if not claim.stated else ""
    return prose([f"({claim.id})", in_language(claim.text), follows])


def _found_cell(outcomes: Sequence[CheckResult], level: float) -> Cell:
    """The results of a claim's checks as text; the result of a single check as a number, with its interval."""
    if len(outcomes) != 1 or outcomes[0].summary is None:
        return text_cell("; ".join(value_text(outcome, level) for outcome in outcomes))
    text, _, interval = value_text(outcomes[0], level).partition(" ")
    value = outcomes[0].shown(outcomes[0].summary.value)
    return Cell(text, value, (interval,) if interval else (), "number")


def _holds_if(claim: Claim) -> str:
    return "; ".join(dict.fromkeys(bounds_text(check.hold) for check in claim.checks if check.hold))


def _alike(judgements: Iterable[Judgement]) -> Iterator[list[Judgement]]:
    """The judgements of each row: judgements without a verdict share a row if their claim and sentence agree."""
    rows: dict[tuple[str, ...], list[Judgement]] = {}
    for number, judgement in enumerate(judgements):
        key = str(number) if judgement.verdict != "not tested" else sentence(judgement)
        rows.setdefault((judgement.source, judgement.claim.id, key), []).append(judgement)
    yield from rows.values()
