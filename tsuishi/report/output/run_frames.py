"""A run as pandas frames, for notebooks: `tsuishi.load_run`."""

import os
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from tsuishi.base.checkout import Checkout
from tsuishi.machine.compatibility import read_table
from tsuishi.report.parts import declarations, suite_cases
from tsuishi.report.parts.wording import worded
from tsuishi.report.sections import verdict_rows
from tsuishi.results import schema
from tsuishi.results.directory import open_run
from tsuishi.verdicts.conclusions import conclude
from tsuishi.verdicts.evidence import evidence_of


class RunFrames(NamedTuple):
    """The frames of a run; `meanings` says what every column is: table, column, type, description.

    trials: a row for each trial, with the axes of its case. samples, metrics, telemetry: as measured, by `trial_id`.
    estimates: a row for each trial and quantity; cases: for each case, environment and quantity, with axes and spread.
    verdicts: a row for each check of each claim in each environment. Names of columns have units (`_s`, `_mib`, `_j`,
    `_w`, `_percent`); numbers of a metric or quantity are in the `unit` of their row.
    """

    trials: pd.DataFrame
    samples: pd.DataFrame
    metrics: pd.DataFrame
    telemetry: pd.DataFrame
    estimates: pd.DataFrame
    cases: pd.DataFrame
    verdicts: pd.DataFrame
    meanings: pd.DataFrame


def frames(path: str | os.PathLike[str]) -> RunFrames:
    """The frames of the run in this folder, in the words of this checkout and against its sources.

    Raises UserError where it is no run, or a file is unreadable.
    """
    checkout, run = Checkout(), Path(path)
    sheets = read_table(checkout.images).data_sheets
    evidence = evidence_of(open_run(run.parent, str(run)), checkout.suites, checkout.published, sheets)
    with worded(evidence.words):
        rows = {
            "cases": [row for each in suite_cases.cases_of_suites(evidence) for row in each.rows()],
            "verdicts": verdict_rows.verdict_rows(conclude(evidence).judgements)["verdicts"],
        }
    every = {**declarations.TABLES, **suite_cases.TABLES, **verdict_rows.TABLES}
    declared = {name: declarations.columns_of(evidence, some) for name, some in every.items()}
    made = {name: pd.DataFrame(declarations.filled(declared[name], some)) for name, some in rows.items()}
    results, described = evidence.results, {**declared, **schema.OF_A_TRIAL}
    ids = results.trials["trial_id"]
    measured = {"samples": results.samples, "metrics": results.metrics, "telemetry": results.telemetry}
    for name, frame in measured.items():
        made[name] = frame.drop(columns="trial").assign(trial_id=ids.loc[frame["trial"]].to_numpy())
    about = [
        (name, column.name, column.type, column.description)
        for name in RunFrames._fields[:-1]
        for column in described[name]
    ]
    meanings = pd.DataFrame(about, columns=["table", "column", "type", "description"])
    return RunFrames(trials=results.trials, estimates=evidence.estimates, meanings=meanings, **made)
