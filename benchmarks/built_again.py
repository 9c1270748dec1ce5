"""The A/A test on a real machine: `python -m benchmarks.built_again`, with .venv active; about a quarter of an hour.

One environment is built twice, and measured as two: TRIALS trials of each case in each of SESSIONS sessions, by the
real runner in virtual environments, in turns. Nothing differs but the build, so each word and mark is false. Then the
trials of each case are split into two halves at random, SPLITS times, and judged by the functions that reports use: the
share of splits with a false word or mark is the error on real scatter.

The cases are short ones of its own; with `--within 30m` they are those that `invoke run-suite --within 30m` plans for
the environment, which takes over an hour and a half. With `--keep` a session that was measured before is kept, so that
the sessions can be of different hours or days.
"""

import argparse
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import known_truths as truths
from tests.bench import REAL, link_checkout
from tsuishi.base import budget
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.estimates import ratios
from tsuishi.estimates.contrasts import ratio
from tsuishi.plan.choice import Choice, choose
from tsuishi.plan.planning import Plan, outline_run
from tsuishi.plan.session import Session
from tsuishi.report.parts.wording import case_text, worded
from tsuishi.results.directory import RunDirectory
from tsuishi.run.measuring import as_built
from tsuishi.run.new_run import measured
from tsuishi.specs.questions import MAIN
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts import family
from tsuishi.verdicts.evidence import Evidence

