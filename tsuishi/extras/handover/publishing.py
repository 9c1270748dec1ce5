"""`invoke publish`: the numbers of an archive as a published source, which the next reports compare with."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tomlkit

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.home import expanded
from tsuishi.commands.chain import Chain
from tsuishi.extras.handover.archives.archive_check import unpacked_runs
from tsuishi.report.sections.descriptions import machine_text
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import dict_rows
from tsuishi.specs.case import SUITE
from tsuishi.specs.source import read_source
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts.evidence import Evidence

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_NO_NAME = re.compile(r"[^a-z0-9]+")
_MADE = "# Made from an archive by `invoke publish`; add claims and their regions by hand."


def publish(chain: Chain) -> None:
    """Write reports/published/<name>.toml from a verified archive. Nothing is overwritten.

    Raises UserError where the archive is not verified, has no number, or where such a source exists.
    """
    session, options = chain.session, chain.options
    name, archive = options.text("name"), options.text("archive")
    if not _NAME.fullmatch(name):
        raise UserError(f"--name takes letters of ASCII in lower case, digits and '-'; given: {name or 'nothing'}")
    if why := files.unfit(name):
        raise UserError(f"--name: {why}")
    path = session.checkout.published / f"{name}.toml"
    if path.exists():
        raise UserError(f"{path}: there is such a source already: give another --name")
    with files.private_folder() as folder:
        found = unpacked_runs(session, expanded(archive), folder / "0")
        title = options.text("title") or f"archive {Path(archive).name}"
        text = _source_text(found.runs, session.words, found.root, title)
    with files.replacing(path) as writing:
        writing.write(text)
    source = read_source(path, session.words)
    session.screen.say(f"written: {path}: {len(source.flat())} numbers; `invoke list --sources` shows it")


def _source_text(runs: Sequence[RunDirectory], words: Vocabulary, root: str, title: str) -> str:
    """The file of a source: every number of every trial that is ok, on its machine and in its environment.

    runs: of an archive with this root. The date is that of the last run. Numbers of simulated devices, accuracies on
    made-up data and derived numbers are left out, as are quantities that suites/ does not describe; a note counts them.
    Raises UserError where no number is left.
    """
    evidence = Evidence(runs, (), words)
    rows = _rows(evidence)
    kept = [row for row in rows if row["is_kept"]]
    if not kept:
        raise UserError("none of its numbers can be published: they are simulated, made up, derived or undescribed")
    notes = [f"archive of tsuishi with the root {root}", *_runs(evidence)]
    if len(kept) < len(rows):
        notes.append(f"left out: {len(rows) - len(kept)} numbers that are simulated, made up, derived or undescribed")
    dates = [run.created_at[:10] for run in evidence.results.runs.values() if run.created_at]
    date = {"date": max(dates)} if dates else {}
    about = {"title": title, **date, "language": "en", "notes": notes, "software": _software(evidence)}
    hardware = [
        {"name": _name(column), "title": column, "description": _described(evidence, column)}
        for column in dict.fromkeys(row["column"] for row in kept)
    ]
    tables = {"hardware": hardware, "numbers": [*_tables(evidence, kept)]}
    return f"{_MADE}\n{tomlkit.dumps(about)}\n{tomlkit.dumps(tables)}"


def _rows(evidence: Evidence) -> list[dict[str, Any]]:
    """The estimates of all trials, with `is_kept`."""
    rows = dict_rows(evidence.estimates)
    for row in rows:
        is_made_up = row["synthetic"] and row["quantity"] in ("accuracy", "loss")
        is_described = row["quantity"] in evidence.words.quantities
        row["is_kept"] = bool(is_described and not (row["simulated"] or row["derived"] or is_made_up))
    return rows


def _tables(evidence: Evidence, rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A table for each environment, suite and set of axes and quantities; a row for each case, with all readings."""
    readings: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in rows:
        readings.setdefault((row["column"], row["case_id"]), {}).setdefault(row["quantity"], []).append(row["value"])
    tables: dict[tuple[Any, ...], list[list[Any]]] = {}
    for (column, case_id), of_case in readings.items():
        axes = {axis: value for axis, value in evidence.axes[case_id].items() if axis != SUITE}
        quantities = sorted(of_case)
        key = (column, evidence.axes[case_id][SUITE], tuple(axes), tuple(quantities))
        values = [of_case[quantity][0] if len(of_case[quantity]) == 1 else of_case[quantity] for quantity in quantities]
        tables.setdefault(key, []).append([*axes.values(), *values])
    for (column, suite, axes, quantities), table in tables.items():
        framework = _of_trials(evidence, column, "framework").partition(" ")[0]
        yield {
            SUITE: suite,
            "hardware": _name(column),
            **({"framework": framework} if framework else {}),
            "columns": [*axes, *quantities],
            "rows": table,
        }


def _name(column: str) -> str:
    return _NO_NAME.sub("-", column.lower()).strip("-")


def _of_trials(evidence: Evidence, column: str, name: str) -> str:
    """The first value of a field in the trials of an environment; empty where no trial has the field."""
    trials = evidence.results.trials
    values = trials.loc[trials["column"] == column, name].dropna().tolist()
    return str(values[0]) if values else ""


def _described(evidence: Evidence, column: str) -> str:
    machine = evidence.results.machines.get(_of_trials(evidence, column, "machine_record"))
    environment = evidence.results.environments.get(_of_trials(evidence, column, "environment_record"))
    built = f"{environment.name} {environment.realised_id or environment.spec_id}" if environment else column
    return f"{machine_text(machine)}; environment {built}" if machine else f"environment {built}"


def _software(evidence: Evidence) -> dict[str, str]:
    """The versions of frameworks; of several environments with the same framework, each version once."""
    versions: dict[str, list[str]] = {}
    for record in evidence.environment_records.values():
        for name, version in (record.versions or {}).items():
            versions.setdefault(name, []).append(version)
    return {name: ", ".join(dict.fromkeys(of_name)) for name, of_name in versions.items()}


def _runs(evidence: Evidence) -> Iterator[str]:
    for run in evidence.results.runs.values():
        commit = f", commit {run.git.commit}" if run.git and run.git.commit else ""
        yield f"run {run.run_id}, profile {run.profile}, tsuishi {run.tsuishi_version}{commit}"
