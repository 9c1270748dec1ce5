"""Charts: frames in, SVG out, the same SVG for the same frame.

Text and lines take the colour of the text around them (currentColor), so one SVG reads on white and on dark.
Colours are Okabe and Ito's (the blue a little lighter, for dark pages), which are told apart with any kind of colour
vision; shapes say it a second time.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from tsuishi.base.language import t
from tsuishi.estimates.gpu_use import device_order
from tsuishi.report.charts.sweeps import Sweep
from tsuishi.report.parts.blocks import Chart
from tsuishi.report.parts.comparison import published_name
from tsuishi.report.parts.wording import label, unit_of, words
from tsuishi.results.facts import Phase
from tsuishi.results.frames import dict_rows, is_nothing, named_rows

PALETTE = ("#1F84C9", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
# Of ours: by variant; levels have none.
LEVEL_DASH = [3, 3]
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [12, 5], [5, 2, 2, 2, 2, 2])
# Published numbers are grey and dashed: they are not ours.
PUBLISHED_GREYS = ("#808080", "#A0A0A0", "#707070", "#909090")
PUBLISHED_SHAPES = ("diamond", "cross", "triangle-left", "triangle-right")
PUBLISHED_DASHES = ([6, 3], [2, 2], [8, 3, 2, 3], [12, 4])

PANEL_WIDTH, PANEL_HEIGHT = 310, 230
MOST_TICKS = 600
_STARTING = r"^(.*_)?(first_step|second_step|warm_up)$"

_TEXT = {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 12, "titleFontSize": 12}
_LINES = {"gridColor": "currentColor", "domainColor": "currentColor", "tickColor": "currentColor"}
_FAINT = {"gridOpacity": 0.14, "domainOpacity": 0.5, "tickOpacity": 0.5}
# Of panels.
HEAD = {"title": None, "labelFontSize": 13, "labelColor": "currentColor"}
HEAD_AT_START = {**HEAD, "labelAnchor": "start"}
_ZERO = {"type": "rule", "color": "currentColor", "opacity": 0.5}
CONFIG: dict[str, Any] = {
    "background": None,
    # What a chart shows is in its caption and its tables; marks one by one would be noise.
    "aria": False,
    # Arial and its metric twins are nearly everywhere, so that text is as wide as it was reckoned to be.
    "font": "Arial, Helvetica, Liberation Sans, sans-serif",
    "view": {"stroke": None},
    "axis": {**_TEXT, **_LINES, **_FAINT, "titleFontWeight": 400},
    "legend": _TEXT,
}


def sweep_chart(points: pd.DataFrame, sweep: Sweep, series: list[str], hardware: list[str]) -> dict[str, Any]:
    """Panels side by side with one y scale, as a Vega-Lite specification.

    `series`: the environments, and `hardware`: all there are, so that each looks the same on every chart.
    """
    unit, axis = unit_of(sweep.quantities[0]), words().axis(sweep.axis)
    measured = points[points["mark"] != "fit"]
    scale: dict[str, Any] = {"type": "log", "base": 2} if axis.is_size else {"zero": False}
    x = {
        "field": "x",
        "type": "quantitative",
        "title": axis.drawn_as,
        "axis": {"values": sorted({int(value) for value in measured["x"].dropna()}), "format": "d"},
        "scale": {"nice": False, "padding": 12, **scale},
    }
    y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": unit, "scale": {"zero": True}}
    if unit == "s":
        # Nice would be powers of ten, and most of the panel empty.
        log = {"type": "log", "nice": False, "padding": 10}
        y |= {"title": t("seconds (log scale)"), "scale": log, "axis": {"format": "~g", "tickCount": 6}}
    styles = _styles(measured, series, list(map(published_name, hardware)))
    colour, shape, dash = ({name: styles[name]} for name in ("color", "shape", "strokeDash"))
    line, point = {"type": "line", "strokeWidth": 2}, {"type": "point", "filled": True, "opacity": 1, "size": 55}
    low = {**y, "field": "low"}
    layers = [
        layer(line, {"x": x, "y": y, **colour, **dash}, "!datum.rule && datum.mark != 'point'"),
        layer(
            {"type": "rule", "opacity": 0.6},
            {"x": x, "y": low, "y2": {"field": "high"}, **colour},
            "!datum.rule && isValid(datum.low)",
        ),
        layer(point, {"x": x, "y": y, **colour, **shape}, "!datum.rule && datum.mark != 'fit'"),
        layer({"type": "rule", "strokeWidth": 2}, {"y": y, **colour, **dash}, "datum.rule"),
    ]
    panels = list(map(label, sweep.quantities))
    present = [panel for panel in panels if panel in set(points["panel"])]
    width = {1: 2 * PANEL_WIDTH, 2: PANEL_WIDTH}.get(len(present), PANEL_WIDTH * 2 // 3)
    faceted = {
        "facet": {"field": "panel", "type": "nominal", "sort": present, "header": HEAD},
        "spec": {"layer": layers, "width": width, "height": PANEL_HEIGHT},
    }
    drawn = points[["x", "y", "low", "high", "panel", "series", "mark", "rule", "residual"]]
    data = data_of(drawn)
    if not points["residual"].notna().any():
        return {**data, **faceted}
    # Below the curves, how far each point is off its line: a kink is another algorithm.
    off = {"field": "residual", "type": "quantitative", "title": t("off the line, %"), "axis": {"tickCount": 5}}
    residuals = {
        "transform": [{"filter": "isValid(datum.residual)"}],
        "layer": [
            {"data": {"values": [{}]}, **layer(_ZERO, {"y": {"datum": 0}})},
            layer({"type": "line", "strokeWidth": 1}, {"x": x, "y": off, **colour, **dash}),
            layer(point, {"x": x, "y": off, **colour, **shape}),
        ],
        "width": 2 * PANEL_WIDTH,
        "height": 90,
    }
    shared = {"resolve": {"scale": {"color": "shared", "shape": "shared", "strokeDash": "shared"}}}
    return {**data, "vconcat": [faceted, residuals], "spacing": 8, **shared}


def layer(mark: dict[str, Any], encoding: dict[str, Any], which: str = "") -> dict[str, Any]:
    """A view of one mark, of the rows for which an expression holds."""
    return {"mark": mark, "encoding": encoding, **({"transform": [{"filter": which}]} if which else {})}


def once(mark: dict[str, Any], encoding: dict[str, Any]) -> dict[str, Any]:
    """A view of one mark that is drawn once, however many rows there are."""
    return {**layer(mark, encoding), "transform": [{"aggregate": [{"op": "count", "as": "count"}]}]}


def data_of(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame as the data of a whole chart."""
    return {"data": {"name": "rows"}, "datasets": {"rows": rows_of(frame)}}


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame as Vega's data: null where there is nothing."""
    return [{name: None if is_nothing(value) else value for name, value in row.items()} for row in dict_rows(frame)]


