"""The report: runs and published numbers as one page, one Markdown file, charts and tables.

A pure function of run directories, reports/published and templates: the same inputs give the same bytes, on any day
and in any directory.
"""

import csv
import html
import io
import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from tsuishi import charts, frames
from tsuishi.errors import UserError
from tsuishi.published import QUANTITIES, Number, Source, read_sources
from tsuishi.store import RunDirectory, csv_value
from tsuishi.suite import AXES

# Quantities that are read together; what is in none of them comes last, under "Other measurements".
VIEWS = {
    "First and later runs": ("first_run_s", "later_run_s"),
    "Transfer and compute": ("host_to_device_s", "compute_s", "device_to_host_s"),
    "Steps": ("step_s", "throughput_images_per_s", "first_step_s", "second_step_s"),
    "Epochs of 50,000 images": ("first_epoch_s", "median_epoch_s", "total_s", "accuracy"),
}
OTHER = "Other measurements"
STATUSES = ("ok", "out_of_memory", "unsupported", "skipped", "timeout", "failed", "interrupted", frames.MISSING)
UNPINNED = "unpinned"
NOTHING = "—"
NOT_PLANNED, NOT_MEASURED, NOT_PUBLISHED = "not planned", "not measured", "not published"

_AXIS_TEXT = {
    "implementation": "{}",
    "mode": "{}",
    "model": "{}",
    "layout": "layout {}",
    "strategy": "strategy {}",
    "batch_size": "batch {}",
    "precision": "{}",
    "images": "{} images",
    "filter_size": "filter {0}×{0}",
    "data": "{} data",
    "feed": "{} input",
    "graph_optimizers": "graph optimisers {}",
}
_MEMBERS = {"index.html", "report.md", "charts", "tables"}


@dataclass(frozen=True)
class Cell:
    """One cell: `value` is the exact number behind `text`; `notes` say its spread; `kind` is how it is set."""

    text: str
    value: float | None = None
    notes: tuple[str, ...] = ()
    kind: str = "text"

    @property
    def exact(self) -> str:
        """The number as tables/*.csv has it."""
        return "" if self.value is None else _exact(self.value)


