"""All that a replication needs: problems, environments, machines, deviations, commands, published sources."""

import shlex
from collections.abc import Iterator
from typing import Any

from tsuishi.base.language import in_language, t
from tsuishi.report.parts.blocks import Block, Bullets, Code, Heading, Section, Text, View
from tsuishi.report.parts.declarations import CASE_ID, ENVIRONMENT, AxisColumns, Column, Tables
from tsuishi.report.parts.wording import Table, case_text, protocol_words, status_cell, text_cell
from tsuishi.report.sections import descriptions
from tsuishi.report.sections.deviations import deviations
from tsuishi.results.frames import named_rows
from tsuishi.specs.case import SUITE
from tsuishi.specs.source import Source
from tsuishi.specs.statuses import MISSING, OK
from tsuishi.verdicts.evidence import Evidence

_COMMAND = Column("command", "string", "what ran inside the environment, quoted for a shell")
TABLES: Tables = {"commands": (AxisColumns((SUITE,)), CASE_ID, ENVIRONMENT, _COMMAND)}


def conditions(evidence: Evidence) -> Iterator[View]:
    """What is not ok, the environments, the machines, and the deviations from the sources' experiments."""
    yield _problems(evidence)
    tables = {
        "environments": descriptions.environment_table(evidence),
        "packages": descriptions.package_table(evidence),
    }
    rows = {name: descriptions.as_rows(name, table) for name, table in tables.items()}
    yield View((Heading(t("Environments")), *tables.values()), rows)
    yield View((Heading(t("Machine")), descriptions.machine_table(evidence)))
    yield deviations(evidence)


def replication_section(evidence: Evidence) -> Section:
    """The commands that run everything again, and the published sources."""
    sources = [block for source in evidence.sources for block in _source(source)]
    views = (_commands(evidence), View((Heading(t("Published sources")), *sources)))
    return Section("again", t("Run it again"), views, t("commands and published sources"))


def _problems(evidence: Evidence) -> View:
    """Every attempt that is not ok, and every planned trial that is missing."""
    trials, outcomes = evidence.results.trials, evidence.outcomes
    attempts = named_rows(trials[trials["status"] != OK])
    missing = named_rows(outcomes[outcomes["status"] == MISSING])
    heading, rows = Heading(t("What is not ok")), []
    for trial in [*attempts, *missing]:
        attempt = str(getattr(trial, "attempt", t("none")))
        case = f"{trial.suite}, {protocol_words(trial.protocol)}: {case_text(evidence.axes[trial.case_id])}"
        texts = [trial.column, case, str(trial.repetition), attempt, t(trial.reason)]
        rows.append([status_cell(trial.status), *map(text_cell, texts)])
    if not rows:
        return View((heading, Text(t("Nothing: every planned trial is ok."))))
    columns = [t("status"), t("environment"), t("case"), t("repetition"), t("attempt"), t("reason")]
    about = t("Attempts that failed, were skipped, unsupported or interrupted, and planned trials that are missing.")
    return View((heading, Text(about), Table(columns, rows, filters=(0, 1))))


def _commands(evidence: Evidence) -> View:
    """The commands of whole runs, and the command of each suite's first case; commands.csv has those of all cases."""
    runs = [descriptions.command_line(run.arguments, run.task) for run in evidence.results.runs.values()]
    blocks: list[Block] = [Heading(t("Commands")), Text(t("In a checkout of tsuishi at the commit named above:"))]
    blocks += map(Code, runs)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    trials = evidence.results.trials[["suite", "case_id", "column"]].drop_duplicates(["case_id", "column"])
    for place, trial in zip(trials.index.tolist(), named_rows(trials), strict=True):
        given = evidence.results.details[place].command
        command = " ".join(shlex.quote(" ".join(word.split())) for word in given)
        row = {"suite": trial.suite, "case_id": trial.case_id, "environment": trial.column, "command": command}
        rows[trial.case_id, trial.column] = row
    first = {row["suite"]: row["command"] for row in reversed(rows.values()) if row["command"]}
    if first:
        about = t("Inside an environment, one case is one command: here the first of each suite, all in commands.csv.")
        blocks += [Text(about), *(Code(first[suite]) for suite in sorted(first))]
    return View(tuple(blocks), {"commands": list(rows.values())})


def _source(source: Source) -> Iterator[Block]:
    yield Heading(source.name, level=4)
    parts = [f"\u201c{source.title}\u201d", source.author, source.date, source.address]
    yield Text(", ".join(part for part in parts if part))
    described = [
        (hardware.title, in_language(hardware.description) if hardware.description else "")
        for hardware in source.hardware
    ]
    hardware_texts = [": ".join(filter(None, texts)) for texts in described]
    software = [f"{name} {version}" for name, version in source.software.items()]
    assumed = [t("assumed: {what}", what=in_language(assumption)) for assumption in source.assumed]
    yield Bullets((*hardware_texts, *software, *assumed, *map(in_language, source.notes)))
