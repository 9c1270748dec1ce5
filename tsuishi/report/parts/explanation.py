"""What an explanation can say, and how a workload's own is found: by its name in tsuishi/report/explanations/.

A suite of any name and any sizes gets the explanation of the workload that its trials ran. Whoever writes a workload
may put `<workload>.py` into that folder, with a subclass of Explanation that overrides what it has to say.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from tsuishi.base.errors import UserError
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.columns import Declared
from tsuishi.report.parts.comparison import Comparison
from tsuishi.verdicts.evidence import Evidence

_PACKAGE = "tsuishi.report.explanations"


@dataclass(frozen=True)
class Paragraph:
    """A few sentences about one topic of an explanation."""

    topic: str
    text: str


class Explanation:
    """What explains the numbers of one suite. As it stands, it says nothing: a workload's own overrides parts of it."""

    # Columns of the tables that its views fill, by file name without .csv. Every report has these tables.
    tables: ClassVar[Mapping[str, Declared]] = {}
    # Quantities that are read together, by the title of their table.
    read_together: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    # What environments are compared by: each case by all quantities of the first group of which it has any.
    compared_by: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def __init__(self, evidence: Evidence, suite: str) -> None:
        self.evidence, self.suite = evidence, suite

    def paragraphs(self) -> Mapping[str, list[Paragraph]]:
        """What the cases say, by environment. The first paragraph answers a question that has `explains = true`."""
        return {}

    def opening_views(self, comparison: Comparison) -> Iterable[View]:
        """What stands above the tables of a protocol."""
        return ()

    def closing_views(self, comparison: Comparison) -> Iterable[View]:
        """What stands below the tables of a protocol."""
        return ()

    def covered(self, comparison: Comparison) -> frozenset[str]:
        """Quantities that its opening views show already: a table of nothing else is folded away."""
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
    """The tables of all explanations that are here, whether their workload ran or not."""
    return {name: columns for workload in _known() for name, columns in _kind(workload).tables.items()}


@cache
def _known() -> tuple[str, ...]:
    """The workloads that have an explanation here."""
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
