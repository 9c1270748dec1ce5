"""The conclusions of a report: every verdict and every answer, decided as one family (docs/certainty.md)."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from tsuishi.verdicts import answers, decision, judge
from tsuishi.verdicts.answers import Answer
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.family import MAIN, Decision, Hypothesis, decide, error_of_plan
from tsuishi.verdicts.judge import Judgement


class Conclusions(NamedTuple):
    """The judgements on claims, in the order of the sources; and the answers, those to main questions first."""

    judgements: list[Judgement]
    answers: list[Answer]


def conclude(evidence: Evidence) -> Conclusions:
    """The verdicts and answers of a report. The chance that any word among them is wrong is at most 3.75 %.

    The main questions of all runs are decided together, and so are the other claims and questions of a plan.
    """
    judgements, asked = judge.undecided(evidence), answers.undecided(evidence)
    # By index: the hypotheses of judgements, then those of comparisons.
    hypotheses: dict[int, Hypothesis] = {}
    blocks: dict[int, list[int]] = {}
    for index, judgement in enumerate(judgements):
        if judgement.verdict == "inconclusive":
            hypotheses[index] = _of_judgement(judgement)
            blocks.setdefault(_plan(judgement, asked), []).append(index)
    for index, answer in enumerate(asked, start=len(judgements)):
        if found := answers.hypothesis(answer):
            hypotheses[index] = found
            blocks.setdefault(_MAIN_PLAN if answer.asked.main else answer.asked.plan, []).append(index)
    decisions: dict[int, Decision] = {}
    for plan, members in blocks.items():
        error = MAIN if plan == _MAIN_PLAN else error_of_plan(plan)
        decided = decide([hypotheses[index] for index in members], error)
        decisions |= dict(zip(members, decided, strict=True))
    verdicts = [_with_verdict(judgement, decisions.get(index)) for index, judgement in enumerate(judgements)]
    answered = [
        answers.decided(answer, decisions.get(index), verdicts)
        for index, answer in enumerate(asked, start=len(judgements))
    ]
    return Conclusions(verdicts, sorted(answered, key=lambda answer: not answer.asked.main))


# The number of no plan: main questions have an error of their own.
_MAIN_PLAN = 0


def _of_judgement(judgement: Judgement) -> Hypothesis:
    results = judge.results(judgement)
    return Hypothesis(decision.together(results), decision.fewest_trials(results))


def _plan(judgement: Judgement, asked: Iterable[Answer]) -> int:
    """The plan that named a claim first; the first plan where no plan named it."""
    plans = [
        _MAIN_PLAN if answer.asked.main else answer.asked.plan
        for answer in asked
        if answer.asked.claim and answers.is_about(judgement, answer)
    ]
    return min(plans, default=1)


def _with_verdict(judgement: Judgement, decided: Decision | None) -> Judgement:
    if decided is None:
        return judgement
    return replace(judgement, verdict=decision.verdict_of(decided), level=decided.level)
