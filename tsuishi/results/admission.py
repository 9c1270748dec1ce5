"""The door to all estimates: what the rows of a trial must be. A trial with a row that is not so is excluded whole.

One bad trial, of a workload or a disk that went wrong, must neither spoil its case nor keep a report from the others.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsuishi.base.language import mark
from tsuishi.results.attempts import last_rows
from tsuishi.results.run_tables import REMEDY, TRIAL
from tsuishi.specs.statuses import EXCLUDED, OK
from tsuishi.specs.vocabulary import Vocabulary

SUPERSEDED = "excluded, and measured again by a later attempt"
_ANOTHER_UNIT = mark("metric {metric} is in {unit}, and its quantity in {others}")
_SEVERAL_UNITS = mark("metric {metric} is in {unit} here and in {others} elsewhere, and no quantity describes it")


class Exclusion(NamedTuple):
    """A trial that is in no estimate: its run and id, the file with a wrong row, that row from 1, and what is wrong.

    `problem` is English, with fields that `named` has; a report translates it.
    """

    run_id: str
    trial_id: str
    table: str
    row: int
    problem: str
    named: Mapping[str, str] = MappingProxyType({})

    @property
    def file(self) -> str:
        """The file, as a path in the folder of the run."""
        return f"trials/{self.trial_id}/{self.table}.csv"

    @property
    def in_english(self) -> str:
        """What is wrong."""
        return self.problem.format(**self.named) if self.named else self.problem


def exclude(trials: pd.DataFrame, tables: Mapping[str, pd.DataFrame], words: Vocabulary) -> list[Exclusion]:
    """Give the status `excluded` to every trial with a row that cannot be right; the first such row of each.

    It cannot where no workload can have sent it, or a metric has another unit than its quantity. Of a metric that no
    file describes, all trials of a suite have one unit, or none of these trials counts: it is unknown which is right.
    Trials that did not end well are not looked at: they may have been killed while they wrote, and count nowhere. A
    trial that ended well and was measured again all the same was excluded then; nothing more is said of it.
    """
    superseded = trials["status"].eq(OK) & ~trials.index.isin(last_rows(trials).index)
    trials.loc[superseded, ["status", "reason"]] = [EXCLUDED, SUPERSEDED]
    ok = trials["status"].eq(OK).to_numpy(bool)
    found: dict[int, Exclusion] = {}
    used = {table: rows[ok[rows[TRIAL]]] for table, rows in tables.items()}

    def add(table: str, place: int, problem: str, named: Mapping[str, str] = MappingProxyType({})) -> None:
        places = tables[table][TRIAL].to_numpy(dtype=np.int64)
        trial = int(places[place])
        row = place - int(np.searchsorted(places, trial)) + 1  # the rows of a trial lie together
        run_id, trial_id = (str(trials.at[trial, name]) for name in ("run_id", "trial_id"))
        found.setdefault(trial, Exclusion(run_id, trial_id, table, row, problem, named))

    for table, problem, right in _checks(used):
        for place in used[table][~right].drop_duplicates(TRIAL).index.tolist():
            add(table, place, problem)
    for place, problem, named in _wrong_units(trials["suite"], used["metrics"], words):
        add("metrics", place, problem, named)
    for trial, exclusion in found.items():
        trials.loc[trial, "status"] = EXCLUDED
        trials.loc[trial, "reason"] = f"{exclusion.file}: row {exclusion.row}: {exclusion.in_english}: {REMEDY}"
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


def _wrong_units(
    suites: "pd.Series[Any]", metrics: pd.DataFrame, words: Vocabulary
) -> Iterator[tuple[int, str, Mapping[str, str]]]:
    """The rows of metrics with a wrong unit: the place of a row, what is wrong, and the names in that text.

    suites: of all trials, by their places.
    """
    by_metric: dict[tuple[str, str], dict[str, list[int]]] = {}
    rows = metrics[[TRIAL, "name", "unit"]].drop_duplicates()
    of_suite = suites.loc[rows[TRIAL]].tolist()
    for place, suite, name, unit in zip(
        rows.index.tolist(), of_suite, rows["name"].tolist(), rows["unit"].tolist(), strict=True
    ):
        by_metric.setdefault((suite, name), {}).setdefault(unit, []).append(place)
    for (suite, name), by_unit in by_metric.items():
        described = _described_unit(words, suite, name)
        for unit, places in by_unit.items():
            if described is not None and unit != described:
                problem, others = _ANOTHER_UNIT, described
            elif described is None and len(by_unit) > 1:
                problem, others = _SEVERAL_UNITS, ", ".join(sorted(by_unit.keys() - {unit}))
            else:
                continue
            for place in places:
                yield place, problem, {"metric": name, "unit": unit, "others": others}


def _described_unit(words: Vocabulary, suite: str, metric: str) -> str | None:
    """The unit of the quantities of a metric; None where no file describes them."""
    units = [quantity.unit for quantity in words.made_of(suite) if quantity.origin == f"metric:{metric}"]
    if not units and metric in words.quantities:
        units = [words.quantities[metric].unit]
    return units[0] if units else None
