"""Curves: the charts of the sweeps of a suite (sweeps.py), no more than readers take in."""

from collections.abc import Iterator, Sequence
from typing import Any

from tsuishi.base.language import prose, t
from tsuishi.report.charts import figures, sweeps
from tsuishi.report.charts.sweeps import Points, Sweep, Variant
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.comparison import Comparison
from tsuishi.report.parts.wording import case_text

# The most charts of a suite and protocol. Every sweep gets its first chart before any sweep gets its second.
MOST_CHARTS = 4


def curves(comparison: Comparison) -> View:
    """The charts of the sweeps, with the published points in front of the lines."""
    every = sweeps.sweeps()
    charts = list(_charts(comparison, every))
    chosen = sorted(charts, key=lambda chart: chart[1])[:MOST_CHARTS]
    chosen.sort(key=lambda chart: (every.index(chart[0]), chart[1]))
    hardware = sorted(hardware.title for hardware in comparison.hardware.values())
    drawn = []
    for number, (sweep, count, variants) in enumerate(chosen, start=1):
        left_out = len(charts) - number if number == MOST_CHARTS else 0
        shared, points = sweeps.sweep_points(variants, sweep)
        name = f"{comparison.suite}-{comparison.protocol}-{sweep.quantities[0]}-{count}"
        caption = _caption(comparison, shared, points, left_out)
        chart = figures.sweep_chart(points, sweep, comparison.evidence.environments, hardware)
        drawn.append(figures.block(chart, _title(comparison, sweep), name, caption))
    return View(tuple(drawn))


def _charts(comparison: Comparison, every: Sequence[Sweep]) -> Iterator[tuple[Sweep, int, list[Variant]]]:
    """Every chart: its sweep, its number among the sweep's charts, and its lines."""
    titles = {key: hardware.title for key, hardware in comparison.hardware.items()}
    evidence, numbers = comparison.evidence, comparison.numbers
    for sweep in every:
        variants = sweeps.sweep_variants(comparison.estimates, evidence.axes, numbers, titles, sweep, evidence.terms)
        charts = sweeps.sweep_charts(variants)
        if sweep.published_first:
            charts = [variants for variants in charts if any(map(_has_published, variants))] or charts
        for count, variants in enumerate(charts, start=1):
            yield sweep, count, variants


def _title(comparison: Comparison, sweep: Sweep) -> str:
    if sweep.of_epochs and comparison.epochs:
        return t("Epoch of {images} images", images=f"{comparison.epochs.images:,}")
    return sweep.title


def _has_published(variant: Variant) -> bool:
    """Whether the variant has a published point that is not a level."""
    return any(point["published"] and not point["rule"] for point in variant.points)


def _caption(comparison: Comparison, shared: dict[str, Any], points: Points, left_out: int) -> str:
    """The axes that all lines share, and the meanings of the marks in the chart."""
    which = ", ".join(filter(None, [comparison.protocol, case_text(shared, comparison.varying)]))
    sentences = [t("{cases}.", cases=which)]
    if any(point["low"] is not None and point["mark"] != "fit" for point in points):
        sentences.append(t("Bars: from smallest to largest trial, or the quartiles of the only one."))
    if any(point["mark"] == "fit" for point in points):
        sentences.append(
            t("Lines through points: the throughput model; below them, how far the points are off it (see its table).")
        )
    if any(point["low"] is not None and point["mark"] == "fit" for point in points):
        sentences.append(t("Shaded: the 95 % interval of the line at each batch size, if the model holds."))
    if any(point["published"] for point in points):
        sentences.append(t("Grey and dashed: published, on other hardware."))
    if left_out:
        sentences.append(t("{count} more such charts are not drawn: see the tables.", count=left_out))
    return prose([*sentences, *comparison.flags()])
