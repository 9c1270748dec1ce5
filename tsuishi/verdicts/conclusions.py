"""The conclusions of a report: every verdict and every answer, decided as one family (docs/certainty.md)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tsuishi.specs.questions import MAIN
from tsuishi.verdicts import answers, checks, judge
from tsuishi.verdicts.answers import Answer
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.family import Decision, Hypothesis, decide, error_of_plan
from tsuishi.verdicts.judge import Judgement

# The number of no plan: main questions have an error of their own.
_MAIN_PLAN = 0


class Conclusions(NamedTuple):
    """The judgements on claims, in the order of the sources; and the answers, those to main questions first."""

    judgements: list[Judgement]
    answers: list[Answer]


def conclude(evidence: Evidence) -> Conclusions:
    """The verdicts and answers of a report. The chance that any word among them is wrong is at most 3.75 %.

    The main questions of all runs are decided together, and so are the other claims and questions of a plan.
    """
    judgements, asked = judge.undecided_judgements(evidence), answers.undecided(evidence)
    plans = [*(_plan(judgement, asked) for judgement in judgements), *map(_plan_of, asked)]
    decisions = _decided(plans, [*map(_hypothesis, judgements), *map(answers.hypothesis, asked)])
    of_judgements, of_answers = decisions[: len(judgements)], decisions[len(judgements) :]
    verdicts = list(map(_with_verdict, judgements, of_judgements))
    answered = [answers.with_decision(answer, found, verdicts) for answer, found in zip(asked, of_answers, strict=True)]
    return Conclusions(verdicts, sorted(answered, key=lambda answer: not answer.asked.main))


def _decided(plans: Sequence[int], hypotheses: Sequence[Hypothesis | None]) -> list[Decision | None]:
    """The decision on each hypothesis, plan by plan. plans: by which each was named."""
    decisions: list[Decision | None] = [None] * len(hypotheses)
    for plan in set(plans):
        members = {at: each for at, each in enumerate(hypotheses) if each and plans[at] == plan}
        error = MAIN if plan == _MAIN_PLAN else error_of_plan(plan)
        for at, found in zip(members, decide([*members.values()], error), strict=True):
            decisions[at] = found
    return decisions


def _hypothesis(judgement: Judgement) -> Hypothesis | None:
    if judgement.verdict == "not tested":
        return None
    results = judge.results(judgement)
    return Hypothesis(checks.together(results), checks.fewest_trials(results), judgement.claim.last_look)


def _plan_of(answer: Answer) -> int:
    return _MAIN_PLAN if answer.asked.main else answer.asked.plan


def _plan(judgement: Judgement, asked: Iterable[Answer]) -> int:
    """The plan that named a claim first; the first plan where no plan named it."""
    plans = (_plan_of(answer) for answer in asked if answer.asked.claim and answers.is_about(judgement, answer))
    return min(plans, default=1)


def _with_verdict(judgement: Judgement, decided: Decision | None) -> Judgement:
    if decided is None:
        return judgement
    return replace(judgement, verdict=checks.verdict_of(decided), level=decided.level)
