"""Impossible content of unaltered files: times outside of their trial, rows out of order, findings repeated.

The rows of samples and metrics are checked at the door to all estimates (admission.py), by reports too.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tsuishi.results.admission import SUPERSEDED, exclude
from tsuishi.results.frames import Results
from tsuishi.results.records import EnvironmentRecord, TrialRecord, other_versions
from tsuishi.results.run_tables import TRIAL
from tsuishi.specs.statuses import EXCLUDED, FAILED, OK, is_finding

# Times are rounded to 1 ms, and phases to 1 µs.
_ROUNDING_S = 0.002


def wrong_times(trial: TrialRecord) -> Iterator[str]:
    """Times in a trial.json that cannot be: a line each."""
    last = trial.duration_s
    if last is not None and (trial.startup_s or 0.0) > last + _ROUNDING_S:
        yield f"its first event came after {trial.startup_s} s, and it lasted {last} s"
    before = 0.0
    for phase in trial.phases or []:
        if phase.begin_s < before:
            yield f"its phase {phase.name} begins before the phase in front of it"
        if phase.end_s is not None and phase.end_s < phase.begin_s:
            yield f"its phase {phase.name} ends before it begins"
        if last is not None and max(phase.begin_s, phase.end_s or 0.0) > last + _ROUNDING_S:
            yield f"its phase {phase.name} is not within its {last} s"
        before = phase.begin_s


def wrong_end(trial: TrialRecord) -> Iterator[str]:
    """What a trial that ended well cannot have: a line each."""
    if trial.status == OK and trial.exit_code:
        yield f"it is ok, and its exit code is {trial.exit_code}"
    if trial.status == OK and trial.events_missing:
        yield f"it is ok, and {trial.events_missing} of its events are missing"


def wrong_versions(trial: TrialRecord, environment: EnvironmentRecord) -> Iterator[str]:
    """Versions that a trial saw and its environment does not have: a line each. A trial may have failed by them."""
    if trial.reported and trial.status != FAILED:
        for name, (seen, recorded) in other_versions(environment, trial.reported).items():
            yield f"it saw {name} {seen}, and {trial.environment} has {recorded}"


def wrong_rows(results: Results) -> Iterator[tuple[str, str]]:
    """Rows of trials that are out of order or outside of their trial: a trial's id, and a line."""
    telemetry, trials = results.telemetry, results.trials
    of, elapsed = telemetry[TRIAL].to_numpy(np.int64), telemetry["elapsed_s"].to_numpy("float64", na_value=np.nan)
    back = (of[1:] == of[:-1]) & (elapsed[1:] < elapsed[:-1])
    for trial in np.unique(of[1:][back]).tolist():
        yield str(trials.at[trial, "trial_id"]), "telemetry.csv: a row is of a time before the row in front of it"
    ends = trials["duration_s"].to_numpy("float64", na_value=np.nan)
    for trial in np.unique(of[elapsed > ends[of] + _ROUNDING_S]).tolist():
        yield str(trials.at[trial, "trial_id"]), f"telemetry.csv: a row is of a time after its {ends[trial]} s"
    pairs = results.samples[[TRIAL, "phase"]].drop_duplicates()
    for trial, phase in zip(pairs[TRIAL].tolist(), pairs["phase"].tolist(), strict=True):
        run_id, trial_id = str(trials.at[trial, "run_id"]), str(trials.at[trial, "trial_id"])
        record = results.records[run_id, trial_id]
        # Where the runner was killed, the phases were not noted.
        if trials.at[trial, "status"] == OK and record.phases and phase not in {known.name for known in record.phases}:
            yield trial_id, f"samples.csv: it had no phase {phase}"


def repeated_findings(results: Results) -> Iterator[tuple[str, str]]:
    """Trials that were measured again though they had a final finding: a trial's id, and a line.

    A trial that ended well is measured again only where its rows cannot be right.
    """
    trials = results.trials
    planned = trials["trial_id"].str.replace(r"\.a[0-9]+$", "", regex=True)
    last = trials["attempt"].groupby(planned).transform("max")
    earlier = trials["attempt"] < last
    superseded = earlier & trials["reason"].eq(SUPERSEDED) & trials["status"].eq(EXCLUDED)
    for trial in trials.index[earlier & ~superseded].tolist():
        status = str(trials.at[trial, "status"])
        if is_finding(status):
            yield str(trials.at[trial, "trial_id"]), f"it is {status}, which is final, and was measured again"
    for attempt in sorted(set(trials.loc[superseded, "attempt"].tolist())):
        again = superseded & trials["attempt"].eq(attempt)
        excluded = _excluded_then(results, again, trials["attempt"].gt(attempt) & planned.isin(planned[again]))
        for trial_id in trials.loc[again, "trial_id"].tolist():
            if trial_id not in excluded:
                yield trial_id, "it is ok, which is final, and was measured again"


def _excluded_then(results: Results, again: "pd.Series[bool]", later: "pd.Series[bool]") -> set[str]:
    """The ids of the trials that a report excluded before their later attempts were made."""
    then = results.trials.copy()
    then["status"] = then["status"].mask(again, OK).mask(later, FAILED)
    then["attempt"] = then["attempt"].mask(later, 0)
    tables = {"samples": results.samples, "metrics": results.metrics, "telemetry": results.telemetry}
    return {exclusion.trial_id for exclusion in exclude(then, tables, results.words)}
