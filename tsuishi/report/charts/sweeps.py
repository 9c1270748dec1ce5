"""Sweeps: what is drawn over one axis, chart by chart and line by line, as frames of points."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from tsuishi.base.language import mark, t
from tsuishi.estimates import throughput
from tsuishi.report.parts.comparison import published_name
from tsuishi.report.parts.wording import case_text
from tsuishi.results.frames import dict_rows
from tsuishi.specs.quantities import QUANTITIES
from tsuishi.specs.source import Number

FIRST_AND_LATER = mark("First and later runs")
# Added to the environment SciPy ran in.
SCIPY = ", SciPy"
# More lines than that of one environment are not told apart; they go to several charts.
MOST_VARIANTS = 6
_MOST_LINES = 12
_FITTED_POINTS = 40

# Axes that all cases share, or that have looks of their own.
_COMMON = ("suite", "protocol", "implementation")
# Axes that tell one line of a chart from another, as long as there are few; by all others charts are told apart. Too
# many lines are spread over charts by the first of these that differs.
_BETWEEN_LINES = ("strategy", "devices", "precision", "execution", "layout", "pipeline")


class Sweep(NamedTuple):
    """A chart over one axis: a panel per quantity (in the same unit), a line per environment and variant."""

    title: str
    axis: str
    quantities: tuple[str, ...]
    # Whether lines are those of the throughput model, and not from point to point.
    fitted: bool = False
    # Whether it is of whole epochs, whose length belongs into the title.
    of_epochs: bool = False
    # Whether charts without a published line are left out where others have one.
    published_first: bool = False


# What is drawn of a suite that has these quantities at two or more values of the axis.
SWEEPS = (
    # Runs that no source had are in a table; a chart for each would bury the source's own.
    Sweep(FIRST_AND_LATER, "devices", ("first_run_s", "later_run_s"), published_first=True),
    Sweep(mark("Transfer and compute"), "devices", ("host_to_device_s", "compute_s", "device_to_host_s")),
    Sweep(mark("Step"), "batch_size", ("step_s",), fitted=True),
    Sweep(mark("Throughput"), "batch_size", ("throughput_images_per_s",)),
    Sweep(mark("Epoch"), "batch_size", ("first_epoch_s", "median_epoch_s"), of_epochs=True),
)

Axes = dict[str, Any]


class Variant(NamedTuple):
    """Lines of the same axes, one of each environment and each published hardware: points without series."""

    axes: Axes
    points: list[dict[str, Any]]


def sweep_charts(
    cases: pd.DataFrame, axes: dict[str, Axes], numbers: list[Number], titles: dict[str, str], sweep: Sweep
) -> list[list[Variant]]:
    """The variants of a sweep, chart by chart; one in which no line of ours turns is left out.

    cases: of one suite and protocol, as estimates.case_estimates. axes: by case id. titles: of published hardware, by
    Number.key. Published epochs are drawn as steps too where lines are fitted.
    """
    charts: dict[str, list[Variant]] = {}
    for variant in _variants(cases, axes, numbers, titles, sweep):
        shared = {axis: value for axis, value in variant.axes.items() if axis not in _BETWEEN_LINES}
        charts.setdefault(str(shared), []).append(variant)
    return [part for _, variants in sorted(charts.items()) for part in _readable(variants)]


def sweep_points(variants: list[Variant], sweep: Sweep) -> tuple[Axes, pd.DataFrame]:
    """The points of a chart as a frame, and the axes that all its lines share.

    Columns: series (what a line is called), whose (environment, or hardware), variant (in words, empty where a chart
    has one), published, rule, mark, panel, x, y, low, high, residual. A rule is a level without x: SciPy runs on one
    CPU, however many towers the others have, and is drawn with every variant that has all its axes. mark: `fit` for the
    model's line, `point` for what lies about it (`residual`: how far off, in %), else both at once. What several
    variants have in common is there once.
    """
    first = variants[0].axes
    shared = {axis: value for axis, value in first.items() if all(one.axes.get(axis) == value for one in variants)}
    telling = {axis for one in variants for axis in one.axes} - set(shared)
    rows: dict[str, dict[str, Any]] = {}
    for variant in variants:
        for point in variant.points:
            text = "" if point["rule"] else case_text(point.get("axes", variant.axes), telling)
            named = {**point, "variant": text, "series": ", ".join(filter(None, [point["whose"], text])), "mark": ""}
            named.pop("axes", None)
            rows[str(named)] = named
    frame = pd.DataFrame(list(rows.values())).assign(residual=None)
    frame = frame.astype({"low": float, "high": float, "residual": float})
    return shared, pd.concat([frame, *_fitted(frame)], ignore_index=True) if sweep.fitted else frame


def _variants(
    cases: pd.DataFrame, axes: dict[str, Axes], numbers: list[Number], titles: dict[str, str], sweep: Sweep
) -> list[Variant]:
    variants: dict[tuple[tuple[str, Any], ...], list[dict[str, Any]]] = {}
    rules: list[tuple[Axes, dict[str, Any]]] = []
    shared: Axes = {}
    for case in dict_rows(cases[cases["quantity"].isin(sweep.quantities)]):
        of = axes[case["case_id"]]
        variant = {name: value for name, value in of.items() if name not in (*_COMMON, sweep.axis)}
        if of.get("implementation") == "scipy":
            rules.append((variant, {**_point(case, None), "whose": case["column"] + SCIPY, "rule": True}))
        elif sweep.axis in of:
            shared = {"suite": of["suite"], "protocol": of["protocol"]}
            variants.setdefault(tuple(variant.items()), []).append(_point(case, of[sweep.axis]))
    found = []
    # Fewer devices first: the baseline is the solid line.
    for key, points in sorted(variants.items(), key=lambda one: (dict(one[0]).get("devices", 0), str(one[0]))):
        given = {**shared, **dict(key)}
        points += [point for variant, point in rules if variant.items() <= given.items()]
        points += [point for number in numbers for point in _published_points(number, given, titles, sweep)]
        if _turns(points):
            found.append(Variant(dict(key), points))
    return found


def _point(case: dict[Any, Any], x: Any) -> dict[str, Any]:
    """A point of ours at x, with its spread where it has one."""
    low, high = (case["low"], case["high"]) if case["spread_kind"] else (None, None)
    what = {"whose": case["column"], "published": False, "rule": False, "panel": t(QUANTITIES[case["quantity"]].label)}
    return {**what, "x": x, "y": case["estimate"], "low": low, "high": high}


def _published_points(number: Number, variant: Axes, titles: dict[str, str], sweep: Sweep) -> Iterable[dict[str, Any]]:
    """A published number as a point of every panel it belongs to."""
    rule = number.axes.get("implementation") == "scipy"
    fixed = {name: value for name, value in number.axes.items() if name not in (sweep.axis, "implementation")}
    if any(variant.get(name) != value for name, value in fixed.items()):
        return
    if sweep.fitted and number.quantity == "median_epoch_s" and "batch_size" in number.axes:
        step_s = throughput.step_time({number.quantity: number.value}, number.axes, number.epochs)
        number = replace(number, quantity="step_s", value=step_s) if step_s else number
    if number.quantity not in sweep.quantities:
        return
    if rule or sweep.axis in number.axes:
        # The source compares its SciPy figure with first runs too, so the level is drawn through every panel.
        for quantity in sweep.quantities if rule else (number.quantity,):
            base = {"whose": published_name(titles[number.key]), "published": True, "rule": rule, "axes": number.axes}
            base = {**base, "panel": t(QUANTITIES[quantity].label), "low": None, "high": None}
            yield {**base, "x": number.axes.get(sweep.axis), "y": number.value}


def _turns(points: list[dict[str, Any]]) -> bool:
    """Whether some line of ours has two points or more."""
    xs: dict[tuple[str, str], set[Any]] = {}
    for point in points:
        if not point["published"] and not point["rule"]:
            xs.setdefault((point["whose"], point["panel"]), set()).add(point["x"])
    return any(len(found) > 1 for found in xs.values())


def _readable(variants: list[Variant]) -> Iterator[list[Variant]]:
    """The variants of a chart as they are, or where they are too many, by the first axis in which they differ."""
    values = {axis: list(dict.fromkeys(str(one.axes.get(axis)) for one in variants)) for axis in _BETWEEN_LINES}
    differing = [axis for axis, found in values.items() if len(found) > 1]
    lines = sum(len({point["whose"] for point in one.points if not point["published"]}) for one in variants)
    if (len(variants) <= MOST_VARIANTS and lines <= _MOST_LINES) or not differing:
        yield variants
        return
    for value in values[differing[0]]:
        yield from _readable([one for one in variants if str(one.axes.get(differing[0])) == value])


def _fitted(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The model's line for every series of three points or more, whose own points are then marked as such."""
    for _, points in frame[~frame["rule"]].groupby("series"):
        fit = throughput.fit(zip(points["x"], points["y"], strict=True)) if len(points) > 2 else None
        if fit:
            frame.loc[points.index, "mark"] = "point"
            off = {one.batch_size: one.percent for one in fit.residuals}
            frame.loc[points.index, "residual"] = points["x"].map(off)
            ratio = (points["x"].max() / points["x"].min()) ** (1 / (_FITTED_POINTS - 1))
            xs = [points["x"].min() * ratio**step for step in range(_FITTED_POINTS)]
            line = points.head(1)[["series", "whose", "variant", "published", "rule", "panel"]]
            yield line.merge(pd.DataFrame({"x": xs, "y": list(map(fit.step_s, xs)), "mark": "fit"}), how="cross")