class Look(NamedTuple):
    """How a series is drawn; series sort as in the legend."""

    published: bool
    place: int
    number: int
    series: str
    colour: str
    shape: str
    dash: list[int]


def _look(row: Any, places: list[str], variants: list[str]) -> Look:
    """Colour says whose it is, by its place among all there are; dash says which variant, and shape does.

    Where there is one variant, shape says a second time whose. Levels are dotted. What is published is grey and dashed.
    """
    place = places.index(row.owner)
    number = variants.index(row.variant) if row.variant in variants else 0
    if row.published:
        either = place + number
        shape, dash = PUBLISHED_SHAPES[either % len(PUBLISHED_SHAPES)], PUBLISHED_DASHES[either % len(PUBLISHED_DASHES)]
        return Look(True, place, number, row.series, PUBLISHED_GREYS[place % len(PUBLISHED_GREYS)], shape, dash)
    shape = SHAPES[number % len(SHAPES)] if len(variants) > 1 else shape_of(place)
    dash = LEVEL_DASH if row.owner != row.whose else DASHES[number % len(DASHES)]
    return Look(False, place, number, row.series, PALETTE[place % len(PALETTE)], shape, dash)


def _styles(points: pd.DataFrame, environments: list[str], hardware: list[str]) -> dict[str, Any]:
    """Colour, shape and dash by series, merged into one legend."""
    looks = []
    for published, places in ((False, environments), (True, hardware)):
        rows = points[points["published"] == published].drop_duplicates("series")
        variants = list(dict.fromkeys(rows.loc[~rows["rule"], "variant"]))
        looks += [_look(row, places, variants) for row in named_rows(rows)]
    looks.sort()
    legend = {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 400, "symbolOpacity": 1}
    names = [look.series for look in looks]
    ranges = {
        "color": [look.colour for look in looks],
        "shape": [look.shape for look in looks],
        "strokeDash": [look.dash for look in looks],
    }
    return {
        channel: {"field": "series", "type": "nominal", "scale": {"domain": names, "range": values}, "legend": legend}
        for channel, values in ranges.items()
    }


