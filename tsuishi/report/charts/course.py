"""The course of a trial: utilisation, memory, power and clocks over time."""

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from tsuishi.base.language import t
from tsuishi.estimates.gpu_use import device_order
from tsuishi.report.charts import figures
from tsuishi.results.facts import Phase
from tsuishi.results.frames import is_nothing

MOST_TICKS = 600
_STARTING = r"^(.*_)?(first_step|second_step|warm_up)$"


def telemetry_chart(telemetry: pd.DataFrame, phases: Sequence[Phase]) -> dict[str, Any] | None:
    """A trial over time, as a Vega-Lite specification; None without samples.

    Utilisation, memory, power and clocks of host and GPUs are lines; the trial's phases are bands behind them. Of a
    long trial every k-th tick is drawn, at most MOST_TICKS ticks.
    """
    panels = {
        t("utilisation, %"): telemetry["utilisation_percent"],
        t("memory, GiB"): telemetry["process_memory_mib"].fillna(telemetry["memory_used_mib"]) / 1024,
        t("power, W"): telemetry["power_w"],
        t("GPU clock, MHz"): telemetry["sm_clock_mhz"],
    }
    places = list(zip(telemetry["elapsed_s"].tolist(), telemetry["device"].tolist(), strict=True))
    ticks = sorted({elapsed_s for elapsed_s, _ in places})
    kept = set(ticks[:: len(ticks) // MOST_TICKS + 1])
    end_s = max([*ticks, *[phase.end_s or phase.begin_s for phase in phases]], default=0.0)
    bands = [
        {
            "name": re.sub(_STARTING, t("starting, warming up"), phase.name),
            "begin_s": phase.begin_s,
            "end_s": phase.end_s or end_s,
        }
        for phase in phases
    ]
    # Every panel has all devices, since the panels share their colours.
    devices = sorted({device for _, device in places}, key=device_order)
    datasets: dict[str, list[dict[str, Any]]] = {"phases": bands}
    drawn = []
    for title, values in panels.items():
        rows = [
            {"elapsed_s": elapsed_s, "device": device, "value": value}
            for (elapsed_s, device), value in zip(places, values.tolist(), strict=True)
            if elapsed_s in kept and not is_nothing(value)
        ]
        if rows:
            datasets[title] = rows
            drawn.append(_over_time(datasets, devices, title, end_s))
    if not drawn:
        return None
    return {"datasets": datasets, "vconcat": drawn, "spacing": 12, "resolve": {"scale": {"color": "shared"}}}


def _over_time(
    datasets: dict[str, list[dict[str, Any]]], devices: list[str], title: str, end_s: float
) -> dict[str, Any]:
    """A panel: the lines of the dataset `title`, in front of the bands of phases."""
    names = list(dict.fromkeys(band["name"] for band in datasets["phases"]))
    legend = {"title": None, "orient": "bottom", "columns": 4, "labelLimit": 400}
    time = {"type": "quantitative", "scale": {"domain": [0, end_s], "nice": False}}
    percent = {"domain": [0, 100]} if title.endswith("%") else {}
    # Bands take colours from the palette's other end, so that a phase and a device never look the same.
    bands = {
        "x": {**time, "field": "begin_s", "title": t("seconds since the trial started")},
        "x2": {"field": "end_s"},
        "fill": {
            "field": "name",
            "type": "nominal",
            "scale": {
                "domain": names,
                "range": [figures.PALETTE[-1 - index % len(figures.PALETTE)] for index in range(len(names))],
            },
            "legend": legend,
        },
    }
    device = {"field": "device", "type": "nominal", "legend": legend}
    lines = {
        "x": {**time, "field": "elapsed_s", "title": t("seconds since the trial started")},
        "y": {"field": "value", "type": "quantitative", "title": title, "scale": {"zero": True, **percent}},
        "color": {**device, "scale": {"domain": devices, "range": ["currentColor", *figures.PALETTE[:3]]}},
        "strokeDash": {**device, "scale": {"domain": devices, "range": [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2]]}},
    }
    band = {"data": {"name": "phases"}, **figures.layer({"type": "rect", "opacity": 0.22}, bands)}
    line = {"data": {"name": title}, **figures.layer({"type": "line", "strokeWidth": 1.6}, lines)}
    # A legend without entries would have no size, and Vega would then give no size to the chart.
    return {"layer": [band, line] if names else [line], "width": 2 * figures.PANEL_WIDTH, "height": 110}
