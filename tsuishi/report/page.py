"""The page: everything a report says, section by section; the templates only set it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from tsuishi.analysis import limits
from tsuishi.analysis.estimates import unit_of
from tsuishi.analysis.evidence import Evidence
from tsuishi.analysis.frames import MISSING, STATUSES, named_rows
from tsuishi.published import Source
from tsuishi.report import records
from tsuishi.report.analyses import COLUMNS
from tsuishi.report.blocks import Block, Bullets, Chart, Code, Heading, Rows, Section, Text, View
from tsuishi.report.language import t
from tsuishi.report.sections import suite_section
from tsuishi.report.tables import NOT_PLANNED, Cell, Table, case_text, text_cell
from tsuishi.suite import AXES

_RAN = "Planned trials by what became of them; of a trial that was tried again, its last attempt."
_PROBLEMS = (
    "Every attempt that failed, was skipped, unsupported or interrupted, and every planned trial that is missing."
)
_NO_PROBLEMS = "Nothing: every planned trial is ok."
_SIMULATED = "simulated devices (several devices were asked for, and they were not all distinct real GPUs)"
_SYNTHETIC = "synthetic data; their accuracy is not comparable with published accuracies"


class Page:
    """A report in the order in which it is read: headline, environments compared, suites, and all it takes to redo it.

    `sections` hold everything a reader sees; `tables` the same as data, exact values, by file name without .csv.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.title = ", ".join(evidence.suites) or t("Nothing ran")
        self.sections = [
            Section("summary", t("Summary"), tuple(_summary(evidence))),
            *(suite_section(evidence, suite) for suite in evidence.suites),
            Section("again", t("Run it again"), tuple(_again(evidence))),
        ]
        self.tables = _tables(evidence, self.sections)

    @property
    def charts(self) -> list[Chart]:
        return [block for section in self.sections for block in section.blocks if isinstance(block, Chart)]


def _summary(evidence: Evidence) -> Iterator[View]:
    """Headline, warnings, and what became of what was planned."""
    yield View((Text(_headline(evidence), "lead"), _facts(evidence)))
    warnings = tuple(_warnings(evidence))
    if warnings:
        yield View((Bullets(warnings, t("Before you read a number"), warning=True),))
    yield View((Heading(t("What ran where")), Text(_RAN), _ran(evidence)))


def _again(evidence: Evidence) -> Iterator[View]:
    """Everything needed to do it again: problems, environments, machine, sources, commands."""
    problems = _problems(evidence)
    yield View((Heading(t("What is not ok")), Text(_PROBLEMS if problems.rows else _NO_PROBLEMS), problems))
    environments, packages = records.environment_table(evidence), records.package_table(evidence)
    yield View(
        (Heading(t("Environments")), environments, packages),
        {
            "environments": _as_rows(environments, "field"),
            "packages": _as_rows(packages, "package"),
        },
    )
    yield View((Heading(t("Machine")), records.machine_table(evidence)))
    yield View((Heading(t("Published sources")), *[block for source in evidence.sources for block in _source(source)]))
    commands = [records.command_line(run.get("arguments") or {}) for run in evidence.results.runs.values()]
    yield View(
        (Heading(t("Commands")), Text(t("In a checkout of tsuishi at the commit named above:")), *map(Code, commands))
    )


def _headline(evidence: Evidence) -> str:
    """One sentence: what was measured, in what, on what."""
    machines = "; ".join(map(records.machine_text, evidence.recorded("machine").values()))
    return t(
        "Measured times of {suites} in software environments {environments} on {machines}, next to the numbers that "
        "were published for other hardware.",
        suites=", ".join(evidence.suites) or t("nothing"),
        environments=", ".join(evidence.environments) or t("none"),
        machines=machines or t("a machine that was not recorded"),
    )


