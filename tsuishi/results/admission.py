"""The door to all estimates: what the rows of a trial must be. A trial with a row that is not so is excluded whole.

One bad trial, of a workload or a disk that went wrong, must neither spoil its case nor keep a report from the others.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from tsuishi.base.language import mark
from tsuishi.results.tables import TRIAL
from tsuishi.results.trial_tables import REMEDY
from tsuishi.specs.statuses import EXCLUDED, OK


class Exclusion(NamedTuple):
    """A trial that is in no estimate: its run and id, the file with a wrong row, that row from 1, and what is wrong.

    `problem` is English; a report translates it.
    """

    run_id: str
    trial_id: str
    table: str
    row: int
    problem: str

    @property
    def file(self) -> str:
        """The file, as a path in the folder of the run."""
        return f"trials/{self.trial_id}/{self.table}.csv"


def exclude(trials: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> list[Exclusion]:
    """Give the status `excluded` to every trial with a row that no workload can have sent; the first such row of each.

    Trials that did not end well are not looked at: they may have been killed while they wrote, and count nowhere.
    """
    ok = trials["status"].eq(OK).to_numpy(bool)
    found: dict[int, Exclusion] = {}
    used = {table: rows[ok[rows[TRIAL]]] for table, rows in tables.items()}
    for table, problem, right in _checks(used):
        wrong = used[table][~right].drop_duplicates(TRIAL)
        for place, trial in zip(wrong.index.tolist(), wrong[TRIAL].tolist(), strict=True):
            # The rows of a trial lie together.
            row = place - int(tables[table][TRIAL].searchsorted(trial)) + 1
            run_id, trial_id = trials.loc[trial, ["run_id", "trial_id"]].tolist()
            found.setdefault(trial, Exclusion(run_id, trial_id, table, row, problem))
    for trial, exclusion in found.items():
        trials.loc[trial, "status"] = EXCLUDED
        trials.loc[trial, "reason"] = f"{exclusion.file}: row {exclusion.row}: {exclusion.problem}: {REMEDY}"
    return [found[trial] for trial in sorted(found)]


def _checks(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple[str, str, np.ndarray]]:
    """Every check: its table, what is wrong with a row that fails it, and of every row whether it passes."""

    def within(table: str, column: str, least: float) -> np.ndarray:
        values = tables[table][column].to_numpy("float64", na_value=np.nan)
        return (values >= least) & (values < np.inf)

    samples = tables["samples"]
    place = samples.groupby([TRIAL, "phase"], observed=True).cumcount()
    in_place = samples["index"].eq(place).fillna(False).to_numpy(bool)
    yield "samples", mark("its index is not its place in its phase"), in_place
    yield "samples", mark("steps is not 1 or more"), within("samples", "steps", 1)
    yield "samples", mark("images is not 0 or more"), within("samples", "images", 0)
    yield "samples", mark("seconds is not above 0 and finite"), within("samples", "seconds", np.nextafter(0, 1))
    yield "metrics", mark("value is not finite"), np.isfinite(tables["metrics"]["value"].to_numpy())
    yield "telemetry", mark("elapsed_s is not 0 or more"), within("telemetry", "elapsed_s", 0)
