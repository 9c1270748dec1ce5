"""The small charts of highlights: the trials of two sides, ratios with their intervals, and values over an axis."""

from collections.abc import Sequence
from typing import Any

from tsuishi.report.charts import figures
from tsuishi.report.parts.wording import header, shown_in
from tsuishi.specs.claims import Bounds

_WIDTH = 200
_LABELS = 130
_FINE = {"labelFontSize": 11, "titleFontSize": 11}
# Numbers as people write them: 20 and 0.001, never 2e+1.
_VALUES = {"format": ",.3~r", "tickCount": 4, "labelOverlap": True, "labelSeparation": 6, **_FINE}
_HIDDEN = {"ticks": False, "domain": False, "grid": False, "labelLimit": _LABELS, **_FINE}
_TICK = {"type": "tick", "thickness": 3, "size": 18}
_DOT = {"type": "point", "filled": True, "size": 40, "opacity": 0.55}
_SPREAD = {"type": "rule", "strokeWidth": 2}
_PALE = {"type": "rect", "opacity": 0.16, "color": figures.PALETTE[2]}


def trials_chart(sides: Sequence[tuple[str, Sequence[float], float]], quantity: str) -> dict[str, Any]:
    """The trials of each side as dots, with their mean as a tick, on one scale from 0 on.

    sides: name, values of trials, mean.
    """
    names = [name for name, *_ in sides]
    unit = shown_in(quantity, (mean for *_, mean in sides))
    rows: list[dict[str, Any]] = [
        {"side": name, "value": unit.of(value), "mean": None} for name, values, _ in sides for value in values
    ]
    rows += [{"side": name, "value": None, "mean": unit.of(mean)} for name, _, mean in sides]
    x = {"type": "quantitative", "title": header(quantity, unit), "scale": {"zero": True}}
    x["axis"] = {**_VALUES}
    y = {"field": "side", "type": "nominal", "title": None, "sort": names, "axis": _HIDDEN}
    colour = {"field": "side", "type": "nominal", "scale": {"domain": names, "range": list(figures.PALETTE)}}
    base = {"y": y, "color": {**colour, "legend": None}}
    layers = [
        figures.layer(_DOT, {**base, "x": {**x, "field": "value"}}, "isValid(datum.value)"),
        figures.layer(_TICK, {**base, "x": {**x, "field": "mean"}}, "isValid(datum.mean)"),
    ]
    return {**figures.data_of(rows), "layer": layers, "width": _WIDTH, "height": {"step": 22}}


def ratios_chart(
    rows: Sequence[dict[str, Any]], title: str, bounds: Bounds | None = None, logarithmic: bool = True
) -> dict[str, Any]:
    """A row for each case or environment: its value with the ends of its interval, and the region that a claim names.

    rows: name, value, low, high; without an interval, the ends are None. Published values have `published` = true.
    """
    names = [row["name"] for row in rows]
    ends = [row[end] for row in rows for end in ("value", "low", "high") if row[end] is not None]
    scale: dict[str, Any] = {"type": "log"} if logarithmic else {"zero": False}
    x = {"type": "quantitative", "title": title, "scale": {**scale, "nice": False, "padding": 10}}
    x["axis"] = {**_VALUES}
    y = {"field": "name", "type": "nominal", "title": None, "sort": names, "axis": _HIDDEN}
    colour = {
        "condition": {"test": "datum.published", "value": figures.PUBLISHED_GREYS[0]},
        "value": figures.PALETTE[0],
    }
    shape = {"condition": {"test": "datum.published", "value": "diamond"}, "value": "circle"}
    layers = with_spread("x", "value", x, {"y": y, "color": colour}, shape)
    if bounds is not None:
        layers.insert(0, _region(bounds, x, ends))
    else:
        layers.insert(0, figures.once(figures.REFERENCE, {"x": {**x, "datum": 1 if logarithmic else 0}}))
    return {**figures.data_of(rows), "layer": layers, "width": _WIDTH, "height": {"step": 20}}


def _region(bounds: Bounds, x: dict[str, Any], ends: Sequence[float]) -> dict[str, Any]:
    """A band for the region; an open end of it lies a little beyond all values."""
    known = [*ends, *(bound for bound in (bounds.above, bounds.below) if bound is not None)]
    low = bounds.above if bounds.above is not None else min(known) / 1.2 if min(known) > 0 else min(known) - 1
    high = bounds.below if bounds.below is not None else max(known) * 1.2
    return figures.once(_PALE, {"x": {**x, "datum": low}, "x2": {"datum": high}})


def values_chart(rows: Sequence[dict[str, Any]], over: str, quantity: str) -> dict[str, Any]:
    """Values of a quantity over the values of an axis, in series, on a log scale.

    rows: x, y, low, high, series; without a spread, the ends are None.
    """
    names = list(dict.fromkeys(row["series"] for row in rows))
    unit = shown_in(quantity, (row["y"] for row in rows))
    rows = [{**row, **{name: unit.of(row[name]) for name in ("y", "low", "high")}} for row in rows]
    x = {"field": "x", "type": "ordinal", "title": over, "axis": {"labelAngle": 0, "grid": False, **_FINE}}
    y = {"type": "quantitative", "title": header(quantity, unit), "scale": {"type": "log", "nice": False, "padding": 8}}
    y["axis"] = {**_VALUES, "tickCount": 3, "titlePadding": 12}
    legend = {"title": None, "orient": "top", "labelFontSize": 11, "symbolOpacity": 1}
    series = {"field": "series", "type": "nominal", "legend": legend}
    colour = {**series, "scale": {"domain": names, "range": list(figures.PALETTE[: len(names)])}}
    shape = {**series, "scale": {"domain": names, "range": list(figures.SHAPES[: len(names)])}}
    layers = with_spread("y", "y", y, {"x": x, "color": colour}, shape)
    return {**figures.data_of(rows), "layer": layers, "width": _WIDTH + 60, "height": 72}


def with_spread(
    channel: str, field: str, amount: dict[str, Any], shared: dict[str, Any], shape: dict[str, Any]
) -> list[dict[str, Any]]:
    """The layers of points along a channel (x or y), each with a line from `low` to `high` where it has a spread."""
    spread = {**shared, channel: {**amount, "field": "low"}, f"{channel}2": {"field": "high"}}
    return [
        figures.layer(_SPREAD, spread, "isValid(datum.low)"),
        figures.layer(figures.POINT, {**shared, channel: {**amount, "field": field}, "shape": shape}),
    ]