@dataclass(frozen=True)
class Table:
    """A table of the page. `groups`: labels over the columns, with how many they span (the first column has none)."""

    columns: list[str]
    rows: list[list[Cell]]
    title: str = ""
    groups: list[tuple[str, int]] = field(default_factory=list)
    folded: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers, and are set flush right."""
        return [any(row[index].kind == "number" for row in self.rows) for index in range(len(self.columns))]

    @property
    def full_columns(self) -> list[str]:
        """Column headers for where there are no groups over them."""
        labels = [label for label, span in self.groups for _ in range(span)] or [""] * len(self.columns)
        return [f"{label}: {column}" if label else column for label, column in zip(labels, self.columns, strict=True)]


@dataclass(frozen=True)
class Chart:
    """A chart of the page, its file name and what it shows in words."""

    title: str
    name: str
    caption: str
    svg: Markup


def make_report(runs: Sequence[RunDirectory], published: Path, templates: Path, out: Path) -> Path:
    """Write index.html, report.md, charts/ and tables/ of these runs into `out`; returns index.html.

    Whatever was in `out` is replaced once the new report is complete, and stays if it cannot be made. Raises UserError
    where there are no runs, a file is unreadable, or `out` holds something that is no report.
    """
    if not runs:
        raise UserError("no run to report on: make one with `invoke run-suite`")
    if out.exists() and not (out.is_dir() and {path.name for path in out.iterdir()} <= _MEMBERS):
        raise UserError(f"{out} holds something that is no report, which would be lost; give another directory")
    page = Page(runs, read_sources(published))
    with _replacing(out) as partial:
        for name in ("charts", "tables"):
            (partial / name).mkdir()
        for chart in page.charts:
            _write(partial / "charts" / f"{chart.name}.svg", _standalone(str(chart.svg)))
        for name, frame in page.files().items():
            _write(partial / "tables" / f"{name}.csv", _csv(frame))
        for name, template in (("index.html", "report.html.j2"), ("report.md", "report.md.j2")):
            _write(partial / name, _environment(templates, template).get_template(template).render(page=page))
    return out / "index.html"


class Page:
    """What a report says, as tables, charts and sentences; the templates only set it."""

    def __init__(self, runs: Sequence[RunDirectory], sources: tuple[Source, ...]) -> None:
        self.sources = sources
        self.directories = {run.id: run for run in runs}
        self.results = frames.read_runs(runs)
        self.runs = self.results.runs
        self.outcomes = frames.outcomes(self.results)
        self.estimates = frames.trial_estimates(self.results)
        self.cases = frames.case_estimates(self.estimates)
        self.axes: dict[str, dict[str, Any]] = {row.case_id: row.axes for row in _records(self.outcomes)}
        self.environments = sorted(set(self.outcomes["column"]))
        self.suites = sorted(set(self.outcomes["suite"]))
        self.numbers = [number for source in sources for number in source.flat() if number.axes["suite"] in self.suites]
        hardware = {(source.name, one.name): one for source in sources for one in source.hardware}
        self.hardware = {number.key: hardware[number.source, number.hardware] for number in self.numbers}

    # Headline

    @cached_property
    def machines(self) -> list[dict[str, Any]]:
        used = sorted(set(self.results.trials["machine_record"]) - {""})
        return [self.results.records[record] for record in used if record in self.results.records]

    @cached_property
    def counts(self) -> str:
        """Outcomes of the plan by status."""
        return _counts(self.outcomes["status"])

    @cached_property
    def headline(self) -> str:
        machines = "; ".join(machine_text(machine) for machine in self.machines) or "a machine that was not recorded"
        suites, environments = " and ".join(self.suites) or "nothing", len(self.environments)
        plural = "s" if environments != 1 else ""
        return (
            f"Measured times of {suites} in {environments} software environment{plural} on {machines}, "
            "next to the numbers that were published for other hardware."
        )

    @cached_property
    def facts(self) -> Table:
        """One row per run: when, with what, how much."""
        rows = []
        for run_id, run in self.runs.items():
            git = run.get("git") or {}
            version = f"{run.get('tsuishi_version', '')} {str(git.get('commit') or '')[:12]}".strip()
            version += " with uncommitted changes" if git.get("dirty") else ""
            date = str(run.get("created_at", "")).replace("T", " ")[:16] + " UTC"
            outcomes = self.outcomes[self.outcomes["run_id"] == run_id]
            texts = [run_id, date, run.get("profile"), run.get("engine"), run.get("seed"), _counts(outcomes["status"])]
            rows.append([replace(_text(text), kind="label") for text in (*texts, version)])
        return Table(["run", "begun", "profile", "engine", "seed", "trials", "tsuishi"], rows)

    @cached_property
    def warnings(self) -> list[str]:
        """What a reader must know before believing a number."""
        trials, found = self.results.trials, []
        for flag, text in (
            (
                "simulated",
                "simulated devices (several devices were asked for, and they were not all distinct real GPUs)",
            ),
            ("synthetic", "synthetic data; their accuracy is not comparable with published accuracies"),
        ):
            count = int(trials[flag].fillna(False).sum())
            found += [f"{count} of {len(trials)} trials: {text}."] if count else []
        for record in self.environment_records:
            base = record.get("base") or {}
            if base.get("digest") in ("", UNPINNED):
                found.append(f"{record['name']}: its base, {base.get('used')}, is unpinned (no digest is known).")
            for change in record.get("substitutions") or []:
                found.append(f"{record['name']}: {change['used']} stands in for {change['asked']}.")
        for kind, text in (("events_garbled", "garbled"), ("events_missing", "missing")):
            hurt = trials[trials[kind].fillna(0) > 0]
            for trial in _records(hurt):
                found.append(
                    f"{trial.trial_id}: {getattr(trial, kind)} events were {text}; its numbers may lack samples."
                )
        return found

    @cached_property
    def ran(self) -> Table:
        """Environments by suites: counts by status."""
        rows = []
        for environment in self.environments:
            mine = self.outcomes[self.outcomes["column"] == environment]
            counts = [_counts(mine.loc[mine["suite"] == suite, "status"]) or NOT_PLANNED for suite in self.suites]
            rows.append([_text(environment), *map(_text, counts)])
        left_out = {
            (one["environment"], one["reason"]) for run in self.runs.values() for one in run.get("left_out", [])
        }
        for name, reason in sorted(left_out):
            rows.append([_text(name), *[Cell(f"left out: {reason}", kind="status") for _ in self.suites]])
        return Table(["environment", *self.suites], rows)

    # Suites

    @cached_property
    def sections(self) -> list[dict[str, Any]]:
        """One section per suite: its protocols with charts and tables, and one trial over time."""
        found = []
        for suite in self.suites:
            protocols = sorted(set(self.outcomes.loc[self.outcomes["suite"] == suite, "protocol"]))
            parts = [Part(self, suite, protocol) for protocol in protocols]
            found.append({"suite": suite, "parts": parts, "telemetry": self._telemetry(suite)})
        return found

    def _telemetry(self, suite: str) -> Chart | None:
        """The longest ok trial of a suite over time."""
        trials = frames.last_attempts(self.results.trials)
        trials = trials[(trials["suite"] == suite) & (trials["status"] == "ok")]
        longest = trials.sort_values(["duration_s", "run_id", "trial_id"], ascending=[False, True, True]).head(1)
        for trial in _records(longest):
            telemetry = frames.read_telemetry(self.directories[trial.run_id], trial.trial_id)
            phases = self.results.details[trial.run_id, trial.trial_id].get("phases") or []
            drawn = charts.telemetry_chart(telemetry, phases)
            if drawn is not None:
                caption = f"The longest trial, {trial.trial_id} of run {trial.run_id}; bands are the workload's phases."
                return _chart(drawn, "One trial over time", f"{suite}-telemetry", caption)
        return None

    @cached_property
    def charts(self) -> list[Chart]:
        drawn = [chart for section in self.sections for part in section["parts"] for chart in part.charts]
        return drawn + [section["telemetry"] for section in self.sections if section["telemetry"]]

    # What went wrong, and what it ran on

    @cached_property
    def problems(self) -> Table:
        """Everything that is not ok: every attempt, and what is missing."""
        rows = []
        attempts = self.results.trials[self.results.trials["status"] != "ok"]
        missing = self.outcomes[self.outcomes["status"] == frames.MISSING]
        for trial in [*_records(attempts), *_records(missing)]:
            attempt = str(getattr(trial, "attempt", "none"))
            case = f"{trial.suite}, {trial.protocol}: {case_text(self.axes[trial.case_id], AXES)}"
            texts = [trial.column, case, str(trial.repetition), attempt, trial.reason]
            rows.append([Cell(trial.status, kind="status"), *map(_text, texts)])
        return Table(["status", "environment", "case", "repetition", "attempt", "reason"], rows)

    @cached_property
    def environment_records(self) -> list[dict[str, Any]]:
        used = sorted(set(self.results.trials["environment_record"]) - {""})
        found = [self.results.records[record] for record in used if record in self.results.records]
        return sorted(found, key=lambda record: (record["name"], str(record.get("realised_id"))))

    @cached_property
    def environment_table(self) -> Table:
        """What every environment is, side by side."""
        fields = [
            {**environment_fields(record), "flags reported": self._flags(record)} for record in self.environment_records
        ]
        rows = [[_text(name), *[_text(one[name]) for one in fields]] for name in (fields[0] if fields else [])]
        return Table(["", *[record["name"] for record in self.environment_records]], rows)

    def _flags(self, environment: dict[str, Any]) -> str:
        """What the workloads of an environment reported as set: threads, TF32, cudnn.benchmark and the like."""
        found = set()
        for trial in self.results.details.values():
            if self.results.records.get(trial.get("environment_record") or "") == environment:
                flags = (trial.get("reported") or {}).get("flags") or {}
                found |= {f"{name} {value}" for name, value in flags.items()}
        return ", ".join(sorted(found)) or "none"

    @cached_property
    def packages(self) -> Table:
        """Packages by environments: which version of each is in which."""
        lists = [record.get("packages") or {} for record in self.environment_records]
        names = sorted({name for packages in lists for name in packages}, key=lambda name: (name.lower(), name))
        rows = [[_text(name), *[_text(packages.get(name, NOTHING)) for packages in lists]] for name in names]
        return Table(["package", *[record["name"] for record in self.environment_records]], rows)

    @cached_property
    def machine_table(self) -> Table:
        """What the machines are, side by side."""
        fields = [machine_fields(machine) for machine in self.machines]
        names = list(dict.fromkeys(name for one in fields for name in one))
        rows = [[_text(name), *[_text(one.get(name, NOTHING)) for one in fields]] for name in names]
        labels = [f"machine {number}" for number in range(1, len(fields) + 1)] if len(fields) > 1 else ["machine"]
        return Table(["", *labels], rows)

    @cached_property
    def commands(self) -> list[str]:
        return [command_line(run.get("arguments") or {}) for run in self.runs.values()]

    def files(self) -> dict[str, pd.DataFrame]:
        """The tables as data: exact values, by file name."""
        numbers = [
            {**{axis: number.axes.get(axis) for axis in AXES}, **_fields(number)}
            for source in self.sources
            for number in source.flat()
        ]
        packages, environments = (
            [[cell.text for cell in row] for row in table.rows] for table in (self.packages, self.environment_table)
        )
        parts = [part for section in self.sections for part in section["parts"]]
        return {
            "cases": pd.DataFrame([row for part in parts for row in part.rows()], dtype="object"),
            "ratios": pd.DataFrame([row for part in parts for row in part.ratios], columns=_RATIO_COLUMNS),
            "trials": self.results.trials,
            "estimates": self.estimates,
            "published": pd.DataFrame(numbers, dtype="object"),
            "environments": pd.DataFrame(environments, columns=["field", *self.environment_table.columns[1:]]),
            "packages": pd.DataFrame(packages, columns=self.packages.columns),
        }


_RATIO_COLUMNS = ["suite", "protocol", "series", "quantity", "ratio_3_to_4_devices"]


class Part:
    """One suite under one protocol: its charts and its tables."""

    def __init__(self, page: Page, suite: str, protocol: str) -> None:
        self.page, self.suite, self.protocol = page, suite, protocol
        outcomes, cases = page.outcomes, page.cases
        self.outcomes = outcomes[(outcomes["suite"] == suite) & (outcomes["protocol"] == protocol)]
        self.cases = cases[(cases["suite"] == suite) & (cases["protocol"] == protocol)]
        self.case_ids = sorted(set(self.outcomes["case_id"]), key=lambda case_id: _axes_order(page.axes[case_id]))
        self.environments = sorted(set(self.outcomes["column"]))
        self.found = {(row.case_id, row.column, row.quantity): row for row in _records(self.cases)}
        values = {axis: {page.axes[case_id].get(axis) for case_id in self.case_ids} - {None} for axis in AXES}
        self.varying = [axis for axis in AXES if len(values[axis]) > 1]
        self.common = case_text({axis: next(iter(found)) for axis, found in values.items() if len(found) == 1}, AXES)
        self.status = {
            key: ", ".join(sorted(set(part["status"]), key=STATUSES.index))
            for key, part in self.outcomes.groupby(["case_id", "column"])
        }

    @cached_property
    def charts(self) -> list[Chart]:
        found = []
        here = {number.key for number in self.page.numbers if number.axes["suite"] == self.suite}
        titles = {key: hardware.title for key, hardware in self.page.hardware.items() if key in here}
        marks = {"simulated": "Some devices are simulated.", "synthetic": "Synthetic data."}
        flags = [text for flag, text in marks.items() if self.cases[flag].any()]
        for sweep in charts.SWEEPS:
            numbers = [number for number in self.page.numbers if number.key in here]
            variants = charts.sweep_points(self.cases, self.page.axes, numbers, titles, sweep)
            for number, (variant, points) in enumerate(variants, start=1):
                name = f"{self.suite}-{self.protocol}-{sweep.quantities[0]}-{number}"
                drawn = charts.sweep_chart(points, sweep, self.page.environments, sorted(titles.values()))
                which = ", ".join(filter(None, [self.protocol, case_text(variant, self.varying)]))
                bars = ["Bars: from smallest to largest trial, or the quartiles of the only one."]
                bars = bars if points["low"].notna().any() else []
                found.append(_chart(drawn, sweep.title, name, " ".join([f"{which}.", *bars, *flags])))
        return found

    @cached_property
    def tables(self) -> list[Table]:
        measured = set(self.cases["quantity"])
        views = {title: [name for name in names if name in measured] for title, names in VIEWS.items()}
        views = {title: names for title, names in views.items() if names}
        views[OTHER] = sorted(measured - {name for names in views.values() for name in names})
        tables = [self.towers, *(self._view(title, names) for title, names in views.items() if names)]
        return [table for table in tables if table] or [self._view("Outcome", [])]

    def _view(self, title: str, quantities: list[str]) -> Table:
        """Cases by environments, with the published numbers at the right."""
        published = self._published(quantities)
        groups = [("", 1), *((name, max(1, len(quantities))) for name in self.environments)]
        groups += [(f"{self.page.hardware[key].title} (published)", len(names)) for key, names in published.items()]
        columns = ["case"] + [header(name) for name in quantities or ["status"]] * len(self.environments)
        columns += [header(name) for names in published.values() for name in names]
        rows = []
        for case_id in self.case_ids:
            row = [_text(case_text(self.page.axes[case_id], self.varying) or "the one case")]
            row += [
                self._cell(case_id, name, quantity) for name in self.environments for quantity in quantities or [""]
            ]
            theirs = self._published_for(case_id)
            for key, names in published.items():
                row += [
                    _number(theirs[key, name]) if (key, name) in theirs else _status(NOT_PUBLISHED) for name in names
                ]
            rows.append(row)
        folded = title == OTHER or (title == "First and later runs" and self.towers is not None)
        return Table(columns, rows, title, groups, folded, self._notes(quantities))

    def _cell(self, case_id: str, environment: str, quantity: str) -> Cell:
        """An estimate with its spread, or the word for why there is none: never nothing."""
        row = self.found.get((case_id, environment, quantity))
        status = self.status.get((case_id, environment), NOT_PLANNED)
        if row is None:
            return _status(NOT_MEASURED if status == "ok" and quantity else status)
        notes = [f"{digits(row.low, row.unit)} – {digits(row.high, row.unit)}"] if row.spread_kind else []
        notes.append(f"n = {row.n}" + (", within the trial" if row.spread_kind == "blocks" else ""))
        notes += ["simulated"] if row.simulated else []
        notes += [status.removeprefix("ok, ").replace("_", " ")] if status != "ok" else []
        text = digits(row.estimate, row.unit) + ("†" if row.derived else "")
        return Cell(text, row.estimate, tuple(notes), "number")

    def _notes(self, quantities: list[str]) -> list[str]:
        rows = self.cases[self.cases["quantity"].isin(quantities)]
        notes = {
            "n: trials. Their median, and below it the smallest and the largest.": (rows["n"] > 1).any(),
            "n = 1, spread within the trial: the quartiles of its blocks, which say nothing about another trial.": (
                rows["spread_kind"] == "blocks"
            ).any(),
            "† derived: no full epoch of 50,000 images (or not all 100 epochs) was run.": rows["derived"].any(),
        }
        return [note for note, holds in notes.items() if holds]

    @cached_property
    def towers(self) -> Table | None:
        """First and later runs across device counts, and the step from 3 to 4; None where devices do not turn."""
        counts = sorted({count for values in self.lines.values() for count in values})
        if len(counts) < 2:
            return None
        ratios = {(one["series"], one["quantity"]): one["ratio_3_to_4_devices"] for one in self.ratios}
        rows = []
        for (series, quantity), values in self.lines.items():
            # SciPy has one CPU and no towers.
            without = NOTHING if "SciPy" in series else NOT_PUBLISHED if "(published)" in series else NOT_PLANNED
            cells = [values.get(count, _status(without)) for count in counts]
            ratio = ratios.get((series, quantity))
            row = [_text(series), Cell(header(quantity), kind="label"), *cells]
            rows.append([*row, _number(ratio) if ratio else _status(NOTHING)])
        columns = ["", "", *[f"{count} tower{'s' if count > 1 else ''}" for count in counts], "3 ÷ 4 towers"]
        return Table(columns, rows, "First and later runs against the number of towers")

    @property
    def ratios(self) -> list[dict[str, Any]]:
        """How many times longer 3 devices take than 4, for every line that has both."""
        found = []
        for (series, quantity), values in self.lines.items():
            three, four = (values[count].value if count in values else None for count in (3, 4))
            if three and four:
                base = {"suite": self.suite, "protocol": self.protocol, "series": series, "quantity": quantity}
                found.append({**base, "ratio_3_to_4_devices": three / four})
        return found

    @cached_property
    def lines(self) -> dict[tuple[str, str], dict[int, Cell]]:
        """By series and quantity: a cell for every number of devices. Ours first, then the published."""
        lines: dict[tuple[str, str], dict[int, Cell]] = {}
        measured = set(self.cases["quantity"])
        quantities = [name for name in VIEWS["First and later runs"] if name in measured]
        axes = {case_id: self.page.axes[case_id] for case_id in self.case_ids if "devices" in self.page.axes[case_id]}
        for environment in self.environments:
            for case_id, of in axes.items():
                text = case_text(of, [axis for axis in self.varying if axis not in ("devices", "implementation")])
                scipy = of.get("implementation") == "scipy"
                series = f"{environment}, SciPy" if scipy else f"{environment}: {text}".removesuffix(": ")
                for quantity in quantities:
                    line = lines.setdefault((series, quantity), {})
                    cell = self._cell(case_id, environment, quantity)
                    line[of["devices"]] = replace(cell, notes=tuple(note for note in cell.notes if "–" in note))
        if not any(len(line) > 1 for line in lines.values()):
            return {}
        lines = {key: line for key, line in lines.items() if any(cell.value for cell in line.values())}
        for number in self.page.numbers if lines else []:
            if number.quantity in quantities and number.axes["suite"] == self.suite:
                series = f"{self.page.hardware[number.key].title} (published)"
                # SciPy's own row of a source has no devices: one CPU.
                devices = int(number.axes.get("devices", 1))
                lines.setdefault((series, number.quantity), {})[devices] = _number(number.value)
        return lines

    def _published(self, quantities: list[str]) -> dict[str, list[str]]:
        """For every hardware with numbers for these cases: which of the quantities it has."""
        pairs = {pair for case_id in self.case_ids for pair in self._published_for(case_id)}
        found = {key: [name for name in quantities if (key, name) in pairs] for key in self.page.hardware}
        return {key: names for key, names in found.items() if names}

    def _published_for(self, case_id: str) -> dict[tuple[str, str], float]:
        """The published numbers of a case; no accuracy where ours was reached on made-up data."""
        synthetic = self.cases.loc[self.cases["case_id"] == case_id, "synthetic"].any()
        return {
            (number.key, number.quantity): number.value
            for number in self.page.numbers
            if number.matches(self.page.axes[case_id]) and not (synthetic and number.quantity == "accuracy")
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """For cases.csv: a row per case, environment and quantity; a row without quantity where there is none."""
        for case_id in self.case_ids:
            axes = {axis: self.page.axes[case_id].get(axis) for axis in AXES}
            theirs = self._published_for(case_id)
            for environment in self.environments:
                status = self.status.get((case_id, environment), NOT_PLANNED)
                base = {"case_id": case_id, **axes, "environment": environment, "status": status}
                mine = self.cases[(self.cases["case_id"] == case_id) & (self.cases["column"] == environment)]
                for row in mine.to_dict("records") or [{}]:
                    names = ("quantity", "unit", "estimate", "n", "low", "high", "spread_kind", "blocks")
                    flags = ("simulated", "synthetic", "derived")
                    published = {key: theirs.get((key, row.get("quantity", ""))) for key in self.page.hardware}
                    yield {**base, **{name: row.get(name) for name in (*names, *flags)}, **published}


def case_text(axes: dict[str, Any], wanted: Sequence[str]) -> str:
    """Some of a case's axes in words: "4 devices, random data"."""
    texts = []
    for axis in AXES:
        if axis in wanted and axis in axes and axis not in ("suite", "protocol"):
            value = axes[axis]
            if axis in ("devices", "nodes"):
                texts.append(f"{value} {axis if value != 1 else axis.removesuffix('s')}")
            else:
                texts.append(_AXIS_TEXT.get(axis, axis.replace("_", " ") + " {}").format(value))
    return ", ".join(texts)


