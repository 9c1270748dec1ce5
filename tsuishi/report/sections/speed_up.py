"""Scaling: the speed-up and efficiency of several devices against one, and of several nodes against one node."""

from collections.abc import Iterator
from typing import Any

from tsuishi.base.language import mark, prose, t
from tsuishi.estimates import scaling
from tsuishi.estimates.ratios import as_ratio
from tsuishi.estimates.scaling import Scaling, summing_s
from tsuishi.report.charts import figures
from tsuishi.report.parts.blocks import Block, Chart, View
from tsuishi.report.parts.declarations import EVERY_AXIS, SERIES, SIMULATED, Column, Tables, cells
from tsuishi.report.parts.suite_cases import Known, SuiteCases, differing_axes
from tsuishi.report.parts.wording import Cell, Table, case_text, digits, protocol_words, text_cell, vocabulary_in_use
from tsuishi.results.frames import named_rows
from tsuishi.specs.case import BATCH_SIZE, DEVICES, MODEL, NODES, STRATEGY
from tsuishi.verdicts.evidence import Evidence

TABLES: Tables = {
    "scaling": (
        *(EVERY_AXIS, SERIES),
        Column("kind", "string", "strong: the same global batch; weak: the same batch per device"),
        Column("baseline_devices", "integer", "devices that it is compared with: one, or those of one node"),
        Column("baseline_batch_size", "integer", "batch that it is compared with, in images"),
        Column("speedup", "number", "images/s over those that it is compared with"),
        Column("low", "number", "end of the speed-up's 95 % interval, per comparison; empty for too few trials"),
        Column("high", "number", "its other end"),
        Column("efficiency", "number", "speed-up over how many times as many devices"),
        Column("summing_share", "number", "sum of gradients at the measured all-reduce over the step; or empty"),
        SIMULATED,
    )
}
# By kind, and whether several nodes are held against one.
_TITLES = {
    ("strong", False): mark("Strong scaling: the same global batch"),
    ("weak", False): mark("Weak scaling: the same batch per device"),
    ("strong", True): mark("Strong scaling over nodes: the same global batch"),
    ("weak", True): mark("Weak scaling over nodes: the same batch per device"),
}
_SPEEDS = ("distinct_images_per_s", "throughput_images_per_s")
# Readers cannot distinguish more lines: a chart with more is left out, and the table alone shows them.
_MOST_LINES = 12


def scaling_view(suite_cases: SuiteCases) -> View:
    """Speed-up and efficiency of several devices, measured and published."""
    results = _scalings(suite_cases)
    telling = {*differing_axes(result.axes for result in results), STRATEGY} - {DEVICES, NODES, BATCH_SIZE}
    rows = [
        {**result.axes} | cells(TABLES["scaling"], result) | suite_cases.where | _ends(result) for result in results
    ]
    drawn = list(_chart(suite_cases, results, telling))
    blocks: tuple[Block, ...] = (*drawn, *_tables(results, telling, folded=bool(drawn)))
    return View(blocks, {"scaling": rows})


def _ends(result: Scaling) -> dict[str, float | None]:
    """The ends of the interval of a speed-up; None where its trials do not give any."""
    low, high = as_ratio(result.logarithm)[1:] if result.logarithm else (None, None)
    return {"low": low, "high": high}


def _scalings(suite_cases: SuiteCases) -> list[Scaling]:
    terms, rates = suite_cases.evidence.terms, _all_reduces(suite_cases.evidence)
    measured = [
        scaling.SpeedPoint(
            known.series,
            known.axes,
            known.values[quantity],
            known.simulated,
            terms.get(term),
            _summing_share(known, rates),
        )
        for known in suite_cases.ours()
        # Several devices may process the same image: it counts once.
        for quantity in [next((name for name in _SPEEDS if known.values.get(name)), "")]
        for term in [(str(known.case_id), known.series, quantity)]
        if quantity
    ]
    published = [
        scaling.SpeedPoint(known.series, known.axes, known.epochs.images / known.values["median_epoch_s"], False)
        for known in suite_cases.theirs
        if known.epochs and "median_epoch_s" in known.values
    ]
    ours = list(scaling.scalings(measured))
    return [*ours, *scaling.scalings(published)] if ours else []


