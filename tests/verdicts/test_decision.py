"""Verdicts: by hand, and how often they are wrong where the truth is known."""

import math
from collections import Counter

import numpy as np
import pytest

from tests.verdicts.claim_checks import check, finding, steps
from tsuishi.estimates.variances import pool
from tsuishi.specs.claims import Check
from tsuishi.specs.questions import LOOKS
from tsuishi.verdicts.checks import CheckResult, evaluate, fewest_trials, on_values, together, verdict_of
from tsuishi.verdicts.family import Hypothesis, PValues, decide
from tsuishi.verdicts.findings import Finding

RUNS = 2000
TRIALS = 3
# What 5 % may be seen as in so many runs, three standard errors away.
FIVE_PERCENT = 0.05 + 3 * math.sqrt(0.05 * 0.95 / RUNS)
A_TO_B = {"of": {"framework": ["torch"]}, "to": {"framework": ["tensorflow"]}}
SCATTER = 0.05

SAYS = PValues(0.001, 0.001, 1.0)
SAYS_NOTHING = PValues(1.0, 0.4, 0.7)


def judged(*family: PValues, error: float = 0.05) -> list[str]:
    """The verdicts on a family that is looked at once."""
    return [verdict_of(decision) for decision in decide([Hypothesis(ps, None) for ps in family], error)]


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (PValues(0.05, 0.01, 1.0), "reproduced"),
        (PValues(0.06, 0.05, 1.0), "direction only"),
        (PValues(1.0, 1.0, 0.05), "contradicted"),
        (PValues(0.06, 0.06, 0.06), "inconclusive"),
    ],
)
def test_a_single_claim_is_judged_by_the_interval_of_all_the_error(evidence: PValues, verdict: str) -> None:
    assert judged(evidence) == [verdict]


def test_the_claims_of_a_family_are_judged_by_wider_intervals_until_one_says_nothing() -> None:
    """Holm's levels of three are 0.05 / 3, 0.05 / 2 and 0.05."""
    family = [PValues(0.04, 0.04, 1.0), PValues(0.02, 0.02, 1.0), PValues(1.0, 1.0, 0.01)]
    assert judged(*family) == ["reproduced", "reproduced", "contradicted"]
    family[1] = PValues(0.03, 0.03, 1.0)
    assert judged(*family) == ["inconclusive", "inconclusive", "contradicted"]
    assert judged(SAYS, SAYS_NOTHING) == ["reproduced", "inconclusive"]


def test_a_direction_that_is_shown_leaves_no_error_to_the_narrower_statements() -> None:
    """Ordered by direction, all of eight claims at the edge of `hold` would get up to 5 % each for `hold`."""
    edge = PValues(0.02, 1e-9, 1.0)
    assert judged(*[edge] * 8) == ["direction only"] * 8
    assert judged(edge) == ["reproduced"]


def test_each_look_has_half_of_the_error_of_the_look_before() -> None:
    """Three trials have a half of the error, six a quarter; before the first look there is none."""
    ps = PValues(0.02, 0.02, 1.0)
    levels = {trials: decide([Hypothesis(ps, trials)], 0.05)[0] for trials in (2, 3, 5, 6, 12)}
    assert [decision.holds for decision in levels.values()] == [False, True, True, False, False]
    assert [decision.level for decision in levels.values()] == [0.0, 0.025, 0.025, 0.0125, 0.00625]


def test_with_a_last_look_late_looks_have_more_of_the_error_and_all_looks_together_no_more_than_it() -> None:
    ps = PValues(0.005, 0.005, 1.0)
    found = {trials: decide([Hypothesis(ps, trials, 96)], 0.05)[0] for trials in (2, *LOOKS, 200)}
    levels = [found[look].level for look in LOOKS]
    assert sum(levels) == pytest.approx(0.05)
    assert max(levels) == levels[-1] == found[200].level == pytest.approx(0.05 * (1 - 0.5**0.5))
    assert found[2].level == 0.0
    # 0.5 % is more than the 6th look has where a run may be measured for ever.
    assert (found[96].holds, decide([Hypothesis(ps, 96)], 0.05)[0].holds) == (True, False)


def test_a_claim_of_several_checks_holds_with_all_and_falls_with_one() -> None:
    rows = [steps(1.0, 1.01, 0.99), steps(2.0, 2.02, 1.98, framework="tensorflow")]
    holds = evaluate(check("order", **A_TO_B, hold={"below": 1.0}), rows)
    fails = evaluate(check("order", **A_TO_B, hold={"above": 1.0}), rows)
    assert isinstance(holds, CheckResult)
    assert isinstance(fails, CheckResult)
    assert judged(together([holds, holds])) == ["reproduced"]
    assert judged(together([holds, fails])) == ["contradicted"]


def test_numbers_without_scatter_are_inside_a_region_or_not() -> None:
    rows = [steps(2500.2), steps(764.6, framework="tensorflow")]
    about_four = check("ratio", **A_TO_B, hold={"above": 3.5, "below": 4.5}, direction={"above": 1.0})
    found = evaluate(about_four, rows)
    assert isinstance(found, CheckResult)
    assert on_values([found]) == "direction only"


