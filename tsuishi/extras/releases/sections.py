"""Releases of a framework on a machine, by their dates: how much faster each is than the oldest and the newest."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple

from tsuishi.base.language import prose, t
from tsuishi.estimates.intervals import Contrast
from tsuishi.estimates.ratios import as_ratio, mean_ratio
from tsuishi.report.charts import figures
from tsuishi.report.parts.blocks import Block, Heading, Section, Text, View
from tsuishi.report.parts.declarations import ENVIRONMENT, Column, Tables, interval, ratio_columns
from tsuishi.report.parts.wording import NOTHING, Cell, Table, label, ratio_cell, text_cell
from tsuishi.report.sections.pairs import Matchup
from tsuishi.results.records import EnvironmentRecord
from tsuishi.verdicts.evidence import Evidence

TABLES: Tables = {
    "releases": (
        Column("family", "string", "of releases of a framework"),
        Column("released", "string", "day on which the release appeared"),
        ENVIRONMENT,
        Column("reference", "string", "the oldest or the newest environment of the family on this machine"),
        Column("numbers", "integer", "that both have"),
        *interval("ratio", "geometric mean over these of its speed over the reference's"),
    )
}
# With fewer releases, the other comparisons say as much.
_FEWEST = 3
_DAYS_OF_A_YEAR = 365.25

Speed = tuple[Contrast, int]


class DatedRelease(NamedTuple):
    """A release on a machine. `column`: the label of its environment. `forced`: its code is not for the GPU here."""

    released: date
    column: str
    record: EnvironmentRecord
    forced: bool


def sections(evidence: Evidence, compared: Sequence[Matchup]) -> Iterator[Section]:
    """The section of these views, if there are any. compared: see `views`."""
    found = tuple(release_views(evidence, compared))
    if found:
        yield Section("releases", t("Releases, by date"), found, folded=False)


def release_views(evidence: Evidence, compared: Sequence[Matchup]) -> Iterator[View]:
    """A view of each family of which a machine has three releases or more; compared: the matchups of all cases."""
    for (family, _), releases in sorted(_families(evidence).items()):
        if len({release.released for release in releases}) >= _FEWEST:
            yield _view(family, sorted(releases), compared)


def _families(evidence: Evidence) -> dict[tuple[str, str], list[DatedRelease]]:
    """The releases by family and machine."""
    trials = evidence.results.trials
    forced = set(trials.loc[trials["forced"].fillna("").ne(""), "column"])
    found: dict[tuple[str, str], list[DatedRelease]] = {}
    known = trials[["machine", "environment_record", "column"]].drop_duplicates("column")
    for machine, name, column in known.itertuples(index=False):
        record = evidence.environment_records.get(name)
        if record and record.family and record.released:
            release = DatedRelease(record.released, column, record, column in forced)
            found.setdefault((record.family, machine), []).append(release)
    return found


def _view(family: str, releases: Sequence[DatedRelease], compared: Sequence[Matchup]) -> View:
    oldest, newest = releases[0], releases[-1]
    years = round((newest.released - oldest.released).days / _DAYS_OF_A_YEAR)
    rows, table = [], []
    for release in releases:
        cells = [
            text_cell(release.column),
            text_cell(release.released.isoformat()),
            text_cell(release.record.python or NOTHING),
            text_cell(t("no") if release.forced else t("yes")),
        ]
        for reference in (oldest, newest):
            found = _speed(compared, release, reference)
            cells += [text_cell(str(found[1]) if found else NOTHING), _cell(release is reference, found)]
            about: dict[str, Any] = {"family": family, "released": release.released.isoformat()}
            about |= {"environment": release.column, "reference": reference.column, "numbers": found[1] if found else 0}
            rows.append({**about, **ratio_columns(found[0] if found else None)})
        table.append(cells)
    names = [t("environment"), t("released"), "Python", t("native"), t("numbers compared")]
    names += [t("times as fast as the oldest"), t("numbers compared"), t("times as fast as the newest")]
    title = t("Releases of {family}, by date", family=family)
    blocks: list[Block] = [
        Heading(t("What {years} years of {family} did to this machine", years=years, family=family)),
        Text(_explained(oldest, newest)),
        Table(names, table, title=title),
        *_by_suite(family, releases, compared),
    ]
    return View(tuple(blocks), {"releases": rows})


def _explained(oldest: DatedRelease, newest: DatedRelease) -> str:
    return prose(
        [
            t(
                "Geometric means over all numbers that two releases both have: {oldest} is the oldest release here, "
                "{newest} the newest.",
                oldest=oldest.column,
                newest=newest.column,
            ),
            t("A release also brings its Python, NumPy and libraries: the ratios are those of whole environments."),
            t("Native: it has code for the processor that it ran on."),
        ]
    )


def _speed(compared: Sequence[Matchup], of: DatedRelease, over: DatedRelease) -> Speed | None:
    """The logarithm of the mean speed over all numbers that both have, and how many they are."""
    pairs = [pair for matchup in compared for pair in matchup.speeds(of.column, over.column)]
    return (mean_ratio(pairs), len(pairs)) if pairs and of is not over else None


def _cell(is_reference: bool, found: Speed | None) -> Cell:
    if is_reference:
        return Cell("1", 1.0, kind="number")
    return ratio_cell(found[0], ()) if found else text_cell(NOTHING)


def _by_suite(family: str, releases: Sequence[DatedRelease], compared: Sequence[Matchup]) -> Iterator[Block]:
    """The chart and the table of each suite's mean speed over that of the oldest release that has its numbers."""
    table, points = [], []
    for matchup in compared:
        having = [release for release in releases if any(release.column in of for of in matchup.terms.values())]
        if len(having) < _FEWEST:
            continue
        name = t("{topic}: {words}", topic=matchup.suite_cases.title, words=label(matchup.quantity))
        speeds = {release.column: _speed([matchup], release, having[0]) for release in having}
        cells = [_cell(release is having[0], speeds.get(release.column)) for release in releases]
        table.append([text_cell(name), *cells])
        points += [_point(name, release, speeds[release.column]) for release in having]
    if table:
        title = t("Times as fast as the oldest release of {family} that has it, by suite", family=family)
        caption = t("Geometric means over the cases of a suite that two releases both have. Bars: 95 % intervals.")
        yield figures.block(_chart(points), title, f"releases-{family}", caption)
        yield Table([t("suite"), *(release.column for release in releases)], table, title=title)