def _facts(evidence: Evidence) -> Table:
    """One row per run: when, with what, how much."""
    rows, outcomes = [], evidence.outcomes
    for run_id, run in evidence.results.runs.items():
        git = run.get("git") or {}
        version = f"{run.get('tsuishi_version', '')} {str(git.get('commit') or '')[:12]}".strip()
        version += " " + t("with uncommitted changes") if git.get("dirty") else ""
        date = str(run.get("created_at", "")).replace("T", " ")[:16] + " UTC"
        counts = _counts(outcomes.loc[outcomes["run_id"] == run_id, "status"])
        texts = [run_id, date, run.get("profile"), run.get("engine"), run.get("seed"), counts, version]
        rows.append([text_cell(text, "label") for text in texts])
    return Table([t("run"), t("begun"), t("profile"), t("engine"), t("seed"), t("trials"), "tsuishi"], rows)


def _ran(evidence: Evidence) -> Table:
    """Environments by suites: counts by status; below them the environments that were left out, and why."""
    outcomes, rows, suites = evidence.outcomes, [], evidence.suites
    for environment in evidence.environments:
        mine = outcomes[outcomes["column"] == environment]
        counts = [_counts(mine.loc[mine["suite"] == suite, "status"]) or NOT_PLANNED for suite in suites]
        rows.append([text_cell(environment), *map(text_cell, counts)])
    runs = evidence.results.runs.values()
    left_out = {(one["environment"], one["reason"]) for run in runs for one in run.get("left_out", [])}
    for name, reason in sorted(left_out):
        rows.append([text_cell(name), *[Cell(t("left out: {reason}", reason=reason), kind="status") for _ in suites]])
    return Table([t("environment"), *suites], rows)


def _problems(evidence: Evidence) -> Table:
    """Everything that is not ok: every attempt, and what is missing."""
    trials, outcomes = evidence.results.trials, evidence.outcomes
    attempts = named_rows(trials[trials["status"] != "ok"])
    missing = named_rows(outcomes[outcomes["status"] == MISSING])
    rows = []
    for trial in [*attempts, *missing]:
        attempt = str(getattr(trial, "attempt", "none"))
        case = f"{trial.suite}, {trial.protocol}: {case_text(evidence.axes[trial.case_id])}"
        texts = [trial.column, case, str(trial.repetition), attempt, trial.reason]
        rows.append([Cell(trial.status, kind="status"), *map(text_cell, texts)])
    return Table([t("status"), t("environment"), t("case"), t("repetition"), t("attempt"), t("reason")], rows)


def _source(source: Source) -> Iterator[Block]:
    yield Heading(source.name, 4)
    parts = [f"\u201c{source.title}\u201d", source.author, source.date, source.address]
    yield Text(", ".join(part for part in parts if part))
    hardware = [f"{one.title}: {one.description or one.title}" for one in source.hardware]
    software = [f"{name} {version}" for name, version in source.software.items()]
    assumed = [t("assumed: {what}", what=what) for what in source.assumed]
    yield Bullets((*hardware, *software, *assumed, *source.notes))


def _tables(evidence: Evidence, sections: Iterable[Section]) -> dict[str, pd.DataFrame]:
    """What the views show, and what they were made from."""
    rows: Rows = {name: [] for name in COLUMNS}
    for view in (view for section in sections for view in section.views):
        for name, more in view.rows.items():
            rows.setdefault(name, []).extend(more)
    shown = {name: pd.DataFrame(some, columns=COLUMNS.get(name), dtype="object") for name, some in rows.items()}
    return {
        **shown,
        "limits": pd.DataFrame(limits.rows(evidence.limits), columns=limits.COLUMNS),
        "trials": evidence.results.trials,
        "estimates": evidence.estimates,
        "published": _published(evidence.sources),
    }


def _published(sources: Iterable[Source]) -> pd.DataFrame:
    """Every number of every source, of suites that did not run too."""
    rows = []
    for number in (number for source in sources for number in source.flat()):
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


def _as_rows(table: Table, first: str) -> list[dict[str, Any]]:
    """A table's texts; `first` is the name of its first column."""
    columns = [first, *table.columns[1:]]
    return [dict(zip(columns, [cell.text for cell in row], strict=True)) for row in table.rows]
