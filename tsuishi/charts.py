"""Charts: frames in, SVG out, the same SVG for the same frame.

Text and lines take the colour of the text around them (currentColor), so one SVG reads on white and on dark.
Colours are Okabe and Ito's (the blue a little lighter, for dark pages), which are told apart with any kind of colour
vision; shapes say it a second time.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import altair as alt
import pandas as pd
import vl_convert

from tsuishi.published import QUANTITIES, Number

PALETTE = ("#1F84C9", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
# Published numbers are grey and dashed: they are not ours.
PUBLISHED_GREYS = ("#808080", "#A0A0A0", "#707070", "#909090")
PUBLISHED_SHAPES = ("diamond", "cross", "triangle-left", "triangle-right")
PUBLISHED_DASHES = ([6, 3], [2, 2], [8, 3, 2, 3], [12, 4])

# Added to the environment SciPy ran in: the same colour, dotted.
SCIPY = ", SciPy"

PANEL_WIDTH, PANEL_HEIGHT = 310, 230
MOST_TICKS = 600
_STARTING = r"^(.*_)?(first_step|second_step|warm_up)$"
_AXIS_TITLES = {"devices": "towers", "batch_size": "batch size, images", "filter_size": "filter size, pixels"}


class Sweep(NamedTuple):
    """A chart over one axis: a panel per quantity (in the same unit), a line per environment."""

    title: str
    axis: str
    quantities: tuple[str, ...]


# What is drawn of a suite that has these quantities at two or more values of the axis.
SWEEPS = (
    Sweep("First and later runs", "devices", ("first_run_s", "later_run_s")),
    Sweep("Transfer and compute", "devices", ("host_to_device_s", "compute_s", "device_to_host_s")),
    Sweep("Step", "batch_size", ("step_s",)),
    Sweep("Throughput", "batch_size", ("throughput_images_per_s",)),
    Sweep("Epoch of 50,000 images", "batch_size", ("first_epoch_s", "median_epoch_s")),
)

# Axes that tell one line of a chart from another, not one chart from another.
_WITHIN_CHART = ("suite", "protocol", "implementation")


def sweep_points(
    cases: pd.DataFrame,
    axes: dict[str, dict[str, Any]],
    numbers: Iterable[Number],
    titles: dict[str, str],
    sweep: Sweep,
) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """The points of a sweep, one frame per variant: the axes that neither turn nor tell lines apart.

    cases: of one suite and protocol, as estimates.case_estimates. axes: by case id. titles: of published hardware, by
    Number.key. Columns of a frame: series, published, rule, panel, x, y, low, high. A rule is a level without x: SciPy
    runs on one CPU, however many towers the others have, and is drawn with every variant that has all its axes. A
    variant in which no line of ours turns is left out.
    """
    variants: dict[tuple[tuple[str, Any], ...], list[dict[str, Any]]] = {}
    rules: list[tuple[dict[str, Any], dict[str, Any]]] = []
    shared: dict[str, Any] = {}
    for case in cases[cases["quantity"].isin(sweep.quantities)].to_dict("records"):
        of = axes[case["case_id"]]
        variant = {name: value for name, value in of.items() if name not in (*_WITHIN_CHART, sweep.axis)}
        if of.get("implementation") == "scipy":
            rules.append((variant, {**_point(case, None), "series": case["column"] + SCIPY, "rule": True}))
        elif sweep.axis in of:
            shared = {"suite": of["suite"], "protocol": of["protocol"]}
            variants.setdefault(tuple(variant.items()), []).append(_point(case, of[sweep.axis]))
    found = []
    for key, points in sorted(variants.items(), key=str):
        given = {**shared, **dict(key)}
        points += [point for variant, point in rules if variant.items() <= given.items()]
        points += [point for number in numbers for point in _published_points(number, given, titles, sweep)]
        frame = pd.DataFrame(points).astype({"low": float, "high": float})
        if _turns(frame):
            found.append((dict(key), frame))
    return found


def _point(case: dict[Any, Any], x: Any) -> dict[str, Any]:
    """A point of ours at x, with its spread where it has one."""
    low, high = (case["low"], case["high"]) if case["spread_kind"] else (None, None)
    what = {"series": case["column"], "published": False, "rule": False, "panel": QUANTITIES[case["quantity"]].label}
    return {**what, "x": x, "y": case["estimate"], "low": low, "high": high}


def _published_points(
    number: Number, variant: dict[str, Any], titles: dict[str, str], sweep: Sweep
) -> Iterable[dict[str, Any]]:
    """A published number as a point of every panel it belongs to."""
    rule = number.axes.get("implementation") == "scipy"
    fixed = {name: value for name, value in number.axes.items() if name not in (sweep.axis, "implementation")}
    if number.quantity not in sweep.quantities or any(variant.get(name) != value for name, value in fixed.items()):
        return
    if rule or sweep.axis in number.axes:
        # The source compares its SciPy figure with first runs too, so the level is drawn through every panel.
        for quantity in sweep.quantities if rule else (number.quantity,):
            series = _published_name(titles[number.key])
            base = {"series": series, "published": True, "rule": rule, "panel": QUANTITIES[quantity].label}
            yield {**base, "x": number.axes.get(sweep.axis), "y": number.value, "low": None, "high": None}


def _published_name(hardware: str) -> str:
    return f"{hardware} (published)"


def _turns(points: pd.DataFrame) -> bool:
    """Whether some line of ours has two points or more."""
    ours = points[~points["published"] & ~points["rule"]]
    return bool((ours.groupby(["series", "panel"])["x"].nunique() > 1).any())


def sweep_chart(points: pd.DataFrame, sweep: Sweep, series: list[str], hardware: list[str]) -> alt.TopLevelMixin:
    """Panels side by side with one y scale.

    `series` of ours and `hardware` of published ones: all there are, so that each looks the same on every chart.
    """
    unit = QUANTITIES[sweep.quantities[0]].unit
    published = [name for name in map(_published_name, hardware) if name in set(points["series"])]
    every = [*series, *(name + SCIPY for name in series)]
    ours = [name for name in every if name in set(points["series"])]
    logarithmic = unit == "s"
    x = alt.X("x:Q").title(_AXIS_TITLES.get(sweep.axis, sweep.axis.replace("_", " ")))
    x = x.axis(values=sorted({int(value) for value in points["x"].dropna()}), format="d")
    scale: dict[str, Any] = {"type": "log", "base": 2} if sweep.axis == "batch_size" else {"zero": False}
    x = x.scale(nice=False, padding=12, **scale)
    y = alt.Y("y:Q").title(f"seconds{' (log scale)' if logarithmic else ''}" if unit == "s" else unit)
    y = y.scale(type="log", nice=True).axis(format="~g", tickCount=6) if logarithmic else y.scale(zero=True)
    styles = _styles(series, ours, list(map(_published_name, hardware)), published)
    base = alt.Chart(points).encode(y=y, color=styles["color"])
    lines = base.transform_filter("!datum.rule")
    layers = [
        lines.mark_line(strokeWidth=2).encode(x=x, strokeDash=styles["strokeDash"]),
        lines.transform_filter("isValid(datum.low)").mark_rule(opacity=0.6).encode(x=x, y=_y2(y), y2="high"),
        lines.mark_point(filled=True, opacity=1, size=55).encode(x=x, shape=styles["shape"]),
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


def _styles(series: list[str], ours: list[str], hardware: list[str], published: list[str]) -> dict[str, Any]:
    """Colour, shape and dash by series, merged into one legend; each by its place among all there are."""

    def scale(own: tuple[Any, ...], foreign: tuple[Any, ...]) -> alt.Scale:
        values = [own[series.index(name.removesuffix(SCIPY)) % len(own)] for name in ours]
        values += [foreign[hardware.index(name) % len(foreign)] for name in published]
        return alt.Scale(domain=[*ours, *published], range=values)

    dashes = [[3, 3] if name.endswith(SCIPY) else [1, 0] for name in ours]
    dashes += [PUBLISHED_DASHES[hardware.index(name) % len(PUBLISHED_DASHES)] for name in published]
    legend = alt.Legend(title=None, orient="bottom", columns=2, labelLimit=0, symbolOpacity=1)
    return {
        "color": alt.Color("series:N", scale=scale(PALETTE, PUBLISHED_GREYS), legend=legend),
        "shape": alt.Shape("series:N", scale=scale(SHAPES, PUBLISHED_SHAPES), legend=legend),
        "strokeDash": alt.StrokeDash(
            "series:N", scale=alt.Scale(domain=[*ours, *published], range=dashes), legend=legend
        ),
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
    return alt.layer(band, line).properties(width=2 * PANEL_WIDTH, height=110)


def to_svg(chart: alt.TopLevelMixin, name: str) -> str:
    """The chart as SVG text. `name` goes in front of its ids, so that several SVGs live in one page."""
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
    specification = chart.to_dict(validate=False)
    specification["config"] = config
    svg = vl_convert.vegalite_to_svg(specification)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
