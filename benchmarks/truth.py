"""How often tsuishi is wrong where the truth is known: `python -m benchmarks.truth [--draws N]` from the root.

Each row draws trials with a known truth, lets the code of a report judge them, and counts what is false. The bound is
what docs/certainty.md claims. `--runs N`: the same from end to end (truth_of_runs.py); `--grid`: verdicts by truth,
scatter and number of environments (verdict_grid.py). `--tables`: the checks of printed numbers, on real tables with
planted faults (truth_of_tables.py). `--why`: the bars of explanations (truth_of_explanations.py). `--ab`: two versions
of a program (truth_of_versions.py). The exit code is 1 where a bound is broken, or where a planted fault breaks none
(bounds.py).
"""

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import known_truths as truths
from benchmarks import round_truths, truth_of_runs, unusual_truths, verdict_grid
from benchmarks.bounds import Fault, Row, broken

# Of a planted fault as many draws show enough.
_FAULT_DRAWS = 400
_FAULT_RUNS = 60
_PROCESSES = 2
# The bound of a row that docs/certainty.md names as a limit of its promise.
ANY = 1.0


def rows() -> Iterator[Row]:
    """Every row, in the order of docs/certainty-figures.md."""
    for cases in (8, 40):
        for trials in (3, 10):
            name = f"1 of {cases} cases scatters 10 times as much, n = {trials}: its interval misses"
            yield Row(name, 0.05, truths.noisy_case_missed(cases, trials))
            yield Row(name.replace("its", "a quiet case's"), 0.05, truths.quiet_case_missed(cases, trials))
    for environments in (2, 4):
        yield Row(f"A/A, 40 rows, {environments} environments: a mark", 0.0125, truths.marked(40, environments))
        for noisy in (1.0, 10.0):
            name = f"A/A, {environments} environments, one batch {noisy:g} times noisier: a false word"
            yield Row(name, 0.0375, truths.false_word(environments, noisy))
    for claims, trials in ((8, 5), (20, 10)):
        name = f"{claims} claims true in direction at the edge of hold, n = {trials}: one reproduced"
        yield Row(name, 0.00625, truths.reproduced_at_the_edge(claims, trials))
    for environments in (2, 4):
        name = f"A/A main questions, {environments} environments, looked at after 3, 6, 12, 24 trials: a false word"
        yield Row(name, 0.025, truths.false_word_over_looks(environments))
    yield from _of_rounds()
    yield from _of_unusual_machines()
    yield Row("every batch is faster, and the slow batches failed: reproduced", 0.0, truths.failed_batches_forgotten())
    for trials in (3, 10):
        name = f"nothing shrinks, scatter falls from 10 to 1 %, n = {trials}: shrinks, at 5 %"
        yield Row(name, 0.025, truths.shrinks_of_scatter(trials))
    yield Row("t_cost is equal and near 0: more or less, at 5 %", 0.05, truths.cost_of_nothing())
    yield Row("a kink: v0's interval misses the speed of the large batches", 0.05, truths.kink_missed())
    yield Row("a tenth of the blocks takes twice as long: the step's interval misses", 0.05, truths.stalls_missed())
    for parameter in ("v0", "t_cost"):
        name = f"a line holds, 5 batches, n = 3: {parameter}'s interval misses"
        yield Row(name, 0.05, truths.line_missed(parameter, 3))
    yield Row("a line holds, 2 batches, n = 3: v0's interval misses", 0.05, truths.line_missed("v0", 3, (16, 256)))
    yield Row("a line holds, 5 batches, n = 3: lack of fit, at 5 %", 0.05, truths.lack_of_fit_seen(3))
    for parameter in ("v0", "t_cost"):
        name = f"batches lie 2 % off a line, trials scatter by 0.5 %, n = 3: {parameter}'s interval misses"
        yield Row(name, 0.05, truths.line_missed(parameter, 3, off=0.02))


