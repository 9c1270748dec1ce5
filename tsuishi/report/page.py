"""The page: everything a report says, as sentences, tables and charts; the templates only set it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from tsuishi.analysis import limits
from tsuishi.analysis.estimates import unit_of
from tsuishi.analysis.evidence import Evidence
from tsuishi.analysis.frames import MISSING, STATUSES, named_rows
from tsuishi.report import records
from tsuishi.report.analyses import COLUMNS
from tsuishi.report.sections import make_section
from tsuishi.report.tables import NOT_PLANNED, Cell, Table, case_text, text_cell
from tsuishi.report.towers import RATIO_COLUMNS
from tsuishi.suite import AXES

_SIMULATED = "simulated devices (several devices were asked for, and they were not all distinct real GPUs)"
_SYNTHETIC = "synthetic data; their accuracy is not comparable with published accuracies"


class Page:
    """A report in the order in which it is read: headline, what ran where, suites, problems, what it ran on."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.suites, self.environments, self.sources = evidence.suites, evidence.environments, evidence.sources
        self.counts = _counts(evidence.outcomes["status"])
        self.warnings = list(_warnings(evidence))
        self.sections = [make_section(evidence, suite) for suite in evidence.suites]
        self.environment_table = records.environment_table(evidence)
        self.packages = records.package_table(evidence)
        self.machine_table = records.machine_table(evidence)
        self.commands = [records.command_line(run.get("arguments") or {}) for run in evidence.results.runs.values()]

    @property
    def headline(self) -> str:
        """One sentence: what was measured, in what, on what."""
        machines = "; ".join(map(records.machine_text, self._evidence.recorded("machine").values()))
        suites, environments = " and ".join(self.suites) or "nothing", len(self.environments)
        plural = "s" if environments != 1 else ""
        return (
            f"Measured times of {suites} in {environments} software environment{plural} on "
            f"{machines or 'a machine that was not recorded'}, "
            "next to the numbers that were published for other hardware."
        )

    @property
    def facts(self) -> Table:
        """One row per run: when, with what, how much."""
        rows, outcomes = [], self._evidence.outcomes
        for run_id, run in self._evidence.results.runs.items():
            git = run.get("git") or {}
            version = f"{run.get('tsuishi_version', '')} {str(git.get('commit') or '')[:12]}".strip()
            version += " with uncommitted changes" if git.get("dirty") else ""
            date = str(run.get("created_at", "")).replace("T", " ")[:16] + " UTC"
            counts = _counts(outcomes.loc[outcomes["run_id"] == run_id, "status"])
            texts = [run_id, date, run.get("profile"), run.get("engine"), run.get("seed"), counts, version]
            rows.append([text_cell(text, "label") for text in texts])
        return Table(["run", "begun", "profile", "engine", "seed", "trials", "tsuishi"], rows)

    @property
    def ran(self) -> Table:
        """Environments by suites: counts by status; below them the environments that were left out, and why."""
        outcomes, rows = self._evidence.outcomes, []
        for environment in self.environments:
            mine = outcomes[outcomes["column"] == environment]
            counts = [_counts(mine.loc[mine["suite"] == suite, "status"]) or NOT_PLANNED for suite in self.suites]
            rows.append([text_cell(environment), *map(text_cell, counts)])
        runs = self._evidence.results.runs.values()
        left_out = {(one["environment"], one["reason"]) for run in runs for one in run.get("left_out", [])}
        for name, reason in sorted(left_out):
            rows.append([text_cell(name), *[Cell(f"left out: {reason}", kind="status") for _ in self.suites]])
        return Table(["environment", *self.suites], rows)

    @property
    def problems(self) -> Table:
        """Everything that is not ok: every attempt, and what is missing."""
        trials, outcomes = self._evidence.results.trials, self._evidence.outcomes
        attempts = named_rows(trials[trials["status"] != "ok"])
        missing = named_rows(outcomes[outcomes["status"] == MISSING])
        rows = []
        for trial in [*attempts, *missing]:
            attempt = str(getattr(trial, "attempt", "none"))
            case = f"{trial.suite}, {trial.protocol}: {case_text(self._evidence.axes[trial.case_id])}"
            texts = [trial.column, case, str(trial.repetition), attempt, trial.reason]
            rows.append([Cell(trial.status, kind="status"), *map(text_cell, texts)])
        return Table(["status", "environment", "case", "repetition", "attempt", "reason"], rows)

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """The tables as data, exact values, by file name without .csv."""
        parts = [part for section in self.sections for part in section.parts]
        return {
            "cases": pd.DataFrame([row for part in parts for row in part.cases], dtype="object"),
            "ratios": pd.DataFrame([row for part in parts for row in part.ratios], columns=RATIO_COLUMNS),
            **{name: pd.DataFrame(self._analysed(name), columns=columns) for name, columns in COLUMNS.items()},
            "limits": pd.DataFrame(limits.rows(self._evidence.limits), columns=limits.COLUMNS),
            "diagnosis": self._diagnosis(),
            "trials": self._evidence.results.trials,
            "estimates": self._evidence.estimates,
            "published": self._published(),
            "environments": _as_frame(self.environment_table, "field"),
            "packages": _as_frame(self.packages, "package"),
        }

    def _analysed(self, name: str) -> list[dict[str, Any]]:
        """The rows of a CSV file of analyses.py, of all suites."""
        if name == "load":
            return [row for section in self.sections for row in section.load.rows]
        return [row for section in self.sections for part in section.parts for row in part.rows[name]]

    def _diagnosis(self) -> pd.DataFrame:
        """Every paragraph of every section."""
        rows = [
            {"suite": section.suite, "environment": environment, "topic": paragraph.topic, "text": paragraph.text}
            for section in self.sections
            for environment, paragraphs in section.paragraphs.items()
            for paragraph in paragraphs
        ]
        return pd.DataFrame(rows, columns=["suite", "environment", "topic", "text"])

    def _published(self) -> pd.DataFrame:
        """Every number of every source, of suites that did not run too."""
        rows = []
        for source in self.sources:
            for number in source.flat():
                axes = {axis: number.axes.get(axis) for axis in AXES}
                what = {"source": number.source, "hardware": number.hardware, "quantity": number.quantity}
                found = {"value": number.value, "unit": unit_of(number.quantity), "note": number.note}
                rows.append({**axes, **what, **found})
        return pd.DataFrame(rows, dtype="object")


