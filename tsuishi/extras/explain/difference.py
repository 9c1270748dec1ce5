"""A difference that is explained: as run.json keeps it from before the first trial, and its bars, from the trials."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from pydantic import Field, ValidationError

from tsuishi.base import toml
from tsuishi.base.errors import UserError
from tsuishi.base.language import t
from tsuishi.base.toml import Record
from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.estimates.roofline import Device
from tsuishi.extras.explain import device
from tsuishi.extras.explain.design import MOST, Bar, Corner, Factor, Members, bars, corners, groupings
from tsuishi.extras.explain.suspects import Suspect
from tsuishi.report.sections.beside_published import cases_of, terms_of
from tsuishi.results.frames import named_rows, ok_rows
from tsuishi.results.run_record import RunRecord
from tsuishi.specs.case import DEVICES, PROTOCOL, Value
from tsuishi.specs.questions import LOOKS, look_at, share_of_look
from tsuishi.specs.selections import ENVIRONMENT
from tsuishi.specs.statuses import OK
from tsuishi.verdicts.evidence import Evidence

# The name of the extra in run.json.
NAME = "explain"
_PRECISION = "precision"
# A mixture of settings reaches the printed number where its logarithm is not farther from it than this.
NEAR = math.log(1.05)


class Between(Record):
    """Two runs: their ids, and the second over the first, as a logarithm with its error (None: no scatter known).

    suspects: everything that differs in their records.
    """

    first: str
    second: str
    ratio: Annotated[float, Field(ge=-100, le=100)]
    error: Annotated[float, Field(ge=0, le=1e30)] | None
    freedom: Annotated[float, Field(ge=0, le=1e30)]
    suspects: Annotated[tuple[Suspect, ...], Field(max_length=1000)] = ()

    @property
    def contrast(self) -> Contrast:
        return Contrast(self.ratio, self.error, self.freedom)


class Unsaid(Record):
    """Settings that a printed number does not state, with other than usual values that it may have.

    may_be: those that are measured. combinations: of all values that suites/axes.toml names. left_out: why others are
    not measured, a text each.
    """

    may_be: Annotated[dict[str, Value], Field(max_length=MOST)]
    combinations: Annotated[int, Field(ge=1)]
    left_out: tuple[str, ...] = ()


class Difference(Record):
    """A printed number, and the settings of mine that differ from its own; or two runs, where mine is the second.

    `value`: in the unit of its quantity. `mine`: values of axes. `mine_in`, `theirs_in`: environments. `together`: the
    settings of which all or none were changed, as the time was too short. `limits`: of the printed card by its data
    sheet, else `why_no_limits`; `my_limits`: of my card, if a data sheet has it. `unsaid`: there are settings that the
    printed number does not state; mine are usual, and its own may be those of `unsaid.may_be`. `looks`: trials are
    added while a bar is undecided, so each look has a share of the error (tsuishi/specs/questions.py).
    """

    text: str
    column: str
    case: str
    axes: dict[str, Value]
    quantity: str
    value: Annotated[float, Field(ge=1e-30, le=1e30)]
    hardware: str
    mine: Annotated[dict[str, Value], Field(max_length=MOST)]
    mine_in: str
    theirs_in: str
    together: Annotated[tuple[str, ...], Field(max_length=MOST)] = ()
    limits: device.Limits | None = None
    my_limits: device.Limits | None = None
    why_no_limits: str = ""
    between: Between | None = None
    unsaid: Unsaid | None = None
    looks: bool = False

    @property
    def may_be(self) -> dict[str, Value]:
        """The settings that the printed number may have without saying so."""
        return self.unsaid.may_be if self.unsaid else {}

    @property
    def groups(self) -> list[Members]:
        """What is a factor: a setting alone, those that are `together`, and the environment, which is the last."""
        alone = [(axis,) for axis in (*self.mine, *self.may_be) if axis not in self.together]
        both = [self.together] if self.together else []
        return [*alone, *both, *([(ENVIRONMENT,)] if self.has_two_environments else [])]

    def factors(self, usual: Mapping[str, Value | None], groups: Sequence[Members] | None = None) -> list[Factor]:
        """The factors, in the order of `corners`. usual: the usual values of axes. groups: other groups."""
        both = {axis: usual.get(axis) or "usual" for axis in (*self.mine, *self.may_be)} | self.axes
        printed = {**both, **self.may_be, ENVIRONMENT: self.theirs_in}
        mine = {**both, **self.mine, ENVIRONMENT: self.mine_in}
        return [
            Factor(" & ".join(group), *(", ".join(str(side[name]) for name in group) for side in (mine, printed)))
            for group in (self.groups if groups is None else groups)
        ]

    def corners(self, groups: Sequence[Members]) -> dict[Corner, tuple[dict[str, Value | None], str]]:
        """The corners of these groups, each with its settings (None: not given) and its environment."""
        crossed = groups[-1:] == [(ENVIRONMENT,)]
        found = {}
        for corner in corners(len(groups) - crossed, crossed=crossed):
            theirs = {name for group, is_theirs in zip(groups, corner, strict=True) if is_theirs for name in group}
            settings = {axis: self.axes.get(axis) if axis in theirs else value for axis, value in self.mine.items()}
            settings |= {axis: value if axis in theirs else self.axes.get(axis) for axis, value in self.may_be.items()}
            is_mine = self.has_two_environments and ENVIRONMENT not in theirs
            found[corner] = settings, self.mine_in if is_mine else self.theirs_in
        return found

    def no_number_of(self, settings: Mapping[str, Value | None], environment: str) -> str:
        """That a corner has no number, in words."""
        said = ", ".join(f"{axis}={value}" for axis, value in settings.items())
        return f"no number of {said or self.case} in {environment}"

    def with_unsaid(self, may_be: dict[str, Value], left_out: Iterable[str]) -> "Difference":
        """The same with other settings that the printed number does not state; left_out: why more are not measured."""
        assert self.unsaid is not None
        fewer = {"may_be": may_be, "left_out": (*self.unsaid.left_out, *left_out)}
        return self.model_copy(update={"unsaid": self.unsaid.model_copy(update=fewer)})

    @property
    def has_two_environments(self) -> bool:
        """Whether mine is another environment."""
        return self.mine_in != self.theirs_in


def difference_of(run: RunRecord) -> Difference:
    """The difference that a run was made to explain. Raises UserError where run.json does not say it validly."""
    try:
        return Difference.model_validate_json(json.dumps(run.request))
    except ValidationError as error:
        raise UserError(
            f"run.json does not say validly what is explained: {toml.explain(error, Difference)}"
        ) from error


class Explained(NamedTuple):
    """The bars; why the device has none, and a sentence on settings that share a bar: both empty where it is not so.

    factors: of the bars. reached: how many mixtures of settings come near the printed number, of how many measured;
    where the device has a bar, of those with the printed precision, as the bar is of it.
    """

    bars: list[Bar]
    why_no_device: str
    not_separated: str
    factors: list[Factor]
    reached: tuple[int, int]


def explained(evidence: Evidence, asked: Difference, among: int = 1) -> Explained:
    """The bars of a run. Settings share a bar where the corners between them have no number.

    among: the explanations of a report, which have equal shares of the error. Raises UserError where an end has no
    number, and for numbers out of all bounds.
    """
    try:
        return _explained(evidence, asked, among)
    except (ArithmeticError, LookupError, ValueError) as error:
        raise UserError(f"not to be computed: {error!r}") from error


def _explained(evidence: Evidence, asked: Difference, among: int) -> Explained:
    groups, corners_here, why = _first_measured(evidence, asked)
    end = [*corners_here.values()][0 if asked.unsaid else -1]
    terms, share = _at_last_look(evidence, asked, corners_here)
    by_device = _of_device(evidence, asked, end)
    printed = asked.between.contrast if asked.between else asked.value
    factors = asked.factors(evidence.words.usual, groups)
    found = bars(factors, terms, printed, by_device, apart=asked.unsaid is not None, share=share / among)
    shift = math.log(asked.value) + (by_device.size.value if by_device else 0.0)
    left = [term.mean - shift for corner, term in terms.items() if not (by_device and _has(corner, groups, _PRECISION))]
    reached = sum(abs(each) <= NEAR for each in left), len(left)
    together = ", ".join(factor.name for factor, group in zip(factors, groups, strict=True) if group[1:])
    together = together or (", ".join(asked.may_be) if not groups else "")
    not_separated = t("{names}: not separated, as {why}.", names=together, why=why) if together else ""
    if by_device or asked.between:
        return Explained(found, "", not_separated, factors, reached)
    why_no_device = asked.why_no_limits or t("its limits, or the work of a step, were not measured")
    return Explained(found, why_no_device, not_separated, factors, reached)


def _at_last_look(
    evidence: Evidence, asked: Difference, of: Mapping[Corner, "_MeasuredCorner"]
) -> tuple[dict[Corner, Term], float]:
    """The terms of corners, and the share of the error: by the trials of the last look, where there are several."""
    fewest = min(each.term.trials for each in of.values())
    look = look_at(fewest) if asked.looks else 0
    if not look:
        return {corner: each.term for corner, each in of.items()}, share_of_look(LOOKS[0]) if asked.looks else 1.0
    terms = evidence.terms_of_first(look)
    keys = {corner: (each.case_id, each.column, asked.quantity) for corner, each in of.items()}
    return {corner: terms[key] for corner, key in keys.items()}, share_of_look(look)


def _has(corner: Corner, groups: Sequence[Members], axis: str) -> bool:
    """Whether a corner has their value of an axis."""
    return any(is_theirs and axis in group for is_theirs, group in zip(corner, groups, strict=True))


def _first_measured(
    evidence: Evidence, asked: Difference
) -> tuple[list[Members], dict[Corner, "_MeasuredCorner"], str]:
    """The first groups whose corners were all measured, their corners, and why settings share a group."""
    why = t("the time was too short for more corners") if asked.together else ""
    settings = len(asked.groups) - asked.has_two_environments
    # Without the settings that a number does not state, at least its remainder is known.
    for groups in (*groupings(asked.groups, settings), *([[]] if asked.unsaid else [])):
        try:
            return groups, _corners(evidence, asked, groups), why
        except _NotMeasured as missing:
            why, error = str(missing), missing
    raise UserError(f"not separable: {error}") from error


class _NotMeasured(Exception):
    """A corner has no number; the text says which, and why."""


@dataclass(frozen=True)
class _MeasuredCorner:
    """A corner that was measured here: its place in the evidence, and its term."""

    case_id: str
    column: str
    term: Term


def _corners(evidence: Evidence, asked: Difference, groups: Sequence[Members]) -> dict[Corner, _MeasuredCorner]:
    """All corners, of one protocol where it is no setting. Raises _NotMeasured."""
    machines = dict(evidence.results.trials[["column", "machine"]].itertuples(index=False, name=None))
    # By protocol and machine: all corners are of one.
    by_corner: dict[Corner, dict[tuple[str, str], _MeasuredCorner]] = {}
    for corner, (settings, environment) in asked.corners(groups).items():
        found: dict[tuple[str, str], _MeasuredCorner] = {}
        for case_id, column, term in terms_of(evidence, asked.quantity, {**asked.axes, **settings}):
            if evidence.selectable(column)[ENVIRONMENT] == environment:
                protocol = "" if PROTOCOL in settings else str(evidence.axes[case_id].get(PROTOCOL))
                key = protocol, machines[column]
                found.setdefault(key, _MeasuredCorner(case_id, column, term))
        if not found:
            why = _why_none(evidence, {**asked.axes, **settings}, environment)
            raise _NotMeasured(f"{asked.no_number_of(settings, environment)}: {why}")
        by_corner[corner] = found
    end = [*by_corner.values()][0 if asked.unsaid else -1]
    one = next((each for each in end if all(each in found for found in by_corner.values())), None)
    if one is None:
        raise _NotMeasured("no protocol measured all combinations of settings on one machine")
    return {corner: found[one] for corner, found in by_corner.items()}


def _why_none(evidence: Evidence, axes: Mapping[str, Value | None], environment: str) -> str:
    """Why no trial of a case gave a number in an environment: the reasons of its trials, each once."""
    trials, selects = (
        evidence.results.trials[["case_id", "environment", "status", "reason"]],
        cases_of(evidence.words, axes),
    )
    of_case = [
        row for row in named_rows(trials) if row.environment == environment and selects(evidence.axes[row.case_id])
    ]
    if any(row.status == OK for row in of_case):
        return "its trials do not give this quantity; the tables say what they give"
    return "; ".join(dict.fromkeys(row.reason for row in of_case)) or "no trial of it was run"


def _of_device(evidence: Evidence, asked: Difference, end: _MeasuredCorner) -> Bar | None:
    """The bar of the device, in the direction of the number; None where something was not measured."""
    trials = ok_rows(evidence.results.trials)
    here = trials[(trials["case_id"] == end.case_id) & (trials["column"] == end.column)].iloc[0]
    measured = evidence.limits.get(Device(here["machine"], here["device"]))
    precision = str(asked.axes.get("precision", ""))
    mine = asked.my_limits or (device.measured_limits(measured, precision) if measured else None)
    keys = {name: (end.case_id, end.column, name) for name in device.RATES}
    rates = {name: evidence.terms[key] for name, key in keys.items() if key in evidence.terms}
    if asked.limits is None or mine is None:
        return None
    times, is_time = math.exp(end.term.mean) / asked.value, evidence.words.quantities[asked.quantity].unit == "s"
    given = rates, int(asked.axes.get(DEVICES, 1)), asked.limits, mine
    found = device.bar(*given, times if is_time else 1 / times)
    return found if found is None or is_time else replace(found, size=found.size._replace(value=-found.size.value))
