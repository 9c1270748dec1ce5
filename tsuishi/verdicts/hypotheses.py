"""Elements: the comparisons that a check asks for, of any kind, each a weighted sum of terms (kinds: see claims.py)."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tsuishi.estimates import throughput
from tsuishi.estimates.intervals import Contrast, Pool, Term, contrast, student
from tsuishi.specs.claims import Check, Selection
from tsuishi.verdicts.findings import Finding

# A slope through two points has no residual; with three it begins to be one.
_FEWEST_ALONG = 3
IMBALANCE = "gpu_imbalance"

Key = tuple[str, frozenset[tuple[str, Any]], str]
# A finding, or a line, and what is compared of it.
Side = tuple[Finding, Term]


@dataclass(frozen=True)
class Element:
    """One comparison: weighted terms by what they are of, less `shift`; the axes that tell it from the others."""

    axes: Mapping[str, Any]
    weights: Mapping[Key, tuple[float, Term]]
    shift: float = 0.0

    @property
    def contrast(self) -> Contrast:
        found = contrast(self.weights.values())
        return found._replace(value=found.value - self.shift)

    @property
    def trials(self) -> int:
        """Of the case with the fewest."""
        return min(term.trials for _, term in self.weights.values())


class Missing(NamedTuple):
    """Why a check has no outcome: the side that no finding was selected for, or what was found instead."""

    side: str
    selection: Mapping[str, Any]
    statuses: tuple[str, ...] = ()


def is_logarithmic(check: Check) -> bool:
    """Whether a check's regions are of ratios, which are judged as logarithms."""
    return check.kind not in ("trend", "imbalance", "presence") and check.scale == "ratio"


def elements(check: Check, findings: Sequence[Finding]) -> list[Element] | Missing:
    """What a check of any kind but presence compares. Missing where there are fewer comparisons than it needs."""
    if check.kind == "trend":
        return _slopes(check, findings)
    if check.kind == "fit":
        return _residuals(check, findings) if check.parameter == "residual" else _parameters(check, findings)
    return _comparisons(check, findings)


def mean(elements: Sequence[Element]) -> Element:
    """The average comparison; a term that several share has the sum of their weights."""
    share = 1 / len(elements)
    return Element({}, _weighted(elements, [share] * len(elements)), share * sum(one.shift for one in elements))


def _terms(check: Check, finding: Finding) -> Mapping[str, Term]:
    return finding.logs if is_logarithmic(check) or check.kind == "trend" else finding.values


def _rest(finding: Finding, check: Check) -> frozenset[tuple[str, Any]]:
    """The axes in which both sides of a comparison agree: those named on neither."""
    named = {*check.of, *(check.to or {})}
    return frozenset((axis, value) for axis, value in finding.axes.items() if axis not in named)


def _side(check: Check, findings: Sequence[Finding], side: str, quantity: str) -> list[Side] | Missing:
    """The findings of a side that have the quantity."""
    selection = check.of if side == "of" else check.to or {}
    selected = [one for one in findings if one.selected(check.case, selection)]
    found = [(one, terms[quantity]) for one in selected if quantity in (terms := _terms(check, one))]
    if not found:
        statuses = sorted({status for one in selected for status in one.statuses})
        return Missing(side, {**check.case, **selection}, tuple(statuses))
    return found


def _comparisons(check: Check, findings: Sequence[Finding]) -> list[Element] | Missing:
    """Every pair of cases that differ only in what `of` and `to` name; or every case, against a number."""
    quantity = IMBALANCE if check.kind == "imbalance" else check.quantity
    of = _side(check, findings, "of", quantity)
    if isinstance(of, Missing):
        return of
    if check.to is None:
        than = check.than or 0.0
        shift = math.log(than) if is_logarithmic(check) and than > 0 else than
        elements = [Element(one.axes, {_key(one, quantity): (1.0, term)}, shift) for one, term in of]
    else:
        to = _side(check, findings, "to", check.to_quantity or quantity)
        if isinstance(to, Missing):
            return to
        elements = _pairs(check, of, to, (quantity, check.to_quantity or quantity))
    if len(elements) < check.fewest:
        return Missing("both", {**check.case, **(check.to or {}), **check.of})
    return elements


def _pairs(check: Check, of: Sequence[Side], to: Sequence[Side], names: tuple[str, str]) -> list[Element]:
    """The comparisons of two sides: of findings, or lines, that agree in all axes that neither side names."""
    bases: dict[frozenset[tuple[str, Any]], list[Side]] = {}
    for side in to:
        bases.setdefault(_rest(side[0], check), []).append(side)
    return [
        Element(dict(rest), {_key(one, names[0]): (1.0, term), _key(other, names[1]): (-1.0, base)})
        for one, term in of
        for rest in [_rest(one, check)]
        for other, base in bases.get(rest, ())
    ]


def _key(finding: Finding, quantity: str) -> Key:
    return finding.whose, frozenset(finding.axes.items()), quantity


