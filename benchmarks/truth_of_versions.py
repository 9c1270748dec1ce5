"""How often a comparison of two versions is wrong: `python -m benchmarks.truth --ab [--draws N]` from the root.

A call is drawn: rounds of a trial of both sides, each a process, whose numbers are judged at 3, 6, 12, 24, 48 and 96
trials as the report of the call judges them, until every number is decided. A call of equal sides is wrong where any of
its numbers is called slower. The same trials are judged by rules that others use, written from their descriptions:

- threshold: the mean of HEAD's first five trials is more than 10 % above BASE's
- Mann-Whitney: over the first ten trials of each side, p < 0.05 for each number
- Welch within a process: over 30 rounds of the first process of each side, p < 0.05 for each number

Then sides of which one is slower are drawn, and the share of calls that find it is printed. `--calls N`: real calls
on a repository whose two commits are the same, of three numbers each; `--neighbour`: beside a program that takes all
cores for 30 s of every minute.
"""

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.bounds import Fault, Row, broken
from benchmarks.called_versions import compare
from benchmarks.equal_programs import PROGRAMS, neighbour, trial
from benchmarks.known_truths import Draw, Random
from tests.extras.ab.repository import Repository
from tsuishi.base.errors import EXIT_NOTHING_CHECKED, EXIT_VERDICT
from tsuishi.estimates.contrasts import ratio
from tsuishi.estimates.intervals import Region, Round
from tsuishi.estimates.terms import case_terms
from tsuishi.estimates.unseen import of_few_trials, seen_scatter
from tsuishi.specs.questions import LOOKS, MAIN
from tsuishi.verdicts import family
from tsuishi.verdicts.family import Decision, Hypothesis

LIMIT = 1.05
# Seconds of a step of each program of equal_programs, in consecutive trials of this project's machine.
RECORDED = Path(__file__).parent / "tables" / "trials.csv"
BASE, HEAD = "base", "head"
# A round's logarithms, by side: a value for each number.
Trials = Mapping[str, np.ndarray]
# Draws so many rounds of so many numbers. Rows of each side are rounds.
Truth = Callable[[Random, int, int], dict[str, np.ndarray]]
_FAULT_DRAWS = 400
# Of rounds within a process: their number, and their scatter.
_WITHIN, _OF_ROUNDS = 30, 0.005


def scattered(scatter: float) -> Truth:
    """Trials scatter log-normally, and so does each number."""
    return lambda random, rounds, numbers: {side: random.normal(0, scatter, (rounds, numbers)) for side in (BASE, HEAD)}


def with_modes(apart: float, scatter: float = 0.005) -> Truth:
    """Half of the processes are slower by so much in all of their numbers."""

    def draw(random: Random, rounds: int, numbers: int) -> dict[str, np.ndarray]:
        values = scattered(scatter)(random, rounds, numbers)
        return {side: of + random.integers(0, 2, (rounds, 1)) * math.log1p(apart) for side, of in values.items()}

    return draw