def _of_rounds() -> Iterator[Row]:
    for of_round in (0.0, 0.03):
        name = f"rounds scatter by {100 * of_round:g} %, trials by 1 %, n = 3: the interval of a ratio misses"
        yield Row(name, 0.05, round_truths.slow_rounds_missed(3, of_round))
    yield Row(f"{name}, at 0.4 %", 0.004, round_truths.slow_rounds_missed(3, 0.03, 0.004))
    for of_session in (0.0, 0.005, 0.01, 0.03):
        name = f"an environment is slower in some of 3 shared sessions, by {100 * of_session:g} %: the interval misses"
        yield Row(name, 0.05, round_truths.slow_sessions_missed(of_session, apart=False))
    name = "each environment in 3 sessions of its own, which scatter by 3 %: the interval misses"
    yield Row(name, 0.05, round_truths.slow_sessions_missed(0.03, apart=True))
    name = "each environment in a session of its own: they differ"
    yield Row(name, 0.0, round_truths.one_session_apart_decided())
    name = "a machine becomes 5 % slower over 5 minutes, trials scatter by 1 %"
    yield Row(f"{name}: not said", 0.05, round_truths.warming_unsaid())
    yield Row(f"{name}: the interval of a ratio misses", 0.05, round_truths.ratio_missed_while_warming())
    for questions in (2, 8, 16):
        name = f"a machine becomes 5 % slower over 10 minutes: the interval of questions 1 and {questions} misses"
        yield Row(name, 0.05, round_truths.ratio_across_questions_missed(0.05, 600, questions))
    name = "a machine walks by 0.6 % a round, trials scatter by 0.3 %"
    yield Row(f"{name}: a ratio misses, of rounds before and after", 0.05, round_truths.nested_rounds_missed())
    for parameter in ("v0", "t_cost"):
        missed = round_truths.lines_across_questions_missed(parameter)
        yield Row(f"{name}: a ratio of {parameter} misses, of lines 12 rounds apart", 0.05, missed)
    name = "a machine is steady: said of 2 environments that one is not"
    yield Row(name, 0.02, round_truths.steady_called_warming())
    for trials in (3, 12):
        name = f"12 cases reach the limit of a device, n = {trials}: its interval misses"
        yield Row(name, 0.05, round_truths.limit_missed(trials))


def _of_unusual_machines() -> Iterator[Row]:
    main, name = 0.025, "6 questions, looked at after 3, 6, 12 trials"
    for apart in (0.05, 0.1, 0.3):
        modes = unusual_truths.modes(apart)
        percent = f"half of the processes {100 * apart:g} % slower"
        yield Row(f"{name}; {percent}: a false word", main, unusual_truths.false_word(modes))
        yield Row(
            f"{name}, each of its own suite; {percent}: a false word",
            main,
            unusual_truths.false_word(modes, suites=True),
        )
    neighbour = unusual_truths.false_word(unusual_truths.neighbour)
    yield Row(f"{name}; a neighbour for 30 s of every minute, times 1.5: a false word", main, neighbour)
    noisier = unusual_truths.false_word(unusual_truths.noisier, (3,))
    yield Row("6 questions at 3 trials; one side scatters ten times as much: a false word", main / 2, noisier)
    for of_session in (0.003, 0.005, 0.01, 0.02):
        word = unusual_truths.false_word(unusual_truths.by_session(of_session), (6,))
        bound = main if of_session < 0.02 else ANY
        yield Row(
            f"6 questions in a session of 6 trials; environments differ by {100 * of_session:g} %: a false word",
            bound,
            word,
        )
    for of_day in (0.01, 0.02, 0.05):
        word = unusual_truths.slow_on_days(of_day)
        yield Row(
            f"6 questions on 3 shared days; environments differ by day, {100 * of_day:g} %: a false word", main, word
        )
    modes_on_days = unusual_truths.slower_than_baseline(0.003, 3, modes=0.1)
    name = "10 cases, half of the processes 10 % slower: a baseline of 3 days of a trial, slower"
    yield Row(name, 0.05, modes_on_days)
    for of_day in (0.01, 0.03):
        percent = f"10 cases, days scatter by {100 * of_day:g} %"
        for calls in (3, 6):
            slower = unusual_truths.slower_than_baseline(of_day, 1, calls)
            yield Row(f"{percent}: a baseline of {calls} calls of a day, slower", 0.0, slower)
        yield Row(f"{percent}: a baseline of 3 days, slower", 0.05, unusual_truths.slower_than_baseline(of_day, 3))
    for trials in (3, 6):
        for true, step in (
            ((2.45, 2.45), 0.1),
            ((20.5, 20.5), 0.1),
            ((10.5, 10.5), 1.0),
            ((12.47, 12.59), 0.1),
            ((12.47, 12.59), 1.0),
        ):
            missed = unusual_truths.rounded_missed(true, step, trials)
            yield Row(
                f"{true[0]:g} and {true[1]:g} printed in steps of {step:g}, n = {trials}: the interval misses",
                0.05,
                missed,
            )
        yield Row(
            f"one of ten trials takes 2.6 times as long, n = {trials}: alike",
            ANY if trials > 3 else 0.0,
            unusual_truths.alike_by_few(trials),
        )
    for trials, one_of in itertools.product((6, 24), (20, 60, 200)):
        # Trials with stalls scatter to one side, so an interval of 95 % misses somewhat more than 5 %.
        name = f"a tenth of the time is stalls, in one of {one_of} steps of 50 ms, n = {trials}: the interval misses"
        yield Row(name, 0.06 if one_of < 200 else ANY, unusual_truths.stall_missed(trials, one_of))


