"""Verdicts on a claim whose true ratio is known, for benchmarks/truth.py: inside its regions, at their edges, outside.

The claim: torch takes 0.8 to 0.9 times as long as tensorflow (hold), at any rate less long (direction). It is judged in
every pair of environments of the two frameworks, after 3, 6 and 12 trials.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.bounds import Row
from benchmarks.known_truths import BATCHES, Random, cases_of, findings_of, judged, make_check, terms_of
from tsuishi.specs.questions import LOOKS
from tsuishi.verdicts import family
from tsuishi.verdicts.family import Decision

HOLD = (0.8, 0.9)
TRUTHS = {
    "inside of what it says": 0.85,
    "at the edge of what it says": 0.9,
    "outside, and in its direction": 0.95,
    "at the edge of its direction": 1.0,
    "outside of its direction": 1.1,
}
_LOOKS = LOOKS[:3]


def rows() -> Iterator[Row]:
    """A row for each truth, scatter and number of environments."""
    bound = family.error_of_plan(1)
    for truth, true_ratio in TRUTHS.items():
        for scatter in (0.01, 0.03, 0.1):
            for environments in (2, 4):
                name = f"a ratio {truth}, scatter {100 * scatter:g} %, {environments} environments: a false verdict"
                yield Row(name, bound, partial(false_verdict, true_ratio, scatter, environments // 2))


def false_verdict(true_ratio: float, scatter: float, of_each: int, random: Random) -> bool:
    """At some look a verdict says what is not true. of_each: environments of each framework."""
    check = make_check("ratio", hold={"above": HOLD[0], "below": HOLD[1]}, direction={"below": 1.0},
                       case={"batch_size": BATCHES[0]})  # fmt: skip
    even = np.full(len(BATCHES), scatter)
    sides = {
        (framework, number): cases_of(random, even, _LOOKS[-1], mean)
        for framework, mean in (("torch", math.log(true_ratio)), ("tensorflow", 0.0))
        for number in range(of_each)
    }
    for trials in _LOOKS:
        seen = {
            f"{framework} {number}": {case: values[:trials] for case, values in cases.items()}
            for (framework, number), cases in sides.items()
        }
        terms = terms_of(seen)
        claims = [
            judged(check, findings_of({"torch": terms[f"torch {a}"], "tensorflow": terms[f"tensorflow {b}"]}), trials)
            for a in range(of_each)
            for b in range(of_each)
        ]
        if any(_is_false(each, true_ratio) for each in family.decide(claims, family.error_of_plan(1))):
            return True
    return False


def _is_false(decision: Decision, true_ratio: float) -> bool:
    if decision.holds:
        return not HOLD[0] < true_ratio < HOLD[1]
    if decision.direction:
        return true_ratio >= 1
    return decision.against and true_ratio < 1