# By environment, devices and nodes.
_Rates = dict[tuple[str, int, int], float]


def _all_reduces(evidence: Evidence) -> _Rates:
    """The bus bandwidth of the fastest all-reduce, in B/s."""
    rates: _Rates = {}
    rows = evidence.cases
    for row in named_rows(rows[rows["quantity"] == "bytes_per_s"]):
        axes = evidence.axes[row.case_id]
        if axes.get("operation") == "all_reduce":
            place = row.column, axes[DEVICES], axes.get(NODES, 1)
            rates[place] = max(rates.get(place, 0.0), row.estimate)
    return rates


def _summing_share(known: Known, rates: _Rates) -> float | None:
    """The share of a training step that summing its gradients takes; None where a part was not measured."""
    axes, parameters, step_s = known.axes, known.values.get("trainable_parameters"), known.step_s
    rate = rates.get((known.series, axes.get(DEVICES, 1), axes.get(NODES, 1)))
    if axes.get("mode") != "training" or not (parameters and step_s and rate):
        return None
    return summing_s(parameters, axes[DEVICES], rate) / step_s


def _tables(results: list[Scaling], telling: set[str], folded: bool) -> Iterator[Table]:
    for place, title in _TITLES.items():
        of_kind, over_nodes = [result for result in results if _kind(result) == place], place[1]
        axes = (NODES, DEVICES, BATCH_SIZE) if over_nodes else (DEVICES, BATCH_SIZE)
        one = t("on one node") if over_nodes else t("on one device")
        columns = [
            "",
            t("case"),
            *(vocabulary_in_use().axis(axis).called for axis in axes),
            one,
            t("speed-up"),
            t("efficiency"),
        ]
        summed = any(result.summing_share is not None for result in of_kind)
        columns += [t("sum of gradients")] if summed else []
        rows = []
        for result in of_kind:
            counts = *(result.axes[axis] for axis in axes), result.baseline_batch_size
            marks = (t("simulated"),) if result.simulated else ()
            name = [text_cell(result.series), text_cell(case_text(dict(result.axes), telling))]
            efficiency = Cell(digits(result.efficiency), result.efficiency, marks, "number")
            ends = [digits(end) for end in _ends(result).values() if end is not None]
            speedup = Cell(digits(result.speedup), result.speedup, (" – ".join(ends),) if ends else (), "number")
            rows.append([*name, *map(text_cell, counts), speedup, efficiency, *([_summing(result)] if summed else [])])
        if rows:
            yield Table(columns, rows, title=t(title), folded=folded, notes=[*_notes(of_kind, over_nodes)])


def _summing(result: Scaling) -> Cell:
    share = result.summing_share
    return Cell("" if share is None else f"{100 * share:.2g} %", share, (), "number")


def _kind(result: Scaling) -> tuple[str, bool]:
    """The key of the title for a scaling."""
    return result.kind, result.nodes > 1


def _notes(results: list[Scaling], over_nodes: bool) -> Iterator[str]:
    """The notes below a table of these scalings."""
    if over_nodes:
        yield t("Against one node with as many devices as each node has, all other axes equal, distinct images/s.")
        yield t("Efficiency: speed-up ÷ nodes.")
    else:
        yield t("Against 1 device with strategy none, all other axes equal, distinct images/s.")
        yield t("Efficiency: speed-up ÷ devices.")
    if any(result.logarithm for result in results):
        yield t("Below a speed-up: its 95 % interval, per comparison; seen, not tested, where there is none.")
    if any(result.summing_share is not None for result in results):
        yield t(
            "Sum of gradients: its time at the fastest all-reduce that was measured on these devices, as a share "
            "of the step. Strategies may hide it behind computing, or need longer."
        )
    if any(result.simulated for result in results):
        yield _simulated()


def _simulated() -> str:
    return t("Simulated devices share one device: their scaling says nothing about GPUs.")


