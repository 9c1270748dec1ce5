"""Answers: what a run's questions come to, with the interval of this look and nothing more certain than that."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tsuishi.estimates.intervals import FEWEST_TRIALS, Contrast, Term, contrast, pool
from tsuishi.specs.questions import ALIKE, Asked
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.judge import Judgement

# answered: its interval says which side is larger, or that they are alike; in words or by a verdict, for the others.
State = Literal["answered", "open", "cannot be answered"]


@dataclass(frozen=True)
class Answer:
    """What is known of one question of a run.

    `ratio` is of logarithms, of a comparison; `judgement` of a claim. `columns`: what its environments are called in
    the report. `trials`: of the cell with the fewest. `lacking`: statuses of cells that bring no number.
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
    """The questions of every run, main questions first, in the order in which they were named."""
    found = []
    for run_id, run in evidence.results.runs.items():
        for recorded in run.get("questions", []):
            found.append(_answer(evidence, judgements, run_id, Asked.model_validate(recorded, strict=False)))
    return sorted(found, key=lambda one: not one.asked.main)


def ratio_of(of: Sequence[Sequence[float]], to: Sequence[Sequence[float]]) -> Contrast | None:
    """The logarithm of the mean of one side over that of the other, from the values of each cell's trials.

    Each cell's scatter is its own (Welch). None where a cell has no trial with a value above 0.
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
    """Whether a 95 % interval excludes 1, or lies within a tenth of it: at this look, without regard to others."""
    interval = ratio.interval() if ratio else None
    if interval is None:
        return False
    return is_alike(ratio) or interval.low > 0 or interval.high < 0


def is_alike(ratio: Contrast | None) -> bool:
    """Whether the 95 % interval lies within a tenth of 1."""
    interval = ratio.interval() if ratio else None
    return interval is not None and -math.log(ALIKE) < interval.low and interval.high < math.log(ALIKE)


def _answer(evidence: Evidence, judgements: Sequence[Judgement], run_id: str, asked: Asked) -> Answer:
    outcomes = evidence.outcomes[evidence.outcomes["run_id"] == run_id]
    columns = dict(zip(outcomes["environment"].tolist(), outcomes["column"].tolist(), strict=True))
    counts, lacking = _counts(outcomes, asked)
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


def _counts(outcomes: Any, asked: Asked) -> tuple[list[int], tuple[str, ...]]:
    """How many trials of each cell are ok; the statuses of those cells of which none is."""
    counts, lacking = [], set()
    keys = zip(outcomes["case_id"].tolist(), outcomes["environment"].tolist(), strict=True)
    statuses: dict[tuple[str, str], list[str]] = {}
    for key, status in zip(keys, outcomes["status"].tolist(), strict=True):
        statuses.setdefault(key, []).append(status)
    for cell in asked.cells:
        mine = statuses.get((cell.case_id, cell.environment), [])
        counts.append(mine.count("ok"))
        if mine and not mine.count("ok"):
            lacking |= {*mine} - {"missing"}
    return counts, tuple(sorted(lacking))


def _values(evidence: Evidence, asked: Asked, side: Sequence[Any], columns: dict[str, str]) -> list[list[float]]:
    found = []
    for cell in side:
        axes = evidence.axes.get(cell.case_id, {})
        key = axes.get("suite", ""), axes.get("protocol", ""), columns.get(cell.environment, ""), asked.quantity
        found.append(evidence.trial_values.get(key, {}).get(cell.case_id, []))
    return found


def _judgement(judgements: Sequence[Judgement], asked: Asked, columns: set[str]) -> Judgement | None:
    mine = [
        one
        for one in judgements
        if one.source == asked.source
        and one.claim.id == asked.claim
        and one.subject
        and columns & {*one.subject.environments}
    ]
    return min(mine, key=lambda one: one.verdict == "not tested", default=None)


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
