"""How often reports on run folders are wrong where the truth is known: `python -m benchmarks.truth --runs N`.

The rows, as those of truth.py, but from files to tables. Rows and faults are data, as several processes draw them.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks import amiss_runs, known_truths
from benchmarks import run_truths as truths
from benchmarks.bounds import Fault, Row
from tsuishi.results.same_trials import Common


def rows() -> Iterator[Row]:
    """Every row, in the order of docs/certainty-figures.md."""
    for trials in (3, 10):
        name = f"1 of 8 cases scatters 10 times as much, n = {trials}: its interval misses"
        yield Row(name, 0.05, partial(truths.noisy_case_missed, trials))
    name = "rounds scatter by 3 %, trials by 1 %, n = 6: the interval of a ratio misses"
    yield Row(name, 0.05, truths.common_round_missed)
    name = "environments measured on different days: an interval, a word or a mark"
    yield Row(name, 0.0, amiss_runs.sessions_compared)
    name = "one of two environments was measured on a day more, alone: its interval misses, or a false word"
    yield Row(name, 0.0875, truths.one_day_more_missed)
    for environments in (2, 4):
        name = f"{environments} environments, one batch 10 times noisier"
        yield Row(f"A/A, 40 rows, {name}: a mark", 0.0125, partial(truths.marked, 40, environments))
        yield Row(f"A/A, 8 rows, {name}: a false word", 0.0375, partial(truths.false_word, 8, environments))
    yield Row("8 claims true in direction at the edge of hold, n = 5: one reproduced", 0.00625, truths.edge_reproduced)
    name = "every batch is faster, and the slow batches failed: a verdict, or they are not named"
    yield Row(name, 0.0, amiss_runs.failed_forgotten)
    yield Row("nothing shrinks, scatter falls from 10 to 1 %, n = 6: shrinks", 0.025, truths.shrinks_of_scatter)
    yield Row("a run given again, and copies of its folder: a table changes", 0.0, amiss_runs.copies_counted)
    name = "all blocks of a trial are 0 or inf: no report, a number of it, or it is not named"
    yield Row(name, 0.0, amiss_runs.broken_trial_used)
    yield Row("a metric is in ms in one environment, in s in the other: a ratio", 0.0, amiss_runs.milliseconds_compared)
    yield Row("a tenth of the blocks takes twice as long: the step's interval misses", 0.05, truths.stalls_missed)
    name = "a status, from a single trial of each case: more than the count is said"
    yield Row(name, 0.0, amiss_runs.single_trial_generalised)


def faults() -> Iterator[Fault]:
    """A fault for each kind of bound."""
    noisy = Row("1 of 8 cases scatters 10 times as much", 0.05, partial(truths.noisy_case_missed, 10))
    word = Row("A/A, 4 environments: a false word", 0.0375, partial(truths.false_word, 8, 4))
    stalls = Row("stalls", 0.05, truths.stalls_missed)
    days = Row("different days", 0.0, amiss_runs.sessions_compared)
    copies = Row("copies", 0.0, amiss_runs.copies_counted)
    broken = Row("a broken trial", 0.0, amiss_runs.broken_trial_used)
    units = Row("units", 0.0, amiss_runs.milliseconds_compared)
    failed = Row("failed batches", 0.0, amiss_runs.failed_forgotten)
    pooled, alone, median = known_truths.pooled, known_truths.each_alone, known_truths.median_step_s
    yield Fault("one variance for all cases", noisy, (("tsuishi.estimates.terms.moderated", pooled),))
    yield Fault("each claim at 5 %", word, (("tsuishi.verdicts.conclusions.decide", alone),))
    yield Fault("the median of the blocks", stalls, (("tsuishi.estimates.timed_blocks.mean_step_s", median),))
    yield Fault("all days are one", days, (("tsuishi.estimates.contrasts._in_sessions", _no_sessions),))
    yield Fault("copies are runs of their own", copies, (("tsuishi.results.frames.common", _nothing_common),))
    yield Fault("no row is looked at", broken, (("tsuishi.results.frames.exclude", _nothing_excluded),))
    yield Fault("no unit is looked at", units, (("tsuishi.results.frames.exclude", _nothing_excluded),))
    yield Fault("what failed is forgotten", failed, (("tsuishi.verdicts.checks._absent", _nothing_absent),))


def _no_sessions(terms: object) -> list[Any]:
    """A fault: nobody knows in which session a trial was measured."""
    return []


def _nothing_common(counts: Mapping[str, int], given: object) -> Common:
    """A fault: no trial of a run is that of another."""
    return Common(np.arange(sum(counts.values())), [], {run: run for run in counts})


def _nothing_excluded(trials: object, tables: object, words: object) -> list[Any]:
    """A fault: every row is as it should be."""
    return []


def _nothing_absent(check: object, findings: object) -> Iterator[Any]:
    """A fault: every case has a number."""
    return iter(())
