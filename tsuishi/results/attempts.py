"""Attempts: which of several attempts at a trial counts."""

from typing import TYPE_CHECKING

from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import TrialRecord
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
