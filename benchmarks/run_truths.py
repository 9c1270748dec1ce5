"""Truths for truth_of_runs.py about scatter: each function writes a run and says whether its report is wrong.

What a report says is read from its tables, and from nothing else.
"""

import math

import numpy as np

from benchmarks.known_truths import BATCHES, SCATTER, Random
from benchmarks.made_runs import FRAMEWORKS, STEP_S, TENSORFLOW, TORCH, Cells, Trial, drawn_cells, folder, write
from benchmarks.reported import EVERY, ORDER, SIZE, claim, intervals, marks, reported, says_something, tables, verdicts


def noisy_case_missed(trials: int, random: Random) -> bool:
    """The interval of the ratio of equal environments does not have 1 in the case that scatters ten times as much."""
    scatter = np.full(8, SCATTER)
    scatter[0] *= 10
    low, high = intervals(reported(drawn_cells(random, scatter, trials)))[1]
    return not low <= 1 <= high


def common_round_missed(random: Random) -> bool:
    """The interval of the ratio of equal environments does not have 1, where what is slow is slow for a whole round.

    Rounds scatter by 3 %, and trials by 1 %.
    """
    of_rounds = np.exp(random.normal(0, 0.03, 6))
    cells = {
        key: [Trial([step_s * slow for step_s in each.steps_s]) for each, slow in zip(trials, of_rounds, strict=True)]
        for key, trials in drawn_cells(random, np.full(8, 0.01), 6).items()
    }
    low, high = intervals(reported(cells))[1]
    return not low <= 1 <= high


def one_day_more_missed(random: Random) -> bool:
    """The interval of equal environments misses, or there is a word: one was measured on a day more, alone.

    Days scatter by 3 %, and trials by 1 %.
    """
    with folder() as path:
        runs = []
        for day, environments in enumerate(((TORCH,), (TORCH, TENSORFLOW))):
            drawn = drawn_cells(random, np.full(4, 0.01), 3, environments=environments)
            slow = math.exp(random.normal(0, 0.03))
            cells = {
                key: [Trial([step_s * slow for step_s in each.steps_s]) for each in trials]
                for key, trials in drawn.items()
            }
            runs.append(write(path / f"day{day}", cells))
        found = tables(runs, [ORDER, EVERY, SIZE])
    compared = [row for row in found["side_by_side"] if row["batch_size"] == "1" and row["ratio_low"]]
    missed = any(not float(row["ratio_low"]) <= 1 <= float(row["ratio_high"]) for row in compared)
    return missed or says_something(found)


def marked(count: int, environments: int, random: Random) -> bool:
    """A report of equal environments marks the best of a row."""
    return marks(reported(_alike(count, environments, random))) > 0


def false_word(count: int, environments: int, random: Random) -> bool:
    """A report of equal environments says that two differ, or that a claim on a difference holds or does not."""
    found = reported(_alike(count, environments, random), [ORDER, EVERY, SIZE])
    assert "not tested" not in verdicts(found)
    return says_something(found)


def edge_reproduced(random: Random) -> bool:
    """Of claims whose direction is true and whose ratio is at the edge of what they say, one is reproduced."""
    cells = drawn_cells(random, np.full(8, 0.01), 5, {TORCH: 0.9})
    claims = [
        claim("ratio", hold={"above": 0.8, "below": 0.9}, direction={"below": 1.0}, case={"batch_size": batch_size})
        for batch_size in range(1, 9)
    ]
    found = reported(cells, claims)
    assert len(found["verdicts"]) == len(claims)
    return "reproduced" in verdicts(found)


def shrinks_of_scatter(random: Random) -> bool:
    """A ratio that is the same at all batches is said to come nearer to 1, as the scatter falls from 10 % to 1 %."""
    cells = drawn_cells(random, np.geomspace(0.1, 0.01, 5), 6, {TORCH: math.exp(0.05)}, batch_sizes=BATCHES)
    return "reproduced" in verdicts(reported(cells, [claim("shrinks", along="batch_size")]))


def stalls_missed(random: Random) -> bool:
    """The interval of a step does not have its mean, where a tenth of the blocks takes twice as long."""
    trials = [
        Trial([STEP_S * (2 if stall else 1) for stall in stalled]) for stalled in random.uniform(size=(5, 40)) < 0.1
    ]
    mean = claim("ratio", of={}, over="batch_size", than=1.1 * STEP_S, hold={"above": 0.99, "below": 1.01})
    (row,) = reported({(TORCH, 16): trials}, [mean])["verdicts"]
    return not float(row["low"]) <= 1 <= float(row["high"])


def _alike(count: int, environments: int, random: Random) -> Cells:
    """So many cases, one of which scatters 10 times as much, in so many equal environments."""
    scatter = SCATTER * np.exp(random.normal(0, 0.5, count))
    scatter[0] *= 10
    return drawn_cells(random, scatter, 3, environments=[*FRAMEWORKS][:environments])
