"""Evidence: what a report rests on, read and matched once. Everything else in a report is a view of it."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from tsuishi.analysis import limits
from tsuishi.analysis.estimates import case_estimates, trial_estimates
from tsuishi.analysis.frames import named_rows, outcomes, read_runs
from tsuishi.published import Source
from tsuishi.store import RunDirectory


class Evidence:
    """What the runs recorded, what follows from it, and what was published about the same suites."""

    def __init__(self, runs: Sequence[RunDirectory], sources: tuple[Source, ...]) -> None:
        # As recorded. `environments` are labels of environments: see `column` in frames.py.
        self.directories = {run.id: run for run in runs}
        self.results = read_runs(runs)
        self.outcomes = outcomes(self.results)
        self.environments = sorted(set(self.outcomes["column"]))
        self.suites = sorted(set(self.outcomes["suite"]))
        self.axes: dict[str, dict[str, Any]] = {row.case_id: row.axes for row in named_rows(self.outcomes)}

        # What follows from it. `fractions` of limits: those too that cannot be told, as no limit was measured.
        timed = trial_estimates(self.results)
        rates = limits.with_axes(timed, self.results.trials)
        self.limits = limits.measured_limits(rates)
        self.fractions = limits.fractions(rates, self.limits)
        told = [{name: row[name] for name in timed.columns} for row in self.fractions if row["value"] is not None]
        self.estimates = pd.DataFrame([*timed.to_dict("records"), *told], columns=timed.columns)
        self.cases = case_estimates(self.estimates)

        # As published: `numbers` of the suites that ran, and by Number.key the hardware they were measured on.
        self.sources = sources
        self.numbers = [number for source in sources for number in source.flat() if number.axes["suite"] in self.suites]
        listed = {(source.name, hardware.name): hardware for source in sources for hardware in source.hardware}
        self.hardware = {number.key: listed[number.source, number.hardware] for number in self.numbers}

    def published(self, case_id: str) -> dict[tuple[str, str], float]:
        """The published numbers of a case, by Number.key and quantity, in the quantity's unit.

        There is no accuracy where ours was reached on made-up data: the two are not comparable.
        """
        synthetic = self.cases.loc[self.cases["case_id"] == case_id, "synthetic"].any()
        return {
            (number.key, number.quantity): number.value
            for number in self.numbers
            if number.matches(self.axes[case_id]) and not (synthetic and number.quantity == "accuracy")
        }

    def recorded(self, kind: str) -> dict[str, dict[str, Any]]:
        """The records of a kind (`environment`, `machine`) that trials name, by id; a lost one is left out."""
        used = sorted(set(self.results.trials[f"{kind}_record"]) - {""})
        return {record: self.results.records[record] for record in used if record in self.results.records}
