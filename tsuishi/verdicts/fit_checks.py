"""The comparisons of checks on fits: parameters of lines over batch sizes, and the distances of points to the lines.

The lines are those of the throughput model: see estimates/throughput.py.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tsuishi.estimates import throughput
from tsuishi.estimates.intervals import InSession, Round, Term, student
from tsuishi.estimates.line_fit import Fit, Point, fit
from tsuishi.estimates.unseen import rounding_of
from tsuishi.estimates.variances import Pool
from tsuishi.specs.case import BATCH_SIZE
from tsuishi.specs.claims import Check
from tsuishi.specs.selections import Selection
from tsuishi.verdicts.findings import Finding, on_side
from tsuishi.verdicts.hypotheses import Element, Missing, Side, pairs

# The batch size of a point, and its term: the logarithm of the seconds of a step.
TimedBatch = tuple[int, Term]
# How the logarithms of the parameters follow those of the steps, if these all take longer.
_FOLLOWS = {"v0": -1.0, "t_cost": 1.0, "b_half": 0.0}
# So much longer, as a logarithm, is a step by which a derivative is taken.
_LONGER = 1e-4


def parameters(check: Check, findings: Sequence[Finding]) -> list[Element] | Missing:
    """Comparisons of a parameter, for pairs of lines that differ only in the axes of `of` and `to`.

    Missing where there are fewer comparisons than the check needs.
    """
    quantities = check.quantity, check.to_quantity or check.quantity
    of = _lines(check, findings, check.of, quantities[0])
    to = _lines(check, findings, check.to or {}, quantities[1])
    elements = pairs(check, of, to, (f"of {quantities[0]}", f"to {quantities[1]}"))
    if len(elements) < check.fewest:
        missing = "of" if not of else "to" if not to else "both"
        return Missing(missing, {**check.case, **(check.of if missing != "to" else check.to or {})})
    return elements


def residuals(check: Check, findings: Sequence[Finding]) -> list[Element] | Missing:
    """The ratio of every point to its line, for lines of three points or more.

    Missing where there are fewer ratios than the check needs.
    """
    elements = []
    for line, points in _points(check, findings, check.of, check.quantity):
        fitted = _fit(points)
        if fitted and len(points) >= check.points:
            for batch_size, term in points:
                axes = {**line.axes, BATCH_SIZE: batch_size}
                key = line.series, frozenset(axes.items()), "residual"
                elements.append(Element(axes, {key: (1.0, term)}, math.log(fitted.step_s(batch_size))))
    if len(elements) < check.fewest:
        return Missing("of", {**check.case, **check.of})
    return elements


def _lines(check: Check, findings: Sequence[Finding], selection: Selection, quantity: str) -> list[Side]:
    """The lines of a side: a finding without batch size, and the logarithm of the line's parameter."""
    lines = []
    for line, points in _points(check, findings, selection, quantity):
        # Sources print the parameters of the time of a step, not of other quantities.
        term = (None if quantity else _printed(check.parameter, line)) or _fitted(check.parameter, points)
        if term:
            lines.append((line, term))
    return lines


def _points(
    check: Check, findings: Sequence[Finding], selection: Selection, quantity: str
) -> Iterator[tuple[Finding, list[TimedBatch]]]:
    """Every line over batch sizes, as a finding without batch size, and its points."""
    lines: dict[tuple[str, frozenset[tuple[str, Any]]], tuple[Finding, list[TimedBatch]]] = {}
    for finding in on_side(findings, check, selection):
        axes = {axis: value for axis, value in finding.axes.items() if axis != BATCH_SIZE}
        key = finding.series, frozenset(axes.items())
        if key not in lines:
            of_line = Finding(finding.series, axes, finding.framework, finding.logs, finding.values)
            lines[key] = replace(of_line, partial=finding.partial), []
        term = _step_time(finding, quantity)
        if term and BATCH_SIZE in finding.axes:
            lines[key][1].append((finding.axes[BATCH_SIZE], term))
    yield from lines.values()


def _step_time(finding: Finding, quantity: str) -> Term | None:
    """The term of `quantity`; without a quantity, of the time of a step, or of an epoch divided by its steps."""
    if quantity:
        return finding.logs.get(quantity)
    timed = throughput.timed_by(finding.logs, finding.axes, finding.epochs)
    if timed is None:
        return None
    term = finding.logs[timed]
    seconds = throughput.step_time({timed: math.exp(term.mean)}, finding.axes, finding.epochs)
    if not seconds:
        return None
    of_steps = math.log(seconds) - term.mean
    sessions = {session: each._replace(mean=each.mean + of_steps) for session, each in term.sessions.items()}
    return term._replace(mean=math.log(seconds), sessions=sessions)


