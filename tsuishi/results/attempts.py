"""Attempts: which of several attempts at a trial counts, and what the trials of a plan came to."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import TrialRecord
from tsuishi.specs.statuses import is_finding
from tsuishi.specs.trial_id import TrialId

if TYPE_CHECKING:
    import pandas as pd


def last_attempts(run: RunDirectory) -> dict[TrialId, TrialRecord]:
    """The last attempt at every trial, by the planned trial's id."""
    latest: dict[TrialId, TrialRecord] = {}
    for _, trial in run.finished():
        planned = trial.id.planned
        if planned not in latest or trial.attempt > latest[planned].attempt:
            latest[planned] = trial
    return latest


def last_rows(trials: "pd.DataFrame") -> "pd.DataFrame":
    """The rows of `trials` that count: of every case, environment and repetition of a run, the last attempt."""
    ordered = trials.sort_values(["run_id", "trial_id", "attempt"], kind="stable")
    last = ordered.groupby(["run_id", "case_id", "environment", "repetition"])["attempt"].transform("max")
    return ordered[ordered["attempt"] == last]


def status_counts(run: RunDirectory, planned: Iterable[TrialId]) -> Counter[str]:
    """How many trials of a plan came to which status; a trial that has no attempt counts as 'not run'."""
    latest = last_attempts(run)
    return Counter(latest[trial].status if trial in latest else "not run" for trial in planned)


def has_failed(run: RunDirectory) -> bool:
    """Whether the last attempt at some trial failed, timed out, or never came to an end."""
    return any(not is_finding(trial.status) for trial in last_attempts(run).values())