def faults() -> Iterator[Fault]:
    """A fault for each kind of bound."""
    looks = Row("A/A main questions over looks", 0.025, truths.false_word_over_looks(2))
    word = Row("A/A, 4 environments: a false word", 0.0375, truths.false_word(4, 1.0))
    noisy = Row("1 of 40 cases scatters 10 times as much", 0.05, truths.noisy_case_missed(40, 10))
    stalls = Row("stalls", 0.05, truths.stalls_missed())
    yield Fault("one variance for all cases", noisy, (("tsuishi.estimates.terms.moderated", truths.pooled),))
    yield Fault("each claim at 5 %", word, (("tsuishi.verdicts.family.decide", truths.each_alone),))
    yield Fault("all looks at 5 %", looks, (("tsuishi.verdicts.family.share_of_look", truths.free_looks),))
    off = Row("batches off a line", 0.05, truths.line_missed("v0", 3, off=0.02))
    yield Fault(
        "the median of the blocks", stalls, (("tsuishi.estimates.timed_blocks.mean_step_s", truths.median_step_s),)
    )
    far = Row("questions 1 and 8", 0.05, round_truths.ratio_across_questions_missed(0.05, 600, 8))
    yield Fault("rounds are all the same", far, (("tsuishi.estimates.unseen.between_rounds", round_truths.no_walk),))
    modes = Row("modes of processes", 0.025, unusual_truths.false_word(unusual_truths.modes(0.1)))
    yield Fault("three trials show all", modes, (("benchmarks.known_truths.of_few_trials", unusual_truths.nothing),))
    of_day = Row("environments differ by 1 %", 0.025, unusual_truths.false_word(unusual_truths.by_session(0.01), (6,)))
    yield Fault("all days are alike", of_day, (("tsuishi.estimates.unseen.OF_DAY", 0.0),))
    calls = Row("calls of a day", 0.0, unusual_truths.slower_than_baseline(0.03, 1, 12))
    of_days = ("tsuishi.estimates.contrasts.days_of", "tsuishi.verdicts.baseline.days_of")
    yield Fault("a call is a day", calls, tuple((name, unusual_truths.calls_as_days) for name in of_days))
    printed = Row("printed numbers", 0.05, unusual_truths.rounded_missed((12.3, 12.7), 1.0, 6))
    yield Fault(
        "printed numbers are exact", printed, (("benchmarks.unusual_truths._rounding", unusual_truths.nothing),)
    )
    stalled = Row("rare stalls", 0.06, unusual_truths.stall_missed(24, 60))
    yield Fault(
        "a trial ends once its blocks agree", stalled, (("common.timing._enough", unusual_truths.once_blocks_agree),)
    )
    yield Fault("a line's error from trials alone", off, (("tsuishi.estimates.line_fit.larger", truths.trials_alone),))


