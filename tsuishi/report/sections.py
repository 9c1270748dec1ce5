"""Sections of a report: of every suite its protocols, each with charts and tables, and one trial over time."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tsuishi.analysis import frames, parity
from tsuishi.analysis.evidence import Evidence
from tsuishi.report import analyses, charts, limits, sweeps, towers
from tsuishi.report.blocks import Block, Chart, Heading, Section, Text, View
from tsuishi.report.comparison import Comparison
from tsuishi.report.diagnosis import diagnose
from tsuishi.report.tables import NOT_PUBLISHED, Table, case_text, header, number_cell, status_cell, text_cell

FIRST_AND_LATER = "First and later runs"
# Quantities that are read together; what is in none of them comes last, under "Other measurements".
VIEWS = {
    FIRST_AND_LATER: towers.RUN_TIMES,
    "Transfer and compute": ("host_to_device_s", "compute_s", "device_to_host_s"),
    "Steps": ("step_s", "throughput_images_per_s", "distinct_images_per_s", "first_step_s", "second_step_s"),
    "Epochs of 50,000 images": ("first_epoch_s", "median_epoch_s", "total_s", "accuracy"),
    "Parity": parity.QUANTITIES,
    "Work": ("fraction_of_limit", "flops_per_s", "bytes_per_s"),
}
OTHER = "Other measurements"
# Of one suite and protocol.
MOST_CHARTS = 8
_PROTOCOLS = {"literal": "As the source did it, with its pitfalls.", "steady": "Warm, synchronised, repeated."}


def suite_section(evidence: Evidence, suite: str) -> Section:
    """The section of a suite that ran."""
    protocols = sorted(set(evidence.outcomes.loc[evidence.outcomes["suite"] == suite, "protocol"]))
    views = [view for protocol in protocols for view in _protocol(Comparison(evidence, suite, protocol))]
    views += [analyses.gpu_loads(evidence, suite), _telemetry(evidence, suite), explanation(evidence, suite)]
    return Section(f"suite-{suite}", suite, tuple(views))


def _protocol(comparison: Comparison) -> Iterator[View]:
    """What a suite found under one protocol."""
    blocks: list[Block] = [Heading(f"Protocol: {comparison.protocol}"), Text(_PROTOCOLS[comparison.protocol])]
    if comparison.common:
        blocks.append(Text(f"All cases: {comparison.common}.", "note"))
    by_towers = towers.Towers(comparison)
    yield View(
        (*blocks, *_sweeps(comparison), *_tables(comparison, by_towers.tables())),
        {
            "cases": list(comparison.rows()),
            "ratios": by_towers.ratios(),
        },
    )
    yield from analyses.analyse(comparison)


def explanation(evidence: Evidence, suite: str) -> View:
    """What a suite's cases together say, by environment, for a suite that has something to explain."""
    found = diagnose(evidence, suite)
    if not found:
        return View()
    blocks: list[Block] = [
        Heading("What explains it"),
        Text("Drawn from the cases above, each environment from its own; nothing that was not measured is in it."),
    ]
    for environment, paragraphs in found.items():
        blocks += [Heading(environment, 4), *(Text(one.text, topic=one.topic) for one in paragraphs)]
    rows = [
        {"suite": suite, "environment": environment, "topic": paragraph.topic, "text": paragraph.text}
        for environment, paragraphs in found.items()
        for paragraph in paragraphs
    ]
    return View(tuple(blocks), {"diagnosis": rows})


def _tables(comparison: Comparison, by_towers: list[Table]) -> list[Table]:
    """Every view that has something to show; where nothing was measured, what became of the cases."""
    measured = comparison.quantities
    views = {title: [name for name in names if name in measured] for title, names in VIEWS.items()}
    views[OTHER] = sorted(measured - {name for names in views.values() for name in names})
    tables = list(by_towers)
    for title, quantities in views.items():
        if quantities:
            folded = title == OTHER or (title == FIRST_AND_LATER and bool(by_towers))
            tables.append(_view(comparison, title, quantities, folded))
    return tables or [_view(comparison, "Outcome", [], folded=False)]


