"""Explanations of suites. Each belongs to a workload: explanations/<workload>.py, beside the files of the suites.

A suite gets the explanation of the workload that its trials ran, whatever its name and sizes. The author of a workload
may add such a file, with a subclass of Explanation that overrides some of its methods. Only files beside the suites of
the report's own checkout run: the inputs of a run, which others may have written, are never among them.
"""

import importlib
import json
import math
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pydantic import TypeAdapter

from tsuishi.base.errors import UserError
from tsuishi.base.toml import digest
from tsuishi.estimates.intervals import CONFIDENCE
from tsuishi.report.parts import declarations
from tsuishi.report.parts.blocks import Block, Chart, View
from tsuishi.report.parts.declarations import Columns, Declared, Tables
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.two_sides import Timed
from tsuishi.results.frames import named_rows
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts.answers import Answer
from tsuishi.verdicts.evidence import Evidence

FOLDER = "explanations"
_POINT = {"x", "y", "low", "high", "series"}
# What a file can do wrong; a file that ends the program is wrong, too.
_WRONG = (Exception, SystemExit)
_Said = TypeVar("_Said")


@dataclass(frozen=True)
class Paragraph:
    """A few sentences about a topic of an explanation."""

    topic: str
    text: str


@dataclass(frozen=True)
class Headline:
    """What an explanation found in an environment. `title`: in a few words; `text`: why.

    `sure`: whether intervals of Explanation.level show it; `times`: the ratio that they show at least, else the ratio
    seen.
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

    def __post_init__(self) -> None:
        """Raise ValueError for a ratio that is no positive number, and for a point without all of its values."""
        if not 0 < self.times < math.inf:
            raise ValueError(f"a headline's `times` is a ratio above 0; given: {self.times}")
        for lacking in (_POINT - point.keys() for point in self.points):
            if lacking:
                raise ValueError(f"a point of a headline lacks {', '.join(sorted(lacking))}")


@dataclass(frozen=True)
class OwnChart:
    """A chart that an explanation draws itself. Below it, the page has its rows as a table.

    `caption`: what it shows, in words: for those who cannot see it, too. `drawing`: its Vega-Lite specification without
    data (`mark` and `encoding`, or `layer`); fields are columns of the rows. `rows`: dicts by column; they also fill
    `table`, a CSV file of the explanation's `tables`.
    """

    title: str
    caption: str
    table: str
    rows: Sequence[dict[str, Any]]
    drawing: dict[str, Any]


class Explanation:
    """The explanation of a suite's numbers. This base class says nothing; subclasses override parts of it."""

    # Columns of the tables that its views and charts fill, by file name without .csv. Every report has these tables.
    tables: Mapping[str, Declared] = {}
    # Groups of quantities, each for a table, by the table's title.
    read_together: Mapping[str, tuple[str, ...]] = {}
    # The quantities by which environments are compared: for each case, the first group of which it has a quantity.
    compared_by: tuple[tuple[str, ...], ...] = ()
    # The levels of the family of the report, by environment: where a question asks for this explanation.
    levels: Mapping[str, float] = {}

    def __init__(self, evidence: Evidence, suite: str) -> None:
        self.evidence, self.suite = evidence, suite

    def level(self, environment: str) -> float:
        """The chance that a headline may be wrong: that of the report's family, else 5 % for itself alone.

        Divide it by the number of comparisons among which the headline was chosen.
        """
        return self.levels.get(environment) or 1 - CONFIDENCE

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

    def opening_views(self, suite_cases: SuiteCases) -> Iterable[View]:
        """The views above the tables of a protocol."""
        return ()

    def closing_views(self, suite_cases: SuiteCases) -> Iterable[View]:
        """The views below the tables of a protocol."""
        return ()

    def charts(self, suite_cases: SuiteCases) -> Iterable[OwnChart]:
        """The charts below the tables of a protocol, above its closing views."""
        return ()

    def covered(self, suite_cases: SuiteCases) -> frozenset[str]:
        """Quantities that the opening views show already: a table with no others is folded."""
        return frozenset()


