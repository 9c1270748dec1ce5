"""Answers to the questions of a run. Their intervals are not corrected for earlier looks (docs/method.md)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tsuishi.estimates.intervals import FEWEST_TRIALS, Contrast, Term, contrast
from tsuishi.estimates.timed_blocks import Block, Described, phase_estimates, work_estimates
from tsuishi.estimates.variances import pool
from tsuishi.specs.case import BATCH_SIZE, PROTOCOL, SUITE
from tsuishi.specs.questions import ALIKE, Asked
from tsuishi.specs.source import Epochs
from tsuishi.specs.statuses import MISSING, OK
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.judge import Judgement

# A comparison is answered when its interval shows the larger side, or that the sides are alike; a claim when it has a
# verdict; another question when it has FEWEST_TRIALS.
State = Literal["answered", "open", "cannot be answered"]


@dataclass(frozen=True)
class Answer:
    """The answer to a question of a run.

    A comparison has the logarithm of a `ratio`; a claim has a `judgement`. `columns`: the environments' names in the
    report. `trials`: the number of trials of the cell with the fewest. `lacking`: the statuses of cells without a
    number.
    """

    run_id: str
    asked: Asked
    state: State
    trials: int
    columns: tuple[str, ...]
    ratio: Contrast | None = None
    judgement: Judgement | None = None
    lacking: tuple[str, ...] = ()


def answers(evidence: Evidence, judgements: Sequence[Judgement]) -> list[Answer]:
    """The answers to the questions of all runs: main questions first, then in the order of the records."""
    answers = []
    for run_id, run in evidence.results.runs.items():
        outcomes = evidence.outcomes[evidence.outcomes["run_id"] == run_id]
        columns: dict[str, str] = {}
        statuses: dict[tuple[str, str], list[str]] = {}
        values = (outcomes[name].tolist() for name in ("case_id", "environment", "column", "status"))
        for case_id, environment, column, status in zip(*values, strict=True):
            columns[environment] = column
            statuses.setdefault((case_id, environment), []).append(status)
        answers += [_answer(evidence, judgements, run_id, question, columns, statuses) for question in run.questions]
    return sorted(answers, key=lambda answer: not answer.asked.main)


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
    phases: dict[str, list[Block]] = {}
    for row in samples:
        block = Block(int(row["steps"]), int(row["images"]), float(row["seconds"]))
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


def ratio_of(of: Sequence[Sequence[float]], to: Sequence[Sequence[float]]) -> Contrast | None:
    """The logarithm of a ratio: the geometric mean of side `of` over the geometric mean of side `to`.

    A side has a list for each cell, with a value for each trial. Each cell has its own scatter (Welch). None where a
    cell has no value above 0.
    """
    weighted = []
    for side, sign in ((of, 1.0), (to, -1.0)):
        for values in side:
            logs = [math.log(value) for value in values if value > 0]
            if not logs:
                return None
            weighted.append((sign / len(side), Term(math.fsum(logs) / len(logs), len(logs), pool([logs]))))
    return contrast(weighted)


def is_decided(ratio: Contrast | None) -> bool:
    """Whether the 95 % interval excludes 1, or shows that both sides are alike; not corrected for earlier looks."""
    interval = ratio.interval() if ratio else None
    if interval is None:
        return False
    return is_alike(ratio) or interval.low > 0 or interval.high < 0


def is_alike(ratio: Contrast | None) -> bool:
    """Whether the 95 % interval lies between 1 / ALIKE and ALIKE."""
    interval = ratio.interval() if ratio else None
    return interval is not None and -math.log(ALIKE) < interval.low and interval.high < math.log(ALIKE)


def _answer(
    evidence: Evidence,
    judgements: Sequence[Judgement],
    run_id: str,
    asked: Asked,
    columns: dict[str, str],
    statuses: Mapping[tuple[str, str], list[str]],
) -> Answer:
    counts, lacking = _counts(statuses, asked)
    ratio, judgement = None, None
    if asked.compares:
        ratio = ratio_of(*(_values(evidence, asked, side, columns) for side in (asked.of, asked.to)))
    elif asked.claim:
        judgement = _judgement(judgements, asked, {columns.get(name, name) for name in asked.environments})
    fewest = min(counts, default=0)
    return Answer(
        run_id,
        asked,
        _state(asked, fewest, lacking, ratio, judgement),
        fewest,
        tuple(columns.get(name, name) for name in asked.environments),
        ratio,
        judgement,
        lacking,
    )


def _counts(statuses: Mapping[tuple[str, str], list[str]], asked: Asked) -> tuple[list[int], tuple[str, ...]]:
    """The number of ok trials of each cell; and the statuses of the cells whose trials are all not ok."""
    counts, lacking = [], set()
    for cell in asked.cells:
        of_cell = statuses.get((cell.case_id, cell.environment), [])
        counts.append(of_cell.count(OK))
        if of_cell and not of_cell.count(OK):
            lacking |= {*of_cell} - {MISSING}
    return counts, tuple(sorted(lacking))


def _values(evidence: Evidence, asked: Asked, side: Sequence[Any], columns: dict[str, str]) -> list[list[float]]:
    values = []
    for cell in side:
        axes = evidence.axes.get(cell.case_id, {})
        key = axes.get(SUITE, ""), axes.get(PROTOCOL, ""), columns.get(cell.environment, ""), asked.quantity
        values.append(evidence.trial_values.get(key, {}).get(cell.case_id, []))
    return values


def _judgement(judgements: Sequence[Judgement], asked: Asked, columns: set[str]) -> Judgement | None:
    """The judgement on a question's claim in any of these columns: tested judgements come first."""
    of_claim = [
        judgement
        for judgement in judgements
        if judgement.source == asked.source
        and judgement.claim.id == asked.claim
        and judgement.subject
        and columns & {*judgement.subject.environments}
    ]
    return min(of_claim, key=lambda judgement: judgement.verdict == "not tested", default=None)


def _state(
    asked: Asked, fewest: int, lacking: Sequence[str], ratio: Contrast | None, judgement: Judgement | None
) -> State:
    if lacking:
        return "cannot be answered"
    if asked.compares:
        return "answered" if fewest >= FEWEST_TRIALS and is_decided(ratio) else "open"
    if asked.claim:
        undecided = judgement is None or judgement.verdict in ("inconclusive", "not tested")
        return "open" if undecided else "answered"
    return "answered" if fewest >= FEWEST_TRIALS else "open"
