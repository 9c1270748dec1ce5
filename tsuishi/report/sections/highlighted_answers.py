"""Highlights from the questions of a run: a comparison that is decided, an explanation that found something."""

import math
from collections.abc import Iterator, Sequence

from tsuishi.base.language import prose, t
from tsuishi.estimates.contrasts import ratio
from tsuishi.estimates.intervals import Term
from tsuishi.estimates.ratios import as_ratio
from tsuishi.report.charts import figures
from tsuishi.report.charts.small import ratios_chart, trials_chart, values_chart
from tsuishi.report.parts.blocks import Certainty, Chart, Highlight
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.ranking import (
    Candidate,
    Rank,
    alike_by,
    compared_alone,
    marked_as_simulated,
    of_the_family,
    seen,
)
from tsuishi.report.parts.two_sides import TwoSides
from tsuishi.report.parts.wording import amount, capital, case_text, label, unit_of
from tsuishi.report.sections.main_questions import Questions
from tsuishi.specs.case import PROTOCOL, SUITE
from tsuishi.specs.questions import MatrixCell, look_at
from tsuishi.verdicts.answers import Answer
from tsuishi.verdicts.evidence import Evidence

# A card shows no more rows than a reader takes in at a glance.
_MOST_ROWS = 5


def from_answers(evidence: Evidence, questions: Questions, explanations: Explanations) -> Iterator[Candidate]:
    """The answers that say something, and what explanations found unasked; claims have highlights of their own."""
    asked = {}
    for answer in questions.answers:
        if answer.asked.kind == "explanation":
            rank = _rank(answer) if answer.level else Rank.SEEN
            asked[answer.asked.suite, answer.columns[0]] = (questions.topic(answer), answer.asked.id, rank)
        elif answer.asked.compares and answer.state == "answered":
            yield _compared(evidence, questions, answer)
    for suite in evidence.suites:
        for environment in evidence.environments:
            unasked = t("{suite}, {environment}", suite=suite, environment=environment)
            given = asked.get((suite, environment), (unasked, f"{suite}/{environment}", Rank.SEEN))
            yield from _explained(evidence, explanations, (suite, environment), given)


def decided_answers(evidence: Evidence, questions: Questions, explanations: Explanations) -> dict[str, str]:
    """The sentences of a report on its questions that are decided, by the question's id."""
    said = {}
    for answer in questions.answers:
        if answer.state == "answered" and answer.asked.compares:
            text = _title(questions, answer)
        elif answer.state == "answered" and answer.asked.kind == "explanation":
            found = explanations.of(answer.asked.suite).headline(answer.columns[0])
            text = found.title if found and found.sure and answer.level else ""
        else:
            text = questions.words(answer) if answer.state == "answered" and answer.asked.claim else ""
        if text:
            said[answer.asked.id] = t("{topic}: {words}", topic=questions.topic(answer), words=text)
    return said


def _explained(
    evidence: Evidence, explanations: Explanations, place: tuple[str, str], asked: tuple[str, str, Rank]
) -> Iterator[Candidate]:
    """The headline of a suite's explanation in an environment, if it has one.

    asked: the topic of the card, the name of its chart, and its rank where it is sure: SEEN where no family has it.
    """
    (suite, environment), (topic, name, rank) = place, asked
    found = explanations.of(suite).headline(environment)
    if found is None:
        return
    drawn = values_chart(found.points, found.over, found.quantity)
    chart = figures.block(drawn, topic, f"highlight-{name}", found.caption)
    certainty: Certainty = "certain" if found.sure and rank is not Rank.SEEN else "seen"
    simulated = any(
        column == environment and evidence.axes[case][SUITE] == suite for case, column in evidence.simulated
    )
    of_family = of_the_family if certainty == "certain" else compared_alone
    sure = marked_as_simulated(of_family(found.trials) if found.sure else seen(), simulated)
    item = Highlight(topic, found.title, found.text, certainty, sure, f"suite-{suite}", (chart,))
    yield Candidate(rank if found.sure else Rank.SEEN, math.log(found.times), item)


def _rank(answer: Answer) -> Rank:
    return Rank.ANSWER if answer.asked.main else Rank.CERTAIN