def digits(value: float, unit: str = "") -> str:
    """A number as people read it: four significant digits; counts (whole, of unit 1) and thousands in full."""
    if abs(value) >= 1000 or (unit == "1" and value == int(value)):
        return f"{value:,.0f}"
    return f"{value:#.4g}".removesuffix(".")


def header(quantity: str) -> str:
    """A quantity as a column's header, with its unit."""
    unit = frames.unit_of(quantity)
    name = quantity if unit == "1" else quantity.removesuffix("_" + unit.lower())
    label = QUANTITIES[quantity].label if quantity in QUANTITIES else name.replace("_", " ")
    return label if unit == "1" else f"{label},\u00a0{unit}"


def machine_text(machine: dict[str, Any]) -> str:
    """A machine in a few words."""
    gpus = Counter(gpu["name"] for gpu in machine.get("gpus") or [])
    text = ", ".join(f"{count} × {name}" for name, count in sorted(gpus.items())) or "no GPU"
    cpu = machine.get("cpu") or {}
    return f"{cpu.get('model', 'an unknown CPU')} ({cpu.get('logical')} logical cores, {text})"


def machine_fields(machine: dict[str, Any]) -> dict[str, Any]:
    """A machine record as lines of a table."""
    cpu = machine.get("cpu") or {}
    fields = {
        "CPU": cpu.get("model"),
        "physical / logical cores": f"{cpu.get('physical')} / {cpu.get('logical')}",
        "memory, MiB": machine.get("memory_mib"),
        "operating system": machine.get("os"),
        "kernel": machine.get("kernel"),
        "NVIDIA driver": machine.get("driver") or "none",
    }
    for number, gpu in enumerate(machine.get("gpus") or []):
        texts = [f"{name.replace('_', ' ')} {value}" for name, value in gpu.items() if name != "name"]
        fields[f"GPU {number}"] = ", ".join([str(gpu.get("name")), *texts])
    return fields