def _point(name: str, release: DatedRelease, speed: Speed | None) -> dict[str, Any]:
    ratio = as_ratio(speed[0])._asdict() if speed else {"value": 1.0, "low": None, "high": None}
    return {"suite": name, "date": release.released.isoformat(), **ratio}


def _chart(points: list[dict[str, Any]]) -> dict[str, Any]:
    """Speeds over the date of the release, on a logarithmic scale; a line for each suite."""
    names = list(dict.fromkeys(point["suite"] for point in points))
    colours = {"domain": names, "range": [figures.PALETTE[place % len(figures.PALETTE)] for place in range(len(names))]}
    dashes = {"domain": names, "range": [figures.DASHES[place % len(figures.DASHES)] for place in range(len(names))]}
    legend = {"title": None, "orient": "bottom", "columns": 1, "labelLimit": 0}
    x = {
        "field": "date",
        "type": "temporal",
        "title": t("date of the release"),
        "scale": {"type": "utc", "padding": 12},
    }
    scale = {"type": "log", "nice": False, "padding": 10}
    y = {"type": "quantitative", "title": t("times as fast (log scale)"), "scale": scale, "axis": {"format": "~g"}}
    series = {"field": "suite", "type": "nominal"}
    shared = {"x": x, "color": {**series, "scale": colours, "legend": legend}}
    value = {**shared, "y": {**y, "field": "value"}}
    layers = [
        figures.once(figures.REFERENCE, {"y": {"datum": 1}}),
        figures.layer(
            {"type": "line", "strokeWidth": 1.5},
            {**value, "strokeDash": {**series, "scale": dashes, "legend": legend}},
        ),
        figures.layer(
            {"type": "rule", "opacity": 0.5},
            {**shared, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            "isValid(datum.low)",
        ),
        figures.layer(figures.POINT, value),
    ]
    return {
        **figures.data_of(points),
        "layer": layers,
        "width": 2 * figures.PANEL_WIDTH,
        "height": figures.PANEL_HEIGHT,
    }