def _head_first(random: Random, rounds: int) -> np.ndarray:
    """Whether HEAD runs first in each round, 1 or 0: drawn for each odd round, and the other way in the next."""
    drawn = random.integers(0, 2, ((rounds + 1) // 2, 1))
    return np.hstack([drawn, 1 - drawn]).reshape(-1, 1)[:rounds]


def beside_neighbour(scatter: float = 0.01) -> Truth:
    """A neighbour takes the cores for 30 s of every minute, times 1.5; a trial takes 4 s."""

    def draw(random: Random, rounds: int, numbers: int) -> dict[str, np.ndarray]:
        values, now_s = scattered(scatter)(random, rounds, numbers), random.uniform(0, 60)
        for number, head_first in enumerate(_head_first(random, rounds)):
            for side in (HEAD, BASE) if head_first else (BASE, HEAD):
                beside = sum((now_s + tick) % 60 < 30 for tick in np.arange(0, 4, 0.25)) / 16
                values[side][number] += math.log1p(0.5 * beside)
                now_s += 4.0
        return values

    return draw


def first_is_slower(scatter: float = 0.01) -> Truth:
    """The first process of a round takes 5 % longer."""

    def draw(random: Random, rounds: int, numbers: int) -> dict[str, np.ndarray]:
        values, head_first = scattered(scatter)(random, rounds, numbers), _head_first(random, rounds)
        late = {BASE: 1 - head_first, HEAD: head_first}
        return {side: of + late[side] * 0.05 for side, of in values.items()}

    return draw


def with_stalls(scatter: float = 0.01) -> Truth:
    """One of ten trials takes twice as long."""

    def draw(random: Random, rounds: int, numbers: int) -> dict[str, np.ndarray]:
        values = scattered(scatter)(random, rounds, numbers)
        return {side: of + (random.random((rounds, 1)) < 0.1) * math.log(2) for side, of in values.items()}

    return draw


@cache
def _trace() -> np.ndarray:
    """The logarithms of the recorded trials, each program's about their mean."""
    logarithms = np.log(np.loadtxt(RECORDED, delimiter=",", skiprows=1))
    return np.asarray(logarithms - logarithms.mean(axis=0))


def recorded(truth: Truth) -> Truth:
    """A truth beside real trials: consecutive trials of `record`, each round a pair in the order of a run."""

    def draw(random: Random, rounds: int, numbers: int) -> dict[str, np.ndarray]:
        trace = _trace()
        start, columns = random.integers(len(trace)), random.permutation(trace.shape[1])[:numbers]
        taken = trace[(start + np.arange(2 * rounds)) % len(trace)][:, columns]
        pairs, turned = taken.reshape(rounds, 2, -1), _head_first(random, rounds) > 0
        noise = {BASE: np.where(turned, pairs[:, 1], pairs[:, 0]), HEAD: np.where(turned, pairs[:, 0], pairs[:, 1])}
        return {side: of + noise[side] for side, of in truth(random, rounds, numbers).items()}

    return draw


TRUTHS: Mapping[str, Truth] = {
    "trials scatter by 1 %": scattered(0.01),
    "trials scatter by 3 %": scattered(0.03),
    "trials scatter by 10 %": scattered(0.10),
    "half of the processes 10 % slower": with_modes(0.1),
    "half of the processes 30 % slower": with_modes(0.3),
    "a neighbour for 30 s of every minute, times 1.5": beside_neighbour(),
    "the first of a round 5 % slower": first_is_slower(),
    "one of ten trials takes twice as long": with_stalls(),
}
OF_TRACES: Mapping[str, Truth] = {
    "recorded trials": recorded(scattered(0.0)),
    "recorded trials, half of the processes 10 % slower": recorded(with_modes(0.1, 0.0)),
    "recorded trials, a neighbour for 30 s of every minute": recorded(beside_neighbour(0.0)),
    "recorded trials, the first of a round 5 % slower": recorded(first_is_slower(0.0)),
    "recorded trials, one of ten takes twice as long": recorded(with_stalls(0.0)),
}


def decisions(values: Trials, limit: float = LIMIT) -> list[Decision]:
    """The decisions of a call on its numbers, at the first look at which all are decided, or the last."""
    return last_look(values, limit)[1]


def last_look(values: Trials, limit: float) -> tuple[int, list[Decision]]:
    """The trials of each side at the first look at which all numbers are decided, or the last; and the decisions."""
    rounds, numbers = values[BASE].shape
    look, found = 0, list[Decision]()
    for look in (each for each in LOOKS if each <= rounds):
        found = _at(values, look, numbers, limit)
        if all(each.holds or each.against for each in found):
            break
    return look, found


def _at(values: Trials, look: int, numbers: int, limit: float) -> list[Decision]:
    keyed = {
        ("ab", "literal", "host", f"n{number}"): {
            side: np.exp(values[side][:look, number]).tolist() for side in (BASE, HEAD)
        }
        for number in range(numbers)
    }
    known = {
        key: {side: [Round("1", each, "1") for each in range(look)] for side in sides} for key, sides in keyed.items()
    }
    seen = seen_scatter(keyed)
    terms = {
        (side, number): term._replace(unseen=of_few_trials(term, seen.get((host, number), 0.0)), environment=host)
        for (side, host, number), term in case_terms(keyed, rounds=known).items()
    }
    bound = Region(-math.inf, math.log(limit))
    hypotheses = [
        Hypothesis(family.p_values(ratio(terms[HEAD, name], terms[BASE, name]), bound, bound), look, LOOKS[-1])
        for name in map("n{}".format, range(numbers))
    ]
    return family.decide(hypotheses, MAIN)


def red(truth: Truth, numbers: int, slower: float = 1.0) -> Draw:
    """A call ends red, of sides of which the second takes so many times as long."""

    def draw(random: Random) -> bool:
        values = truth(random, LOOKS[-1], numbers)
        values[HEAD] = values[HEAD] + math.log(slower)
        return any(each.against for each in decisions(values))

    return draw


def by_threshold(values: Trials, random: Random) -> bool:
    """Whether a number's mean of five trials is more than 10 % larger."""
    means = {side: np.exp(values[side][:5]).mean(axis=0) for side in (BASE, HEAD)}
    return bool((means[HEAD] > 1.1 * means[BASE]).any())


def by_mann_whitney(values: Trials, random: Random) -> bool:
    """Whether a number of ten trials is larger, each number at 5 %."""
    found = stats.mannwhitneyu(values[HEAD][:10], values[BASE][:10], axis=0)
    larger = np.median(values[HEAD][:10], axis=0) > np.median(values[BASE][:10], axis=0)
    return bool(((found.pvalue < 0.05) & larger).any())


def by_welch_within(values: Trials, random: Random) -> bool:
    """Whether a number of the rounds of one process of each side is larger, each number at 5 %."""
    shape = _WITHIN, values[BASE].shape[1]
    sides = {side: np.exp(values[side][0] + random.normal(0, _OF_ROUNDS, shape)) for side in (BASE, HEAD)}
    found = stats.ttest_ind(sides[HEAD], sides[BASE], axis=0, equal_var=False)
    return bool(((found.pvalue < 0.05) & (found.statistic > 0)).any())


RULES: Mapping[str, Callable[[Trials, Random], bool]] = {
    "invoke ab": lambda values, random: any(each.against for each in decisions(values)),
    "threshold 10 %": by_threshold,
    "Mann-Whitney": by_mann_whitney,
    "Welch within a process": by_welch_within,
}


def rows() -> Iterator[Row]:
    """Every row, in the order of docs/certainty-figures.md."""
    every = [(name, truth, numbers) for name, truth in TRUTHS.items() for numbers in (1, 20)]
    every += [(name, truth, numbers) for name, truth in OF_TRACES.items() for numbers in (1, 3)]
    for name, truth, numbers in every:
        of = f"{numbers} number{'s' * (numbers > 1)}; {name}"
        yield Row(f"equal sides, {of}: red", 0.05, red(truth, numbers))
        yield Row(f"a true ratio at the limit, {of}: red", 0.05, red(truth, numbers, LIMIT))


def faults() -> Iterator[Fault]:
    """A fault for each promise: one error for all numbers and looks."""
    each = (("tsuishi.verdicts.family.decide", _each_alone),)
    yield Fault("each number at 5 %", Row("20 numbers", 0.05, red(scattered(0.03), 20, LIMIT)), each)
    looks = (("tsuishi.verdicts.family.share_of_look", lambda trials, last: 0.2 / MAIN),)
    yield Fault("each look at 20 %", Row("1 number", 0.05, red(scattered(0.03), 1, LIMIT)), looks)


def _each_alone(hypotheses: Sequence[Hypothesis], error: float) -> list[Decision]:
    return [Decision(each.ps.p_hold <= 0.05, False, each.ps.p_against <= 0.05, 0.05) for each in hypotheses]


def table(draws: int) -> None:
    """Print, by rule, the share of calls of equal sides that are red, then of those that find a slower side."""
    print("share of calls that are red, in %, by rule: " + ", ".join(RULES))
    for name, truth in {**TRUTHS, **OF_TRACES}.items():
        for slower, numbers in ((1.0, 1), (1.0, 20 if name in TRUTHS else 3), (1.03, 1), (1.10, 1), (1.2, 1)):
            random, counts = np.random.default_rng(11), dict.fromkeys(RULES, 0)
            for _ in range(draws):
                values = truth(random, LOOKS[-1], numbers)
                values[HEAD] = values[HEAD] + math.log(slower)
                for rule, judge in RULES.items():
                    counts[rule] += judge(values, random)
            shares = " / ".join(f"{100 * count / draws:.1f}" for count in counts.values())
            print(f"{name}; HEAD x {slower:g}, {numbers} number{'s' * (numbers > 1)}: {shares}", flush=True)


def costs(draws: int) -> None:
    """Print how often a slower side is found at all, and after how many trials of each side the call then ends."""
    for scatter in (0.01, 0.03, 0.10):
        for slower, limit in ((1.03, 1.01), (1.10, LIMIT), (1.2, LIMIT)):
            random, looks = np.random.default_rng(11), list[int]()
            for _ in range(draws):
                values = scattered(scatter)(random, LOOKS[-1], 1)
                values[HEAD] = values[HEAD] + math.log(slower)
                look, (decided,) = last_look(values, limit)
                looks += [look] * decided.against
            share, middle = 100 * len(looks) / draws, np.median(looks) if looks else math.nan
            found = f"{share:.0f} % found, after {middle:g} trials"
            print(f"scatter {scatter:.0%}, HEAD x {slower:g}, limit {limit:g}: {found}")


def main(draws: int) -> int:
    """Print the table of rules and what finding costs, then claimed against found.

    Returns 1 where a bound breaks, or no fault breaks it.
    """
    table(max(20, draws // 5))
    costs(max(20, draws // 5))
    return min(1, broken(rows(), faults(), draws, _FAULT_DRAWS))


def record(path: Path, trials: int) -> None:
    """Write the seconds of so many consecutive trials of each program, each in a process of its own."""
    lines = [",".join(PROGRAMS)]
    for _ in range(trials):
        lines.append(",".join(f"{trial(program):.6g}" for program in PROGRAMS.values()))
    path.write_text("\n".join(lines) + "\n")


_BENCH = """
import time, numpy
a, b = numpy.ones((256, 256), "float32"), numpy.ones(1 << 21)
for name, text in {programs!r}.items():
    step = compile(text, "step", "eval")
    for _ in range(5): eval(step)
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < 0.1:
        eval(step)
        count += 1
    print("%s time: %.6f ms" % (name, (time.perf_counter() - begin) / count * 1e3))
"""


def main_of_calls(calls: int, cores: int) -> int:
    """Make real calls on equal commits; print how many are red, with the interval of 95 %. Returns the exit code."""
    codes: list[int] = []
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, neighbour(cores):
        for number in range(calls):
            # A repository of its own, so that no call is another look.
            repository = Repository(Path(folder, str(number)))
            repository.commit(bench__py=_BENCH.format(programs=PROGRAMS))
            code, _ = compare(repository, ("HEAD", "HEAD", "--within", "2m"), (sys.executable, "bench.py"))
            codes.append(code)
            print(f"{number + 1}: exit code {codes[-1]}, {time.monotonic() - begin:.0f} s", flush=True)
    wrong = sum(code == EXIT_VERDICT for code in codes)
    interval = stats.binomtest(wrong, calls).proportion_ci()
    counts = json.dumps({code: codes.count(code) for code in sorted({*codes})})
    percent = f"{100 * interval.low:.1f} to {100 * interval.high:.1f} %"
    print(f"{wrong} of {calls} calls are red ({percent}); by exit code: {counts}")
    return int(interval.low > 0.05 or not {*codes} <= {0, EXIT_VERDICT, EXIT_NOTHING_CHECKED})