def _warnings(evidence: Evidence) -> Iterator[str]:
    """What a reader must know before believing a number."""
    trials = evidence.results.trials
    for flag, text in (("simulated", _SIMULATED), ("synthetic", _SYNTHETIC)):
        count = int(trials[flag].fillna(False).sum())
        if count:
            yield f"{count} of {len(trials)} trials: {text}."
    yield from _environment_warnings(records.environment_records(evidence).values())
    for column, text in (("events_garbled", "garbled"), ("events_missing", "missing")):
        for trial in named_rows(trials[trials[column].fillna(0) > 0]):
            yield f"{trial.trial_id}: {getattr(trial, column)} events were {text}; its numbers may lack samples."


def _environment_warnings(environments: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Each thing to know about what was built on, with the environments it is true of."""
    concerned: dict[str, list[str]] = {}
    for record in environments:
        base = record.get("base") or {}
        if base.get("digest") in ("", records.UNPINNED):
            unpinned = f"built on {base.get('used')}, which is unpinned (no digest is known)"
            concerned.setdefault(unpinned, []).append(record["name"])
        for change in record.get("substitutions") or []:
            concerned.setdefault(f"{change['used']} stands in for {change['asked']}", []).append(record["name"])
    for warning, names in concerned.items():
        yield f"{', '.join(sorted(set(names)))}: {warning}."


def _counts(statuses: Iterable[str]) -> str:
    """How many there are of each status: "3 ok, 1 failed"."""
    counted = Counter(statuses)
    return ", ".join(f"{counted[status]} {status.replace('_', ' ')}" for status in STATUSES if counted[status])


def _as_frame(table: Table, first: str) -> pd.DataFrame:
    """A table's texts; `first` is the name of its first column."""
    texts = [[cell.text for cell in row] for row in table.rows]
    return pd.DataFrame(texts, columns=[first, *table.columns[1:]])
