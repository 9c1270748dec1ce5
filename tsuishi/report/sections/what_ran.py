"""What ran: the title of the page, the runs, and the outcomes of all planned trials."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tsuishi.base.language import in_words, t
from tsuishi.base.printable import visible
from tsuishi.estimates import roofline
from tsuishi.report.parts.blocks import Heading, Section, Text, View
from tsuishi.report.parts.declarations import ENVIRONMENT, QUANTITY, AxisColumns, Column, Tables, cells
from tsuishi.report.parts.wording import NOT_PLANNED, Cell, Table, status_text, text_cell
from tsuishi.report.sections import descriptions, replication
from tsuishi.results.assurance import Assurance
from tsuishi.specs.statuses import STATUSES
from tsuishi.verdicts.evidence import Evidence

TABLES: Tables = {
    "steadiness": (
        Column("session", "string", "the run, and the number of the call that measured"),
        ENVIRONMENT,
        Column("trials", "integer", "of cases with two trials or more in the session"),
        Column("change_percent", "number", "of step times, from the session's first trial to its last"),
        Column("low_percent", "number", "lower end of its 95 % interval"),
        Column("high_percent", "number", "upper end of it"),
        Column("p", "number", "how often so large a change is seen where nothing changes"),
    ),
    "limits": (
        Column("machine_record", "string", "records/machine-<id>.json of the run"),
        Column("device", "string", "what computed: cpu, or the GPU's name"),
        *(QUANTITY, AxisColumns(("precision",))),
        Column("value", "number", "that of the best matrix product or copy, in the quantity's unit"),
        Column("low", "number", "end of its 95 % interval; empty for single trials"),
        Column("high", "number", "its other end"),
    ),
}
# Digits of a run's digest (all are in report.json), and altered files that are named.
_DIGITS = 16
_MOST_NAMED = 3


def named_machines(evidence: Evidence) -> str:
    """The machines of the runs, in words."""
    named = list(map(descriptions.machine_text, evidence.machine_records.values()))
    return in_words(named) or t("A machine that was not recorded")


def machine_section(evidence: Evidence) -> Section:
    """The runs, what became of their trials, the environments and machines, and how they deviate from the sources."""
    about = t("Planned trials by status. A trial with several attempts counts by its last.")
    rows = {"steadiness": list(_steadiness(evidence)), "limits": roofline.rows(evidence.limits)}
    ran = View((_facts(evidence), Heading(t("What ran where")), Text(about), _ran(evidence)), rows)
    runs = in_words(evidence.results.runs)
    return Section("machine", t("Machine and deviations"), (ran, *replication.conditions(evidence)), runs)


def _steadiness(evidence: Evidence) -> Iterator[dict[str, Any]]:
    for change in evidence.session_changes:
        percent = {f"{name}_percent": 100 * getattr(change, name) for name in ("change", "low", "high")}
        yield cells(TABLES["steadiness"], change) | {"environment": change.column, **percent}


def _facts(evidence: Evidence) -> Table:
    """A row per run: its date, settings, number of trials, the version of tsuishi, and whether it was verified."""
    rows, outcomes = [], evidence.outcomes
    for run_id, run in evidence.results.runs.items():
        commit = (run.git.commit if run.git else None) or ""
        version = f"{run.tsuishi_version or ''} {commit[:12]}".strip()
        if run.git and run.git.dirty:
            version = t("{version} with uncommitted changes", version=version)
        elif run.git and run.git.why_unknown:
            version = t("{version} (git: {why})", version=version, why=run.git.why_unknown)
        date = (run.created_at or "").replace("T", " ")[:16] + " UTC"
        counts = _counts(outcomes.loc[outcomes["run_id"] == run_id, "status"])
        files = _assured(evidence.results.assurances[run_id])
        texts = [run_id, date, run.profile, run.engine, run.seed, counts, version, files]
        rows.append([text_cell(text, "label") for text in texts])
    columns = [t("run"), t("begun"), t("profile"), t("engine"), t("seed"), t("trials"), "tsuishi", t("files")]
    return Table(columns, rows)


def _assured(found: Assurance) -> str:
    """How far the files of a run are known to be what its runner wrote."""
    match found.level:
        case "verified":
            return t("verified, digest {root}…", root=found.root[:_DIGITS])
        case "tables verified":
            return t("tables verified")
        case "older than verification":
            return t("older than verification")
        case "being measured":
            return t("being measured")
    named = in_words(map(visible, found.altered[:_MOST_NAMED]))
    more = len(found.altered) - _MOST_NAMED
    if more <= 0:
        return t("altered: {named}", named=named)
    return t("altered: {named}; {count} more", named=named, count=more)


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


def _counts(statuses: Iterable[str]) -> str:
    """The number of trials of each status: "3 ok, 1 failed"."""
    counted = Counter(statuses)
    return ", ".join(
        t("{count} {what}", count=counted[status], what=status_text(status)) for status in STATUSES if counted[status]
    )
