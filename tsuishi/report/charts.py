"""Charts: frames in, SVG out, the same SVG for the same frame.

Text and lines take the colour of the text around them (currentColor), so one SVG reads on white and on dark.
Colours are Okabe and Ito's (the blue a little lighter, for dark pages), which are told apart with any kind of colour
vision; shapes say it a second time.
"""

import re
from typing import Any, NamedTuple

import altair as alt
import pandas as pd
import vl_convert

from tsuishi.quantities import QUANTITIES
from tsuishi.report.sweeps import SCIPY, Sweep, published_name

PALETTE = ("#1F84C9", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
# Of ours: by variant; SciPy has none.
SCIPY_DASH = [3, 3]
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [12, 5], [5, 2, 2, 2, 2, 2])
# Published numbers are grey and dashed: they are not ours.
PUBLISHED_GREYS = ("#808080", "#A0A0A0", "#707070", "#909090")
PUBLISHED_SHAPES = ("diamond", "cross", "triangle-left", "triangle-right")
PUBLISHED_DASHES = ([6, 3], [2, 2], [8, 3, 2, 3], [12, 4])

PANEL_WIDTH, PANEL_HEIGHT = 310, 230
MOST_TICKS = 600
_STARTING = r"^(.*_)?(first_step|second_step|warm_up)$"
_AXIS_TITLES = {"devices": "towers", "batch_size": "batch size, images", "filter_size": "filter size, pixels"}


