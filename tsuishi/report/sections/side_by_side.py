"""Environments side by side: every case in every environment as a ratio to the reference, and the mean ratios."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from tsuishi.base.language import in_words, prose, t
from tsuishi.estimates.intervals import FEWEST_TRIALS, Contrast
from tsuishi.estimates.ratios import MARKS, as_ratio
from tsuishi.report.charts import figures
from tsuishi.report.charts.small import with_spread
from tsuishi.report.parts import declarations
from tsuishi.report.parts.blocks import Block, Chart, Section, Text, View
from tsuishi.report.parts.declarations import Column, Tables, interval, ratio_columns
from tsuishi.report.parts.shown_units import Unit
from tsuishi.report.parts.wording import (
    NOTHING,
    Cell,
    Table,
    amount,
    digits,
    header,
    label,
    ratio_cell,
    status_cell,
    text_cell,
    unit_of,
)
from tsuishi.report.sections import descriptions, machine_speeds
from tsuishi.report.sections.pairs import Matchup
from tsuishi.verdicts.evidence import Evidence

_REFERENCE = Column("reference", "string", "environment that ratios compare with")
TABLES: Tables = {
    "side_by_side": (
        *(declarations.CASE_ID, declarations.EVERY_AXIS, declarations.QUANTITY, declarations.UNIT),
        declarations.ENVIRONMENT,
        Column("status", "string", "statuses of its repetitions, each once"),
        Column("geometric_mean", "number", "over trials, in the unit"),
        Column("trials", "integer", "how many"),
        _REFERENCE,
        *interval("ratio", "over the reference's, of geometric means over trials"),
        Column("best", "boolean", "its ratio to each other environment has an interval that excludes 1 (Holm)"),
        declarations.SIMULATED,
    ),
    "side_by_side_means": (
        *(declarations.WHERE, declarations.QUANTITY, declarations.ENVIRONMENT),
        _REFERENCE,
        Column("cases", "integer", "that both have"),
        *interval("ratio", "geometric mean over these cases of its value over the reference's"),
    ),
    **machine_speeds.TABLES,
}


def comparison_section(evidence: Evidence, compared: Sequence[Matchup]) -> Section:
    """The means over all cases, then the cases of every suite that has cases to compare.

    compared: the matchups of all environments; none for a single environment.
    """
    title = t("Environments side by side")
    if len(evidence.environments) < 2:
        alone = t(
            "This report has one environment, so there is nothing to compare. A report can take several "
            "runs: `--run A,B`."
        )
        return Section("side-by-side", title, (View((Text(alone),)),))
    # With several matchups, readers see the means, and unfold the cases that they want.
    views = (_view(matchup, folded=len(compared) > 1) for matchup in compared)
    about = in_words(evidence.environments)
    machines = machine_speeds.machine_view(evidence, compared)
    several = [machines] if machines else []
    return Section("side-by-side", title, (*several, _means(evidence, compared), *views), about)


def _means(evidence: Evidence, compared: Sequence[Matchup]) -> View:
    """A row of mean ratios per suite, protocol and quantity; above them, the meaning of the numbers."""
    blocks: list[Block] = [Text(sentence) for sentence in _explained(evidence, compared)]
    environments, table, rows = evidence.environments, [], []
    for matchup in compared:
        means = {environment: matchup.mean(environment) for environment in matchup.others}
        cells = [_mean_cell(matchup, environment, means.get(environment)) for environment in environments]
        table.append([text_cell(_where(matchup)), text_cell(label(matchup.quantity), "label"), *cells])
        where = {**matchup.suite_cases.where, "quantity": matchup.quantity, "reference": matchup.reference}
        rows += [
            {**where, "environment": environment, "cases": mean[1], **ratio_columns(mean[0])}
            for environment, mean in means.items()
            if mean
        ]
    if table:
        columns = [t("suite"), t("quantity"), *environments]
        notes = [t("Geometric means over the cases that an environment and the reference both have."), _intervals()]
        blocks += [*_chart(compared, environments)]
        blocks.append(Table(columns, table, title=t("Times the reference, on average"), notes=notes))
    return View(tuple(blocks), {"side_by_side_means": rows})


def _where(matchup: Matchup) -> str:
    return matchup.suite_cases.title


def _chart(compared: Sequence[Matchup], environments: list[str]) -> Iterator[Chart]:
    """The mean speed as a multiple of the reference's: right is faster, for times and for rates."""
    rows: list[dict[str, Any]] = []
    for matchup in compared:
        for environment in matchup.others:
            mean = matchup.mean(environment)
            if mean:
                speed = mean[0] if matchup.rate else mean[0]._replace(value=-mean[0].value)
                point = {"case": f"{_where(matchup)}: {label(matchup.quantity)}", "environment": environment}
                rows.append({**point, **as_ratio(speed)._asdict()})
    if rows:
        sentences = [
            t("Geometric means over the cases that both have. Points to the right of 1 are faster than the reference.")
        ]
        if any(row["low"] is not None for row in rows):
            sentences.append(t("Bars: 95 % intervals, where there were several trials."))
        title = t("Times as fast as the reference")
        yield figures.block(_speeds_chart(rows, environments), title, "side-by-side", prose(sentences))


