"""Figures: the look that all charts share, the parts of charts, and the chart of a sweep.

Text and lines take the colour of the text around them (currentColor), so one SVG reads on white and on dark pages.
The colours are Okabe and Ito's (the blue is a little lighter, for dark pages): people with any kind of colour vision
can distinguish them. Shapes repeat the colours.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tsuishi.base.language import t
from tsuishi.report.charts.sweeps import Points, Sweep
from tsuishi.report.parts.blocks import Chart
from tsuishi.report.parts.shown_units import Unit, readable
from tsuishi.report.parts.suite_cases import published_name
from tsuishi.report.parts.wording import label, unit_of, vocabulary_in_use

PALETTE = ("#1F84C9", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
# A measured line has the dash of its variant. A level has no variant, so it has its own dash.
LEVEL_DASH = [3, 3]
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [12, 5], [5, 2, 2, 2, 2, 2])
# Published numbers are grey and dashed: they were not measured here.
PUBLISHED_GREYS = ("#808080", "#A0A0A0", "#707070", "#909090")
PUBLISHED_SHAPES = ("diamond", "cross", "triangle-left", "triangle-right")
PUBLISHED_DASHES = ([6, 3], [2, 2], [8, 3, 2, 3], [12, 4])

PANEL_WIDTH, PANEL_HEIGHT = 310, 230

_TEXT = {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 12, "titleFontSize": 12}
_LINES = {"gridColor": "currentColor", "domainColor": "currentColor", "tickColor": "currentColor"}
_FAINT = {"gridOpacity": 0.14, "domainOpacity": 0.5, "tickOpacity": 0.5}
# The titles of panels.
HEAD = {"title": None, "labelFontSize": 13, "labelColor": "currentColor"}
HEAD_AT_START = {**HEAD, "labelAnchor": "start"}
# A value that others are compared with, 1 for ratios.
REFERENCE = {"type": "rule", "color": "currentColor", "strokeDash": [4, 3]}
_ZERO = {"type": "rule", "color": "currentColor", "opacity": 0.5}
# Below a chart: the names of its series.
LEGEND = {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 0}
POINT = {"type": "point", "filled": True, "opacity": 1, "size": 55}
CONFIG: dict[str, Any] = {
    "background": None,
    # A screen reader has the caption and the tables; a label for every mark would be noise.
    "aria": False,
    # Arial and its metric twins are nearly everywhere, so text has the calculated width.
    "font": "Arial, Helvetica, Liberation Sans, sans-serif",
    "view": {"stroke": None},
    "axis": {**_TEXT, **_LINES, **_FAINT, "titleFontWeight": 400},
    "legend": _TEXT,
}


def sweep_chart(points: Points, sweep: Sweep, series: list[str], hardware: list[str]) -> dict[str, Any]:
    """Panels with the same y scale, as a Vega-Lite specification: a row of them, or rows of two or three.

    `series`: all environments; `hardware`: all published hardware. So each has the same look on every chart.
    """
    measured = [point for point in points if point["mark"] != "fit"]
    styles = _styles(points, series, list(map(published_name, hardware)), whole=bool(sweep.scale))
    x = _sweep_x(measured, sweep)
    panels = list(dict.fromkeys(point["panel"] for point in points))
    columns = 2 if len(panels) in (2, 4) else min(3, len(panels))
    height = PANEL_HEIGHT if len(panels) <= columns else PANEL_HEIGHT - 70
    # The axes of a source's picture are as the source drew them.
    data_unit = unit_of(sweep.quantities[0])
    unit = Unit(data_unit) if sweep.scale else readable(data_unit, (point["y"] for point in measured))
    y = _sweep_y(sweep, unit.name)
    banded = any(point["mark"] == "fit" and point["low"] is not None for point in points)
    layers = [*([_band(x, y, styles)] if banded else ()), *_curves(x, y, styles)]
    curves = {
        "facet": {"field": "panel", "type": "nominal", "sort": panels, "header": HEAD},
        "columns": columns,
        "spec": {"layer": layers, "width": 2 * PANEL_WIDTH // columns, "height": height},
    }
    # The x of a chart are whole numbers only if every point has a whole number.
    whole = all(isinstance(point["x"], int) for point in points)
    values, shown = ("y", "low", "high"), ("panel", "series", "mark", "rule", "residual")
    data = data_of(
        {"x": x if whole or x is None else float(x)}
        | {name: unit.of(point[name]) for name in values}
        | {name: point[name] for name in shown}
        for point in points
        for x in [point["x"]]
    )
    if all(point["residual"] is None for point in points):
        return {**data, **curves}
    shared = {"resolve": {"scale": {"color": "shared", "shape": "shared", "strokeDash": "shared"}}}
    return {**data, "vconcat": [curves, _residuals(x, styles)], "spacing": 8, **shared}


def _sweep_x(measured: Points, sweep: Sweep) -> dict[str, Any]:
    """The x channel: the sweep's axis, with a tick at every measured value."""
    axis = vocabulary_in_use().axis(sweep.axis)
    scale: dict[str, Any] = {"type": "log", "base": 2} if axis.is_size else {"zero": False}
    return {
        "field": "x",
        "type": "quantitative",
        "title": axis.drawn_as,
        "axis": {
            "values": sorted({*sweep.ticks, *(point["x"] for point in measured if point["x"] is not None)}),
            "format": "d",
        },
        "scale": {"nice": False, "padding": 12, **scale},
    }


