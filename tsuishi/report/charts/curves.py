"""Curves: the charts of the sweeps of a suite (sweeps.py), no more than readers take in."""

from collections.abc import Iterator
from typing import Any

from tsuishi.base.language import prose, t
from tsuishi.report.charts import figures, sweeps
from tsuishi.report.charts.sweeps import Points, Sweep, Variant
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import case_text, protocol_words

# The most panels of a chart that readers take in.
MOST_PANELS = 6


def curves(suite_cases: SuiteCases) -> View:
    """The charts of the sweeps, with the published points in front of the lines."""
    hardware = sorted(hardware.title for hardware in suite_cases.hardware.values())
    drawn = []
    for sweep, groups in _charts(suite_cases):
        most = MOST_PANELS // len(sweep.quantities)
        shared, points = _panel_points(groups[:most], sweep)
        name = f"{suite_cases.suite}-{suite_cases.protocol}-{sweep.quantities[0]}"
        caption = _caption(suite_cases, shared, points, len(groups[most:]) * len(sweep.quantities))
        chart = figures.sweep_chart(points, sweep, suite_cases.evidence.environments, hardware)
        drawn.append(figures.block(chart, _title(suite_cases, sweep), name, caption))
    return View(tuple(drawn))


def _charts(suite_cases: SuiteCases) -> Iterator[tuple[Sweep, list[list[Variant]]]]:
    """The sweeps that the suite has, each with the lines of every panel."""
    for sweep in sweeps.sweeps():
        groups = sweeps.sweep_charts(sweeps.sweep_variants(suite_cases, sweep))
        if sweep.published_first:
            groups = [variants for variants in groups if any(map(_has_published, variants))] or groups
        if groups:
            yield sweep, groups


def _panel_points(groups: list[list[Variant]], sweep: Sweep) -> tuple[dict[str, Any], Points]:
    """The points of small multiples, which share their axes: a panel for each group of variants (and each quantity).

    Returns the same as sweeps.sweep_points; for several groups, no residuals.
    """
    drawn = [sweeps.sweep_points(variants, sweep) for variants in groups]
    if len(drawn) == 1:
        return drawn[0]
    shared = sweeps.shared_axes([own for own, _ in drawn])
    points: Points = []
    for own, of_group in drawn:
        group = case_text({axis: value for axis, value in own.items() if axis not in shared})
        several = len({point["panel"] for point in of_group}) > 1
        for point in of_group:
            panel = t("{what}: {which}", what=group, which=point["panel"]) if several else group
            points.append({**point, "panel": panel, "residual": None})
    return shared, points


def _title(suite_cases: SuiteCases, sweep: Sweep) -> str:
    if sweep.of_epochs and suite_cases.epochs:
        return t("Epoch of {images} images", images=f"{suite_cases.epochs.images:,}")
    return sweep.title


def _has_published(variant: Variant) -> bool:
    """Whether the variant has a published point that is not a level."""
    return any(point["published"] and not point["rule"] for point in variant.points)


def _caption(suite_cases: SuiteCases, shared: dict[str, Any], points: Points, left_out: int) -> str:
    """The axes that all lines share, and the meanings of the marks in the chart."""
    which = ", ".join(filter(None, [protocol_words(suite_cases.protocol), case_text(shared, suite_cases.varying)]))
    sentences = [t("{cases}.", cases=which)]
    if any(point["low"] is not None and point["mark"] != "fit" for point in points):
        sentences.append(
            t("Bars: from the smallest to the largest trial; of a single trial, the quartiles of its blocks.")
        )
    if any(point["mark"] == "fit" for point in points):
        sentences.append(t("Lines through points: the throughput model (see its table)."))
    if any(point["residual"] is not None for point in points):
        sentences.append(t("Below: how far the points are off their lines."))
    if any(point["low"] is not None and point["mark"] == "fit" for point in points):
        sentences.append(t("Shaded: the 95 % interval of the line at each batch size, if the model holds."))
    if any(point["published"] for point in points):
        sentences.append(t("Grey and dashed: published, on other hardware."))
    if left_out:
        sentences.append(t("{count} more such panels are not drawn: see the tables.", count=left_out))
    return prose([*sentences, *suite_cases.flags()])
