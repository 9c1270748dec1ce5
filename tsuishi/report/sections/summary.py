"""Summaries of the records: the title, the warnings, the runs and the outcomes of all planned trials."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tsuishi.base.language import in_words, t
from tsuishi.report.parts.blocks import Bullets, Heading, Section, Text, View
from tsuishi.report.parts.wording import NOT_PLANNED, Cell, Table, status_text, text_cell
from tsuishi.report.sections import descriptions, load, replication
from tsuishi.results.frames import Results, named_rows
from tsuishi.results.records import EnvironmentRecord
from tsuishi.specs.statuses import STATUSES
from tsuishi.verdicts.evidence import Evidence


def title(evidence: Evidence) -> str:
    """The title of the page: the machines."""
    machines = list(map(descriptions.machine_text, evidence.machine_records.values()))
    return in_words(machines) or t("A machine that was not recorded")


def warnings(evidence: Evidence) -> Iterator[View]:
    """What readers have to know before they believe a number: a line that opens."""
    if lines := tuple(_warnings(evidence)):
        yield View((Bullets(lines, t("Before you read a number ({count})", count=len(lines)), warning=True),))


def machine_section(evidence: Evidence) -> Section:
    """The runs, what became of their trials, the environments and machines, and how they deviate from the sources."""
    about = t("Planned trials by what became of them; of a trial that was tried again, its last attempt.")
    ran = View((_facts(evidence), Heading(t("What ran where")), Text(about), _ran(evidence)))
    runs = in_words(evidence.results.runs)
    return Section("machine", t("Machine and deviations"), (ran, *replication.conditions(evidence)), runs)


def _facts(evidence: Evidence) -> Table:
    """A row per run: its date, settings, number of trials, and the version of tsuishi."""
    rows, outcomes = [], evidence.outcomes
    for run_id, run in evidence.results.runs.items():
        commit = (run.git.commit if run.git else None) or ""
        version = f"{run.tsuishi_version or ''} {commit[:12]}".strip()
        if run.git and run.git.dirty:
            version = t("{version} with uncommitted changes", version=version)
        date = (run.created_at or "").replace("T", " ")[:16] + " UTC"
        counts = _counts(outcomes.loc[outcomes["run_id"] == run_id, "status"])
        texts = [run_id, date, run.profile, run.engine, run.seed, counts, version]
        rows.append([text_cell(text, "label") for text in texts])
    return Table([t("run"), t("begun"), t("profile"), t("engine"), t("seed"), t("trials"), "tsuishi"], rows)


def _ran(evidence: Evidence) -> Table:
    """Environments by suites, with the trials by status; then the environments that were left out, with reasons."""
    outcomes, rows, suites = evidence.outcomes, [], evidence.suites
    statuses: dict[tuple[str, str], list[str]] = {}
    columns = (outcomes[name].tolist() for name in ("column", "suite", "status"))
    for environment, suite, status in zip(*columns, strict=True):
        statuses.setdefault((environment, suite), []).append(status)
    for environment in evidence.environments:
        counts = [_counts(statuses.get((environment, suite), ())) or t(NOT_PLANNED) for suite in suites]
        rows.append([text_cell(environment), *map(text_cell, counts)])
    runs = evidence.results.runs.values()
    left_out = {(record.environment, record.reason) for run in runs for record in run.left_out}
    for name, reason in sorted(left_out):
        rows.append([text_cell(name), *[Cell(t("left out: {reason}", reason=reason), kind="status") for _ in suites]])
    return Table([t("environment"), *suites], rows)


def _warnings(evidence: Evidence) -> Iterator[str]:
    """Warnings to read before the numbers."""
    yield from _exclusions(evidence.results)
    trials = evidence.results.trials
    simulated, synthetic = (int(trials[flag].fillna(False).sum()) for flag in ("simulated", "synthetic"))
    if simulated:
        yield t(
            "{count} of {all} trials: simulated devices (several devices were asked for, and they were not all "
            "distinct real GPUs).",
            count=simulated, all=len(trials),
        )  # fmt: skip
    if synthetic:
        yield t(
            "{count} of {all} trials: synthetic data; their accuracy is not comparable with published accuracies.",
            count=synthetic, all=len(trials),
        )  # fmt: skip
    for reason, count in Counter(filter(None, trials["forced"].fillna(""))).items():
        yield t(
            "{count} of {all} trials: run by --force, after a numerical self-check, in an environment that is not made "
            "for this GPU: {reason}.",
            count=count, all=len(trials), reason=reason,
        )  # fmt: skip
    yield from _environment_warnings(descriptions.environment_records(evidence).values())
    for trial in named_rows(trials[trials["events_garbled"].fillna(0) > 0]):
        yield t("{trial}: {count} events were garbled; its numbers may lack samples.", **_events(trial, "garbled"))
    for trial in named_rows(trials[trials["events_missing"].fillna(0) > 0]):
        yield t("{trial}: {count} events were missing; its numbers may lack samples.", **_events(trial, "missing"))
    yield from load.telemetry_warnings(evidence)


def _exclusions(results: Results) -> Iterator[str]:
    """Warnings about trials that are in no estimate, or there twice."""
    for trial in results.excluded:
        yield t(
            "{trial} of run {run} is in no estimate, as {file} cannot be right: row {row}: {problem}. Restore the "
            "file, or measure the trial again with `invoke run-suite --resume {run}`.",
            trial=trial.trial_id, run=trial.run_id, file=trial.file, row=trial.row,
            problem=t(trial.problem, **trial.named),
        )  # fmt: skip
    for copy in results.copies:
        yield t(
            "{run}: {count} of its {all} trials are those of {other} too, by their content: each of them counts once.",
            run=copy.run_id, count=copy.shared, all=copy.trials, other=copy.other,
        )  # fmt: skip


def _events(trial: Any, kind: str) -> dict[str, Any]:
    return {"trial": trial.trial_id, "count": getattr(trial, f"events_{kind}")}


def _environment_warnings(environments: Iterable[EnvironmentRecord]) -> Iterator[str]:
    """Warnings about bases, each with the names of the environments on that base."""
    unpinned: dict[str, set[str]] = {}
    changed: dict[tuple[str, str], set[str]] = {}
    for record in environments:
        if record.base and record.base.digest in ("", descriptions.UNPINNED):
            unpinned.setdefault(str(record.base.used), set()).add(record.name)
        for change in record.substitutions or []:
            changed.setdefault((change.used, change.asked), set()).add(record.name)
    for used, names in unpinned.items():
        yield t(
            "{environments}: built on {used}, which is unpinned (no digest is known).",
            environments=", ".join(sorted(names)), used=used,
        )  # fmt: skip
    for (used, asked), names in changed.items():
        concerned = ", ".join(sorted(names))
        yield t("{environments}: {used} stands in for {asked}.", environments=concerned, used=used, asked=asked)


def _counts(statuses: Iterable[str]) -> str:
    """The number of trials of each status: "3 ok, 1 failed"."""
    counted = Counter(statuses)
    return ", ".join(
        t("{count} {what}", count=counted[status], what=status_text(status)) for status in STATUSES if counted[status]
    )
