"""Pages to look at in a browser: every kind of block, with names as they should be or as nobody wants them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tsuishi.base.checkout import Checkout
from tsuishi.report.charts.figures import specification
from tsuishi.report.output.typesetting import as_html
from tsuishi.report.output.vega import runtime, to_svg
from tsuishi.report.parts.blocks import (
    Bullets,
    Chart,
    Code,
    Explorer,
    Heading,
    Section,
    Text,
    View,
)
from tsuishi.report.parts.wording import Cell, Table

# What ends scripts, comments, attributes and strings, turns text around, or is too long for any place.
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\"'><img src=x onerror=alert(1)>",
    "\u202eevil\u202c שלום",
    "a\x00b",
    "{{ 7 * 7 }} ${7 * 7} datum['x']",
    "[link](javascript:alert(1)) `code` | *",
    "x" * 10_000,
)
NUMBERS = (0.5, 12.25, 3.0, None, 100.0)
VERDICTS = (("reproduced", "good"), ("contradicted", "bad"), ("not tested", "none"), ("inconclusive", "open"))
TRIALS = 14


def every_block(names: tuple[str, ...]) -> tuple[Any, ...]:
    """One of each kind, with these names in every place that a name can have; from five on they are all different."""
    named = [names[index % len(names)] for index in range(9)]
    return (
        Text(named[0], kind="lead"),
        Bullets(tuple(names), title=named[1], warning=True),
        Heading(named[2]),
        verdict_table(named),
        number_table(named),
        Chart(named[3], "points", named[4], specification(points(named))),
        explorer(named),
        Code(named[8]),
    )


def verdict_table(names: list[str]) -> Table:
    """Claims with a verdict each; rows are chosen by source and verdict."""
    rows = [
        [Cell(names[index % 5]), Cell(names[index % 2]), Cell(verdict, kind="verdict", tone=tone, notes=(names[4],))]
        for index, (verdict, tone) in enumerate(VERDICTS * 2)
    ]
    return Table(["claim", "source", "verdict"], rows, title=names[5], filters=(1, 2))


def number_table(names: list[str]) -> Table:
    """A name and a number a row; one number is missing, and the largest is the best."""
    rows = []
    for name, value in zip(names, NUMBERS, strict=False):
        absent = Cell("not measured", kind="absent")
        number = absent if value is None else Cell(f"{value:.1f}", value, ("n = 3",), "number", best=value == 100)
        rows.append([Cell(name), number])
    return Table(["environment", "throughput, images/s"], rows, notes=[names[6]])


def points(names: list[str]) -> dict[str, Any]:
    """Lines with points, a series a name."""
    rows = [{"x": x, "y": x * (place + 1), "series": name} for place, name in enumerate(names[:3]) for x in (1, 2, 3)]
    encoding = {
        "x": {"field": "x", "type": "quantitative"},
        "y": {"field": "y", "type": "quantitative"},
        "color": {"field": "series", "type": "nominal", "legend": {"labelLimit": 400}},
    }
    layers = [{"mark": "line", "encoding": encoding}, {"mark": {"type": "point", "filled": True}, "encoding": encoding}]
    return {"data": {"values": rows}, "layer": layers, "width": 300, "height": 200}


def explorer(names: list[str]) -> Explorer:
    """Trials of one device; the last of them has power too."""
    trials = []
    for index in range(TRIALS):
        quantities: dict[str, list[float | None]] = {"utilisation_percent": [10.0, None, 30.0 + index, 40.0]}
        if index == TRIALS - 1:
            quantities["power_w"] = [100.0, 200.0, 250.0, 240.0]
        trials.append(
            {
                "id": f"trial-{index}",
                "label": f"{names[index % len(names)]} {index}",
                "phases": [[names[7], 0.0, 1.0], ["measure", 1.0, 4.0]],
                "step_s": 1.0,
                "devices": {names[index % len(names)]: quantities},
            }
        )
    labels = {"utilisation_percent": "utilisation, %", "power_w": "power, W"}
    return Explorer(names[5], names[6], {"trials": trials, "quantities": labels})


def write_page(out: Path, names: tuple[str, ...], kept_in: Path | None = None) -> Path:
    """A page of every block as index.html in `out`; its drawings and Vega are kept in a folder, or taken from there."""
    section = Section("all", names[1], (View(every_block(names)),), folded=False)
    drawings = {chart.name: to_svg(chart.specification, chart.name, kept_in) for chart in section.charts}
    page: Any = SimpleNamespace(title=names[0], sections=[section])
    index = out / "index.html"
    text = as_html(page, drawings, Checkout().templates, runtime(kept_in))
    index.write_text(text, encoding="utf-8", newline="\n")
    return index
