"""A trial over time: a panel for each quantity, in front of the bands of the trial's phases."""

from collections.abc import Mapping
from typing import Any

from tsuishi.base.language import t
from tsuishi.report.charts import figures


def panels(quantities: Mapping[str, str]) -> dict[str, Any]:
    """The panels of quantities, by their titles, without data.

    Panels have the names of their quantities. Data are `phases` (name, begin_s, end_s) and of each quantity rows of
    elapsed_s, device and value.
    """
    return {
        "vconcat": [_panel(quantity, title) for quantity, title in quantities.items()],
        "resolve": {"scale": dict.fromkeys(("x", "color", "strokeDash", "fill"), "shared")},
        "spacing": 12,
    }


def of_trial(quantities: Mapping[str, str], trial: Mapping[str, Any]) -> dict[str, Any]:
    """The panels for which a trial has data, and the data: as `chartOf` in templates/report.js makes them.

    trial: as an explorer has it.
    """
    datasets = {"phases": [dict(zip(("name", "begin_s", "end_s"), phase, strict=True)) for phase in trial["phases"]]}
    for quantity in quantities:
        datasets[quantity] = [
            {"elapsed_s": (place + 0.5) * trial["step_s"], "device": device, "value": value}
            for device, lists in trial["devices"].items()
            for place, value in enumerate(lists.get(quantity, ()))
            if value is not None
        ]
    drawn = panels({quantity: title for quantity, title in quantities.items() if datasets[quantity]})
    if not trial["phases"]:
        # A legend without entries would have no size, and Vega would then give no size to the chart.
        for panel in drawn["vconcat"]:
            del panel["layer"][0]
    return {**drawn, "datasets": datasets}


def _panel(quantity: str, title: str) -> dict[str, Any]:
    """One quantity of every device over time, over the phases as bands."""
    legend = {"title": None, "orient": "bottom", "columns": 4, "labelLimit": 400}
    x = {"type": "quantitative", "title": t("seconds since the trial started")}
    bands = {
        "x": {**x, "field": "begin_s", "scale": {"nice": False}},
        "x2": {"field": "end_s"},
        "fill": {
            "field": "name",
            "type": "nominal",
            "title": t("phase"),
            "scale": {"range": list(reversed(figures.PALETTE))},
            "sort": None,
            "legend": legend,
        },
    }
    full = {"domainMax": 100} if quantity.endswith("_percent") else {}
    device = {"field": "device", "type": "nominal", "title": t("device"), "sort": None}
    lines = {
        "x": {**x, "field": "elapsed_s"},
        "y": {"field": "value", "type": "quantitative", "title": title, "scale": {"zero": True, **full}},
        "color": {
            **device,
            "scale": {"range": ["currentColor", *figures.PALETTE]},
            "legend": {**legend, "symbolType": "stroke"},
        },
        "strokeDash": {**device, "scale": {"range": [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2]]}, "legend": None},
    }
    return {
        "name": quantity,
        "width": 640,
        "height": 110,
        "layer": [
            {"data": {"name": "phases"}, "mark": {"type": "rect", "opacity": 0.22}, "encoding": bands},
            {"data": {"name": quantity}, "mark": {"type": "line", "strokeWidth": 1.6}, "encoding": lines},
        ],
    }
