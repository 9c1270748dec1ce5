"""The family of a report: how the 5 % of error that a report may have is spent on its words (docs/certainty.md).

Of 100 reports on environments and claims about which nothing is true, 5 say something false. 2.5 % are for the main
questions, which the first plan names before anything is measured; 1.25 % for all other claims and questions; 1.25 % for
marks of rows, which are no verdicts (see estimates/ratios.py).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tsuishi.estimates.intervals import NO_DIFFERENCE, Contrast, Region
from tsuishi.specs.questions import ALIKE, share_of_look

OTHER = 0.0125
# A comparison with a baseline is a family of its own: it answers another question than the report's.
BASELINE = 0.05
# The logarithms of ratios of sides that are alike.
_ALIKE = Region(-math.log(ALIKE), math.log(ALIKE))


class PValues(NamedTuple):
    """The smallest a at which intervals of confidence 1 - a show that a claim holds, or its direction, or neither.

    Of a comparison: that its sides are alike (`p_hold`, `p_direction`), or that they differ (`p_against`).
    """

    p_hold: float
    p_direction: float
    p_against: float


def p_values(logarithm: Contrast | None, holds: Region = _ALIKE, against: Region = NO_DIFFERENCE) -> PValues:
    """That the logarithm of a ratio lies in the region `holds`, and that it lies outside of `against`.

    Without regions: that two sides are alike, and that they differ. 1 where there is no ratio, or its scatter is
    unknown.
    """
    if logarithm is None or logarithm.error is None:
        return PValues(1.0, 1.0, 1.0)
    inside = logarithm.p_inside(holds)
    return PValues(inside, inside, logarithm.p_outside(against))


class Hypothesis(NamedTuple):
    """A claim or comparison with its p values. `trials`: of the case with the fewest; None where it needs none.

    `last_look`: as `share_of_look` takes it.
    """

    ps: PValues
    trials: int | None
    last_look: int = 0


class Decision(NamedTuple):
    """What the family says of a hypothesis, at its `level`: the interval of confidence 1 - level decides."""

    holds: bool
    direction: bool
    against: bool
    level: float


def decide(hypotheses: Sequence[Hypothesis], error: float) -> list[Decision]:
    """A decision on each hypothesis; the chance that any of them is wrong is at most `error`: Holm (1979).

    All words on a hypothesis follow from one interval, so they share its level. Only a hypothesis of which nothing is
    left to say (it holds, or its direction is refuted) leaves its error to the others: "direction only" does not, as
    the narrower statement is still open.
    """
    decisions: dict[int, Decision] = {}
    unfinished = dict(enumerate(hypotheses))
    while True:
        level = error / max(1, len(unfinished))
        now = {
            index: _decision(each.ps, level * share_of_look(each.trials, each.last_look))
            for index, each in unfinished.items()
        }
        finished = {index: decision for index, decision in now.items() if decision.holds or decision.against}
        if not finished:
            decisions |= now
            return [decisions[index] for index in range(len(hypotheses))]
        decisions |= finished
        unfinished = {index: each for index, each in unfinished.items() if index not in finished}


def error_of_plan(number: int) -> float:
    """The error of all hypotheses that are not main questions and that this plan of a run named first.

    Each plan takes half of the error that earlier plans left, so a growing family spends no more than OTHER. Claims
    that no plan named belong to the first plan.
    """
    return float(OTHER * 0.5**number)


def _decision(ps: PValues, level: float) -> Decision:
    if not level:
        return Decision(False, False, False, level)
    return Decision(ps.p_hold <= level, ps.p_direction <= level, ps.p_against <= level, level)
