"""Sweeps: the charts over an axis, and the lines of each chart, as points."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from tsuishi.base.language import in_language
from tsuishi.estimates import throughput
from tsuishi.estimates.line_fit import FEWEST_POINTS, Fit, Point, fit
from tsuishi.report.parts.suite_cases import SuiteCases, published_name
from tsuishi.report.parts.wording import case_text, label, vocabulary_in_use
from tsuishi.specs.case import BATCH_SIZE, DEVICES, MODEL, PROTOCOL, SUITE
from tsuishi.specs.numbers_of_cases import numbers_by_network
from tsuishi.specs.source import Number

# Readers cannot distinguish more lines: more are split into several charts. Variants are the lines of an environment.
MOST_VARIANTS = 6
_MOST_LINES = 12
_FITTED_POINTS = 40

# The axes that all cases of a suite and protocol share.
_COMMON = (SUITE, PROTOCOL)


class Sweep(NamedTuple):
    """A chart over an axis: a panel per quantity (all of the same unit), a line per environment and variant."""

    title: str
    axis: str
    quantities: tuple[str, ...]
    # Whether lines are those of the throughput model; other lines go from point to point.
    fitted: bool = False
    # Whether the chart shows whole epochs: its title then gives their number of images.
    of_epochs: bool = False
    # Whether only charts with a published line are drawn, if any chart has such a line.
    published_first: bool = False
    # Of a source's picture: the values below that have a tick even without a point; the scale of its quantities,
    # else the scale of their unit.
    ticks: tuple[int, ...] = ()
    scale: Literal["", "linear", "log"] = ""


def sweeps() -> list[Sweep]:
    """All sweeps. A suite has a sweep's chart if it has the sweep's quantities at two or more values of the axis.

    A size axis of a suite's own has the same sweeps as the common size axes.
    """
    known, declared = vocabulary_in_use(), []
    own = [name for name, axis in known.axes.items() if name not in known.everywhere and axis.is_size]
    for name, quantity in known.quantities.items():
        if quantity.over:
            together = (name, *(other for other, entry in known.quantities.items() if entry.drawn_with == name))
            title, over = in_language(quantity.chart or quantity.label), known.axis(quantity.over)
            sweep = Sweep(title, over.name, together, quantity.fitted, quantity.of_epochs, quantity.published_first)
            declared.append(sweep)
            sizes = [axis for axis in own if over.is_size and axis != over.name]
            declared += [sweep._replace(axis=axis, fitted=False) for axis in sizes]
    return declared


CaseAxes = dict[str, Any]
Points = list[dict[str, Any]]


class Variant(NamedTuple):
    """The lines with the same axes: a line per environment and published hardware. The points have no series yet."""

    axes: CaseAxes
    points: Points


def sweep_charts(variants: Iterable[Variant]) -> list[list[Variant]]:
    """The variants of a sweep, chart by chart."""
    charts: dict[str, list[Variant]] = {}
    for variant in variants:
        shared = {axis: value for axis, value in variant.axes.items() if axis not in vocabulary_in_use().line_axes}
        charts.setdefault(str(shared), []).append(variant)
    return [part for _, of_chart in sorted(charts.items()) for part in _readable(of_chart)]


def sweep_points(variants: list[Variant], sweep: Sweep) -> tuple[CaseAxes, Points]:
    """The points of a chart, and the axes that all its lines share.

    Keys: series (the name of a line), owner (environment or hardware), whose (the owner, with the name of the level
    for a level), variant (in words; empty where the chart has a single variant), published, rule, mark, panel, x, y,
    low, high, residual. A rule is a level: it has no x, since the number of devices does not change it, and every
    variant with the level's axes shows it. mark: `fit` for a point of the model's line (low, high: the ends of its 95 %
    interval, of measured lines), `point` for a point that the model was fitted to (`residual`: its distance from the
    line in %), empty for a point with a line through it. A point that several variants share is there once.
    """
    shared = shared_axes([variant.axes for variant in variants])
    telling = {axis for variant in variants for axis in variant.axes} - set(shared)
    points: dict[tuple[Any, ...], dict[str, Any]] = {}
    for variant in variants:
        of_variant = case_text(variant.axes, telling)
        for point in variant.points:
            text = "" if point["rule"] else case_text(point["axes"], telling) if "axes" in point else of_variant
            named = {**point, "variant": text, "series": ", ".join(filter(None, [point["whose"], text])), "mark": ""}
            named.pop("axes", None)
            term = named.pop("term", None)
            points[tuple(named.items())] = {**named, "residual": None, "term": term}
    drawn = list(points.values())
    _part_single_trials(drawn)
    drawn += _fitted(drawn) if sweep.fitted else ()
    panels = list(map(label, sweep.quantities))
    drawn.sort(key=lambda point: panels.index(point["panel"]))
    for point in drawn:
        point.pop("term")
    return shared, drawn


def shared_axes(several: Sequence[CaseAxes]) -> CaseAxes:
    """The axes that have the same value in all of them, in the order of the first."""
    return {axis: value for axis, value in several[0].items() if all(axes.get(axis) == value for axes in several)}


def _part_single_trials(points: Points) -> None:
    """Mark the points of measured lines through which no line goes."""
    lines: dict[tuple[str, str], Points] = {}
    for point in points:
        if not point["published"] and not point["rule"]:
            lines.setdefault((point["series"], point["panel"]), []).append(point)
    for line in lines.values():
        if not has_line([point["term"].trials if point["term"] else 1 for point in line]):
            for point in line:
                point["mark"] = "point"


def has_line(trials: Sequence[int]) -> bool:
    """Whether a line joins measured points, each of so many trials.

    A line to a point of a single trial would show a trend that was not measured.
    """
    return len(trials) > 2 or min(trials) > 1


def sweep_variants(suite_cases: SuiteCases, sweep: Sweep) -> list[Variant]:
    """The variants of a sweep of a suite and protocol, but those whose measured lines have a single point.

    Where lines are fitted, published times of epochs become times of steps.
    """
    variants: dict[tuple[tuple[str, Any], ...], Points] = {}
    rules: list[tuple[CaseAxes, dict[str, Any]]] = []
    shared: CaseAxes = {}
    known = vocabulary_in_use()
    left_out = {*_COMMON, *known.level_axes, sweep.axis}
    for case in (case for case in suite_cases.estimates if case.quantity in sweep.quantities):
        case_axes = suite_cases.axes[case.case_id]
        variant = {name: value for name, value in case_axes.items() if name not in left_out}
        if level := known.level(case_axes):
            rules.append((variant, {**_point(case, None), "whose": f"{case.column}, {level}", "rule": True}))
        elif sweep.axis in case_axes:
            shared = {name: case_axes[name] for name in _COMMON}
            point = _point(case, case_axes[sweep.axis])
            point["term"] = suite_cases.evidence.terms.get((case.case_id, case.column, case.quantity))
            variants.setdefault(tuple(variant.items()), []).append(point)
    lines = [item for item in variants.items() if _turns(item[1])]
    by_network = numbers_by_network(suite_cases.numbers if lines else ())
    published: dict[Any, list[tuple[CaseAxes, Points]]] = {}
    drawn = []
    # Fewer devices first: the baseline is the solid line.
    for key, points in sorted(lines, key=lambda item: (dict(item[0]).get(DEVICES, 0), str(item[0]))):
        given = {**shared, **dict(key)}
        points += [point for variant, point in rules if variant.items() <= given.items()]
        network = given.get(MODEL)
        if network not in published:
            of_network = by_network.get(network, by_network[None])
            hardware = suite_cases.hardware
            published[network] = [_published_points(each, hardware[each.key].title, sweep) for each in of_network]
        for fixed, several in published[network]:
            points += several if fixed.items() <= given.items() else ()
        drawn.append(Variant(dict(key), points))
    return drawn


def _point(case: Any, x: Any) -> dict[str, Any]:
    """A measured point at x, with its spread, if any."""
    low, high = (case.low, case.high) if case.spread_kind else (None, None)
    where = {"owner": case.column, "whose": case.column, "panel": label(case.quantity)}
    return {**where, "published": False, "rule": False, "x": x, "y": case.estimate, "low": low, "high": high}


def _published_points(number: Number, hardware: str, sweep: Sweep) -> tuple[CaseAxes, Points]:
    """The axes that a variant needs for a published number, and the number as a point in every panel that shows it."""
    if sweep.fitted and number.quantity == "median_epoch_s" and BATCH_SIZE in number.axes:
        step_s = throughput.step_time({number.quantity: number.value}, number.axes, number.epochs)
        number = number._replace(quantity="step_s", value=step_s) if step_s else number
    if number.quantity not in sweep.quantities:
        return {}, []
    rule, apart = bool(vocabulary_in_use().level(number.axes)), (sweep.axis, *vocabulary_in_use().level_axes)
    if not (rule or sweep.axis in number.axes):
        return {}, []
    fixed = {name: value for name, value in number.axes.items() if name not in apart}
    name = published_name(hardware)
    base = {"owner": name, "whose": name, "published": True, "rule": rule, "axes": number.axes}
    base |= {"low": None, "high": None, "x": number.axes.get(sweep.axis), "y": number.value}
    # A source may compare a level with any of the quantities, so every panel shows the level.
    quantities = sweep.quantities if rule else (number.quantity,)
    return fixed, [{**base, "panel": label(quantity)} for quantity in quantities]


def _turns(points: Points) -> bool:
    """Whether a line of these measured points has two points or more."""
    xs: dict[tuple[str, str], set[Any]] = {}
    for point in points:
        xs.setdefault((point["whose"], point["panel"]), set()).add(point["x"])
    return any(len(xs_of_line) > 1 for xs_of_line in xs.values())


def _readable(variants: list[Variant]) -> Iterator[list[Variant]]:
    """The variants of each chart; too many variants are split by the first axis in which they differ."""
    values = {
        axis: list(dict.fromkeys(str(variant.axes.get(axis)) for variant in variants))
        for axis in vocabulary_in_use().line_axes
    }
    differing = [axis for axis, several in values.items() if len(several) > 1]
    lines = sum(len({point["whose"] for point in variant.points if not point["published"]}) for variant in variants)
    if (len(variants) <= MOST_VARIANTS and lines <= _MOST_LINES) or not differing:
        yield variants
        return
    for value in values[differing[0]]:
        yield from _readable([variant for variant in variants if str(variant.axes.get(differing[0])) == value])


def _fitted(points: Points) -> Points:
    """Points of the model's line for every series of three points or more; marks the series' own points in `points`."""
    several: dict[str, Points] = {}
    for point in points:
        if not point["rule"]:
            several.setdefault(point["series"], []).append(point)
    drawn: Points = []
    for _, of_series in sorted(several.items()):
        enough = len(of_series) >= FEWEST_POINTS
        found = fit(Point(point["x"], point["y"], point["term"]) for point in of_series) if enough else None
        if found:
            off = {residual.batch_size: residual.percent for residual in found.residuals}
            for point in of_series:
                point |= {"mark": "point", "residual": off[point["x"]]}
            drawn += _line(of_series[0], found)
    return drawn


def _line(point: dict[str, Any], found: Fit) -> Iterator[dict[str, Any]]:
    """Points of a line over its batch sizes. point: of the line's series.

    A band that reaches 0 has no place on a log scale, and shows that almost nothing is known: it is left out.
    """
    for x in fitted_sizes([residual.batch_size for residual in found.residuals]):
        band = None if point["published"] else found.band(x)
        low, high = band if band and band.low > 0 else (None, None)
        yield {**point, "mark": "fit", "residual": None, "x": x, "y": found.step_s(x), "low": low, "high": high}


def fitted_sizes(sizes: Sequence[float]) -> Iterator[float]:
    """The batch sizes at which a line of the model over these sizes is drawn, in equal ratios."""
    least, most = min(sizes), max(sizes)
    ratio = (most / least) ** (1 / (_FITTED_POINTS - 1))
    return (least * ratio**step for step in range(_FITTED_POINTS))
