"""Explanations of suites. Each belongs to a workload: a module of its name in tsuishi/report/explanations/.

A suite gets the explanation of the workload that its trials ran, whatever its name and sizes. The author of a workload
may add `<workload>.py` to that folder, with a subclass of Explanation that overrides some of its methods.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from tsuishi.base.errors import UserError
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.columns import Declared
from tsuishi.report.parts.compared_times import Timed
from tsuishi.report.parts.comparison import Comparison
from tsuishi.results.frames import named_rows
from tsuishi.verdicts.evidence import Evidence

_PACKAGE = "tsuishi.report.explanations"


@dataclass(frozen=True)
class Paragraph:
    """A few sentences about a topic of an explanation."""

    topic: str
    text: str


@dataclass(frozen=True)
class Headline:
    """What an explanation found in an environment. `title`: in a few words; `text`: why.

    `sure`: whether intervals of 99.9 % show it; `times`: the ratio that they show at least, else the ratio seen.
    `trials`: of a case. `points`: of a small chart (charts/small.py), over the axis `over`, of `quantity`.
    """

    title: str
    text: str
    sure: bool
    times: float
    trials: int
    quantity: str
    over: str
    points: tuple[dict[str, Any], ...]
    caption: str


class Explanation:
    """The explanation of a suite's numbers. This base class says nothing; subclasses override parts of it."""

    # Columns of the tables that its views fill, by file name without .csv. Every report has these tables.
    tables: ClassVar[Mapping[str, Declared]] = {}
    # Groups of quantities, each for a table, by the table's title.
    read_together: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    # The quantities by which environments are compared: for each case, the first group of which it has a quantity.
    compared_by: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def __init__(self, evidence: Evidence, suite: str) -> None:
        self.evidence, self.suite = evidence, suite

    def timed(self, environment: str, *quantities: str) -> Iterator[tuple[str, str, Timed]]:
        """(case id, quantity, estimate with its term) of every case of the suite that an environment measured."""
        rows = self.evidence.cases
        of_suite = rows[(rows["suite"] == self.suite) & (rows["column"] == environment)]
        for row in named_rows(of_suite[of_suite["quantity"].isin(quantities)]):
            term = self.evidence.terms.get((row.case_id, environment, row.quantity))
            yield row.case_id, row.quantity, Timed(float(row.estimate), term)

    def paragraphs(self) -> Mapping[str, list[Paragraph]]:
        """The paragraphs by environment. The first paragraph answers questions with `explains = true`."""
        return {}

    def headline(self, environment: str) -> Headline | None:
        """What the top of the page says of an environment; None for nothing."""
        return None

    def opening_views(self, comparison: Comparison) -> Iterable[View]:
        """The views above the tables of a protocol."""
        return ()

    def closing_views(self, comparison: Comparison) -> Iterable[View]:
        """The views below the tables of a protocol."""
        return ()

    def covered(self, comparison: Comparison) -> frozenset[str]:
        """Quantities that the opening views show already: a table with no others is folded."""
        return frozenset()


class Explanations:
    """The explanations of all suites of a report."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._made: dict[str, Explanation] = {}

    def of(self, suite: str) -> Explanation:
        """The explanation of a suite, always the same object."""
        if suite not in self._made:
            self._made[suite] = _kind(self._evidence.workloads.get(suite, ""))(self._evidence, suite)
        return self._made[suite]


def declared_tables() -> dict[str, Declared]:
    """The tables of all explanations, also of workloads that did not run."""
    return {name: columns for workload in _known() for name, columns in _kind(workload).tables.items()}


@cache
def _known() -> tuple[str, ...]:
    """The workloads that have an explanation."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(importlib.import_module(_PACKAGE).__path__)))


@cache
def _kind(workload: str) -> type[Explanation]:
    """The class of a workload's explanation. Raises UserError where its module has none."""
    if workload not in _known():
        return Explanation
    module = importlib.import_module(f"{_PACKAGE}.{workload}")
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Explanation) and value is not Explanation:
            return value
    raise UserError(f"{module.__file__}: no explanation in it: add a subclass of {Explanation.__qualname__}")