def _compared(evidence: Evidence, questions: Questions, answer: Answer) -> Candidate:
    """A comparison that the family decided: its sides differ at least so much, or are alike."""
    both, cells, is_alike = questions.compared(answer), (answer.asked.of, answer.asked.to), _is_alike(answer)
    values = _amounts(evidence, answer, cells, questions.sides(answer))
    text = prose(
        [
            t("{what}: {values}.", what=capital(label(both.quantity)), values=values) if values else "",
            capital(t("{words}.", words=both.words())),
            capital(t("{words}.", words=alike_by(look_at(answer.trials)))) if is_alike else "",
        ]
    )
    topic = questions.topic(answer)
    chart = _chart(evidence, answer, questions.sides(answer), both, topic)
    suite = evidence.axes[answer.asked.of[0].case_id][SUITE]
    measured = {(cell.case_id, answer.column(cell.environment)) for side in cells for cell in side}
    sure = marked_as_simulated(of_the_family(answer.trials), not measured.isdisjoint(evidence.simulated))
    item = Highlight(topic, _title(questions, answer), text, "certain", sure, f"suite-{suite}", chart)
    return Candidate(_rank(answer), 0.0 if is_alike else math.log(both.nearest), item)


def _is_alike(answer: Answer) -> bool:
    """Whether the family says of a comparison that is decided that its sides are alike."""
    return not (answer.decision and answer.decision.against)


def _title(questions: Questions, answer: Answer) -> str:
    """The finding of a comparison that is decided."""
    of, to = questions.sides(answer)
    if _is_alike(answer):
        return t("{of} and {to} are alike: their usual trials differ by less than a tenth", of=of, to=to)
    return questions.compared(answer).headline()


Cells = tuple[tuple[MatrixCell, ...], tuple[MatrixCell, ...]]


def _term(evidence: Evidence, answer: Answer, cell: MatrixCell) -> Term | None:
    """The term of a cell, of the quantity that a question compares."""
    return evidence.terms.get((cell.case_id, answer.column(cell.environment), answer.asked.quantity))


def _amounts(evidence: Evidence, answer: Answer, cells: Cells, sides: tuple[str, str]) -> str:
    """The geometric mean of each side, where a side is a single cell; else the number of its cases."""
    if any(len(side) > 1 for side in cells):
        return t("the mean over {count} cases of each side", count=max(map(len, cells)))
    unit, texts = unit_of(answer.asked.quantity), []
    for (cell,), name in zip(cells, sides, strict=True):
        term = _term(evidence, answer, cell)
        if term is None:
            return ""
        texts.append(f"{name} {amount(math.exp(term.mean), unit)}")
    return ", ".join(texts)


def _chart(evidence: Evidence, answer: Answer, sides: tuple[str, str], both: TwoSides, topic: str) -> tuple[Chart, ...]:
    """The trials of both sides, where a side is a single cell; else the ratio of each pair of cells, as in `both`."""
    cells, quantity, name = (answer.asked.of, answer.asked.to), answer.asked.quantity, f"highlight-{answer.asked.id}"
    if all(len(side) == 1 for side in cells):
        drawn = [_trials(evidence, answer, side[0]) for side in cells]
        if not all(values for values, _ in drawn):
            return ()
        rows = [(side, values, mean) for side, (values, mean) in zip(sides, drawn, strict=True)]
        caption = t("Dots: trials; ticks: their means.")
        return (figures.block(trials_chart(rows, quantity), topic, name, caption),)
    pairs = _pair_rows(evidence, answer, turned=both.larger != sides[0])
    if not pairs:
        return ()
    title = t("{of} over {to}, log scale", of=both.larger, to=both.smaller)
    caption = t("A row for each case; 95 % intervals per comparison.")
    return (figures.block(ratios_chart(pairs[:_MOST_ROWS], title), topic, name, caption),)


def _trials(evidence: Evidence, answer: Answer, cell: MatrixCell) -> tuple[Sequence[float], float]:
    """The values of a cell's trials, and their geometric mean."""
    axes, column = evidence.axes[cell.case_id], answer.column(cell.environment)
    of_cases = evidence.trial_values.get((axes[SUITE], axes[PROTOCOL], column, answer.asked.quantity), {})
    values = of_cases.get(cell.case_id, ())
    term = _term(evidence, answer, cell)
    return (values, math.exp(term.mean)) if term else ((), math.nan)


def _pair_rows(evidence: Evidence, answer: Answer, turned: bool) -> list[dict[str, object]]:
    """The ratio of each pair of cells at the same place of both sides; turned: of the second to the first."""
    rows: list[dict[str, object]] = []
    if len(answer.asked.of) != len(answer.asked.to):
        return rows
    pairs = list(zip(answer.asked.of, answer.asked.to, strict=True))
    shared = [evidence.axes[of.case_id] for of, _ in pairs]
    varying = {axis for axes in shared for axis in axes if len({str(other.get(axis)) for other in shared}) > 1}
    for of, to in pairs:
        first, second = _term(evidence, answer, of), _term(evidence, answer, to)
        if first and second:
            name = case_text(evidence.axes[of.case_id], varying)
            over = ratio(second, first) if turned else ratio(first, second)
            rows.append({"name": name, **as_ratio(over)._asdict(), "published": False})
    return rows
