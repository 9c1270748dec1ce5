"""Truths for benchmarks/truth.py: each function returns a draw, which says whether a report would be wrong this time.

Trials are drawn by a known truth, and judged by the functions that reports use. Trials scatter log-normally by SCATTER
unless a truth says otherwise.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tsuishi.estimates import ratios, timed_blocks
from tsuishi.estimates.contrasts import contrast, ratio
from tsuishi.estimates.intervals import Region, Round, Term
from tsuishi.estimates.line_fit import Point, fit
from tsuishi.estimates.terms import case_terms
from tsuishi.estimates.timed_blocks import TimedBlock
from tsuishi.estimates.unseen import OF_DAY, of_few_trials, seen_scatter
from tsuishi.estimates.variances import Pool, pool
from tsuishi.specs.claims import Check
from tsuishi.specs.questions import MAIN, PlannedQuestion, look_at
from tsuishi.verdicts import answers, checks, family
from tsuishi.verdicts.checks import CheckResult, evaluate
from tsuishi.verdicts.family import Decision, Hypothesis
from tsuishi.verdicts.findings import Finding

Random = np.random.Generator
Draw = Callable[[Random], bool]
# By case: the values of its trials.
Trials = Mapping[str, Sequence[float]]

SCATTER = 0.03
BATCHES = (16, 32, 64, 128, 256)
EVEN = np.full(len(BATCHES), SCATTER)


def noisy_case_missed(cases: int, trials: int) -> Draw:
    """The interval of an A/A ratio of the case that scatters ten times as much as all others does not have 1."""
    return _missed(cases, trials, 0)


def quiet_case_missed(cases: int, trials: int) -> Draw:
    """The same, for a case that scatters as all others but the noisy case do."""
    return _missed(cases, trials, 1)


def _missed(cases: int, trials: int, place: int) -> Draw:
    scatter = np.full(cases, SCATTER)
    scatter[0] *= 10

    def draw(random: Random) -> bool:
        terms = terms_of({side: cases_of(random, scatter, trials) for side in "ab"})
        interval = ratio(terms["a"][str(place)], terms["b"][str(place)]).interval()
        return interval is None or 0.0 not in interval

    return draw


def marked(rows: int, environments: int) -> Draw:
    """A report of equal environments marks the best of a row."""

    def draw(random: Random) -> bool:
        scatter = SCATTER * np.exp(random.normal(0, 0.5, rows))
        terms = terms_of({str(side): cases_of(random, scatter, 3) for side in range(environments)})
        every = [{side: of_side[str(row)] for side, of_side in terms.items()} for row in range(rows)]
        return any(ratios.marked([ratios.best(row, largest=False) for row in every]))

    return draw


def false_word(environments: int, noisy: float) -> Draw:
    """A report of equal environments says that two differ, or that a claim on a difference holds or does not.

    Each pair of environments has a main question and three claims; a batch scatters `noisy` times as much. The session
    is of a day, on which environments are slower or faster, as is assumed.
    """
    trials = 12
    order = make_check("order", over="batch_size", hold={"below": 1.0})
    every = make_check("order", hold={"below": 1.0})
    size = make_check("ratio", over="batch_size", hold={"above": 0.85, "below": 0.95}, direction={"below": 1.0})
    scatter = EVEN.copy()
    scatter[0] *= noisy

    def draw(random: Random) -> bool:
        of_day = random.normal(0, OF_DAY, environments)
        terms = terms_of({str(side): cases_of(random, scatter, trials, shift) for side, shift in enumerate(of_day)})
        pairs = list(itertools.combinations(terms, 2))
        main = [difference([terms[a][case] for case in terms[a]], [terms[b][case] for case in terms[b]], trials)
                for a, b in pairs]  # fmt: skip
        claims = [
            judged(check, findings_of({"torch": terms[a], "tensorflow": terms[b]}), trials)
            for a, b in pairs
            for check in (order, every, size)
        ]
        found = [*family.decide(main, MAIN), *family.decide(claims, family.error_of_plan(1))]
        return any(each.against for each in found) or any(each.direction for each in found[len(main) :])

    return draw


def reproduced_at_the_edge(claims: int, trials: int) -> Draw:
    """Of claims whose direction is true and whose ratio is at the edge of what they say, one is reproduced."""
    check = make_check("ratio", hold={"above": 0.8, "below": 0.9}, direction={"below": 1.0}, case={"batch_size": 16})
    first, scatter = look_at(trials), np.full(1, 0.01)
    means = {"torch": math.log(0.9), "tensorflow": 0.0}

    def draw(random: Random) -> bool:
        hypotheses = []
        for _ in range(claims):
            sides = {name: cases_of(random, scatter, first, mean) for name, mean in means.items()}
            hypotheses.append(judged(check, findings_of(terms_of(sides)), trials))
        return any(each.holds for each in family.decide(hypotheses, family.error_of_plan(1)))

    return draw


def false_word_over_looks(environments: int) -> Draw:
    """At some look at a growing run, a main question says that two of several equal environments differ."""

    def draw(random: Random) -> bool:
        of_day = random.normal(0, OF_DAY, environments)
        grown = {str(side): cases_of(random, EVEN, 24, shift) for side, shift in enumerate(of_day)}
        for trials in (3, 6, 12, 24):
            first = {
                side: {case: values[:trials] for case, values in of_side.items()} for side, of_side in grown.items()
            }
            terms = terms_of(first)
            main = [
                difference([*terms[a].values()], [*terms[b].values()], trials)
                for a, b in itertools.combinations(terms, 2)
            ]
            if any(each.against for each in family.decide(main, MAIN)):
                return True
        return False

    return draw


def failed_batches_forgotten() -> Draw:
    """A claim about every batch is reproduced, though the batches where it is false have failed."""
    check = make_check("order", hold={"below": 1.0}, case={"batch_size": [*BATCHES]})
    failed = [("torch", batch) for batch in BATCHES[-2:]]

    def draw(random: Random) -> bool:
        sides = {"torch": cases_of(random, EVEN, 6, -0.5), "tensorflow": cases_of(random, EVEN, 6)}
        findings = findings_of(terms_of(sides))
        slow = [_finding(framework, batch, {}, ("failed",) * 6) for framework, batch in failed]
        kept = [
            each for each in findings if not (each.framework == "torch" and each.axes["batch_size"] in BATCHES[-2:])
        ]
        return family.decide([judged(check, [*kept, *slow], 6)], 0.05)[0].holds

    return draw


def shrinks_of_scatter(trials: int) -> Draw:
    """A ratio that is the same at all batches is said to come nearer to 1, as the scatter falls from 10 % to 1 %."""
    check = make_check("shrinks", along="batch_size")
    scatter = np.geomspace(0.1, 0.01, len(BATCHES))

    def draw(random: Random) -> bool:
        sides = {"torch": cases_of(random, scatter, trials, 0.05), "tensorflow": cases_of(random, scatter, trials)}
        return _result(check, findings_of(terms_of(sides))).p_hold <= 0.05

    return draw


def cost_of_nothing() -> Draw:
    """Of two lines with the same small t_cost, one has more of it."""
    check = make_check("fit", quantity="", parameter="t_cost", hold={"above": 1.0})
    means = np.log([batch / 1000 + 0.0005 for batch in BATCHES])

    def draw(random: Random) -> bool:
        sides = {side: cases_of(random, EVEN, 3, means) for side in ("torch", "tensorflow")}
        found = evaluate(check, findings_of(terms_of(sides)))
        return isinstance(found, CheckResult) and min(found.p_hold, found.p_against) <= 0.05

    return draw


def kink_missed() -> Draw:
    """The interval of v0 does not have the speed of the large batches, which take 30 % less than the small."""

    def line(batch_size: int) -> float:
        return (batch_size / 1000 + 0.01) * (0.7 if batch_size >= 128 else 1.0)

    def draw(random: Random) -> bool:
        found = fit(Point(b, line(b) * math.exp(random.normal(0, 0.01))) for b in BATCHES)
        return not (found and found.v0_interval and _has(found.v0_interval, 1000 / 0.7))

    return draw


def line_missed(parameter: str, trials: int, batches: Sequence[int] = BATCHES, off: float = 0.0) -> Draw:
    """The interval of a parameter of a line does not have its true value.

    off: by how much the batch sizes lie off the line, each by an amount of its own, which all of its trials share.
    Trials then scatter by 0.5 % only.
    """
    line = np.log([batch / 1000 + 0.01 for batch in batches])
    true = {"v0": 1000, "t_cost": 0.01, "b_half": 10}[parameter]
    scatter = np.full(len(batches), 0.005 if off else SCATTER)

    def draw(random: Random) -> bool:
        terms = terms_of({"a": cases_of(random, scatter, trials, line + random.normal(0, off, len(batches)))})["a"]
        pairs = zip(batches, terms.values(), strict=True)
        found = fit(Point(batch, math.exp(term.mean), term) for batch, term in pairs)
        interval = getattr(found, f"{parameter}_interval")
        return interval is None or not _has(interval, true)

    return draw


def lack_of_fit_seen(trials: int) -> Draw:
    """The F test at 5 % says that a line which holds does not."""
    line = np.log([batch / 1000 + 0.01 for batch in BATCHES])

    def draw(random: Random) -> bool:
        terms = terms_of({"a": cases_of(random, EVEN, trials, line)})["a"]
        found = fit(Point(b, math.exp(term.mean), term) for b, term in zip(BATCHES, terms.values(), strict=True))
        return found is None or found.lack_of_fit is None or found.lack_of_fit[1] <= 0.05

    return draw


def _has(interval: Region, value: float) -> bool:
    return interval.low <= value <= interval.high


def stalls_missed() -> Draw:
    """The interval of a step does not have its mean, where a tenth of the blocks takes twice as long."""

    def draw(random: Random) -> bool:
        trials = []
        for stalled in random.uniform(size=(5, 40)) < 0.1:
            blocks = [TimedBlock(10, 10, 2.0 if stall else 1.0) for stall in stalled]
            trials.append(timed_blocks.mean_step_s(blocks))
        interval = contrast([(1.0, terms_of({"a": {"0": trials}})["a"]["0"])]).interval()
        return interval is None or math.log(0.11) not in interval

    return draw


def found(
    true_ratio: float, scatter: float, trials: int, questions: int = 6, cells: int = 1
) -> Callable[[Random], float]:
    """The share of main questions, each on so many cases in two environments, that finds the true ratio.

    The scatter of cases varies about `scatter`: its logarithm by 0.5.
    """
    means = {"a": math.log(true_ratio), "b": 0.0}

    def draw(random: Random) -> float:
        scatters = scatter * np.exp(random.normal(0, 0.5, questions * cells))
        terms = terms_of({side: cases_of(random, scatters, look_at(trials), mean) for side, mean in means.items()})
        of, to = ([*terms[side].values()] for side in "ab")
        cuts = [slice(begin, begin + cells) for begin in range(0, len(of), cells)]
        main = [difference(of[cut], to[cut], trials) for cut in cuts]
        return statistics.fmean(each.against for each in family.decide(main, MAIN))

    return draw


def pooled(groups: Mapping[str, Sequence[float]], family: object, most_freedom: float) -> dict[str, Pool | None]:
    """A fault: one variance for all cases."""
    return dict.fromkeys(groups, pool(groups.values()))


def each_alone(hypotheses: Sequence[Hypothesis], error: float) -> list[Decision]:
    """A fault: each hypothesis has 5 % of its own."""
    every = (each.ps for each in hypotheses)
    return [Decision(ps.p_hold <= 0.05, ps.p_direction <= 0.05, ps.p_against <= 0.05, 0.05) for ps in every]


def free_looks(trials: int | None, last: int = 0) -> float:
    """A fault: each look at a main question has 5 %."""
    return 2.0


def trials_alone(pure_error: Pool | None, about_line: Pool | None) -> Pool | None:
    """A fault: a line's intervals are from the scatter of trials, however far the batch sizes lie off the line."""
    return pure_error