def power(draws: int) -> None:
    """Print how many of six main questions find a true ratio, in %, at 3, 6 and 12 trials."""
    print("true ratio   main questions found, in %, at n = 3 / 6 / 12: scatter 1 %, 3 %, 10 %")
    for true_ratio in (2.0, 1.3, 1.1, 1.03):
        cells = []
        for scatter in (0.01, 0.03, 0.1):
            shares = []
            for trials in (3, 6, 12):
                random, draw = np.random.default_rng(trials), truths.found(true_ratio, scatter, trials)
                shares.append(100 * sum(draw(random) for _ in range(draws)) / draws)
            cells.append(" / ".join(f"{found:.0f}" for found in shares))
        print(f"{true_ratio:10g}   {'   '.join(f'{cell:>15}' for cell in cells)}", flush=True)


def main(draws: int) -> int:
    """Print claimed against found. Returns the number of bounds that are broken, and of faults that break none."""
    return broken(rows(), faults(), draws, _FAULT_DRAWS)


def main_of_runs(runs: int, fault_runs: int) -> int:
    """As main, from run folders to the tables of reports."""
    return broken(truth_of_runs.rows(), truth_of_runs.faults(), runs, fault_runs, _PROCESSES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How often tsuishi is wrong where the truth is known.")
    parser.add_argument("--draws", type=int, default=10_000, help="of each row; 300 take a minute or two")
    parser.add_argument("--runs", type=int, help="run folders of each row, instead of draws; 200 take half an hour")
    parser.add_argument("--unusual", action="store_true", help="only machines that are not normal, and all faults")
    parser.add_argument("--grid", action="store_true", help="verdicts by truth, scatter and environments; half an hour")
    parser.add_argument("--tables", action="store_true", help="checks of printed numbers; 150 draws take two minutes")
    parser.add_argument("--files", type=Path, help="with --tables: a folder with the public tables that are listed")
    parser.add_argument("--why", action="store_true", help="bars of explanations; 1,000 draws take a minute")
    parser.add_argument("--ab", action="store_true", help="two versions of a program; 400 draws take ten minutes")
    parser.add_argument("--calls", type=int, help="with --ab: real calls on equal commits, in place of draws")
    parser.add_argument("--record", type=int, help="with --ab: so many real trials, for rows beside recorded trials")
    parser.add_argument("--neighbour", type=int, nargs="?", const=2, default=0, metavar="CORES", help="with --calls")
    parser.add_argument("--power", action="store_true", help="what is found instead of what is wrong")
    given = parser.parse_args()
    if given.power:
        power(given.draws)
    elif given.ab:
        from benchmarks import truth_of_versions  # of an extra

        if given.record:
            truth_of_versions.record(truth_of_versions.RECORDED, given.record)
            sys.exit()
        if given.calls:
            sys.exit(truth_of_versions.main_of_calls(given.calls, given.neighbour))
        sys.exit(truth_of_versions.main(given.draws))
    elif given.why:
        from benchmarks import truth_of_explanations  # of an extra

        sys.exit(truth_of_explanations.main(given.draws))
    elif given.tables:
        from benchmarks import truth_of_tables  # of an extra, and the core's tests import this file

        if given.files:
            sys.exit(truth_of_tables.main_of_listed(given.files, given.draws))
        sys.exit(truth_of_tables.main(given.draws))
    elif given.unusual:
        sys.exit(min(1, broken(_of_unusual_machines(), faults(), given.draws, _FAULT_DRAWS)))
    elif given.grid:
        sys.exit(min(1, broken(verdict_grid.rows(), (), given.draws, 0, _PROCESSES)))
    elif given.runs:
        sys.exit(min(1, main_of_runs(given.runs, min(given.runs, _FAULT_RUNS))))
    else:
        sys.exit(min(1, main(given.draws)))
