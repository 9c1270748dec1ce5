"""Scaling in a report: speed-up and efficiency of several devices against one, as a chart and as tables."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from tsuishi.base.language import mark, prose, t
from tsuishi.estimates import scaling
from tsuishi.estimates.scaling import Scaling
from tsuishi.report.charts import figures
from tsuishi.report.parts.blocks import Block, Chart, View
from tsuishi.report.parts.comparison import Comparison, differing
from tsuishi.report.parts.wording import (
    Cell,
    Table,
    case_text,
    digits,
    number_cell,
    text_cell,
    words,
)
from tsuishi.specs.case import BATCH_SIZE, DEVICES, MODEL, STRATEGY

_TITLES = {
    "strong": mark("Strong scaling: the same global batch"),
    "weak": mark("Weak scaling: the same batch per device"),
}
# More lines are not told apart: they are in the table only.
_MOST_LINES = 12


def scalings(comparison: Comparison) -> View:
    """What several devices bring, ours and what was published."""
    found = _scalings(comparison)
    telling = {*differing(one.axes for one in found), STRATEGY} - {DEVICES, BATCH_SIZE}
    rows = [{**one.axes, **one._asdict(), **comparison.where, "efficiency": one.efficiency} for one in found]
    drawn = list(_chart(comparison, found, telling))
    blocks: tuple[Block, ...] = (*drawn, *_tables(found, telling, folded=bool(drawn)))
    return View(blocks, {"scaling": [{key: value for key, value in row.items() if key != "axes"} for row in rows]})


def _scalings(comparison: Comparison) -> list[Scaling]:
    measured = [
        scaling.SpeedPoint(one.series, one.axes, speed, one.simulated)
        for one in comparison.ours()
        # Where devices may get the same images, work that is done twice is no speed.
        if (speed := one.values.get("distinct_images_per_s", one.values.get("throughput_images_per_s")))
    ]
    published = [
        scaling.SpeedPoint(one.series, one.axes, one.epochs.images / one.values["median_epoch_s"], False)
        for one in comparison.theirs()
        if one.epochs and "median_epoch_s" in one.values
    ]
    ours = list(scaling.scalings(measured))
    return [*ours, *scaling.scalings(published)] if ours else []


def _tables(found: list[Scaling], telling: set[str], folded: bool) -> Iterator[Table]:
    counted = (words().axis(axis).called for axis in (DEVICES, BATCH_SIZE))
    columns = ["", t("case"), *counted, t("on one device"), t("speed-up"), t("efficiency")]
    notes = [t("Against 1 device with strategy none, all other axes equal, distinct images/s.")]
    notes.append(t("Efficiency: speed-up ÷ devices."))
    for kind, title in _TITLES.items():
        rows = []
        for one in (one for one in found if one.kind == kind):
            counts = one.axes[DEVICES], one.axes[BATCH_SIZE], one.baseline_batch_size
            marks = (t("simulated"),) if one.simulated else ()
            name = [text_cell(one.series), text_cell(case_text(dict(one.axes), telling))]
            efficiency = Cell(digits(one.efficiency), one.efficiency, marks, "number")
            rows.append([*name, *map(text_cell, counts), number_cell(one.speedup), efficiency])
        if rows:
            simulated = any(one.simulated for one in found if one.kind == kind)
            yield Table(columns, rows, t(title), folded=folded, notes=[*notes, _simulated()] if simulated else notes)


def _simulated() -> str:
    return t("Simulated devices share what one device has: how they scale says nothing about GPUs.")


def _chart(comparison: Comparison, found: list[Scaling], telling: set[str]) -> Iterator[Chart]:
    """Efficiency against the batch size, a panel for each kind; a chart for each network."""
    for number, model in enumerate(dict.fromkeys(one.axes.get(MODEL) for one in found), start=1):
        of_model = [one for one in found if one.axes.get(MODEL) == model]
        yield from _chart_of(comparison, of_model, telling, number)


def _chart_of(comparison: Comparison, found: list[Scaling], telling: set[str], number: int) -> Iterator[Chart]:
    rows: list[dict[str, Any]] = []
    for one in found:
        case = case_text(dict(one.axes), {*telling, DEVICES})
        base = {"kind": t(_TITLES[one.kind]), "series": one.series, "published": one.series not in _ours(comparison)}
        rows.append({**base, "case": case, "batch_size": one.axes[BATCH_SIZE], "efficiency": one.efficiency})
    frame = pd.DataFrame(rows)
    if frame.empty or frame["batch_size"].nunique() < 2 or len(frame.groupby(["series", "case"])) > _MOST_LINES:
        return
    shared = [comparison.protocol, *{str(one.axes[MODEL]) for one in found if MODEL in one.axes}]
    sentences = [
        t("{cases}.", cases=", ".join(shared)),
        t("Speed-up over the number of devices, against the global batch size; the line at 1 is perfect."),
        t("Grey and dashed: published, on other hardware.") if frame["published"].any() else "",
        _simulated() if any(one.simulated for one in found) else "",
    ]
    name = f"{comparison.suite}-{comparison.protocol}-efficiency-{number}"
    yield figures.block(_efficiency_chart(frame, _ours(comparison)), t("Efficiency of scaling"), name, prose(sentences))


def _ours(comparison: Comparison) -> list[str]:
    return comparison.evidence.environments


def _efficiency_chart(frame: pd.DataFrame, environments: list[str]) -> dict[str, Any]:
    """Colour says whose it is, shape which case."""
    names, cases = list(dict.fromkeys(frame["series"])), list(dict.fromkeys(frame["case"]))
    below = {"title": None, "orient": "bottom", "labelLimit": 0}
    plain = {**below, "symbolFillColor": "currentColor", "symbolStrokeColor": "currentColor", "columns": 1}
    colours = {"domain": names, "range": [figures.series_colour(name, environments) for name in names]}
    shapes = {"domain": cases, "range": [figures.SHAPES[index % len(figures.SHAPES)] for index in range(len(cases))]}
    of_size = {
        "title": words().axis(BATCH_SIZE).drawn_as,
        "axis": {"values": sorted(set(frame["batch_size"])), "format": "d"},
        "scale": {"type": "log", "base": 2, "nice": False, "padding": 12},
    }
    encoding = {
        "x": {"field": "batch_size", "type": "quantitative", **of_size},
        "y": {"field": "efficiency", "type": "quantitative", "title": t("efficiency"), "scale": {"zero": True}},
        "color": {"field": "series", "type": "nominal", "scale": colours, "legend": {**below, "columns": 2}},
    }
    dash = {"condition": {"test": "datum.published", "value": [6, 3]}, "value": [1, 0]}
    detail = {"detail": {"field": "case", "type": "nominal"}, "strokeDash": dash}
    shape = {"shape": {"field": "case", "type": "nominal", "scale": shapes, "legend": plain}}
    layers = [
        figures.once({"type": "rule", "color": "currentColor", "opacity": 0.5}, {"y": {"datum": 1}}),
        figures.layer({"type": "line", "strokeWidth": 2}, {**encoding, **detail}),
        figures.layer({"type": "point", "filled": True, "opacity": 1, "size": 55}, {**encoding, **shape}),
    ]
    panels = list(dict.fromkeys(frame["kind"]))
    return {
        **figures.data_of(frame),
        "facet": {"field": "kind", "type": "nominal", "sort": panels, "header": figures.HEAD},
        "spec": {"layer": layers, "width": figures.PANEL_WIDTH * 2 // len(panels), "height": 200},
    }
