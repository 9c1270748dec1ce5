"""The questions of a run and their answers, and what more time would bring."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tsuishi.base.language import in_language, in_words, mark, prose, t
from tsuishi.estimates.intervals import FEWEST_TRIALS
from tsuishi.estimates.ratios import as_ratio
from tsuishi.report.parts.blocks import Block, Bullets, View
from tsuishi.report.parts.declarations import FAMILY, Column, Tables, cells
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.ranking import alike_by
from tsuishi.report.parts.two_sides import TwoSides, two_sides
from tsuishi.report.parts.wording import (
    Table,
    amount,
    case_text,
    digits,
    label,
    no_number_text,
    text_cell,
    unit_of,
    vocabulary_in_use,
)
from tsuishi.report.sections.claim_words import claim_name, sentence
from tsuishi.report.sections.pairs import paced_by
from tsuishi.specs.case import BATCH_SIZE, DEVICES, SUITE
from tsuishi.specs.questions import PlannedQuestion, look_at
from tsuishi.verdicts.answers import Answer
from tsuishi.verdicts.evidence import Evidence

TABLES: Tables = {
    "questions": (
        Column("run_id", "string", "the run that asked it"),
        Column("question", "string", "its id: suite or source, question or claim, environments"),
        Column("title", "string", "the question in words"),
        Column("main", "boolean", "named as a main question before anything was measured"),
        Column("state", "string", "answered, open, or cannot be answered"),
        Column("answer", "string", "the answer in words"),
        Column("ratio", "number", "of a comparison: first side over second, of geometric means over trials"),
        Column("low", "number", "lower end of its 95 % interval per comparison, which decides nothing"),
        Column("high", "number", "upper end of that interval"),
        *FAMILY,
        Column("trials", "integer", "of the case with the fewest"),
    )
}
_STATES = {"answered": mark("answered"), "open": mark("open"), "cannot be answered": mark("cannot be answered")}


class Questions:
    """The answers of a report's runs, and the questions that more time would answer."""

    def __init__(self, evidence: Evidence, answers: Sequence[Answer], explanations: Explanations) -> None:
        self._evidence = evidence
        self._explanations = explanations
        self.answers = answers

    def views(self) -> Iterator[View]:
        """The main questions, then later questions; below them, what more time would bring."""
        if not self.answers:
            return
        columns = [t("question"), t("environments"), t("state"), t("answer"), t("trials")]
        rows = [
            [
                text_cell(self.title(answer.asked)),
                text_cell(", ".join(answer.columns)),
                text_cell(t(_STATES[answer.state]), "label"),
                text_cell(self.words(answer)),
                text_cell(answer.trials, "label"),
            ]
            for answer in self.answers
        ]
        later = sum(not answer.asked.main for answer in self.answers)
        notes = [t("Named before anything was measured, but for the last {count}.", count=later)] if later else []
        notes.append(
            t(
                "The intervals decide the state of a question. They are wider than 95 %: of 100 reports on "
                "environments that do not differ, at most 5 state a difference, however many questions they ask "
                "and however often they are made again (docs/certainty.md)."
            )
        )
        title = t("All questions of this run, and their answers ({count})", count=len(rows))
        blocks: list[Block] = [Table(columns, rows, title=title, notes=notes, folded=True)]
        if more := self.more():
            blocks.append(Bullets(tuple(more), title=t("What more time would bring")))
        yield View(tuple(blocks), {"questions": [self._row(answer) for answer in self.answers]})

    def more(self) -> list[str]:
        """What more time would bring to each run: a line for each further question. Equal lines stand once."""
        lines: dict[str, None] = {}
        for run in self._evidence.results.runs.values():
            for asked in run.more:
                minutes = max(1, -(-round(asked.seconds) // 60))
                question = self.brief(asked)
                lines[t("with {minutes} min more: {question}", minutes=minutes, question=question)] = None
        return [*lines]

    def title(self, asked: PlannedQuestion) -> str:
        """A question in the report's language."""
        if asked.kind == "measurement":
            return self._measurement(asked)
        title = in_language(asked.title).rstrip(".。")
        return f"{asked.source} ({asked.claim}): {title}" if asked.claim else title

    def topic(self, answer: Answer) -> str:
        """A question in the report's language, with its environment where it is asked of a single one."""
        title = self.title(answer.asked)
        if answer.asked.kind not in ("cases", "explanation"):
            return title
        return t("{question}, {environment}", question=title, environment=answer.columns[0])

    def brief(self, asked: PlannedQuestion) -> str:
        """A question in a few words, with its environments."""
        name = claim_name(asked.source, asked.claim) if asked.claim else self.title(asked)
        return f"{name} ({', '.join(asked.environments)})"

    def words(self, answer: Answer) -> str:
        """The answer in a sentence or two."""
        if answer.missing and answer.state == "cannot be answered":
            why = no_number_text(answer.missing)
            if answer.missing.without_ratio:
                return t("{side}: {why}", side=self.sides(answer)[answer.missing.side == "to"], why=why)
            return t("a case of this question is {statuses}", statuses=why)
        if answer.asked.compares:
            return self._compared(answer)
        if answer.asked.claim:
            return _judged(answer)
        if answer.asked.kind == "explanation":
            return self._explanation(answer)
        return self._measured(answer)

    def _compared(self, answer: Answer) -> str:
        if answer.ratio is None:
            return t("not measured yet: {sides}", sides=in_words(self._unmeasured(answer)))
        both, error = self.compared(answer), answer.ratio.error
        if error is None and (others := self._beside(answer)):
            return t(
                "no ratio: other programs took up to {percent} % of the cores beside its trials, and single trials "
                "then differ by chance",
                percent=round(others),
            )
        if both.ratio.low is None:
            apart = error == math.inf
            why = t("(no interval: measured in different sessions)") if apart else t("(no interval: a single trial)")
        elif answer.trials < FEWEST_TRIALS:
            why = t("(too few trials for a verdict)")
        elif answer.decision and answer.decision.holds:
            why = t("(usual trials differ by less than a tenth; {but})", but=alike_by(look_at(answer.trials)))
        elif answer.state == "open" and both.level:
            why = _why_open(both, look_at(answer.trials))
        else:
            why = ""
        return prose([both.words(), why])

    def compared(self, answer: Answer) -> TwoSides:
        """The sides of a comparison that has a ratio, with the interval that decides."""
        assert answer.ratio
        return two_sides(self.sides(answer), answer.ratio, answer.asked.quantity, answer.level)

    def _beside(self, answer: Answer) -> float:
        """The largest share of the cores that other programs took beside a trial of a comparison, in percent; or 0."""
        others = self._evidence.of_others
        places = ((cell.case_id, answer.column(cell.environment)) for cell in answer.asked.cells)
        return max((others.get(place, 0.0) for place in places), default=0.0)

    def _unmeasured(self, answer: Answer) -> Iterator[str]:
        """The names of the sides of a comparison of which a case has no number yet."""
        asked, terms = answer.asked, self._evidence.terms
        for name, side in zip(self.sides(answer), (asked.of, asked.to), strict=True):
            keys = ((cell.case_id, answer.column(cell.environment), asked.quantity) for cell in side)
            if any(key not in terms for key in keys):
                yield name

    def sides(self, answer: Answer) -> tuple[str, str]:
        """The names of the two sides: their environments, or the axes in which their cases differ."""
        asked = answer.asked
        if asked.kind == "environments":
            return answer.columns[0], answer.columns[-1]
        of, to = (self._evidence.axes.get(side[0].case_id, {}) for side in (asked.of, asked.to))
        differ = {axis for axis in {*of, *to} if of.get(axis) != to.get(axis)}
        if {DEVICES} < differ:
            differ -= {BATCH_SIZE}
        return _side(of, differ), _side(to, differ)

    def _measurement(self, asked: PlannedQuestion) -> str:
        """The case of a measurement, by the axes in which it differs from the others of its suite."""
        axes = self._evidence.axes.get(asked.of[0].case_id, {})
        others = [other for other in self._evidence.axes.values() if other.get(SUITE) == asked.suite]
        differ = {axis for axis in axes if any(other.get(axis) != axes[axis] for other in others)}
        case = _side(axes, differ)
        return t("{suite}: {case}", suite=asked.suite, case=case) if case else asked.suite

    def _measured(self, answer: Answer) -> str:
        """The first time or rate of a measured case, in each environment that has it."""
        case_id, terms = answer.asked.of[0].case_id, self._evidence.terms
        every = {quantity for case, _, quantity in terms if case == case_id}
        for quantity in paced_by(self._evidence, answer.asked.suite, self._explanations, every):
            known = [(name, terms[key]) for name in answer.columns if (key := (case_id, name, quantity)) in terms]
            unit = unit_of(quantity)
            values = in_words(f"{name} {amount(math.exp(term.mean), unit)}" for name, term in known)
            return t("{what}: {values}", what=label(quantity), values=values)
        if not answer.trials:
            return t("nothing was measured yet")
        return t("it has no time and no rate: the tables of its suite have its numbers")

    def _explanation(self, answer: Answer) -> str:
        """The first paragraph of a suite's explanation in an environment."""
        paragraphs = self._explanations.of(answer.asked.suite).paragraphs().get(answer.columns[0])
        return paragraphs[0].text if paragraphs else t("nothing was measured yet")

    def _row(self, answer: Answer) -> dict[str, Any]:
        row = cells(TABLES["questions"], answer) | {"question": answer.asked.id, "main": answer.asked.main}
        row |= {"title": self.title(answer.asked), "answer": self.words(answer), "ratio": None}
        if answer.ratio:
            row |= dict(zip(("ratio", "low", "high"), as_ratio(answer.ratio), strict=True))
            if answer.level:
                family = as_ratio(answer.ratio, answer.level)
                row |= {"level": answer.level, "family_low": family.low, "family_high": family.high}
        return row


def _why_open(both: TwoSides, trials: int) -> str:
    """How large a difference must be to be found by so many trials with this scatter, unless they say nothing."""
    detectable = both.logarithm.detectable(both.level)
    if both.scatters or math.isinf(detectable):
        return t("(open: its trials scatter too much)")
    return t(
        "(open: with this scatter, {trials} trials find a difference of {ratio} times in four of five runs)",
        trials=trials, ratio=digits(math.exp(detectable)),
    )  # fmt: skip


def _side(axes: Mapping[str, Any], differ: set[str]) -> str:
    """A side by the axes in which sides differ; with usual values if the text would be empty without them."""
    said = case_text(dict(axes), differ) or case_text(dict(axes), differ, always=True)
    if said or not differ:
        return said
    return in_words(t("without {axis}", axis=vocabulary_in_use().axis(axis).called) for axis in sorted(differ))


def _judged(answer: Answer) -> str:
    if answer.judgement is None:
        return t("nothing was measured yet")
    return prose([f"{t(answer.judgement.verdict)}:", sentence(answer.judgement)])