def shape_of(place: int) -> str:
    """The shape of the environment at a place among all there are: where colours begin anew, it is another one."""
    return SHAPES[(place + place // len(PALETTE)) % len(SHAPES)]


def series_colour(name: str, environments: list[str]) -> str:
    """An environment's colour, by its place among all there are: the same on every chart. Grey: published."""
    return PALETTE[environments.index(name) % len(PALETTE)] if name in environments else PUBLISHED_GREYS[0]


def block(chart: dict[str, Any], title: str, name: str, caption: str) -> Chart:
    """A chart as a block of the page. `name` becomes that of a file."""
    return Chart(title, re.sub(r"[^A-Za-z0-9_-]+", "-", name), caption, specification(chart))


def telemetry_chart(telemetry: pd.DataFrame, phases: Sequence[Phase]) -> dict[str, Any] | None:
    """One trial over time: utilisation, memory, power and clocks of host and GPUs; its phases as bands behind.

    A Vega-Lite specification; None where nothing was sampled. Of a long trial every k-th tick is drawn, at most
    MOST_TICKS of them.
    """
    panels = {
        t("utilisation, %"): telemetry["utilisation_percent"],
        t("memory, GiB"): telemetry["process_memory_mib"].fillna(telemetry["memory_used_mib"]) / 1024,
        t("power, W"): telemetry["power_w"],
        t("GPU clock, MHz"): telemetry["sm_clock_mhz"],
    }
    ticks = sorted(set(telemetry["elapsed_s"]))
    kept = telemetry["elapsed_s"].isin(ticks[:: len(ticks) // MOST_TICKS + 1])
    end_s = max([*ticks, *[phase.end_s or phase.begin_s for phase in phases]], default=0.0)
    bands = [
        {
            "name": re.sub(_STARTING, t("starting, warming up"), phase.name),
            "begin_s": phase.begin_s,
            "end_s": phase.end_s or end_s,
        }
        for phase in phases
    ]
    # Of every panel the same, since panels share their colours.
    devices = sorted(set(telemetry["device"]), key=device_order)
    datasets: dict[str, list[dict[str, Any]]] = {"phases": bands}
    drawn = []
    for title, values in panels.items():
        rows = telemetry[["elapsed_s", "device"]].assign(value=values)[kept & values.notna()]
        if len(rows):
            datasets[title] = rows_of(rows)
            drawn.append(_over_time(datasets, devices, title, end_s))
    if not drawn:
        return None
    return {"datasets": datasets, "vconcat": drawn, "spacing": 12, "resolve": {"scale": {"color": "shared"}}}


def _over_time(
    datasets: dict[str, list[dict[str, Any]]], devices: list[str], title: str, end_s: float
) -> dict[str, Any]:
    """One panel: the lines of the dataset of this title over the phases."""
    names = list(dict.fromkeys(band["name"] for band in datasets["phases"]))
    legend = {"title": None, "orient": "bottom", "columns": 4, "labelLimit": 400}
    time = {"type": "quantitative", "scale": {"domain": [0, end_s], "nice": False}}
    percent = {"domain": [0, 100]} if title.endswith("%") else {}
    # Bands begin with the palette's other end, so that a phase and a device never look the same.
    bands = {
        "x": {**time, "field": "begin_s", "title": t("seconds since the trial started")},
        "x2": {"field": "end_s"},
        "fill": {
            "field": "name",
            "type": "nominal",
            "scale": {"domain": names, "range": [PALETTE[-1 - index % len(PALETTE)] for index in range(len(names))]},
            "legend": legend,
        },
    }
    device = {"field": "device", "type": "nominal", "legend": legend}
    lines = {
        "x": {**time, "field": "elapsed_s", "title": t("seconds since the trial started")},
        "y": {"field": "value", "type": "quantitative", "title": title, "scale": {"zero": True, **percent}},
        "color": {**device, "scale": {"domain": devices, "range": ["currentColor", *PALETTE[:3]]}},
        "strokeDash": {**device, "scale": {"domain": devices, "range": [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2]]}},
    }
    band = {"data": {"name": "phases"}, **layer({"type": "rect", "opacity": 0.22}, bands)}
    line = {"data": {"name": title}, **layer({"type": "line", "strokeWidth": 1.6}, lines)}
    # A legend without an entry would have no size, and Vega then gives none to the chart.
    return {"layer": [band, line] if names else [line], "width": 2 * PANEL_WIDTH, "height": 110}


def specification(chart: dict[str, Any]) -> dict[str, Any]:
    """A chart in the look of them all. Specifications are written out: Altair takes as long for one as Vega to draw it.

    They are not validated as they are made: that takes longer still.
    """
    return {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", **chart, "config": CONFIG}