def _printed(parameter: str, line: Finding) -> Term | None:
    """The logarithm of a parameter as the source prints it; None where it is not printed."""
    if parameter == "b_half":
        factors = [line.logs.get(name) for name in throughput.PRINTED.values()]
        return None if None in factors else Term(sum(factor.mean for factor in factors if factor), 0, None)
    return line.logs.get(throughput.PRINTED[parameter])


def _fit(points: Sequence[TimedBatch]) -> Fit | None:
    return fit(Point(batch_size, math.exp(term.mean), term) for batch_size, term in points)


def _fitted(parameter: str, points: Sequence[TimedBatch]) -> Term | None:
    """The logarithm of a line's parameter, with the error of the fit on trials: see estimates/line_fit.py.

    A parameter of 0 or less has the logarithm of 0, and an interval without bounds: a line that is left out would leave
    those that chance put on the other side. So has a line through two batch sizes whose trials show no scatter, and a
    line whose batch sizes were measured apart, or that a session does not give.
    """
    fitted = _fit(points)
    if fitted is None:
        return None
    value, trials = getattr(fitted, parameter), min(term.trials for _, term in points)
    known = Term(math.log(value) if value > 0 else -math.inf, trials, None)
    if not trials:
        return known
    interval, covariance, sessions = (
        getattr(fitted, f"{parameter}_interval"),
        fitted.covariance,
        _sessions(parameter, points),
    )
    if fitted.variance is None and trials == 1 and value > 0:
        return known
    if sessions is None or not (covariance and interval.low > 0 and interval.high < math.inf):
        return known._replace(pool=Pool(math.inf, 1))
    of_rounds, freedom = covariance.of_rounds, covariance.freedom
    if parameter != "b_half":
        freedom = covariance.error(*((1, 0, 1 / value) if parameter == "v0" else (0, 1, value))).freedom
    # The variance of a mean is that of its pool over `trials`.
    variance = trials * (math.log(interval.high / interval.low) / 2 / student(freedom)) ** 2
    walk = _walk(parameter, points, known.mean)
    environment, rounding = points[0][1].environment, _rounding(parameter, points, known.mean)
    known = known._replace(
        pool=Pool(variance, freedom), sessions=sessions, walk=walk, environment=environment, rounding=rounding
    )
    rounds = {term.rounds for _, term in points}
    if of_rounds is None or len(rounds) > 1:
        return known
    apart = variance if parameter == "b_half" else max(0.0, variance - trials * of_rounds.variance)
    return known._replace(rounds=rounds.pop(), in_rounds=Pool(apart, covariance.freedom))


def _walk(parameter: str, points: Sequence[TimedBatch], logarithm: float) -> dict[Round, float]:
    """The weights of rounds in the logarithm of a parameter, by its derivatives by the logarithms of the steps."""
    if len({frozenset(term.walk.items()) for _, term in points}) == 1:  # derivatives do not matter
        return {each: _FOLLOWS[parameter] * share for each, share in points[0][1].walk.items()}
    weights: dict[Round, float] = {}
    for follow, (_, term) in zip(_derivatives(parameter, points, logarithm), points, strict=True):
        for each, share in term.walk.items():
            weights[each] = weights.get(each, 0.0) + follow * share
    return weights


def _rounding(parameter: str, points: Sequence[TimedBatch], logarithm: float) -> float:
    """The most by which rounded steps make the logarithm of a parameter wrong, by its derivatives."""
    if not any(term.rounding for _, term in points):
        return 0.0
    weighted = zip(_derivatives(parameter, points, logarithm), (term for _, term in points), strict=True)
    return rounding_of([*weighted])


def _derivatives(parameter: str, points: Sequence[TimedBatch], logarithm: float) -> list[float]:
    """The derivatives of the logarithm of a parameter by the logarithms of the steps of each batch size."""
    follows = []
    for place, (batch_size, term) in enumerate(points[:-1]):
        line = _fit([*points[:place], (batch_size, term._replace(mean=term.mean + _LONGER)), *points[place + 1 :]])
        value = getattr(line, parameter) if line else 0.0
        follows.append((math.log(value) - logarithm) / _LONGER if value > 0 else 0.0)
    return [*follows, _FOLLOWS[parameter] - math.fsum(follows)]


def _sessions(parameter: str, points: Sequence[TimedBatch]) -> dict[str, InSession] | None:
    """The logarithm of a parameter by the line of each session that measured all batch sizes; empty for no sessions.

    None where no session measured them all, and where a session has no line, or a parameter of 0 or less.
    """
    known = [(batch_size, term.sessions) for batch_size, term in points if term.sessions]
    found: dict[str, InSession] = {}
    for session in set.intersection(*({*means} for _, means in known)) if known else ():
        line = fit(Point(batch_size, math.exp(means[session].mean)) for batch_size, means in known)
        value = getattr(line, parameter) if line else 0.0
        if value <= 0:
            return None
        trials, day = min(means[session].trials for _, means in known), known[0][1][session].day
        found[session] = InSession(math.log(value), trials, day)
    return found if found or not known else None
