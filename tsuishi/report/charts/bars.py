"""Bars: charts of a number of every case, by environment: shares of limits, energy, and the parts of a step."""

from collections.abc import Iterable, Iterator
from typing import Any

from tsuishi.base.language import mark, prose, t
from tsuishi.report.charts import figures
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.shown_units import readable
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import case_text, header, vocabulary_in_use
from tsuishi.specs.case import BATCH_SIZE

# The most cases of a chart that readers take in. Of more cases, only the best of those that differ in size is drawn.
_MOST_CASES = 16
_LABEL_WIDTH, _SHORT_LABEL_WIDTH = 330, 270

_PARTS = {
    "forward_s": (mark("forward"), figures.PALETTE[5]),
    "forward_backward_s": (mark("forward and backward"), figures.PALETTE[0]),
    "step_s": (mark("whole step"), figures.PALETTE[1]),
}


def limit_fractions(suite_cases: SuiteCases) -> View:
    """Bars of the share of its device's limit that each case reaches."""
    return _bars(suite_cases, "fraction_of_limit", largest=True)


def energies(suite_cases: SuiteCases) -> View:
    """Bars of the energy of an image, where the power of GPUs was measured."""
    return _bars(suite_cases, "energy_per_image_j", largest=False)


def step_parts(suite_cases: SuiteCases) -> View:
    """Bars of the parts of a step that were timed alone, and of the whole step."""
    timed = [known for known in suite_cases.ours() if known.case_id and "forward_s" in known.values]
    steps = {str(known.case_id): float(known.axes.get(BATCH_SIZE, 0)) for known in timed}
    drawn = _best_of_sizes(suite_cases, steps, largest=True)[:_MOST_CASES]
    times = [
        (known, part, seconds)
        for known in timed
        if known.case_id in drawn
        for part in _PARTS
        if (seconds := known.values.get(part)) is not None
    ]
    if not times:
        return View()
    unit = readable("s", (seconds for *_, seconds in times))
    rows = [
        {
            "case": suite_cases.name(str(known.case_id)),
            "environment": known.series,
            "part": part,
            "time": unit.of(seconds),
        }
        for known, part, seconds in times
    ]
    names = [suite_cases.name(case_id) for case_id in drawn]
    text = t("Each part was timed on its own, so its addition to the part before is an estimate.")
    largest = (
        t("Of cases that differ only in their batch size, the largest is drawn.") if len(drawn) < len(steps) else ""
    )
    caption = prose([text, largest, *suite_cases.flags()])
    chart = _parts_chart(rows, names, suite_cases.environments, unit.name)
    name = f"{suite_cases.suite}-{suite_cases.protocol}-parts"
    return View((figures.block(chart, t("Parts of a step"), name, caption),))


def _bars(suite_cases: SuiteCases, quantity: str, largest: bool) -> View:
    """Bars of a quantity. Only the steady protocol has bars: a source's literal way may time more or less work."""
    values: dict[str, dict[str, float]] = {}
    for known in suite_cases.ours() if suite_cases.protocol == "steady" else ():
        if known.case_id and quantity in known.values:
            values.setdefault(known.case_id, {})[known.series] = known.values[quantity]
    best_of = max if largest else min
    best = {case_id: best_of(by_environment.values()) for case_id, by_environment in values.items()}
    drawn = _best_of_sizes(suite_cases, best, largest)
    if not drawn:
        return View()
    shown = drawn[:_MOST_CASES]
    rows = [
        {"case": suite_cases.name(case_id), "environment": environment, "value": value}
        for case_id in shown
        for environment, value in values[case_id].items()
    ]
    sentences = list(_remarks(len(values), len(drawn), len(shown), largest))
    names = [suite_cases.name(case_id) for case_id in shown]
    chart = _bar_chart(rows, names, suite_cases.evidence.environments, quantity)
    name = f"{suite_cases.suite}-{suite_cases.protocol}-{quantity}"
    return View((figures.block(chart, header(quantity), name, prose([*sentences, *suite_cases.flags()])),))


