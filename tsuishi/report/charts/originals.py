"""Originals: the figures of sources again, with our points in the same frame."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from tsuishi.base.language import in_language
from tsuishi.estimates.line_fit import FEWEST_POINTS, Fit, Point, fit
from tsuishi.report.charts import figures
from tsuishi.report.charts.sweeps import Points, Sweep, fitted_sizes, has_line
from tsuishi.report.parts.standing import PublishedStanding
from tsuishi.report.parts.wording import label
from tsuishi.specs.pictures import Picture

# Values that lie farther apart than this cannot be read off one linear scale.
_FAR_APART = 10.0


def original_chart(picture: Picture, points: Points, owners: tuple[list[str], list[str]]) -> dict[str, Any]:
    """A figure of a source as a Vega-Lite specification. owners: all environments, and all hardware of the source."""
    ticks = tuple(value for value in picture.values if isinstance(value, int))
    title, scale = in_language(picture.title), scale_of(picture, points)
    return figures.sweep_chart(points, Sweep(title, picture.x, picture.quantities, ticks=ticks, scale=scale), *owners)


def scale_of(picture: Picture, points: Points) -> Literal["linear", "log"]:
    """The scale of the source; a logarithmic scale where our points make its values lie far apart."""
    every = [point["y"] for point in points]
    ours = any(not point["published"] for point in points)
    return "log" if ours and 0 < _FAR_APART * min(every) < max(every) else picture.scale


def original_points(picture: Picture, theirs: Sequence[PublishedStanding], ours: Sequence[PublishedStanding]) -> Points:
    """The points of a figure, with the keys of sweeps.sweep_points: line by line, those of the source first."""
    if picture.line:
        return [*_printed_lines(picture, theirs), *_fitted_points(picture, ours)]
    lines: dict[tuple[str, str], list[PublishedStanding]] = {}
    for each in (*theirs, *ours):
        if each.value is not None:
            lines.setdefault((each.label, each.quantity), []).append(each)
    return [
        {**_point(picture, each), "mark": "" if line[0].published or has_line(trials) else "point"}
        for line in lines.values()
        for trials in [[each.trials for each in line]]
        for each in line
    ]


def _point(picture: Picture, each: PublishedStanding) -> dict[str, Any]:
    series = picture.series[each.place]
    rule = each.x is None
    where = {"series": each.label, "owner": each.owner, "whose": "" if rule and not each.published else each.owner}
    # A level's quantity is not that of the panel that shows it.
    panel = label(picture.quantities[0] if series.quantity else each.quantity)
    kind = {"variant": in_language(series.title), "published": each.published, "rule": rule, "panel": panel}
    spread = {"low": None, "high": None} if rule else {"low": each.low, "high": each.high}
    return {**where, **kind, "mark": "", "x": each.x, "y": each.value, **spread, "residual": None}


def _printed_lines(picture: Picture, theirs: Sequence[PublishedStanding]) -> Iterator[dict[str, Any]]:
    """The curves of the constants that the source prints, over the picture's values."""
    assert picture.line
    sizes = [float(value) for value in picture.values]
    for first in (each for each in theirs if each.quantity == picture.line[0]):
        # The panel of a line is that of the picture's quantity.
        panel = label(picture.quantities[0])
        point = {**_point(picture, first), "panel": panel, "rule": False, "whose": first.owner}
        yield from _curve(point, sizes, *constants(picture, theirs, first))


def constants(picture: Picture, theirs: Iterable[PublishedStanding], first: PublishedStanding) -> tuple[float, float]:
    """v0 and t_cost of the printed line that a number belongs to."""
    assert picture.line
    of_line = {each.quantity: each.value or math.nan for each in theirs if each.label == first.label}
    return of_line[picture.line[0]], of_line[picture.line[1]]


def _fitted_points(picture: Picture, ours: Sequence[PublishedStanding]) -> Iterator[dict[str, Any]]:
    """Our points, and the line of the model through those of an environment, where they are enough."""
    lines: dict[str, list[PublishedStanding]] = {}
    for each in ours:
        if each.value is not None:
            lines.setdefault(each.label, []).append(each)
    for line in lines.values():
        yield from ({**_point(picture, each), "mark": "point"} for each in line)
        timed = [Point(each.x, each.step_s, each.step_term) for each in line if each.step_s]
        found = fit(timed) if len(timed) >= FEWEST_POINTS else None
        if found:
            yield from _curve(_point(picture, line[0]), [each.x for each in line], found.v0, found.t_cost, found)


def _curve(
    base: dict[str, Any], sizes: Sequence[float], v0: float, t_cost: float, found: Fit | None = None
) -> Iterator[dict[str, Any]]:
    """Points of v(b) = b / (b / v0 + t_cost) over batch sizes. found: the fit of the line; None for a printed line.

    A band that reaches 0 s has no upper end: it is left out.
    """
    for x in fitted_sizes(sizes):
        band = found.band(x) if found else None
        low, high = (x / band.high, x / band.low) if band and band.low > 0 else (None, None)
        yield {**base, "mark": "fit", "x": x, "y": x / (x / v0 + t_cost), "low": low, "high": high}
