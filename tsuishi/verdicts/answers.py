"""Answers to the questions of runs: the comparisons that they ask for, and the words that follow once they are decided.

The words follow from the intervals of the report's family: see conclusions.py.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tsuishi.estimates.contrasts import contrast
from tsuishi.estimates.intervals import FEWEST_TRIALS, Contrast
from tsuishi.estimates.timed_blocks import Described, TimedBlock, phase_estimates, work_estimates
from tsuishi.specs.case import BATCH_SIZE, SUITE
from tsuishi.specs.claims import DECIDED
from tsuishi.specs.questions import LOOKS, MatrixCell, PlannedQuestion, look_at
from tsuishi.specs.source import Epochs
from tsuishi.specs.statuses import MISSING, NO_CASE, OK
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.family import Decision, Hypothesis, PValues, p_values
from tsuishi.verdicts.hypotheses import Missing
from tsuishi.verdicts.judge import Judgement

# A comparison is answered when its interval shows the larger side, or that the sides are alike; a claim when it has a
# verdict; an explanation when it has FEWEST_TRIALS; a measurement when it has a trial.
State = Literal["answered", "open", "cannot be answered"]


@dataclass(frozen=True)
class Answer:
    """The answer to a question of a run.

    A comparison has the logarithm of a `ratio`, by the trials of its last look; a claim has a `judgement`. `columns`:
    the environments' names in the report. `trials`: the number of trials of the cell with the fewest, for a claim of
    those with a number. `missing`: the cells that bring no number, whatever their trials. `decision`: what the family
    says of a comparison: that its sides are alike (`holds`), or that they differ (`against`).
    """

    run_id: str
    asked: PlannedQuestion
    state: State
    trials: int
    columns: tuple[str, ...]
    ratio: Contrast | None = None
    judgement: Judgement | None = None
    missing: Missing | None = None
    decision: Decision | None = None

    @property
    def level(self) -> float:
        """The interval of confidence 1 - level decides; 0 before the first look."""
        return self.decision.level if self.decision else 0.0

    def column(self, environment: str) -> str:
        """The name in the report of an environment that the question names."""
        return dict(zip(self.asked.environments, self.columns, strict=True)).get(environment, environment)


def undecided(evidence: Evidence) -> list[Answer]:
    """The answers to the questions of all runs, without their decisions and judgements: in the order of the records."""
    found = []
    for run_id, run in evidence.results.runs.items():
        outcomes = evidence.outcomes[evidence.outcomes["run_id"] == run_id]
        columns: dict[str, str] = {}
        statuses: dict[tuple[str, str], list[str]] = {}
        values = (outcomes[name].tolist() for name in ("case_id", "environment", "column", "status"))
        for case_id, environment, column, status in zip(*values, strict=True):
            columns[environment] = column
            statuses.setdefault((case_id, environment), []).append(status)
        found += [_undecided(evidence, run_id, question, columns, statuses) for question in run.questions]
    return found


def hypothesis(answer: Answer) -> Hypothesis | None:
    """The hypothesis of a comparison, which counts in its family before anything is measured; None for other questions.

    That of an explanation has no p value: its headline is held to the level that the family leaves to it.

    A ratio without an interval decides nothing. That sides are alike is not said at the first look: three trials may
    all be of one kind.
    """
    if not answer.asked.compares:
        return Hypothesis(PValues(1.0, 1.0, 1.0), answer.trials) if answer.asked.kind == "explanation" else None
    ps = p_values(answer.ratio)
    return Hypothesis(ps if answer.trials >= LOOKS[1] else ps._replace(p_hold=1.0, p_direction=1.0), answer.trials)


def with_decision(answer: Answer, decision: Decision | None, judgements: Sequence[Judgement]) -> Answer:
    """The answer with its decision or judgement, and its state."""
    judgement = _judgement(judgements, answer) if answer.asked.claim else None
    state = _state(answer, decision, judgement)
    return replace(answer, decision=decision, judgement=judgement, state=state)


def is_about(judgement: Judgement, answer: Answer) -> bool:
    """Whether a judgement is on the claim of a question, in one of the question's environments."""
    return bool(
        judgement.source == answer.asked.source
        and judgement.claim.id == answer.asked.claim
        and judgement.subject
        and {*answer.columns} & {*judgement.subject.environments}
    )