class Guarded(Explanation):
    """The explanation of a suite by the class of its workload, whose errors cannot lose the report.

    Where the class raises an error, or gives an answer that no page can show, `trouble` says why, and the class is not
    asked again.
    """

    def __init__(
        self, evidence: Evidence, suite: str, kind: type[Explanation], trouble: str, levels: Mapping[str, float]
    ) -> None:
        super().__init__(evidence, suite)
        self.levels = levels
        self.tables, self.read_together, self.compared_by = kind.tables, kind.read_together, kind.compared_by
        self.trouble = trouble
        self._own = Explanation(evidence, suite)
        self._own = self._said(lambda own: own if self.trouble else kind(evidence, suite))
        self._own.levels = levels

    def paragraphs(self) -> Mapping[str, list[Paragraph]]:
        return self._said(lambda own: _checked(own.paragraphs(), Mapping[str, list[Paragraph]]))

    def headline(self, environment: str) -> Headline | None:
        return self._said(lambda own: _checked(own.headline(environment), Headline | None))

    def opening_views(self, suite_cases: SuiteCases) -> Iterable[View]:
        return self._said(lambda own: [*map(self._shown, own.opening_views(suite_cases))])

    def closing_views(self, suite_cases: SuiteCases) -> Iterable[View]:
        return self._said(lambda own: [*map(self._shown, own.closing_views(suite_cases))])

    def charts(self, suite_cases: SuiteCases) -> Iterable[OwnChart]:
        return self._said(lambda own: [*map(self._drawn, own.charts(suite_cases))])

    def covered(self, suite_cases: SuiteCases) -> frozenset[str]:
        return self._said(lambda own: _checked(own.covered(suite_cases), frozenset[str]))

    def _said(self, ask: Callable[[Explanation], _Said]) -> _Said:
        """The answer of the workload's explanation; that of the base class where it fails."""
        try:
            return ask(self._own)
        except _WRONG as error:
            self.trouble = _why(error, self.evidence.words.folder)
            self._own = Explanation(self.evidence, self.suite)
            return ask(self._own)

    def _shown(self, view: View) -> View:
        """A view that a page can show. Raises an error for any other."""
        _checked(view.blocks, tuple[Block, ...])
        for chart in (block for block in view.blocks if isinstance(block, Chart)):
            json.dumps(chart.specification, allow_nan=False)
        for name, rows in (*view.rows.items(), *((name, [dict(values)]) for name, values in view.tables.items())):
            self._filled(name, rows)
        return view

    def _drawn(self, chart: OwnChart) -> OwnChart:
        """A chart that a page can show. Raises an error for any other."""
        _checked(chart, OwnChart)
        json.dumps([*chart.rows, chart.drawing], allow_nan=False)
        self._filled(chart.table, chart.rows)
        return chart

    def _filled(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Raise ValueError where rows are of no table of the explanation, or have another column."""
        if table not in self.tables:
            raise ValueError(f"no table '{table}': declare its columns in `tables`")
        declarations.filled(self._columns[table], rows)

    @cached_property
    def _columns(self) -> dict[str, Columns]:
        return {name: declarations.columns_of(self.evidence, some) for name, some in self.tables.items()}


class Explanations:
    """The explanations of all suites of a report.

    taken: the names of the report's other tables. answers: the decided answers of the report.
    """

    def __init__(self, evidence: Evidence, taken: Iterable[str] = (), answers: Iterable[Answer] = ()) -> None:
        self._evidence, self._taken = evidence, frozenset(taken)
        self._levels: dict[str, dict[str, float]] = {}
        for answer in answers:
            if answer.asked.kind == "explanation" and answer.decision:
                self._levels.setdefault(answer.asked.suite, {})[answer.columns[0]] = answer.decision.level
        self._made: dict[str, Guarded] = {}

    def of(self, suite: str) -> Guarded:
        """The explanation of a suite, always the same object."""
        if suite not in self._made:
            known, workload = _kinds(self._evidence.words.folder, self._taken), self._evidence.workloads.get(suite, "")
            kind, trouble = known.get(workload, (Explanation, ""))
            self._made[suite] = Guarded(self._evidence, suite, kind, trouble, self._levels.get(suite, {}))
        return self._made[suite]


def declared_tables(words: Vocabulary, taken: Iterable[str]) -> Tables:
    """The tables of all explanations beside these suites, also of workloads that did not run. taken: other tables."""
    kinds = _kinds(words.folder, frozenset(taken)).values()
    return {name: declared for kind, _ in kinds for name, declared in kind.tables.items()}


@cache
def _kinds(suites: Path | None, taken: Set[str]) -> dict[str, tuple[type[Explanation], str]]:
    """By workload, the class of its explanation; where its file is wrong, the base class and why."""
    found: dict[str, tuple[type[Explanation], str]] = {}
    if suites is None:
        return found
    # Each checkout's package has a name of its own: explanations of several checkouts do not meet.
    package = ModuleType(f"explanations_{digest(str(suites))}")
    package.__path__ = [str(suites / FOLDER)]
    sys.modules[package.__name__] = package
    for module in pkgutil.iter_modules(package.__path__):
        try:
            kind = _kind(importlib.import_module(f"{package.__name__}.{module.name}"), taken)
            taken = taken | kind.tables.keys()
            found[module.name] = kind, ""
        except _WRONG as error:
            found[module.name] = Explanation, _why(error, suites)
    return found


def _kind(module: ModuleType, taken: Set[str]) -> type[Explanation]:
    """The class of a module's explanation. Raises ValueError where there is none, and for a table that is taken."""
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Explanation) and value is not Explanation:
            for name, of in Explanation.__annotations__.items():
                TypeAdapter(of).validate_python(getattr(value, name))
            if both := sorted(value.tables.keys() & taken):
                raise ValueError(f"{module.__file__}: a table called {both[0]} is there already: choose another name")
            return value
    raise ValueError(f"{module.__file__}: no explanation in it: add a subclass of {Explanation.__qualname__}")


def _checked(answer: _Said, of: Any) -> _Said:
    """The answer, if it is of this type. Raises ValueError for another type."""
    TypeAdapter(of).dump_python(answer, warnings="error")
    return answer


def _why(error: BaseException, suites: Path | None) -> str:
    """What an explanation did wrong, with its file and line; no folder of this machine is named."""
    checkout = f"{suites.parent}/" if suites else ""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(f"{suites}/")]
    place = f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""
    return str(UserError(f"{place}{type(error).__name__}: {error}".replace(checkout, "")))
