"""The history of cases on this machine in these environments: a point for each session, over the user's runs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tsuishi.base.language import in_words, prose, t
from tsuishi.estimates.contrasts import contrast
from tsuishi.estimates.intervals import Term
from tsuishi.estimates.ratios import as_ratio
from tsuishi.estimates.terms import Key
from tsuishi.estimates.variances import pool
from tsuishi.report.charts import figures
from tsuishi.report.parts.blocks import Block, Bullets, Section, Text, View
from tsuishi.report.parts.declarations import CASE_ID, ENVIRONMENT, EVERY_AXIS, QUANTITY, UNIT, Column, Tables
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import label, unit_of
from tsuishi.report.sections import descriptions
from tsuishi.report.sections.pairs import cases_by_quantity, known_quantities
from tsuishi.results.same_machine import differing, facts, is_same
from tsuishi.verdicts.baseline import Baseline
from tsuishi.verdicts.evidence import Evidence

TABLES: Tables = {
    "history": (
        *(CASE_ID, EVERY_AXIS, ENVIRONMENT, QUANTITY, UNIT),
        Column("session", "string", "the run, and the number of the call that measured"),
        Column("began_at", "string", "when the session's first trial began: ISO 8601, UTC"),
        Column("value", "number", "geometric mean over the session's trials, in the unit"),
        Column("low", "number", "end of its 95 % interval, from the scatter of trials; empty for single trials"),
        Column("high", "number", "its other end"),
        Column("trials", "integer", "of the session"),
        Column("changed", "string", "conditions of the machine that differ from these runs"),
    )
}


class SessionPoint(NamedTuple):
    """A case in a session: its geometric mean over the session's trials, and the ends of its 95 % interval."""

    case_id: str
    environment: str
    quantity: str
    session: str
    began_at: str
    value: float
    low: float | None
    high: float | None
    trials: int


class Past(NamedTuple):
    """The runs of a history, also those of the report; and the numbers of runs that are of other machines.

    `left_out`: by the names of the facts that make another machine (results/same_machine.py).
    """

    evidence: Evidence
    left_out: Mapping[tuple[str, ...], int]


def history_section(
    evidence: Evidence, given: Past, every: Sequence[SuiteCases], explanations: Explanations
) -> Section:
    """A chart for each suite, protocol and quantity."""
    past, changes = given.evidence, _changes(evidence, given.evidence)
    environments = Baseline(evidence, past).columns
    known = known_quantities(past.terms)
    blocks: list[Block] = [Text(_about())]
    rows: list[dict[str, Any]] = []
    for suite_cases in every:
        for quantity, case_ids in cases_by_quantity(suite_cases, known, explanations).items():
            points = [
                point
                for case_id in case_ids
                for column, its in environments.items()
                for point in _points(past, (suite_cases.suite, suite_cases.protocol, its, quantity), case_id, column)
            ]
            for point in points:
                more = {"unit": unit_of(quantity), "changed": changes.get(point.session)}
                rows.append(evidence.axes[point.case_id] | point._asdict() | more)
            if len({point.session for point in points}) > 1:
                title = t("{topic}: {words}", topic=suite_cases.title, words=label(quantity))
                chart = _chart(points, suite_cases, list(environments), changes)
                name = f"history-{suite_cases.suite}-{suite_cases.protocol}-{quantity}"
                blocks.append(figures.block(chart, title, name, _caption()))
    sessions = {row["session"] for row in rows}
    drawn = {row["case_id"] for row in rows}
    if left_out := sum(case_id not in drawn for suite_cases in every for case_id in suite_cases.case_ids):
        without = t("Cases without a time or a rate above 0, which have no history: {count}.", count=left_out)
        blocks.append(Text(without, kind="note"))
    changed = [
        t(
            "{session}, {date}: {changes}",
            session=session,
            date=past.session_begins[session][:10],
            changes=changes[session],
        )
        for session in sorted(sessions & changes.keys())
    ]
    if changed:
        blocks.append(
            Bullets(tuple(changed), title=t("The same machine, with other conditions than these runs"), warning=False)
        )
    for names, count in sorted(given.left_out.items()):
        labels = in_words(dict.fromkeys(map(descriptions.fact_label, names)))
        blocks.append(
            Text(
                t(
                    "Runs of another machine, which are left out: {count}; it differs by: {facts}.",
                    count=count,
                    facts=labels,
                ),
                kind="note",
            )
        )
    if len(sessions) < 2 and drawn:
        blocks.append(Text(t("There is no other session in these environments on this machine yet."), kind="note"))
    about = t("sessions: {count}", count=len(sessions))
    return Section("history", t("History on this machine"), (View(tuple(blocks), {"history": rows}),), about)