def median_step_s(blocks: Sequence[TimedBlock]) -> float:
    """A fault: a step is the median of the blocks."""
    return statistics.median(block.step_s for block in blocks)


def cases_of(random: Random, scatter: np.ndarray, trials: int, means: Any = 0.0) -> dict[str, list[float]]:
    """Trials of cases, by the case's number. scatter: of each case; means: the logarithms of the cases' true values."""
    values = np.exp(np.reshape(means, (-1, 1)) + random.normal(size=(len(scatter), trials)) * scatter[:, None])
    return {str(case): of_case for case, of_case in enumerate(values.tolist())}


def terms_of(
    sides: Mapping[str, Trials], rounds: Sequence[Round] | None = None, suites: bool = False
) -> dict[str, dict[str, Term]]:
    """The terms of each case, by environment and case, with all errors that a report gives them on a CPU.

    rounds: of the trials of each case; without them all are of one session. suites: each case is of its own suite.
    """
    keyed: dict[tuple[str, str, str, str], dict[str, list[float]]] = {}
    for side, of_side in sides.items():
        for case, of_case in of_side.items():
            keyed.setdefault((case if suites else "s", "steady", side, "step_s"), {})[case] = [*of_case]
    known = {
        key: {case: [*(rounds or (Round("1", number, "1") for number in range(len(of))))] for case, of in cases.items()}
        for key, cases in keyed.items()
    }
    seen = seen_scatter(keyed)
    terms: dict[str, dict[str, Term]] = {side: {} for side in sides}
    for (case, side, quantity), term in case_terms(keyed, rounds=known).items():
        unseen = of_few_trials(term, seen.get((side, quantity), 0.0))
        terms[side][case] = term._replace(unseen=unseen, environment=side)
    return terms