def environment_fields(record: dict[str, Any]) -> dict[str, Any]:
    """An environment record as lines of a table."""
    base, image = record.get("base") or {}, record.get("image") or {}
    versions = ", ".join(f"{name} {version}" for name, version in (record.get("versions") or {}).items())
    changes = [f"{change['used']} for {change['asked']}" for change in record.get("substitutions") or []]
    size = image.get("size_bytes")
    return {
        "title": record.get("title"),
        "framework": versions,
        "Python": record.get("python"),
        "CUDA": record.get("cuda") or "none",
        "cuDNN": record.get("cudnn") or "none",
        "engine": f"{record.get('engine')} {record.get('engine_version') or ''}".strip(),
        "base asked for": base.get("reference") or "none",
        "base used": base.get("used") or "none",
        "base digest asked for": (base.get("digest") or UNPINNED) if base else "none",
        "base image got": base.get("image_id") or "not recorded",
        "substitutions": "; ".join(changes) or "none",
        "spec id": record.get("spec_id"),
        "realised id": record.get("realised_id"),
        "lock, SHA-256": record.get("lock_sha256"),
        "image": f"{image.get('id')}, {size / 2**20:,.0f} MiB" if size else image.get("id") or "none",
        "packages": len(record.get("packages") or {}),
    }