def _speeds_chart(rows: list[dict[str, Any]], environments: list[str]) -> dict[str, Any]:
    names = [name for name in environments if name in {row["environment"] for row in rows}]
    colours = figures.colours(names, environments)
    shapes = {"domain": names, "range": [figures.shape_of(environments.index(name)) for name in names]}
    scale = {"type": "log", "nice": False, "padding": 14}
    x = {"type": "quantitative", "scale": scale, "title": t("times as fast (log scale)"), "axis": {"format": "~g"}}
    series = {"field": "environment", "type": "nominal"}
    cases = list(dict.fromkeys(row["case"] for row in rows))
    encoding = {
        "y": {"field": "case", "type": "nominal", "title": None, "sort": cases, "axis": {"labelLimit": 330}},
        "yOffset": {**series, "sort": names},
        "color": {**series, "scale": colours, "legend": figures.LEGEND},
    }
    layers = [
        figures.once(figures.REFERENCE, {"x": {"datum": 1}}),
        *with_spread("x", "value", x, encoding, {**series, "scale": shapes, "legend": figures.LEGEND}),
    ]
    return {**figures.data_of(rows), "layer": layers, "width": figures.PANEL_WIDTH + 80, "height": {"step": 9}}


def _explained(evidence: Evidence, compared: Sequence[Matchup]) -> Iterator[str]:
    """The meaning of the numbers, the machines, and the suites without a comparison."""
    yield t(
        "Every number is a ratio to the reference, the first environment that has the quantity: 2 is twice its "
        "time, or twice its rate. Cases are compared one by one; a case that an environment lacks has its status "
        "there."
    )
    yield t(
        "The best value of a row is marked where it is certainly ahead of every other environment, with at least "
        "{trials} trials of each: of 100 reports on equal environments at most {share} have a mark.",
        trials=FEWEST_TRIALS, share=f"{100 * MARKS:g}",
    )  # fmt: skip
    apart = [matchup.mean(environment) for matchup in compared for environment in matchup.others]
    if any(mean and mean[0].error == math.inf for mean in apart):
        yield t(
            "Environments that were measured in different sessions have no interval before each has {count} days, and "
            "are never marked. Measure both in one run: what a session has in common then cancels.",
            count=FEWEST_TRIALS,
        )
    yield from machine_notes(evidence)
    without = [suite for suite in evidence.suites if suite not in {matchup.suite_cases.suite for matchup in compared}]
    if without:
        yield t(
            "These suites have no time or rate to compare, and are only in their own sections: {suites}.",
            suites=", ".join(without),
        )


def machine_notes(evidence: Evidence) -> list[str]:
    """The numbers of several machines, for the labels of environments, which have these numbers (frames.py)."""
    names = [descriptions.machine_text(machine) for machine in evidence.machine_records.values()]
    texts = [t("Machine {number}: {machine}.", number=number, machine=name) for number, name in enumerate(names, 1)]
    return [prose(texts)] if len(names) > 1 else []


def _mean_cell(matchup: Matchup, environment: str, mean: tuple[Contrast, int] | None) -> Cell:
    if environment == matchup.reference:
        return Cell(t("reference"), kind="absent")
    if mean is None:
        return status_cell(NOTHING)
    return ratio_cell(mean[0], (t("cases: {count}", count=mean[1]),))


def _view(matchup: Matchup, folded: bool) -> View:
    """A row per case: the reference's value, and every other environment's ratio to it."""
    comparison = matchup.suite_cases
    title = t("{topic}: {words}", topic=_where(matchup), words=header(matchup.quantity, _unit(matchup)))
    columns = [t("case"), t("{environment}, the reference", environment=matchup.reference), *matchup.others]
    table = [
        [
            text_cell(comparison.name(case_id)),
            *[_cell(matchup, case_id, name) for name in (matchup.reference, *matchup.others)],
        ]
        for case_id in matchup.case_ids
    ]
    notes = [t("Values are geometric means over n trials."), _intervals()]
    return View(
        (Table(columns, table, title=title, folded=folded, notes=notes),),
        {"side_by_side": [row for case_id in matchup.case_ids for row in _rows(matchup, case_id)]},
    )


def _intervals() -> str:
    return t(
        "In brackets: the 95 % interval of each comparison alone, from the scatter of trials. Verdicts use "
        "wider intervals."
    )


def _cell(matchup: Matchup, case_id: str, environment: str) -> Cell:
    term = matchup.terms[case_id].get(environment)
    if term is None:
        return matchup.suite_cases.cell(case_id, environment, matchup.quantity)
    value = math.exp(term.mean)
    notes = (t("n = {n}", n=term.trials), *matchup.suite_cases.marks(case_id, environment))
    contrast = matchup.ratio(case_id, environment)
    if contrast is None:
        best = matchup.best[case_id] == environment
        return Cell(digits(value, _unit(matchup)), value, notes, "number", best=best)
    value_note = amount(value, unit_of(matchup.quantity))
    return ratio_cell(contrast, (value_note, *notes), matchup.best[case_id] == environment)


def _unit(matchup: Matchup) -> Unit:
    return matchup.suite_cases.unit(matchup.quantity)


def _rows(matchup: Matchup, case_id: str) -> Iterator[dict[str, Any]]:
    """The rows of side_by_side.csv for a case: a row for every environment, whatever the case's status there."""
    comparison = matchup.suite_cases
    base = {"case_id": case_id, **comparison.axes[case_id], "unit": unit_of(matchup.quantity)}
    base |= {"quantity": matchup.quantity, "reference": matchup.reference}
    for environment in comparison.environments:
        row: dict[str, Any] = {"environment": environment, "status": comparison.status(case_id, environment)}
        row |= {"best": matchup.best[case_id] == environment, **ratio_columns(matchup.ratio(case_id, environment))}
        if term := matchup.terms[case_id].get(environment):
            row |= {"geometric_mean": math.exp(term.mean), "trials": term.trials}
            row["simulated"] = comparison.simulated(case_id, environment)
        yield base | row