def _changes(evidence: Evidence, past: Evidence) -> dict[str, str]:
    """The conditions that differ from those of these runs' machine, in words, by session: those that have any."""
    found: dict[str, dict[str, None]] = {}
    trials = past.results.trials[["run_id", "started_at", "machine_record"]].drop_duplicates()
    for run_id, started_at, record in trials.itertuples(index=False):
        then = past.results.machines.get(record)
        ours = [now for now in evidence.results.machines.values() if then and is_same(now, then)]
        changed = [differing(now, then) for now in ours if then]
        if then and ours and all(changed):
            now, names = min(zip(ours, changed, strict=True), key=lambda pair: len(pair[1]))
            for name in names:
                values = (descriptions.fact_text(name, facts(each)[name]) for each in (then, now))
                text = t(
                    "{fact}: {then} then, {now} now",
                    fact=descriptions.fact_label(name),
                    **dict(zip(("then", "now"), values, strict=True)),
                )
                found.setdefault(past.session(run_id, str(started_at)), {})[text] = None
    return {session: "; ".join(texts) for session, texts in found.items()}


def _about() -> str:
    return t(
        "Every session of your runs that measured these cases on this machine, in the same environments. Sessions are "
        "distinguished by their date: each is a point, and nothing is decided from them here (`--baseline` does that)."
    )


def _caption() -> str:
    return prose(
        [
            t("Each case over its own mean of all sessions: 1.05 is 5 % more."),
            t("Hollow: a condition of the machine differed from these runs, see below."),
            t("Bars: 95 % intervals from the scatter of trials within sessions; they say nothing about other days."),
        ]
    )


def _points(past: Evidence, key: Key, case_id: str, named: str) -> Iterator[SessionPoint]:
    """The sessions of a case, with the scatter of trials within all of them: a session may differ from the others."""
    values, rounds = past.trial_values.get(key, {}).get(case_id, []), past.trial_rounds.get(key, {}).get(case_id, [])
    by_session: dict[str, list[float]] = {}
    for value, each in zip(values, rounds, strict=True):
        if value > 0:
            by_session.setdefault(each.session, []).append(math.log(value))
    scatter = pool(by_session.values())
    for session, logs in by_session.items():
        ratio = as_ratio(contrast([(1.0, Term(math.fsum(logs) / len(logs), len(logs), scatter))]))
        yield SessionPoint(case_id, named, key[3], session, past.session_begins[session], *ratio, len(logs))


def _means(points: Sequence[SessionPoint]) -> Mapping[tuple[str, str], float]:
    """The geometric mean over sessions, by case and environment."""
    logs: dict[tuple[str, str], list[float]] = {}
    for point in points:
        logs.setdefault((point.case_id, point.environment), []).append(math.log(point.value))
    return {key: math.exp(math.fsum(of_case) / len(of_case)) for key, of_case in logs.items()}


def _chart(
    points: Sequence[SessionPoint], suite_cases: SuiteCases, environments: list[str], changes: Mapping[str, str]
) -> dict[str, Any]:
    """Values over dates; a line for each case, in the colour of its environment."""
    means = _means(points)
    rows = []
    for point in points:
        mean = means[point.case_id, point.environment]
        ends = {
            end: None if value is None else value / mean for end, value in (("low", point.low), ("high", point.high))
        }
        names = {"environment": point.environment, "case": suite_cases.name(point.case_id), "session": point.session}
        rows.append({**names, "date": point.began_at, "value": point.value / mean, **ends})
        rows[-1]["changed"] = point.session in changes
    drawn = [name for name in environments if name in {row["environment"] for row in rows}]
    colours = figures.colours(drawn, environments)
    x = {"field": "date", "type": "temporal", "title": t("date (UTC)"), "scale": {"type": "utc", "padding": 12}}
    x["axis"] = {"format": "%Y-%m-%d", "tickCount": 6, "labelOverlap": True}
    scale = {"type": "log", "nice": False, "padding": 10}
    y = {"type": "quantitative", "title": t("over its mean (log scale)"), "scale": scale, "axis": {"format": ".3~f"}}
    shared = {"x": x, "color": {"field": "environment", "type": "nominal", "scale": colours, "legend": figures.LEGEND}}
    value = {**shared, "detail": {"field": "case", "type": "nominal"}, "y": {**y, "field": "value"}}
    spread = {**shared, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    layers = [
        figures.once(figures.REFERENCE, {"y": {"datum": 1}}),
        figures.layer({"type": "line", "strokeWidth": 1, "opacity": 0.5}, value),
        figures.layer({"type": "rule", "opacity": 0.5}, spread, "isValid(datum.low)"),
        figures.layer(figures.POINT, value, "!datum.changed"),
        figures.layer({**figures.POINT, "filled": False}, value, "datum.changed"),
    ]
    return {**figures.data_of(rows), "layer": layers, "width": 2 * figures.PANEL_WIDTH, "height": 180}