def _sweep_y(sweep: Sweep, unit: str) -> dict[str, Any]:
    """The y channel: the sweep's quantities in this unit; times have a log scale."""
    y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": unit, "scale": {"zero": True}}
    if (sweep.scale or ("log" if unit_of(sweep.quantities[0]) == "s" else "linear")) == "log":
        # A nice scale would end at powers of ten, and most of the panel would be empty.
        log = {"type": "log", "nice": False, "padding": 10}
        title = t("{unit} (log scale)", unit=unit)
        y |= {"title": title, "scale": log, "axis": {"format": ",.3~r", "tickCount": 6}}
    elif sweep.scale and unit == "1":
        # Accuracies lie close together, far from 0.
        y |= {"title": label(sweep.quantities[0]), "scale": {"zero": False, "padding": 10}}
    return y


def _curves(x: dict[str, Any], y: dict[str, Any], styles: dict[str, Any]) -> list[dict[str, Any]]:
    """The layers of a panel: lines, bars for the spread, points, and rules for levels."""
    colour, shape, dash = ({name: styles[name]} for name in ("color", "shape", "strokeDash"))
    low = {**y, "field": "low"}
    return [
        layer(
            {"type": "line", "strokeWidth": 2},
            {"x": x, "y": y, **colour, **dash},
            "!datum.rule && datum.mark != 'point'",
        ),
        layer(
            {"type": "rule", "opacity": 0.6},
            {"x": x, "y": low, "y2": {"field": "high"}, **colour},
            "!datum.rule && datum.mark != 'fit' && isValid(datum.low)",
        ),
        layer(POINT, {"x": x, "y": y, **colour, **shape}, "!datum.rule && datum.mark != 'fit'"),
        layer({"type": "rule", "strokeWidth": 2}, {"y": y, **colour, **dash}, "datum.rule"),
    ]


def _band(x: dict[str, Any], y: dict[str, Any], styles: dict[str, Any]) -> dict[str, Any]:
    """The layer of the intervals of fitted lines, which lies behind the others."""
    encoding = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": styles["color"]}
    return layer({"type": "area", "opacity": 0.25}, encoding, "datum.mark == 'fit' && isValid(datum.low)")


def _residuals(x: dict[str, Any], styles: dict[str, Any]) -> dict[str, Any]:
    """A panel below the curves: the distance of each point from its line, in %."""
    colour, shape, dash = ({name: styles[name]} for name in ("color", "shape", "strokeDash"))
    y = {"field": "residual", "type": "quantitative", "title": t("off the line, %"), "axis": {"tickCount": 5}}
    return {
        "transform": [{"filter": "isValid(datum.residual)"}],
        "layer": [
            {"data": {"values": [{}]}, **layer(_ZERO, {"y": {"datum": 0}})},
            layer({"type": "line", "strokeWidth": 1}, {"x": x, "y": y, **colour, **dash}),
            layer(POINT, {"x": x, "y": y, **colour, **shape}),
        ],
        "width": 2 * PANEL_WIDTH,
        "height": 90,
    }


