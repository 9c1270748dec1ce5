"""The cases of a suite under a protocol, by environment, beside their published numbers."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from tsuishi.base.language import mark, t
from tsuishi.estimates.intervals import Term
from tsuishi.estimates.throughput import step_time, timed_by
from tsuishi.report.parts import declarations
from tsuishi.report.parts.declarations import Column, Declared, Tables, names_without_axes
from tsuishi.report.parts.shown_units import Unit
from tsuishi.report.parts.wording import (
    NOT_MEASURED,
    NOT_PLANNED,
    Cell,
    case_text,
    digits,
    protocol_words,
    shown_in,
    status_cell,
    status_text,
    vocabulary_in_use,
)
from tsuishi.results.frames import named_rows
from tsuishi.specs.case import PROTOCOL, SUITE
from tsuishi.specs.environment import in_order
from tsuishi.specs.source import Epochs, Hardware, Number
from tsuishi.specs.statuses import OK, STATUSES
from tsuishi.verdicts.evidence import Evidence

# The limit that a fraction is of, by roofline.Bound.
_BOUND_TEXT = {"arithmetic": mark("of arithmetic"), "memory": mark("of memory")}


# Of an estimate, by the names of Evidence.cases.
_ESTIMATE: Declared = (
    *(declarations.QUANTITY, declarations.UNIT),
    Column("estimate", "number", "geometric mean over trials; arithmetic where a trial is 0 or less"),
    Column("n", "integer", "trials"),
    Column("low", "number", "smallest trial; of a single trial, lower quartile of its blocks"),
    Column("high", "number", "largest trial; of a single trial, upper quartile of its blocks"),
    Column("spread_kind", "string", "what low and high are: of trials, of blocks, or nothing"),
    *(declarations.BLOCKS, declarations.SIMULATED, declarations.SYNTHETIC, declarations.DERIVED),
)


def _published(evidence: Evidence) -> Iterator[Column]:
    """A column per published hardware, named by Number.key."""
    for key, hardware in evidence.hardware.items():
        yield Column(key, "number", f"published for {hardware.title}, in the unit")


TABLES: Tables = {
    "cases": (
        *(declarations.CASE_ID, declarations.EVERY_AXIS, declarations.ENVIRONMENT),
        Column("status", "string", "statuses of its repetitions, each once"),
        *_ESTIMATE,
        Column("bound", "string", "of a fraction_of_limit: arithmetic or memory"),
        _published,
    )
}


class Known(NamedTuple):
    """The values of a case by quantity, in an environment (`series`) or on published hardware.

    logs: the terms of their logarithms; empty for published numbers, which have no trials.
    """

    series: str
    case_id: str | None
    axes: dict[str, Any]
    values: dict[str, float]
    simulated: bool
    # The whole training of a source that has this case.
    epochs: Epochs | None = None
    logs: Mapping[str, Term] = {}

    @property
    def step_term(self) -> Term | None:
        """The term of the number behind `step_s`."""
        return self.logs.get(timed_by(self.values, self.axes, self.epochs) or "")

    @property
    def step_s(self) -> float | None:
        """Seconds per step; also reckoned from the time of an epoch."""
        return step_time(self.values, self.axes, self.epochs)


class SuiteCases:
    """The cases of a suite and protocol in all environments. A case that an environment lacks has a status there."""

    def __init__(self, evidence: Evidence, suite: str, protocol: str) -> None:
        self.evidence, self.suite, self.protocol = evidence, suite, protocol
        outcomes, cases = evidence.of(suite, protocol)
        # As rows of Evidence.cases, here and by quantity.
        self.estimates = named_rows(cases)
        self.estimates_of: dict[str, list[Any]] = {}
        case_ids, columns, every_status = (outcomes[name].tolist() for name in ("case_id", "column", "status"))
        self.environments = in_order(set(columns))
        self.axes = {case_id: evidence.axes[case_id] for case_id in case_ids}
        every = evidence.words.axes
        every_value: dict[str, list[Any]] = {}
        for axis, value in (pair for axes in self.axes.values() for pair in axes.items()):
            every_value.setdefault(axis, []).append(value)
        used = [axis for axis in every if axis in every_value]
        self.case_ids = sorted(self.axes, key=lambda case_id: _in_order(used, self.axes[case_id]))
        # An axis that fewer than half of the cases have tells these cases from the others, whatever its value.
        rare = {axis for axis in used if 2 * len(every_value[axis]) < len(self.axes)}
        self.varying = [axis for axis in used if axis in rare or len(set(every_value[axis])) > 1]
        self._names: dict[str, str] = {}
        # The axes that all cases share, in words.
        self.common = case_text({axis: every_value[axis][0] for axis in used if axis not in self.varying})
        self.numbers = [number for number in evidence.numbers if number.axes[SUITE] == suite]
        self.hardware = {number.key: evidence.hardware[number.key] for number in self.numbers}
        # Fractions of limits; None where no limit was measured.
        fractions = [row for row in evidence.fractions if (row[SUITE], row[PROTOCOL]) == (suite, protocol)]
        self.fractions: list[float | None] = [row["value"] for row in fractions]
        self.bounds = {(row["case_id"], row["column"]): row["bound"] for row in fractions}
        self._estimates: dict[tuple[str, str, str], Any] = {}
        self._parts: dict[tuple[str, str], list[Any]] = {}
        for row in self.estimates:
            self.estimates_of.setdefault(row.quantity, []).append(row)
            self._estimates[row.case_id, row.column, row.quantity] = row
            self._parts.setdefault((row.case_id, row.column), []).append(row)
        self.quantities = {*self.estimates_of, *(row["quantity"] for row in fractions)}
        statuses: dict[tuple[str, str], set[str]] = {}
        for case_id, column, status in zip(case_ids, columns, every_status, strict=True):
            statuses.setdefault((case_id, column), set()).add(status)
        self._statuses = {key: ", ".join(sorted(names, key=[*STATUSES].index)) for key, names in statuses.items()}
        # Cells and marks that many cells share.
        self._absent: dict[str, Cell] = {}
        self._marks: dict[tuple[str, str], list[str]] = {}
        self._units: dict[str, Unit] = {}

    def unit(self, quantity: str) -> Unit:
        """The unit in which readers see a quantity: the same in all tables, and of all quantities of its chart."""
        if quantity not in self._units:
            every = vocabulary_in_use().quantities
            chart = every[quantity].drawn_with or quantity if quantity in every else quantity
            together = {name for name, known in every.items() if chart in (name, known.drawn_with)} | {quantity}
            ours = [row.estimate for name in together for row in self.estimates_of.get(name, ())]
            published = [number.value for number in self.numbers if number.quantity in together]
            self._units |= dict.fromkeys(together, shown_in(quantity, ours or published))
        return self._units[quantity]

    def cell(self, case_id: str, environment: str, quantity: str, unit: Unit | None = None) -> Cell:
        """An estimate with its spread; without an estimate, a word for the reason. unit: the table's, else ours."""
        row = self.estimate(case_id, environment, quantity)
        if row is None:
            status = self.status(case_id, environment)
            word = NOT_MEASURED if status == OK and quantity else status
            if word not in self._absent:
                self._absent[word] = status_cell(word)
            return self._absent[word]
        unit = unit or self.unit(quantity)
        notes = [f"{digits(row.low, unit)} – {digits(row.high, unit)}"] if row.spread_kind else []
        within = row.spread_kind == "blocks"
        notes.append(t("n = {n}, within the trial", n=row.n) if within else t("n = {n}", n=row.n))
        if quantity == "fraction_of_limit":
            notes.append(t(_BOUND_TEXT[self.bounds[case_id, environment]]))
        notes += self.marks(case_id, environment)
        text = digits(row.estimate, unit) + ("†" if row.derived and row.unit == "s" else "")
        return Cell(text, row.estimate, tuple(notes), "number")

    def estimate(self, case_id: str, environment: str, quantity: str) -> Any:
        """The row of Evidence.cases; None for none."""
        return self._estimates.get((case_id, environment, quantity))

    def simulated(self, case_id: str, environment: str) -> bool:
        """Whether some devices of a measured case were not distinct real GPUs."""
        return (case_id, environment) in self.evidence.simulated

    def marks(self, case_id: str, environment: str) -> list[str]:
        """The words below each number of a measured case."""
        key = case_id, environment
        if key not in self._marks:
            marks, status = [t("simulated")] if self.simulated(*key) else [], self.status(*key)
            if key in self.evidence.of_others:
                marks.append(t("others took {percent} %", percent=f"{self.evidence.of_others[key]:.0f}"))
            self._marks[key] = marks if status == OK else [*marks, status_text(status.removeprefix(f"{OK}, "))]
        return self._marks[key]

    def status(self, case_id: str, environment: str) -> str:
        """The statuses of a case's repetitions in an environment, each status once."""
        return self._statuses.get((case_id, environment), NOT_PLANNED)

    def name(self, case_id: str) -> str:
        """The name of a case: the axes in which it differs from the others, in words."""
        if case_id not in self._names:
            self._names[case_id] = case_text(self.axes[case_id], self.varying) or t("the only case")
        return self._names[case_id]

    def rows(self) -> Iterator[dict[str, Any]]:
        """For cases.csv: a row per case, environment and quantity, or a row without quantity."""
        fields = names_without_axes(_ESTIMATE)
        ours = attrgetter(*fields)
        for case_id in self.case_ids:
            published: dict[str, dict[str, float]] = {}
            for (key, quantity), number in self.evidence.published(case_id).items():
                if not number.impossible:
                    published.setdefault(quantity, {})[key] = number.value
            for environment in self.environments:
                where = {"environment": environment, "status": self.status(case_id, environment)}
                base = {"case_id": case_id, **self.axes[case_id], **where}
                part = self._parts.get((case_id, environment))
                if part is None:
                    yield base
                for row in part or ():
                    limited = row.quantity == "fraction_of_limit"
                    bound = {"bound": self.bounds[case_id, environment]} if limited else {}
                    yield base | dict(zip(fields, ours(row), strict=True)) | bound | published.get(row.quantity, {})

    @property
    def epochs(self) -> Epochs | None:
        """The whole training that the cases belong to; None for no training, and for several."""
        every = (self.evidence.epochs.get(case_id) for case_id in self.case_ids)
        whole = {(epochs.images, epochs.count): epochs for epochs in every if epochs}
        return next(iter(whole.values())) if len(whole) == 1 else None

    @property
    def title(self) -> str:
        """The suite in words, with the protocol where its cases have several."""
        protocols = {name for suite, name in self.evidence.kinds if suite == self.suite}
        if len(protocols) < 2:
            return self.suite
        return t("{suite}, {protocol}", suite=self.suite, protocol=protocol_words(self.protocol))

    @property
    def where(self) -> dict[str, str]:
        return {SUITE: self.suite, PROTOCOL: self.protocol}

    def ours(self) -> Iterator[Known]:
        """Every case that has estimates, environment by environment."""
        terms = self.evidence.terms
        for environment, case_id in itertools.product(self.environments, self.case_ids):
            part = self._parts.get((case_id, environment))
            if part is not None:
                values = {row.quantity: row.estimate for row in part}
                simulated, epochs = self.simulated(case_id, environment), self.evidence.epochs.get(case_id)
                known = ((name, terms.get((case_id, environment, name))) for name in values)
                logs = {name: term for name, term in known if term}
                yield Known(environment, case_id, self.axes[case_id], values, simulated, epochs, logs)

    @cached_property
    def theirs(self) -> list[Known]:
        """Every case of this suite with published numbers."""
        return published_cases(self.numbers, self.hardware)

    def flags(self) -> list[str]:
        """The sentences below every chart of these cases."""
        flags = [] if self.evidence.simulated.isdisjoint(self._parts) else [t("Some devices are simulated.")]
        return [*flags, t("Synthetic data.")] if any(row.synthetic for row in self.estimates) else flags