def test_the_case_with_the_fewest_trials_counts_and_a_status_needs_none() -> None:
    rows = [steps(1.0, 1.1, 1.2), steps(2.0, 2.1, framework="tensorflow")]
    few = evaluate(check("order", **A_TO_B, hold={"below": 1.0}), rows)
    present = evaluate(check("presence", of={"batch_size": [128]}), rows[:1])
    assert isinstance(few, CheckResult)
    assert isinstance(present, CheckResult)
    assert fewest_trials([few, present]) == 2
    assert fewest_trials([present]) is None


# Of A against B, which are the same: whatever is claimed but that they are equal is false.
CLAIMS = {
    "ratio": check("ratio", **A_TO_B, over="batch_size", hold={"above": 0.85, "below": 0.95}, direction={"below": 1.0}),
    "order": check("order", **A_TO_B, over="batch_size", hold={"below": 1.0}),
    "order of all": check("order", **A_TO_B, hold={"below": 1.0}),
    "order of some": check("order", **A_TO_B, hold={"below": 1.0}, every="some"),
    "equal": check("equal", **A_TO_B, over="batch_size", hold={"above": 0.95, "below": 1 / 0.95}),
    "trend": check("trend", **A_TO_B, along="batch_size", hold={"below": -0.1}, direction={"below": 0.0}),
    "shrinks": check("shrinks", **A_TO_B, along="batch_size"),
    "difference": check("order", **A_TO_B, over="batch_size", scale="difference", hold={"below": 0.0}),
    "fit": check("fit", parameter="v0", **A_TO_B, hold={"below": 0.9}, direction={"below": 1.0}),
}
BATCHES = (16, 32, 64, 128, 256)


def same_twice(random: np.random.Generator) -> list[Finding]:
    """Two frameworks of the same speed: a step is b / 1000 + 0.02 s, and scatters log-normally."""
    means = np.array([batch / 1000 + 0.02 for batch in BATCHES])
    findings = []
    for framework in ("torch", "tensorflow"):
        values = means[:, None] * np.exp(random.normal(0.0, SCATTER, (len(BATCHES), TRIALS)))
        shared = pool(np.log(values).tolist())
        findings += [
            finding({"step_s": row.tolist()}, framework=framework, batch_size=batch, shared=shared)
            for batch, row in zip(BATCHES, values, strict=True)
        ]
    return findings


def verdicts_on(claim: Check) -> Counter[str]:
    random = np.random.default_rng(TRIALS)
    counted: Counter[str] = Counter()
    for _ in range(RUNS):
        found = evaluate(claim, same_twice(random))
        assert isinstance(found, CheckResult)
        counted[judged(together([found]))[0]] += 1
    return counted


@pytest.mark.parametrize("name", CLAIMS)
def test_of_two_that_are_the_same_little_is_said_that_is_false(name: str) -> None:
    """A/A runs: falsely `contradicted` or `direction only` at most 5 % of the time, and falsely `reproduced` too."""
    counted = verdicts_on(CLAIMS[name])
    assert (counted["contradicted"] + counted["direction only"]) / RUNS <= FIVE_PERCENT
    if name == "equal":
        # Scatter of 5 % over five batch sizes: known well enough to say so.
        assert counted["reproduced"] / RUNS > 0.3
    else:
        assert counted["reproduced"] / RUNS <= FIVE_PERCENT


def test_a_family_of_false_claims_is_rarely_wrong_in_any_of_them() -> None:
    """Four order claims on A/A runs of their own, judged as one family: a wrong word among them at most 5 %."""
    random = np.random.default_rng(TRIALS)
    wrong = 0
    for _ in range(RUNS // 2):
        found = [evaluate(CLAIMS["order"], same_twice(random)) for _ in range(4)]
        family = [together([one]) for one in found if isinstance(one, CheckResult)]
        wrong += set(judged(*family)) != {"inconclusive"}
    assert wrong / (RUNS // 2) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / (RUNS // 2))


def test_an_effect_that_is_there_is_found() -> None:
    """A takes 0.9 of B's time, as claimed: never `contradicted` more than 5 %."""
    random = np.random.default_rng(TRIALS)
    counted: Counter[str] = Counter()
    for _ in range(RUNS // 2):
        findings = [one if one.framework == "torch" else _slower(one, 1 / 0.9) for one in same_twice(random)]
        found = evaluate(CLAIMS["ratio"], findings)
        assert isinstance(found, CheckResult)
        counted[judged(together([found]))[0]] += 1
    assert counted["contradicted"] / (RUNS // 2) <= 0.05
    assert (counted["reproduced"] + counted["direction only"]) / (RUNS // 2) > 0.9


def _slower(one: Finding, times: float) -> Finding:
    term = one.logs["step_s"]
    logs = {"step_s": term._replace(mean=term.mean + math.log(times))}
    return Finding(one.series, one.axes, one.framework, logs, one.values, one.statuses)