def command_line(arguments: dict[str, Any]) -> str:
    """The command that runs the same again, from a run's arguments: what was not given is left out."""
    words = ["invoke", "build", "run-suite"]
    for name, value in arguments.items():
        if value is not None and value is not False and value not in ("", []):
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            flag = "--" + str(name).replace("_", "-")
            words.append(flag if value is True else f"{flag}={text}")
    return " ".join(shlex.quote(" ".join(word.split())) for word in [*words, "report"])


def markdown(value: Any) -> str:
    """Text that stands for itself in Markdown, in a table too; what is Markup stays as it is."""
    if isinstance(value, Markup):
        return value
    text = html.escape(" ".join(str(value).split()), quote=False)
    return Markup(re.sub(r"([\\`*_\[\]|~#])", r"\\\1", text))  # noqa: S704  escaped in this line


def _records(frame: pd.DataFrame) -> list[Any]:
    return list(frame.itertuples(index=False))


def _text(value: Any) -> Cell:
    return Cell(NOTHING if value in (None, "") else str(value))


def _status(word: str) -> Cell:
    absent = word in (NOTHING, NOT_PLANNED, NOT_MEASURED, NOT_PUBLISHED)
    return Cell(word.replace("_", " "), kind="absent" if absent else "status")


def _number(value: float) -> Cell:
    return Cell(digits(value), float(value), kind="number")