def cases_of_suites(evidence: Evidence) -> list[SuiteCases]:
    """The cases of every suite and protocol, in their order."""
    return [SuiteCases(evidence, suite, protocol) for suite, protocol in evidence.kinds]


def published_cases(numbers: Iterable[Number], hardware: Mapping[str, Hardware]) -> list[Known]:
    """Published numbers, gathered by case. hardware: by Number.key."""
    cases: dict[tuple[str, frozenset[tuple[str, Any]]], Known] = {}
    names = {key: published_name(each.title) for key, each in hardware.items()}
    for number in numbers:
        case = number.key, number.case
        if case not in cases:
            cases[case] = Known(names[number.key], None, dict(number.axes), {}, False, number.epochs)
        cases[case].values[number.quantity] = number.value
    return list(cases.values())


def published_name(hardware: str) -> str:
    """The name of a line or a column of published numbers."""
    return t("{hardware} (published)", hardware=hardware)


def differing_axes(several: Iterable[Mapping[str, Any]]) -> list[str]:
    """The axes in which cases differ, in canonical order. To lack an axis is no difference.

    several: the axes of each case.
    """
    cases = list(several)
    known = vocabulary_in_use().axes
    every = [*known, *dict.fromkeys(axis for axes in cases for axis in axes if axis not in known)]
    return [axis for axis in every if len({axes[axis] for axes in cases if axis in axes}) > 1]


def _in_order(every: Iterable[str], axes: dict[str, Any]) -> list[tuple[bool, str, Any]]:
    """The sort key of a case: axis by axis, numbers by size."""
    return [(axis in axes, type(axes.get(axis)).__name__, axes.get(axis, "")) for axis in every]