def _slopes(check: Check, findings: Sequence[Finding]) -> list[Element] | Missing:
    """The slopes along an axis: least squares of log values on log axis, which weigh the values linearly."""
    pairs = _comparisons(check.model_copy(update={"fewest": 1}), findings)
    if isinstance(pairs, Missing):
        return pairs
    lines: dict[frozenset[tuple[str, Any]], list[Element]] = {}
    for one in pairs:
        if check.along in one.axes:
            rest = frozenset((axis, value) for axis, value in one.axes.items() if axis != check.along)
            lines.setdefault(rest, []).append(one)
    elements = []
    for rest, line in lines.items():
        xs = [math.log(one.axes[check.along]) for one in line]
        middle = sum(xs) / len(xs)
        spread = sum((x - middle) ** 2 for x in xs)
        if len(set(xs)) >= _FEWEST_ALONG:
            weights = _weighted(line, [(x - middle) / spread for x in xs])
            elements.append(Element(dict(rest), weights))
    if len(elements) < check.fewest:
        return Missing("along", {**check.case, **check.of})
    return elements


def _weighted(elements: Iterable[Element], factors: Iterable[float]) -> dict[Key, tuple[float, Term]]:
    weights: dict[Key, tuple[float, Term]] = {}
    for one, factor in zip(elements, factors, strict=True):
        for key, (weight, term) in one.weights.items():
            weights[key] = (weights.get(key, (0.0, term))[0] + factor * weight, term)
    return weights


def _parameters(check: Check, findings: Sequence[Finding]) -> list[Element] | Missing:
    """Parameters of the lines of both sides, compared where the lines differ only in what `of` and `to` name."""
    quantities = check.quantity, check.to_quantity or check.quantity
    of = _lines(check, findings, check.of, quantities[0])
    to = _lines(check, findings, check.to or {}, quantities[1])
    elements = _pairs(check, of, to, (f"of {quantities[0]}", f"to {quantities[1]}"))
    if len(elements) < check.fewest:
        missing = "of" if not of else "to" if not to else "both"
        return Missing(missing, {**check.case, **(check.of if missing != "to" else check.to or {})})
    return elements


def _lines(check: Check, findings: Sequence[Finding], selection: Selection, quantity: str) -> list[Side]:
    """The lines of a side: each as a finding without its batch size, and the logarithm of its parameter."""
    found = []
    for line, points in _points(check, findings, selection, quantity):
        # What is printed is of whole steps.
        term = (None if quantity else _printed(check.parameter, line)) or _fitted(check.parameter, points)
        if term:
            found.append((line, term))
    return found


def _points(
    check: Check, findings: Sequence[Finding], selection: Selection, quantity: str
) -> Iterator[tuple[Finding, list[tuple[int, Term]]]]:
    """Every line over batch sizes, and its points: (batch size, log seconds a step)."""
    lines: dict[tuple[str, frozenset[tuple[str, Any]]], tuple[Finding, list[tuple[int, Term]]]] = {}
    for one in findings:
        if one.selected(check.case, selection):
            axes = {axis: value for axis, value in one.axes.items() if axis != "batch_size"}
            key = one.whose, frozenset(axes.items())
            if key not in lines:
                lines[key] = Finding(one.whose, axes, one.framework, one.logs, one.values), []
            term = _step_time(one, quantity)
            if term and "batch_size" in one.axes:
                lines[key][1].append((one.axes["batch_size"], term))
    yield from lines.values()


def _step_time(finding: Finding, quantity: str) -> Term | None:
    """The quantity asked for; else a step, or an epoch over its steps."""
    if quantity:
        return finding.logs.get(quantity)
    batch_size = finding.axes.get("batch_size")
    for name, term in finding.logs.items():
        seconds = throughput.step_time({name: math.exp(term.mean)}, batch_size) if batch_size else None
        if seconds:
            return term._replace(mean=math.log(seconds))
    return None


def _printed(parameter: str, line: Finding) -> Term | None:
    if parameter == "b_half":
        parts = [line.logs.get(name) for name in throughput.PRINTED.values()]
        return None if None in parts else Term(sum(part.mean for part in parts if part), 0, None)
    return line.logs.get(throughput.PRINTED[parameter])


def _fit(points: Sequence[tuple[int, Term]]) -> throughput.Fit | None:
    return throughput.fit((batch_size, math.exp(term.mean)) for batch_size, term in points)


def _fitted(parameter: str, points: Sequence[tuple[int, Term]]) -> Term | None:
    """The logarithm of a line's parameter; its error is the fit's, from the scatter of the points about the line."""
    fit = _fit(points)
    value = getattr(fit, parameter) if fit else 0.0
    if fit is None or value <= 0:
        return None
    trials = min(term.trials for _, term in points)
    interval = getattr(fit, f"{parameter}_interval")
    if interval is None or not trials:
        return Term(math.log(value), trials, None)
    freedom = len(points) - 2
    if not (interval.low > 0 and interval.high < math.inf):
        return Term(math.log(value), trials, Pool(math.inf, freedom))
    reach = math.log(interval.high / interval.low) / 2
    error = reach / student(freedom)
    # As a mean of `trials`, it is divided by them again.
    return Term(math.log(value), trials, Pool(error**2 * trials, freedom))


def _residuals(check: Check, findings: Sequence[Finding]) -> list[Element] | Missing:
    """Every point of every line of three points or more, over what its line says."""
    elements = []
    for line, points in _points(check, findings, check.of, check.quantity):
        fit = _fit(points)
        if fit and len(points) >= _FEWEST_ALONG:
            for batch_size, term in points:
                axes = {**line.axes, "batch_size": batch_size}
                key = line.whose, frozenset(axes.items()), "residual"
                elements.append(Element(axes, {key: (1.0, term)}, math.log(fit.step_s(batch_size))))
    if len(elements) < check.fewest:
        return Missing("of", {**check.case, **check.of})
    return elements