def _counts(statuses: "pd.Series[Any]") -> str:
    counted = Counter(statuses)
    return ", ".join(f"{counted[status]} {status.replace('_', ' ')}" for status in STATUSES if counted[status])


def _axes_order(axes: dict[str, Any]) -> list[tuple[bool, str, Any]]:
    """Cases in the order of their axes, numbers by size."""
    return [(axis in axes, type(axes.get(axis)).__name__, axes.get(axis, "")) for axis in AXES]


def _fields(number: Number) -> dict[str, Any]:
    unit = frames.unit_of(number.quantity)
    base = {"source": number.source, "hardware": number.hardware, "quantity": number.quantity}
    return {**base, "value": number.value, "unit": unit, "note": number.note}


def _chart(chart: Any, title: str, name: str, caption: str) -> Chart:
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", name)
    return Chart(title, safe, caption, Markup(charts.to_svg(chart, safe)))  # noqa: S704  vl-convert escapes its text


def _standalone(svg: str) -> str:
    """An SVG with a colour of its own, for where no page gives it one."""
    style = "<style>svg{color:#333}@media(prefers-color-scheme:dark){svg{color:#ddd}}</style>"
    return svg.replace(">", ">" + style, 1)


def _csv(frame: pd.DataFrame) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(
        [["" if pd.isna(value) else _exact(value) for value in row] for row in frame.itertuples(index=False)]
    )
    return file.getvalue()


def _exact(value: Any) -> Any:
    """Floats with every digit that tells them from their neighbours; the rest as in every table of ours."""
    value = value.item() if hasattr(value, "item") else value
    return repr(float(value)) if isinstance(value, float) else csv_value(value)


def _environment(templates: Path, name: str) -> jinja2.Environment:
    """Jinja that escapes everything for the format it writes: HTML by autoescape, Markdown by `markdown`."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        autoescape=True,
        finalize=None if name.endswith(".html.j2") else markdown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["as_is"] = Markup
    return environment


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """A fresh directory beside `out` that takes its place when the block ends well, and vanishes when it does not."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial, old = (out.with_name(f".{out.name}.{word}-{os.getpid()}") for word in ("partial", "old"))
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        if out.exists():
            out.rename(old)
        partial.rename(out)
    finally:
        if old.exists() and not out.exists():
            old.rename(out)
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