def findings_of(terms: Mapping[str, Mapping[str, Term]]) -> list[Finding]:
    """A finding for each framework and batch. terms: by framework, and by the number of the batch."""
    return [
        _finding(framework, BATCHES[int(case)], {"step_s": term}, ("ok",) * term.trials)
        for framework, of_framework in terms.items()
        for case, term in of_framework.items()
    ]


def _finding(framework: str, batch_size: int, logs: dict[str, Term], statuses: tuple[str, ...]) -> Finding:
    return Finding(framework, {"suite": "s", "batch_size": batch_size}, framework, logs, {}, statuses)


def make_check(kind: str, **fields: Any) -> Check:
    """A check of the steps of torch over those of tensorflow."""
    sides = {"of": {"framework": "torch"}, "to": {"framework": "tensorflow"}}
    given = {"kind": kind, "quantity": "step_s", "why": "made up", **sides, **fields}
    return Check.model_validate(given, strict=False)


def _result(check: Check, findings: Sequence[Finding]) -> CheckResult:
    found = evaluate(check, findings, complete=True)
    assert isinstance(found, CheckResult), found
    return found


def judged(check: Check, findings: Sequence[Finding], trials: int) -> Hypothesis:
    return Hypothesis(checks.together([_result(check, findings)]), trials)


def difference(of: Sequence[Term], to: Sequence[Term], trials: int) -> Hypothesis:
    """The hypothesis of a question that compares the means of two sides."""
    ratio_of_means = contrast([*((1 / len(of), term) for term in of), *((-1 / len(to), term) for term in to)])
    asked = PlannedQuestion.model_construct(kind="environments")
    found = answers.hypothesis(answers.Answer("run", asked, "open", trials, (), ratio_of_means))
    assert found
    return found