def _chart(suite_cases: SuiteCases, results: list[Scaling], telling: set[str]) -> Iterator[Chart]:
    """Efficiency against the batch size: a chart for each network, with a panel for each kind of scaling."""
    for number, model in enumerate(dict.fromkeys(result.axes.get(MODEL) for result in results), start=1):
        of_model = [result for result in results if result.axes.get(MODEL) == model]
        yield from _chart_of(suite_cases, of_model, telling, number)


def _chart_of(suite_cases: SuiteCases, results: list[Scaling], telling: set[str], number: int) -> Iterator[Chart]:
    environments = suite_cases.evidence.environments
    rows = [
        {
            "kind": t(_TITLES[_kind(result)]),
            "series": result.series,
            "published": result.series not in environments,
            "case": case_text(dict(result.axes), {*telling, DEVICES, NODES}),
            "batch_size": result.axes[BATCH_SIZE],
            "efficiency": result.efficiency,
        }
        for result in results
    ]
    lines = {(row["series"], row["case"]) for row in rows}
    if len({row["batch_size"] for row in rows}) < 2 or len(lines) > _MOST_LINES:
        return
    shared = [
        protocol_words(suite_cases.protocol),
        *{str(result.axes[MODEL]) for result in results if MODEL in result.axes},
    ]
    sentences = [
        t("{cases}.", cases=", ".join(shared)),
        t("Speed-up over the number of devices, against the global batch size; the line at 1 is perfect."),
        t("Over nodes: over their number, against one node.") if any(result.nodes > 1 for result in results) else "",
        t("Grey and dashed: published, on other hardware.") if any(row["published"] for row in rows) else "",
        _simulated() if any(result.simulated for result in results) else "",
    ]
    name = f"{suite_cases.suite}-{suite_cases.protocol}-efficiency-{number}"
    yield figures.block(_efficiency_chart(rows, environments), t("Efficiency of scaling"), name, prose(sentences))


def _efficiency_chart(rows: list[dict[str, Any]], environments: list[str]) -> dict[str, Any]:
    """Efficiency against the batch size: a series has its colour, a case its shape."""
    names, cases, panels = (list(dict.fromkeys(row[name] for row in rows)) for name in ("series", "case", "kind"))
    plain = {**figures.LEGEND, "symbolFillColor": "currentColor", "symbolStrokeColor": "currentColor", "columns": 1}
    colours = figures.colours(names, environments)
    shapes = {"domain": cases, "range": [figures.SHAPES[index % len(figures.SHAPES)] for index in range(len(cases))]}
    of_size = {
        "title": vocabulary_in_use().axis(BATCH_SIZE).drawn_as,
        "axis": {"values": sorted({row["batch_size"] for row in rows}), "format": "d"},
        "scale": {"type": "log", "base": 2, "nice": False, "padding": 12},
    }
    encoding = {
        "x": {"field": "batch_size", "type": "quantitative", **of_size},
        "y": {"field": "efficiency", "type": "quantitative", "title": t("efficiency"), "scale": {"zero": True}},
        "color": {"field": "series", "type": "nominal", "scale": colours, "legend": figures.LEGEND},
    }
    dash = {"condition": {"test": "datum.published", "value": [6, 3]}, "value": [1, 0]}
    detail = {"detail": {"field": "case", "type": "nominal"}, "strokeDash": dash}
    shape = {"shape": {"field": "case", "type": "nominal", "scale": shapes, "legend": plain}}
    layers = [
        figures.once({"type": "rule", "color": "currentColor", "opacity": 0.5}, {"y": {"datum": 1}}),
        figures.layer({"type": "line", "strokeWidth": 2}, {**encoding, **detail}),
        figures.layer({"type": "point", "filled": True, "opacity": 1, "size": 55}, {**encoding, **shape}),
    ]
    return {
        **figures.data_of(rows),
        "facet": {"field": "kind", "type": "nominal", "sort": panels, "header": figures.HEAD},
        "spec": {"layer": layers, "width": figures.PANEL_WIDTH * 2 // len(panels), "height": 200},
    }
