"""What an explanation says: a sentence, a table of the bars, and the waterfall as a drawing."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tsuishi.estimates.ratios import as_ratio
from tsuishi.extras.explain.design import Bar
from tsuishi.report.charts import figures
from tsuishi.report.output.vega import to_svg
from tsuishi.report.parts.wording import digits, ratio_text
from tsuishi.specs.checkable import CheckableNumber

_ROW_HEIGHT, _WIDTH = 28, 460


def write(folder: Path, number: CheckableNumber, found: Sequence[Bar]) -> list[str]:
    """Write explain.md and explain.svg. Returns the lines for the screen."""
    lines, page = _told(number, found), folder / "explain.md"
    (folder / "explain.svg").write_text(to_svg(drawing(found), "explain"), encoding="utf-8")
    picture = "![The bars, from the printed number to mine](explain.svg)"
    said = [f"# {number.text} ({number.column}), explained", "", *lines[:2], picture, "", *lines[2:], ""]
    page.write_text("\n".join(said), encoding="utf-8")
    return [*lines, "", f"written: {page}"]


def drawing(found: Sequence[Bar]) -> dict[str, Any]:
    """The bars of the sum, each from where the last has ended: from the printed number, at 1, to mine. Logarithmic."""
    *settings, left = [bar for bar in found if bar.is_part]
    steps = [left, *settings]
    ends = [math.exp(end) for end in itertools.accumulate((bar.size.value for bar in steps), initial=0.0)]
    rows = [
        {"name": bar.name, "from": begin, "to": end, "finding": bar.finding}
        for bar, (begin, end) in zip(steps, itertools.pairwise(ends), strict=True)
    ]
    rows.append({"name": "mine", "from": 1.0, "to": ends[-1], "finding": "mine over printed"})
    x = {"type": "quantitative", "title": "times the printed number", "scale": {"type": "log"}}
    y = {"field": "name", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 0}}
    color = {
        "field": "finding",
        "scale": {
            "domain": ["certain", "undecided", "no effect", "computed", "mine over printed"],
            "range": [*figures.PALETTE[:2], figures.PALETTE[5], figures.PALETTE[2], figures.PUBLISHED_GREYS[0]],
        },
        "legend": {"title": None, "orient": "bottom"},
    }
    layers = [
        {"mark": figures.REFERENCE, "data": {"values": [{"at": 1.0}]}, "encoding": {"x": {**x, "field": "at"}}},
        {
            "mark": {"type": "bar", "height": {"band": 0.6}},
            "data": {"values": rows},
            "encoding": {"x": {**x, "field": "from"}, "x2": {"field": "to"}, "y": y, "color": color},
        },
    ]
    return figures.specification({"layer": layers, "width": _WIDTH, "height": _ROW_HEIGHT * len(rows)})


def _told(number: CheckableNumber, found: Sequence[Bar]) -> list[str]:
    """A sentence, and a table of the bars."""
    parts_of_sum = [bar for bar in found if bar.is_part]
    whole = math.exp(math.fsum(bar.size.value for bar in parts_of_sum))
    named = [bar for bar in parts_of_sum[:-1] if bar.finding in ("certain", "computed")]
    parts = ", ".join(f"{bar.name} explains {ratio_text(as_ratio(bar.size, bar.level))}" for bar in named)
    others = [bar.name for bar in parts_of_sum[:-1] if bar not in named]
    left, has_device = parts_of_sum[-1], any(bar.finding == "computed" for bar in found)
    where = "with all that is not named"
    if not has_device:
        where = f"with {number.hardware or 'its device'} and all that is not named"
    first = (
        f"Mine is {digits(whole)} times the printed {number.text} ({number.column}): "
        f"{parts or 'nothing is certain to explain a part'}; "
        f"{ratio_text(as_ratio(left.size, left.level))} remains, {where}."
        + (f" Not certain: {', '.join(others)}." if others else "")
    )
    rows = [
        f"| {bar.name} | {ratio_text(as_ratio(bar.size, bar.level))} | {bar.finding} | {bar.words} |" for bar in found
    ]
    notes = (
        "Effects are those on this machine. The product down to the remainder is mine over printed. Intervals are of "
        "my trials alone, and hold together in 95 of 100 explanations; a printed number has none."
        + (" The device's bar is computed from limits, and has none." if has_device else "")
    )
    return [first, "", "| | mine over printed | | |", "|---|---|---|---|", *rows, "", notes]
