"""The top of the page: what a report found, the answers to its main questions first, then the most surprising."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tsuishi.base.language import in_language, in_words, prose, t
from tsuishi.estimates.intervals import FEWEST_TRIALS
from tsuishi.report.parts.blocks import Block, Bullets, Highlight, Highlights, Strip, StripCell, StripRow, Text, View
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.ranking import Candidate, Rank
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.sections import what_ran
from tsuishi.report.sections.beside_published import first_card
from tsuishi.report.sections.claim_words import TONES, claim_anchor
from tsuishi.report.sections.highlighted_answers import from_answers
from tsuishi.report.sections.highlighted_cases import from_cases
from tsuishi.report.sections.highlighted_claims import CLAIMS, from_claims, from_sources
from tsuishi.report.sections.load import disturbances
from tsuishi.report.sections.main_questions import Questions
from tsuishi.report.sections.pairs import Matchup
from tsuishi.report.sections.verdict_table import Verdicts, verdict_that_counts
from tsuishi.results.run_record import RunRecord
from tsuishi.specs.claims import Verdict
from tsuishi.specs.source import Source
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.judge import Judgement

# The cards of a first screen, the open questions below them, and the cards that the command prints.
_MOST_CARDS, _MOST_OPEN, _SHOWN = 6, 3, 2
# The letter of each verdict, in the order of the legend.
_LETTERS: dict[Verdict, str] = {
    "contradicted": "C",
    "reproduced": "R",
    "direction only": "D",
    "inconclusive": "?",
    "not tested": "·",
}


class Opening:
    """What a page opens with, and the command ends with."""

    def __init__(
        self,
        evidence: Evidence,
        verdicts: Verdicts,
        questions: Questions,
        explanations: Explanations,
        every: Sequence[SuiteCases],
        compared: Sequence[Matchup],
    ) -> None:
        self._evidence, self._verdicts, self._questions = evidence, verdicts, questions
        self._explanations = explanations
        candidates = [
            *from_answers(evidence, questions, explanations),
            *from_claims(verdicts),
            *from_sources(evidence, verdicts),
            *from_cases(evidence, every, compared, questions),
        ]
        self._disturbances = [*disturbances(evidence)]
        self._card = first_card(evidence)
        self._certain = sum(each.rank is not Rank.SEEN for each in candidates)
        self.items = chosen_highlights(candidates)

    def title(self) -> str:
        """The answer: how many published claims hold here, else the first certain finding; empty without any."""
        certain = [item for item in self.items if item.certainty == "certain" and item.anchor.startswith("suite-")]
        first = (t("{topic}: {words}", topic=item.anchor.removeprefix("suite-"), words=item.title) for item in certain)
        return self._verdicts.answer or next(first, "")

    def view(self) -> View:
        """A sentence, the cards, what else explanations found, the claims at a glance, and the open questions."""
        blocks: list[Block] = [Text(self._lead(), kind="lead")]
        blocks += [Text(prose(self._disturbances), kind="note")] if self._disturbances else []
        blocks += [Highlights(self.items)] if self.items else []
        if explained := tuple(self._explained()):
            blocks.append(Bullets(explained, title=t("What explains it")))
        any_tested = self._verdicts.is_any_tested
        claims = claim_strip(self._verdicts.of_each_claim, self._evidence.sources) if any_tested else None
        blocks += [claims] if claims else []
        blocks += [Text(needs, kind="note")] if (needs := self._verdicts.needs) else []
        if still_open := tuple(_open(self._questions)):
            blocks.append(Bullets(still_open, title=t("Open questions")))
        return View(tuple(blocks))

    def closing(self) -> list[str]:
        """The last lines that the command prints: two findings, the number of all, and what disturbed trials."""
        first = [t("{topic}: {words}", topic=item.topic, words=item.title) for item in self.items[:_SHOWN]]
        said = [*first, self._card, self._counted(), *self._disturbances]
        return [*filter(None, said)] if first or self._questions.answers else []

    def _lead(self) -> str:
        """The measured trials, and how many findings are certain; if none is, what would make findings certain."""
        if not self._evidence.suites:
            return t("Nothing ran.")
        named = self._evidence.suites
        measured = t(
            "{trials} trials of {suites} in {environments}.",
            trials=len(self._evidence.results.trials),
            suites=named[0] if len(named) == 1 else t("{count} suites", count=len(named)),
            environments=in_words(self._evidence.environments),
        )
        takes = "" if self._certain else _what_it_takes(self._questions, self._evidence.results.runs)
        claims = self._verdicts.headline if self._verdicts.is_any_tested else ""
        return prose([*self._where(), measured, self._counted(), takes, claims, self._card])

    def _where(self) -> Iterator[str]:
        """The machine and the days on which runs began, in front of the numbers."""
        runs = self._evidence.results.runs.values()
        days = dict.fromkeys((run.created_at or "")[:10] for run in runs)
        yield t("{words}.", words=", ".join(filter(None, [what_ran.named_machines(self._evidence), *days])))

    def _counted(self) -> str:
        if not self._certain:
            return t("No finding is certain.")
        undecided = sum(answer.state == "open" for answer in self._questions.answers)
        return t("Certain findings: {certain}. Open questions: {open}.", certain=self._certain, open=undecided)

    def _explained(self) -> Iterator[str]:
        """The first paragraph of explanations without a headline, of suites without a card; then their number."""
        shown = {item.anchor for item in self.items}
        found = [
            t("{topic}: {words}", topic=f"{suite}, {environment}", words=paragraphs[0].text)
            for suite in self._evidence.suites
            if f"suite-{suite}" not in shown
            for environment, paragraphs in self._explanations.of(suite).paragraphs().items()
        ]
        yield from found[:_MOST_OPEN]
        if len(found) > _MOST_OPEN:
            yield t("{count} more stand in the sections of the suites.", count=len(found) - _MOST_OPEN)


def chosen_highlights(candidates: Sequence[Candidate]) -> tuple[Highlight, ...]:
    """The highlights of the first screen: by rank, then by surprise."""
    ordered = sorted(candidates, key=lambda each: (each.rank, -each.surprise))
    return tuple(each.item for each in ordered[:_MOST_CARDS])


def _what_it_takes(questions: Questions, runs: Mapping[str, RunRecord]) -> str:
    """What would make something certain: three trials of each case, or more time for the run."""
    run, *others = runs.values()
    if not questions.answers or others or not run.is_of_run_suite:
        return ""
    if max(answer.trials for answer in questions.answers) < FEWEST_TRIALS:
        return t(
            "A verdict takes {count} trials of each case: `invoke run-suite --resume {run} --within 10m report`.",
            count=FEWEST_TRIALS,
            run=run.run_id,
        )
    return t(
        "More trials would show smaller differences: `invoke run-suite --resume {run} --within 30m report`.",
        run=run.run_id,
    )


def _open(questions: Questions) -> Iterator[str]:
    """The first open questions, with their answers so far; then their number."""
    answers = [answer for answer in questions.answers if answer.state == "open"]
    for answer in answers[:_MOST_OPEN]:
        yield t("{topic}: {words}", topic=questions.topic(answer), words=questions.words(answer))
    if len(answers) > _MOST_OPEN:
        yield t("{count} more are open: see the table of all questions.", count=len(answers) - _MOST_OPEN)


def claim_strip(
    of_each_claim: Mapping[tuple[str, str], Sequence[Judgement]], sources: Iterable[Source]
) -> Strip | None:
    """The strip; None where there is no claim. of_each_claim: the judgements by source and claim."""
    every: dict[str, list[Sequence[Judgement]]] = {}
    for (name, _), of_claim in of_each_claim.items():
        every.setdefault(name, []).append(of_claim)
    if not every:
        return None
    rows, others = [], []
    for source in (source for source in sources if source.name in every):
        cells = tuple(map(_cell, every[source.name]))
        if all(cell.letter == _LETTERS["not tested"] for cell in cells):
            others.append(f"{source.name} ({len(cells)})")
            continue
        about = ", ".join(filter(None, (source.title, source.author, source.date)))
        address = source.address if (source.address or "").startswith(("https://", "http://")) else None
        rows.append(StripRow(source.name, about, address or "", cells))
    rest = t("No claim of these sources was tested: {sources}.", sources=in_words(others)) if others else ""
    legend = tuple(StripCell(letter, TONES[verdict], t(verdict)) for verdict, letter in _LETTERS.items())
    return Strip(t("All claims, source by source"), tuple(rows), rest, legend, CLAIMS)


def _cell(of_claim: Sequence[Judgement]) -> StripCell:
    """A claim with the verdict that counts among those of all environments; its words have each verdict."""
    verdict, claim = verdict_that_counts(of_claim), of_claim[0].claim
    where: dict[Verdict, dict[str, None]] = {}
    for each in of_claim:
        if each.verdict != "not tested" and each.subject:
            where.setdefault(each.verdict, {})[" / ".join(each.subject.environments)] = None
    verdicts = (
        t("{verdict} in {environments}", verdict=t(each), environments=in_words(names)) for each, names in where.items()
    )
    words = t("{claim}: {verdict}", claim=in_language(claim.text), verdict=in_words(verdicts) or t(verdict))
    anchor = claim_anchor(of_claim[0].source, claim.id)
    return StripCell(_LETTERS[verdict], TONES[verdict], words, claim.id, anchor)