def quantities_of(
    samples: Iterable[Mapping[str, str]],
    metrics: Iterable[Mapping[str, str]],
    axes: Mapping[str, Any],
    words: Vocabulary,
    whole: Epochs | None,
) -> dict[str, float]:
    """The quantities of one finished trial, reckoned as a report does.

    samples, metrics: the rows of the trial's tables. axes: those of its case. whole: the length of a whole training,
    where a source says it. Raises KeyError, ValueError or ArithmeticError where rows hold no numbers.
    """
    phases: dict[str, list[TimedBlock]] = {}
    for row in samples:
        block = TimedBlock(int(row["steps"]), int(row["images"]), float(row["seconds"]))
        phases.setdefault(row["phase"], []).append(block)
    by_metric: dict[str, list[float]] = {}
    for row in metrics:
        by_metric.setdefault(row["name"], []).append(float(row["value"]))
    described, batch_size = Described(words, str(axes[SUITE])), axes.get(BATCH_SIZE)
    last = {name: of_metric[-1] for name, of_metric in by_metric.items()}
    estimates = [*phase_estimates(phases, batch_size, whole, described, from_steps=False)]
    estimates += work_estimates(phases, last, batch_size)
    values = {estimate.quantity: estimate.value for estimate in estimates}
    for name, of_metric in by_metric.items():
        values |= described.of_metric(name, of_metric)
    return values


def _undecided(
    evidence: Evidence,
    run_id: str,
    asked: PlannedQuestion,
    columns: dict[str, str],
    statuses: Mapping[tuple[str, str], list[str]],
) -> Answer:
    counts, missing = _counts(statuses, asked)
    fewest = min(counts, default=0)
    named = tuple(columns.get(name, name) for name in asked.environments)
    begun: State = "cannot be answered" if missing and not counts else "open"
    answer = Answer(run_id, asked, begun, fewest, named, missing=missing)
    if not asked.compares:
        return answer
    tried = [cell for cell in asked.cells if OK in statuses.get((cell.case_id, cell.environment), ())]
    if why := next(_without_ratios(evidence, asked, columns, tried), None):
        return replace(answer, missing=why)
    return replace(answer, ratio=_ratio(evidence, asked, columns, fewest))


def _without_ratios(
    evidence: Evidence, asked: PlannedQuestion, columns: Mapping[str, str], tried: Iterable[MatrixCell]
) -> Iterator[Missing]:
    """The cells without logarithms of the quantity. tried: cells with a trial that ended well."""
    for cell in tried:
        key = cell.case_id, columns.get(cell.environment, ""), asked.quantity
        if key not in evidence.terms:
            side, axes = "of" if cell in asked.of else "to", evidence.axes[cell.case_id]
            yield Missing(side, axes, (OK,), (asked.quantity, evidence.without_ratio.get(key)))


def _ratio(evidence: Evidence, asked: PlannedQuestion, columns: Mapping[str, str], trials: int) -> Contrast | None:
    """The logarithm of a ratio of geometric means, by the trials of the last look; by all before the first look.

    None where a cell has no term.
    """
    look = look_at(trials)
    terms = evidence.terms_of_first(look) if look else evidence.terms
    weighted = []
    for side, sign in ((asked.of, 1.0), (asked.to, -1.0)):
        for cell in side:
            term = terms.get((cell.case_id, columns.get(cell.environment, ""), asked.quantity))
            if term is None:
                return None
            weighted.append((sign / len(side), term))
    return contrast(weighted)


def _counts(statuses: Mapping[tuple[str, str], list[str]], asked: PlannedQuestion) -> tuple[list[int], Missing | None]:
    """The number of ok trials of each cell; and the cells whose trials are all not ok, if any.

    Claims are judged without these cells, which are not counted then.
    """
    counts, lacking = [], set[str]()
    for cell in asked.cells:
        of_cell = statuses.get((cell.case_id, cell.environment), [])
        of_no_number = {*of_cell} - {MISSING} if not of_cell.count(OK) else set[str]()
        lacking |= of_no_number
        if not (asked.claim and of_no_number):
            counts.append(of_cell.count(OK))
    return counts, Missing("", {}, tuple(sorted(lacking))) if lacking else None


def _judgement(judgements: Sequence[Judgement], answer: Answer) -> Judgement | None:
    """The judgement on a question's claim: tested judgements come first."""
    of_claim = [judgement for judgement in judgements if is_about(judgement, answer)]
    return min(of_claim, key=lambda judgement: judgement.verdict == "not tested", default=None)


def _cannot_be_judged(answer: Answer, judgement: Judgement | None) -> bool:
    """Whether a claim lacks cases that more trials do not bring.

    Cases that the machine has not are no such cases, unless nothing is left to compare without them.
    """
    statuses = answer.missing.statuses if answer.missing else ()
    if answer.state == "cannot be answered" or {*statuses} - {*NO_CASE}:
        return True
    is_tried = answer.trials >= answer.asked.first_look
    return bool(statuses) and is_tried and judgement is not None and judgement.verdict == "not tested"


def _state(answer: Answer, decision: Decision | None, judgement: Judgement | None) -> State:
    if answer.asked.claim:
        if judgement and judgement.verdict in DECIDED:
            return "answered"
        return "cannot be answered" if _cannot_be_judged(answer, judgement) else "open"
    if answer.missing:
        return "cannot be answered"
    if answer.asked.compares:
        return "answered" if decision and (decision.holds or decision.against) else "open"
    # A measurement is a number, in which nothing is open once it is there.
    enough = 1 if answer.asked.kind == "measurement" else FEWEST_TRIALS
    return "answered" if answer.trials >= enough else "open"