def _best_of_sizes(suite_cases: SuiteCases, best: dict[str, float], largest: bool) -> list[str]:
    """Of cases that differ only in size, the best case; all cases if they are at most _MOST_CASES."""
    ordered = [case_id for case_id in suite_cases.case_ids if case_id in best]
    if len(ordered) <= _MOST_CASES:
        return ordered
    best_cases: dict[str, str] = {}
    for case_id in ordered:
        axes = suite_cases.axes[case_id].items()
        rest = case_text({axis: value for axis, value in axes if not vocabulary_in_use().axis(axis).is_size})
        before = best_cases.setdefault(rest, case_id)
        if best[case_id] > best[before] if largest else best[case_id] < best[before]:
            best_cases[rest] = case_id
    return list(best_cases.values())


def _remarks(cases: int, drawn: int, shown: int, largest: bool) -> Iterator[str]:
    yield t("Longer is better.") if largest else t("Shorter is better.")
    if drawn < cases:
        yield t("Of cases that differ only in their size, the best is drawn.")
    if shown < drawn:
        yield t("{count} more are not drawn: see the tables.", count=drawn - shown)


def _bar_chart(rows: list[dict[str, Any]], cases: list[str], environments: list[str], quantity: str) -> dict[str, Any]:
    names = [name for name in environments if name in {row["environment"] for row in rows}]
    colours = figures.colours(names, environments)
    axis = {"labelLimit": _LABEL_WIDTH, "ticks": False, "domain": False}
    value = {"title": header(quantity), "scale": {"zero": True}, "axis": {"format": "~g"}}
    encoding = {
        "x": {"field": "value", "type": "quantitative", **value},
        "y": {"field": "case", "type": "nominal", "title": None, "sort": cases, "axis": axis},
        "yOffset": {"field": "environment", "type": "nominal", "sort": names},
        "color": {"field": "environment", "type": "nominal", "scale": colours, "legend": figures.LEGEND},
    }
    bars = figures.layer({"type": "bar"}, encoding)
    size = {"width": figures.PANEL_WIDTH + 80, "height": {"step": 11}}
    whole = {"layer": [bars, figures.once(figures.REFERENCE, {"x": {"datum": 1}})]}
    drawn = whole if quantity == "fraction_of_limit" else bars
    return {**figures.data_of(rows), **drawn, **size}


def _parts_chart(
    rows: list[dict[str, Any]], cases: Iterable[str], environments: list[str], unit: str
) -> dict[str, Any]:
    """A panel for each environment, with its own scale: readers compare parts with their step, not environments."""
    words = {part: t(text) for part, (text, _) in _PARTS.items()}
    colours = {"domain": list(words.values()), "range": [colour for _, colour in _PARTS.values()]}
    present = [name for name in environments if name in {row["environment"] for row in rows}]
    axis = {"labelLimit": _SHORT_LABEL_WIDTH, "ticks": False, "domain": False}
    time = {"title": unit, "axis": {"format": ",.3~r", "tickCount": 5}}
    encoding = {
        "x": {"field": "time", "type": "quantitative", **time},
        "y": {"field": "case", "type": "nominal", "title": None, "sort": list(cases), "axis": axis},
        "yOffset": {"field": "part", "type": "nominal", "sort": list(words.values())},
        "color": {"field": "part", "type": "nominal", "scale": colours, "legend": figures.LEGEND},
    }
    bars = figures.layer({"type": "bar"}, encoding)
    return {
        **figures.data_of({**row, "part": words[row["part"]]} for row in rows),
        "facet": {"field": "environment", "type": "nominal", "sort": present, "header": figures.HEAD_AT_START},
        "columns": 2,
        "spec": {**bars, "width": figures.PANEL_WIDTH - 110, "height": {"step": 9}},
        "resolve": {"scale": {"x": "independent"}},
    }