def layer(mark: dict[str, Any], encoding: dict[str, Any], which: str = "") -> dict[str, Any]:
    """A view of a mark for each row, or for each row for which the expression `which` is true."""
    return {"mark": mark, "encoding": encoding, **({"transform": [{"filter": which}]} if which else {})}


def once(mark: dict[str, Any], encoding: dict[str, Any]) -> dict[str, Any]:
    """A view of a mark that is drawn once, for any number of rows."""
    return {**layer(mark, encoding), "transform": [{"aggregate": [{"op": "count", "as": "count"}]}]}


def data_of(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Rows as the data of a whole chart."""
    return {"data": {"name": "rows"}, "datasets": {"rows": list(rows)}}


class Look(NamedTuple):
    """The look of a series. Sorted looks are in the order of the legend."""

    published: bool
    place: int
    number: int
    series: str
    colour: str
    shape: str
    dash: list[int]


def _look(point: dict[str, Any], places: list[str], variants: list[str]) -> Look:
    """The look of a series: the colour shows its owner, by the owner's place in `places`; dash and shape its variant.

    With a single variant, the shape shows the owner too. Levels are dotted. Published series are grey and dashed.
    """
    series, variant = point["series"], point["variant"]
    place = places.index(point["owner"])
    number = variants.index(variant) if variant in variants else 0
    if point["published"]:
        index = place + number
        shape, dash = PUBLISHED_SHAPES[index % len(PUBLISHED_SHAPES)], PUBLISHED_DASHES[index % len(PUBLISHED_DASHES)]
        return Look(True, place, number, series, PUBLISHED_GREYS[place % len(PUBLISHED_GREYS)], shape, dash)
    shape = SHAPES[number % len(SHAPES)] if len(variants) > 1 else shape_of(place)
    dash = LEVEL_DASH if point["owner"] != point["whose"] else DASHES[number % len(DASHES)]
    return Look(False, place, number, series, PALETTE[place % len(PALETTE)], shape, dash)


def _styles(points: Points, environments: list[str], hardware: list[str], whole: bool = False) -> dict[str, Any]:
    """The channels of colour, shape and dash by series, with a shared legend. whole: every name has its own line."""
    looks = []
    for published, places in ((False, environments), (True, hardware)):
        some = [point for point in points if point["published"] == published]
        variants = list(dict.fromkeys(point["variant"] for point in some if not point["rule"]))
        first = {point["series"]: point for point in reversed(some)}
        looks += [_look(point, places, variants) for point in first.values()]
    looks.sort()
    legend = {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 400, "symbolOpacity": 1}
    names = [look.series for look in looks]
    if whole:
        legend |= {"columns": 1, "labelLimit": 2 * PANEL_WIDTH}
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
    """The shape of the environment at this place: environments of the same colour have different shapes."""
    return SHAPES[(place + place // len(PALETTE)) % len(SHAPES)]


def colours(names: Sequence[str], environments: list[str]) -> dict[str, list[str]]:
    """The scale of the colours of series."""
    return {"domain": [*names], "range": [series_colour(name, environments) for name in names]}


def series_colour(name: str, environments: list[str]) -> str:
    """An environment's colour, which is the same on every chart; a published series is grey."""
    return PALETTE[environments.index(name) % len(PALETTE)] if name in environments else PUBLISHED_GREYS[0]


def block(chart: dict[str, Any], title: str, name: str, caption: str) -> Chart:
    """A chart as a block of the page. name: that of its file, where other characters become hyphens."""
    return Chart(title, re.sub(r"[^A-Za-z0-9_-]+", "-", name), caption, specification(chart))


def specification(chart: dict[str, Any]) -> dict[str, Any]:
    """The complete specification of a chart, with the look that all charts share, and what its own `config` adds.

    Specifications are plain dictionaries without validation: Altair takes as long to make a specification as Vega takes
    to draw it, and validation takes longer still.
    """
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        **chart,
        "config": {**CONFIG, **chart.get("config", {})},
    }
