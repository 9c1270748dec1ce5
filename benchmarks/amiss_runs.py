"""Truths for truth_of_runs.py about runs in which something is amiss: a report must say so, and nothing false.

Each function writes such a run and says whether its report is wrong, by the report's tables.
"""

import math
import shutil
from pathlib import Path

import numpy as np

from benchmarks.known_truths import BATCHES, SCATTER, Random
from benchmarks.made_runs import STEP_S, TENSORFLOW, TORCH, Trial, drawn_cells, folder, write
from benchmarks.reported import EVERY, ORDER, SIZE, claim, marks, reported, says_something, tables
from tsuishi.base.files import write_json
from tsuishi.results.directory import RunDirectory


def sessions_compared(random: Random) -> bool:
    """Equal environments get an interval, a word or a mark, though each was measured on a day of its own."""
    cells = {}
    for environment in (TORCH, TENSORFLOW):
        of_session = math.exp(random.normal(0, SCATTER))
        for key, trials in drawn_cells(random, np.full(4, SCATTER), 10, environments=(environment,)).items():
            cells[key] = [Trial([step_s * of_session for step_s in each.steps_s]) for each in trials]
    found = reported(cells, [ORDER, EVERY, SIZE], sessions=(TORCH, TENSORFLOW))
    compared = ("side_by_side", "side_by_side_means", "verdicts", "verdict_cases", "questions")
    cells_of = (cell for name in compared for row in found[name] for cell in row.items())
    has_interval = any(value and column.rpartition("_")[2] in ("low", "high") for column, value in cells_of)
    assert found["side_by_side_means"]
    return has_interval or marks(found) > 0 or says_something(found)


def failed_forgotten(random: Random) -> bool:
    """A claim about every batch has a verdict, though some batches failed, or it does not name these.

    The batches that did not fail make it true.
    """
    cells = dict(drawn_cells(random, np.full(5, SCATTER), 6, {TORCH: 0.6}, batch_sizes=BATCHES))
    for batch_size in BATCHES[-2:]:
        status = str(random.choice(["failed", "out_of_memory"]))
        cells[TORCH, batch_size] = [Trial((), {"status": status, "reason": "made up", "exit_code": 1})] * 6
    every = claim("order", hold={"below": 1.0}, case={"batch_size": [*BATCHES]})
    (row,) = reported(cells, [every])["verdicts"]
    named = all(f"batch {batch_size}" in row["sentence"] for batch_size in BATCHES[-2:])
    return row["verdict"] != "inconclusive" or not named


def copies_counted(random: Random) -> bool:
    """A table changes where a run is given again, or with it copies of its folder, with its id or another."""
    cells = drawn_cells(random, np.full(4, SCATTER), int(random.integers(3, 7)))
    with folder() as path:
        run = write(path / "run", cells)
        renamed = _copy(run, path / "renamed")
        write_json(renamed.path / "run.json", {"schema_version": 1, **run.run().content(), "run_id": "renamed"})
        others = [run, _copy(run, path / "elsewhere" / "run"), renamed]
        more = [others[place] for place in random.permutation(3)[: random.integers(1, 4)]]
        alone, together = (tables(runs, [ORDER, SIZE]) for runs in ([run], [run, *more]))
    return alone != together


def broken_trial_used(random: Random) -> bool:
    """A trial whose blocks all take 0 or infinitely long ends the report, is in a number, or is not named."""
    cells = {key: [*trials] for key, trials in drawn_cells(random, np.full(4, SCATTER), 4).items()}
    (environment, batch_size), place = [*cells][random.integers(len(cells))], int(random.integers(4))
    of_case = cells[environment, batch_size]
    of_case[place] = Trial([float(random.choice([0.0, math.inf]))] * 3)
    try:
        found = reported(cells, [ORDER, EVERY])
    except Exception:  # whatever it is, there is no report
        return True
    excluded = [row for row in found["trials"] if row["status"] == "excluded"]
    where = {"environment": environment, "batch_size": str(batch_size)}
    asked = {**where, "run_id": "run", "repetition": str(place + 1)}
    if len(excluded) != 1 or not asked.items() <= excluded[0].items():
        return True
    trial_id, reason = excluded[0]["trial_id"], excluded[0]["reason"]
    expected = math.exp(sum(_mean_log(each) for number, each in enumerate(of_case) if number != place) / 3)
    (row,) = (row for row in found["side_by_side"] if where.items() <= row.items())
    right = row["trials"] == "3" and math.isclose(float(row["geometric_mean"]), expected, rel_tol=1e-9)
    in_a_number = any(row["trial_id"] == trial_id for row in found["estimates"])
    return in_a_number or not right or not reason.startswith(f"trials/{trial_id}/samples.csv: row 1: ")


def milliseconds_compared(random: Random) -> bool:
    """A ratio of a metric is printed that is in ms in one environment, and in s in the other: of a quantity, or not."""
    name = str(random.choice(["compile_s", "copying"]))
    cells = {}
    for (environment, batch_size), trials in drawn_cells(random, np.full(2, SCATTER), 3).items():
        factor, unit = (1000, "ms") if environment == TORCH else (1, "s")
        metrics = [(name, factor * math.exp(_mean_log(each)), unit) for each in trials]
        cells[environment, batch_size] = [
            Trial(each.steps_s, {"metrics": [metric]}) for each, metric in zip(trials, metrics, strict=True)
        ]
    found = reported(cells, [claim("ratio", quantity="compile_s", hold={"above": 0.5, "below": 2.0})])
    excluded = {row["environment"] for row in found["trials"] if row["status"] == "excluded"}
    ratios = [row["ratio"] for row in (*found["side_by_side"], *found["side_by_side_means"], *found["questions"])]
    ratios += [row["estimate"] for row in found["verdicts"]]
    return any(ratios) or TORCH not in excluded or says_something(found)


def single_trial_generalised(random: Random) -> bool:
    """A claim on the status of cases that were tried once says more than how many trials had it."""
    count, status = int(random.integers(1, 4)), str(random.choice(["ok", "out_of_memory"]))
    fields = {} if status == "ok" else {"status": status, "reason": "made up", "exit_code": 1}
    steps_s = [STEP_S] * 3 if status == "ok" else []
    cells = {(TORCH, batch_size): [Trial(steps_s, fields)] for batch_size in BATCHES[:count]}
    asked = claim("presence", case={"framework": "torch"}, of={"batch_size": [*BATCHES[:count]]}, status=status)
    (row,) = reported(cells, [asked])["verdicts"]
    general = any(word in row["sentence"] for word in ("every", "always", "all "))
    return general or f"in {count} of {count} trials" not in row["sentence"]


def _copy(run: RunDirectory, to: Path) -> RunDirectory:
    return RunDirectory(Path(shutil.copytree(run.path, to)))


def _mean_log(each: Trial) -> float:
    return math.log(math.fsum(each.steps_s) / len(each.steps_s))