def sweep_chart(points: pd.DataFrame, sweep: Sweep, series: list[str], hardware: list[str]) -> alt.TopLevelMixin:
    """Panels side by side with one y scale.

    `series`: the environments, and `hardware`: all there are, so that each looks the same on every chart.
    """
    unit = QUANTITIES[sweep.quantities[0]].unit
    measured = points[points["mark"] != "fit"]
    logarithmic = unit == "s"
    x = alt.X("x:Q").title(_AXIS_TITLES.get(sweep.axis, sweep.axis.replace("_", " ")))
    x = x.axis(values=sorted({int(value) for value in measured["x"].dropna()}), format="d")
    scale: dict[str, Any] = {"type": "log", "base": 2} if sweep.axis == "batch_size" else {"zero": False}
    x = x.scale(nice=False, padding=12, **scale)
    y = alt.Y("y:Q").title(f"seconds{' (log scale)' if logarithmic else ''}" if unit == "s" else unit)
    y = y.scale(type="log", nice=True).axis(format="~g", tickCount=6) if logarithmic else y.scale(zero=True)
    styles = _styles(measured, series, list(map(published_name, hardware)))
    base = alt.Chart(points).encode(y=y, color=styles["color"])
    lines = base.transform_filter("!datum.rule")
    layers = [
        lines.transform_filter("datum.mark != 'point'")
        .mark_line(strokeWidth=2)
        .encode(x=x, strokeDash=styles["strokeDash"]),
        lines.transform_filter("isValid(datum.low)").mark_rule(opacity=0.6).encode(x=x, y=_y2(y), y2="high"),
        lines.transform_filter("datum.mark != 'fit'")
        .mark_point(filled=True, opacity=1, size=55)
        .encode(x=x, shape=styles["shape"]),
        base.transform_filter("datum.rule").mark_rule(strokeWidth=2).encode(strokeDash=styles["strokeDash"]),
    ]
    panels = [QUANTITIES[quantity].label for quantity in sweep.quantities]
    present = [panel for panel in panels if panel in set(points["panel"])]
    heads = alt.Header(title=None, labelFontSize=13, labelColor="currentColor")
    width = {1: 2 * PANEL_WIDTH, 2: PANEL_WIDTH}.get(len(present), PANEL_WIDTH * 2 // 3)
    drawn = alt.layer(*layers).properties(width=width, height=PANEL_HEIGHT)
    return drawn.facet(alt.Facet("panel:N", sort=present, header=heads))


def _y2(y: Any) -> Any:
    """The same y axis for the lower end of a bar."""
    bar = y.copy()
    bar.shorthand = "low:Q"
    return bar


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

    Where there is one variant, shape says a second time whose. SciPy is dotted. What is published is grey and dashed.
    """
    owner = row.whose.removesuffix(SCIPY)
    place = places.index(owner)
    number = variants.index(row.variant) if row.variant in variants else 0
    if row.published:
        either = place + number
        shape, dash = PUBLISHED_SHAPES[either % len(PUBLISHED_SHAPES)], PUBLISHED_DASHES[either % len(PUBLISHED_DASHES)]
        return Look(True, place, number, row.series, PUBLISHED_GREYS[place % len(PUBLISHED_GREYS)], shape, dash)
    shape = SHAPES[(number if len(variants) > 1 else place) % len(SHAPES)]
    dash = SCIPY_DASH if owner != row.whose else DASHES[number % len(DASHES)]
    return Look(False, place, number, row.series, PALETTE[place % len(PALETTE)], shape, dash)


def _styles(points: pd.DataFrame, environments: list[str], hardware: list[str]) -> dict[str, Any]:
    """Colour, shape and dash by series, merged into one legend."""
    looks = []
    for published, places in ((False, environments), (True, hardware)):
        rows = points[points["published"] == published].drop_duplicates("series")
        variants = list(dict.fromkeys(rows.loc[~rows["rule"], "variant"]))
        looks += [_look(row, places, variants) for row in rows.itertuples()]
    looks.sort()
    legend = alt.Legend(title=None, orient="bottom", columns=2, labelLimit=0, symbolOpacity=1)

    def scale(values: list[Any]) -> alt.Scale:
        return alt.Scale(domain=[look.series for look in looks], range=values)

    return {
        "color": alt.Color("series:N", scale=scale([look.colour for look in looks]), legend=legend),
        "shape": alt.Shape("series:N", scale=scale([look.shape for look in looks]), legend=legend),
        "strokeDash": alt.StrokeDash("series:N", scale=scale([look.dash for look in looks]), legend=legend),
    }


def telemetry_chart(telemetry: pd.DataFrame, phases: list[dict[str, Any]]) -> alt.TopLevelMixin | None:
    """One trial over time: utilisation, memory and power of the host and every GPU; its phases as bands behind.

    None where nothing was sampled. Of a long trial every k-th tick is drawn, at most MOST_TICKS of them.
    """
    panels = {
        "utilisation, %": [("utilisation_percent", 1.0)],
        "memory, GiB": [("process_memory_mib", 1 / 1024), ("memory_used_mib", 1 / 1024)],
        "power, W": [("power_w", 1.0)],
    }
    ticks = sorted(set(telemetry["elapsed_s"]))
    kept = telemetry[telemetry["elapsed_s"].isin(ticks[:: len(ticks) // MOST_TICKS + 1])]
    bands = pd.DataFrame(phases, columns=["name", "begin_s", "end_s"]).astype({"begin_s": float, "end_s": float})
    end_s = max([*ticks, *bands["begin_s"], *bands["end_s"].dropna()], default=0.0)
    bands["end_s"] = bands["end_s"].fillna(end_s)
    bands["name"] = bands["name"].str.replace(_STARTING, "starting, warming up", regex=True)
    charts = []
    for title, columns in panels.items():
        parts = [kept.assign(value=kept[name] * factor) for name, factor in columns]
        values = pd.concat([part[["elapsed_s", "device", "value"]].dropna() for part in parts])
        if len(values):
            charts.append(_over_time(values, bands, title, end_s))
    return alt.vconcat(*charts, spacing=12).resolve_scale(color="shared") if charts else None


def _over_time(values: pd.DataFrame, bands: pd.DataFrame, title: str, end_s: float) -> alt.LayerChart:
    devices = sorted(set(values["device"]), key=lambda device: (device != "host", device))
    names = list(dict.fromkeys(bands["name"]))
    legend = alt.Legend(title=None, orient="bottom", columns=4, labelLimit=0)
    x = alt.X("elapsed_s:Q").title("seconds since the trial started").scale(domain=[0, end_s], nice=False)
    y = alt.Y("value:Q").title(title).scale(zero=True, **({"domain": [0, 100]} if title.endswith("%") else {}))
    # Bands begin with the palette's other end, so that a phase and a device never look the same.
    colours = [PALETTE[-1 - index % len(PALETTE)] for index in range(len(names))]
    band = (
        alt.Chart(bands)
        .mark_rect(opacity=0.22)
        .encode(
            x=alt.X("begin_s:Q").scale(domain=[0, end_s], nice=False),
            x2="end_s",
            fill=alt.Fill("name:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
        )
    )
    dashes, hues = [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2]], ["currentColor", *PALETTE[:3]]
    line = (
        alt.Chart(values)
        .mark_line(strokeWidth=1.6)
        .encode(
            x=x,
            y=y,
            color=alt.Color("device:N", scale=alt.Scale(domain=devices, range=hues), legend=legend),
            strokeDash=alt.StrokeDash("device:N", scale=alt.Scale(domain=devices, range=dashes), legend=legend),
        )
    )
    # A legend without an entry would have no size, and Vega then gives none to the chart.
    layers = [band, line] if names else [line]
    return alt.layer(*layers).properties(width=2 * PANEL_WIDTH, height=110)


def specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The chart as a Vega-Lite specification that holds its data. Unvalidated: validation takes longer than drawing."""
    text = {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 12, "titleFontSize": 12}
    lines = {"gridColor": "currentColor", "domainColor": "currentColor", "tickColor": "currentColor"}
    faint = {"gridOpacity": 0.14, "domainOpacity": 0.5, "tickOpacity": 0.5}
    config = {
        "background": None,
        # Arial and its metric twins are nearly everywhere, so that text is as wide as it was reckoned to be.
        "font": "Arial, Helvetica, Liberation Sans, sans-serif",
        "view": {"stroke": None},
        "axis": {**text, **lines, **faint, "titleFontWeight": 400},
        "legend": text,
    }
    return {**chart.to_dict(validate=False), "config": config}


def to_svg(specification: dict[str, Any], name: str) -> str:
    """A specification as SVG text. `name` goes in front of its ids, so that several SVGs live in one page."""
    svg = vl_convert.vegalite_to_svg(specification)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