TRIALS, SESSIONS, SPLITS = 5, 3, 1000
# Of each case, so many trials are split into halves.
SPLIT = 12
SUITE = """
title = "the same environment, built twice"
workload = "training"
[profiles.quick]
repetitions = { cpu = 5 }
timeout_s = 300.0
settings = { warm_up_steps = 5, warm_up_s = 1.0, block_s = 0.2, min_blocks = 8, measure_s = 3.0, max_s = 6.0 }
[axes]
protocol = "steady"
mode = ["training", "inference"]
model = "cnn10"
layout = "native"
strategy = "none"
devices = 1
nodes = 1
batch_size = [8, 16]
precision = "fp32"
execution = "native"
[[groups]]
expect = { quick = { s = 5.0 } }
"""
# By environment and case: the values of its trials, in seconds.
Trials = dict[str, dict[str, list[float]]]
# The times by which cases are compared: of each case the first that it has.
TIMES = ("step_s", "compute_s", "later_run_s", "forward_s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="torch2-cpu", help="the environment that is built twice")
    parser.add_argument("--keep", type=Path, help="the folder of the runs, which are removed without it")
    parser.add_argument("--within", type=budget.seconds, help="measure the cases of `run-suite --within`, e.g. 30m")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checkout = make_checkout(Path(folder), given.env)
        results = given.keep or checkout.root / "results"
        cases = planned(given.env, given.within) if given.within else None
        runs = [measure(checkout, results, given.env, number, cases) for number in range(1, SESSIONS + 1)]
        evidence = Evidence(runs, (), checkout_words(checkout))
        with worded(evidence.words):
            report(Screen(), evidence)


def planned(name: str, within_s: float) -> dict[str, str]:
    """The suites, by case, of what `run-suite --within` would measure in an environment: its main questions."""
    session = Session(Settings(engine="venv"), Choice(), Screen(), REAL, clock=budget.Clock(within_s, time.monotonic()))
    chosen = choose(session.builder, session.checkout, session.choice, session.nvml)
    outlined = outline_run(session, chosen.environments)
    return {trial.case.id: trial.case.suite for trial in outlined.trials if trial.environment == name}


def make_checkout(root: Path, name: str) -> Checkout:
    """A checkout under `root` with the real workloads, the suite, and the environment under two names."""
    checkout = link_checkout(root)
    checkout.images.unlink()
    shutil.copytree(REAL.images, checkout.images)
    for file in REAL.images.glob(f"{name}.*"):
        again = checkout.images / f"{name}-again{file.suffix}"
        text = file.read_text(encoding="utf-8")
        # The title is part of what is built: without another, both names share a build.
        again.write_text(text.replace('title = "', 'title = "built again: ', 1), encoding="utf-8")
    (checkout.suites / "built_again.toml").write_text(SUITE, encoding="utf-8")
    for path in REAL.suites.glob("*.toml"):
        if not (checkout.suites / path.name).exists():
            shutil.copy(path, checkout.suites)
    return checkout


def checkout_words(checkout: Checkout) -> Vocabulary:
    return Session(Settings(engine="venv"), Choice(), Screen(), checkout).words


def measure(
    checkout: Checkout, results: Path, name: str, number: int, cases: Mapping[str, str] | None = None
) -> RunDirectory:
    """A session of both environments: measured now, unless it is there. cases: as `planned` has them, else our own."""
    run_name = f"session-{number}"
    for path in results.glob(f"*-{run_name}"):
        return RunDirectory(path)
    suites = sorted(set(cases.values())) if cases else ["built_again"]
    choice = Choice((name, f"{name}-again"), tuple(suites), repetitions=TRIALS, seed=number)
    session = Session(Settings(engine="venv", results=results), choice, Screen(), checkout)
    chosen = choose(session.builder, checkout, choice, session.nvml).environments
    ready = session.build(chosen)
    outlined = outline_run(session, [as_built(each) for each in ready.values()], ready)
    trials = tuple(trial for trial in outlined.trials if cases is None or trial.case.id in cases)
    return measured(session, run_name, Plan(chosen, 0.0), ready, replace(outlined, trials=trials))


def quantities_of(evidence: Evidence) -> dict[str, str]:
    """The quantity by which each case is compared."""
    known = {(case, quantity) for case, _, quantity in evidence.terms}
    return {case: name for name in reversed(TIMES) for case, quantity in known if quantity == name}


def values_of(evidence: Evidence, quantities: Mapping[str, str]) -> Trials:
    """The times of every trial, of the case's quantity."""
    values: Trials = {}
    for (_, _, column, quantity), of_cases in evidence.trial_values.items():
        for case, of_case in of_cases.items():
            if quantities.get(case) == quantity:
                values.setdefault(column, {})[case] = [*of_case]
    return values


def report(screen: Screen, evidence: Evidence) -> None:
    """Print the ratio of both builds by case, what a report marks, and the error on real scatter."""
    quantities = quantities_of(evidence)
    values = values_of(evidence, quantities)
    first, again = sorted(values, key=len)
    terms = {
        (case, column): term
        for (case, column, quantity), term in evidence.terms.items()
        if quantities.get(case) == quantity
    }
    rows, best = [], []
    for case in values[first]:
        sides = {column: terms[case, column] for column in (first, again)}
        found = ratios.as_ratio(ratio(sides[again], sides[first]))
        best.append(ratios.best(sides, largest=False))
        own = [100 * statistics.stdev(of[case]) / statistics.fmean(of[case]) for of in (values[first], values[again])]
        shown = (f"{end:.4f}" for end in (found.value, found.low or 0.0, found.high or 0.0))
        named = f"{case_text(evidence.axes[case])}, {quantities[case]}"
        rows.append((named, len(values[first][case]), *shown, *(f"{each:.1f}" for each in own)))
    head = ("case", "trials", "again / first", "low", "high", "scatter %", "again %")
    screen.table("The same environment, built twice", head, rows)
    marks = sum(side is not None for side in ratios.marked(best))
    screen.say(f"marked: {marks} of {len(best)} rows")
    for column in (first, again):
        words, marked = split_errors(values[column])
        screen.say(f"{column}: {SPLITS} splits: a false word in {words / SPLITS:.2%}, a mark in {marked / SPLITS:.2%}")


def split_errors(values: Mapping[str, Sequence[float]]) -> tuple[int, int]:
    """How many splits into halves have a false word on a main question (each case is one), and a mark."""
    words = marked = 0
    for sides in splits(values, random.Random(0)):  # noqa: S311
        terms = truths.terms_of(sides)
        main = [truths.difference([terms["a"][case]], [terms["b"][case]], SPLIT // 2) for case in values]
        words += any(each.against for each in family.decide(main, MAIN))
        best = [ratios.best({side: terms[side][case] for side in terms}, largest=False) for case in values]
        marked += any(ratios.marked(best))
    return words, marked


def splits(values: Mapping[str, Sequence[float]], drawn: random.Random) -> Iterator[dict[str, dict[str, list[float]]]]:
    for _ in range(SPLITS):
        halves = {case: drawn.sample(list(of_case), SPLIT) for case, of_case in values.items()}
        yield {
            side: {case: of_case[part] for case, of_case in halves.items()}
            for side, part in (("a", slice(SPLIT // 2)), ("b", slice(SPLIT // 2, None)))
        }


if __name__ == "__main__":
    main()