def _view(comparison: Comparison, title: str, quantities: list[str], folded: bool) -> Table:
    """Cases by environments, with the published numbers at the right. Without quantities: statuses."""
    theirs = {case_id: comparison.evidence.published(case_id) for case_id in comparison.case_ids}
    pairs = {pair for found in theirs.values() for pair in found}
    hardware = comparison.evidence.hardware
    published = [(key, name) for key in hardware for name in quantities if (key, name) in pairs]
    spans = Counter(key for key, _ in published)
    groups = [("", 1), *((name, max(1, len(quantities))) for name in comparison.environments)]
    groups += [(f"{hardware[key].title} (published)", span) for key, span in spans.items()]
    columns = ["case", *[header(name) for name in quantities or ["status"]] * len(comparison.environments)]
    columns += [header(name) for _, name in published]
    rows = []
    for case_id, numbers in theirs.items():
        row = [text_cell(case_text(comparison.axes[case_id], comparison.varying) or "the one case")]
        for environment in comparison.environments:
            row += [comparison.cell(case_id, environment, quantity) for quantity in quantities or [""]]
        row += [number_cell(numbers[pair]) if pair in numbers else status_cell(NOT_PUBLISHED) for pair in published]
        rows.append(row)
    return Table(columns, rows, title, groups, folded, _notes(comparison, quantities))


def _notes(comparison: Comparison, quantities: list[str]) -> list[str]:
    """What the marks under a table's numbers mean: only those that are there."""
    rows = comparison.cases[comparison.cases["quantity"].isin(quantities)]
    within = (rows["spread_kind"] == "blocks").any()
    notes = {
        "n: trials. Their median, and below it the smallest and the largest.": (rows["n"] > 1).any(),
        "n = 1, spread within the trial: the quartiles of its blocks, which say nothing about another trial.": within,
        "† derived: no full epoch of 50,000 images (or not all 100 epochs) was run.": (
            rows["derived"] & (rows["unit"] == "s")
        ).any(),
    }
    about_limits = (
        limits.notes(comparison.fractions, comparison.evidence.limits) if "fraction_of_limit" in quantities else []
    )
    return [*about_limits, *(note for note, holds in notes.items() if holds)]


def _sweeps(comparison: Comparison) -> Iterator[Chart]:
    """A chart for every sweep and every variant of it that has a line, but not more than can be looked at."""
    evidence, cases = comparison.evidence, comparison.cases
    numbers = [number for number in evidence.numbers if number.axes["suite"] == comparison.suite]
    titles = {number.key: evidence.hardware[number.key].title for number in numbers}
    marks = {"simulated": "Some devices are simulated.", "synthetic": "Synthetic data."}
    flags = [text for flag, text in marks.items() if cases[flag].any()]
    found = []
    for sweep in sweeps.SWEEPS:
        variants = sweeps.sweep_points(cases, evidence.axes, numbers, titles, sweep)
        if sweep.title == FIRST_AND_LATER:
            # What the source did not run has a table (towers.py); a chart for each would bury the source's own.
            variants = [one for one in variants if (one[1]["published"] & ~one[1]["rule"]).any()] or variants
        found += [(sweep, count, *one) for count, one in enumerate(variants, start=1)]
    for sweep, count, variant, points in found[:MOST_CHARTS]:
        name = f"{comparison.suite}-{comparison.protocol}-{sweep.quantities[0]}-{count}"
        drawn = charts.sweep_chart(points, sweep, evidence.environments, sorted(titles.values()))
        which = ", ".join(filter(None, [comparison.protocol, case_text(variant, comparison.varying)]))
        remarks = {
            "Bars: from smallest to largest trial, or the quartiles of the only one.": points["low"].notna().any(),
            "Lines through points: the throughput model (see its table).": (points["mark"] == "fit").any(),
            f"{len(found) - MOST_CHARTS} more such charts are not drawn: see the tables.": (
                len(found) > MOST_CHARTS and (sweep, count) == found[MOST_CHARTS - 1][:2]
            ),
        }
        texts = [f"{which}.", *(text for text, holds in remarks.items() if holds), *flags]
        yield _chart(drawn, sweep.title, name, " ".join(texts))


def _telemetry(evidence: Evidence, suite: str) -> View:
    """The longest ok trial of a suite over time."""
    trials = frames.last_attempts(evidence.results.trials)
    trials = trials[(trials["suite"] == suite) & (trials["status"] == "ok")]
    longest = trials.sort_values(["duration_s", "run_id", "trial_id"], ascending=[False, True, True]).head(1)
    for trial in frames.named_rows(longest):
        telemetry = frames.read_telemetry(evidence.directories[trial.run_id], trial.trial_id)
        phases = evidence.results.details[trial.run_id, trial.trial_id].get("phases") or []
        drawn = charts.telemetry_chart(telemetry, phases)
        if drawn is not None:
            caption = f"The longest trial, {trial.trial_id} of run {trial.run_id}; bands are the workload's phases."
            return View((_chart(drawn, "One trial over time", f"{suite}-telemetry", caption),))
    return View()


def _chart(drawn: Any, title: str, name: str, caption: str) -> Chart:
    return Chart(title, re.sub(r"[^A-Za-z0-9_-]+", "-", name), caption, charts.specification(drawn))
