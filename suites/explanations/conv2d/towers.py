"""Towers: the times of first and later runs by number of devices, and their ratio over the step.

A line belongs to an environment (or published hardware) and a quantity, and has a cell for every number of devices.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tsuishi.base.language import mark, t
from tsuishi.report.parts.blocks import View
from tsuishi.report.parts.declarations import WHERE
from tsuishi.report.parts.suite_cases import SuiteCases, published_name
from tsuishi.report.parts.wording import (
    NOT_PLANNED,
    NOT_PUBLISHED,
    NOTHING,
    Cell,
    Table,
    case_text,
    header,
    number_cell,
    status_cell,
    text_cell,
)
from tsuishi.results.schema import Column

from .observations import towers
from .steps import STEP

RUN_TIMES = ("first_run_s", "later_run_s")
RATIOS = (
    WHERE,
    Column("series", "string", "environment, or published hardware"),
    Column("quantity", "string", "what the number measures"),
    Column("devices", "integer", "before the step"),
    Column("more_devices", "integer", "after it"),
    Column("ratio", "number", "how many times longer the first of these take than the second"),
)

_SCIPY = {"scipy": "SciPy", "scipy_all_cores": mark("SciPy on all cores")}
_NOT_TELLING = ("devices", "implementation")

Lines = dict[tuple[str, str], dict[int, Cell]]


def by_towers(suite_cases: SuiteCases) -> View:
    """The tables of first and later runs by number of towers; empty without several numbers of towers."""
    lines = Towers(suite_cases)
    return View(tuple(lines.tables()), {"ratios": lines.ratios()})


class Towers:
    """The lines of a suite and protocol.

    `own`: our lines of the cases that the source ran, then the published lines. `others`: our lines of other cases. The
    source ran the cases that its published numbers match; if they match none, all cases are in `own`. Both are empty if
    no line has two numbers of devices.
    """

    def __init__(self, suite_cases: SuiteCases) -> None:
        self._suite_cases = suite_cases
        self._numbers = suite_cases.numbers
        measured = set(suite_cases.estimates_of)
        # The word for a series' missing cells, other than "not planned": SciPy has a CPU and no towers, for instance.
        self._absent: dict[str, str] = {}
        self._quantities = [name for name in RUN_TIMES if name in measured]
        # Without searches: they are runs on both sides of the folding edge.
        every = suite_cases.axes
        cases = [name for name in suite_cases.case_ids if "devices" in every[name] and "search" not in every[name]]
        own = [case_id for case_id in cases if self._ran_by_source(suite_cases.axes[case_id])] or cases
        self.own, self.others = self._lines(own), {}
        self._step: tuple[int, int] | None = None
        if not any(len(line) > 1 for line in self.own.values()):
            self.own = {}
            return
        self.others = self._lines([case_id for case_id in cases if case_id not in own], besides=own)
        published: Lines = {}
        for number in self._numbers:
            if number.quantity in self._quantities:
                series = published_name(suite_cases.evidence.hardware[number.key].title)
                self._absent[series] = NOTHING if _is_scipy(number.axes) else NOT_PUBLISHED
                # A source's row of SciPy has no devices: it ran on a CPU.
                devices = int(number.axes.get("devices", 1))
                published.setdefault((series, number.quantity), {})[devices] = number_cell(
                    number.value, suite_cases.unit(number.quantity)
                )
        # The step of the source; without a step there, ours.
        self._step = _sharpest(published.values()) or _sharpest(self.own.values())
        self.own |= published

    def tables(self) -> list[Table]:
        """A table of the source's cases, and a folded table of the many other cases."""
        titles = {
            t("First and later runs against the number of towers"): (self.own, False),
            t("First and later runs of cases that the source did not run"): (self.others, True),
        }
        return [self._table(title, lines, folded) for title, (lines, folded) in titles.items() if lines]

    def _table(self, title: str, lines: Lines, folded: bool) -> Table:
        counts = sorted({count for line in lines.values() for count in line})
        rows = []
        for (series, quantity), line in lines.items():
            absent = status_cell(self._absent.get(series, NOT_PLANNED))
            row = [
                text_cell(series),
                text_cell(header(quantity, self._suite_cases.unit(quantity)), "label"),
                *[line.get(count, absent) for count in counts],
            ]
            if self._step:
                ratio = _ratio(line, *self._step)
                row.append(number_cell(ratio) if ratio else status_cell(NOTHING))
            rows.append(row)
        columns = ["", "", *[towers([count]) for count in counts]]
        if self._step:
            columns.append(t("{below} ÷ {above} towers", below=self._step[0], above=self._step[1]))
        return Table(columns, rows, title=title, folded=folded)

    def ratios(self) -> list[dict[str, Any]]:
        """The rows of ratios.csv: every line that has both numbers of devices of the step."""
        if self._step is None:
            return []
        step = dict(zip(("devices", "more_devices"), self._step, strict=True))
        return [
            {**self._suite_cases.where, "series": series, "quantity": quantity, **step, "ratio": ratio}
            for (series, quantity), line in {**self.own, **self.others}.items()
            if (ratio := _ratio(line, *self._step))
        ]

    def _ran_by_source(self, axes: dict[str, Any]) -> bool:
        """Whether a published number matches the case. SciPy on all cores counts as SciPy of the source."""
        axes = {**axes, "implementation": "scipy"} if _is_scipy(axes) else axes
        return any(number.matches(axes) for number in self._numbers)

    def _lines(self, case_ids: list[str], besides: list[str] | None = None) -> Lines:
        """Our lines of these cases. A line's name has its environment and the axes that the cases do not share.

        besides: cases that stand in for `case_ids` when the shared axes are determined.
        """
        suite_cases, lines = self._suite_cases, Lines()
        every = [
            suite_cases.axes[case_id] for case_id in besides or case_ids if not _is_scipy(suite_cases.axes[case_id])
        ]
        common = {axis: value for axis, value in (every or [{}])[0].items() if all(o.get(axis) == value for o in every)}
        for environment in suite_cases.environments:
            for case_id in case_ids:
                axes = suite_cases.axes[case_id]
                telling = [axis for axis in axes if axes[axis] != common.get(axis) and axis not in _NOT_TELLING]
                scipy = t(_SCIPY[axes["implementation"]]) if _is_scipy(axes) else ""
                series = ", ".join(filter(None, [environment, scipy, case_text(axes, telling)]))
                if scipy:
                    self._absent[series] = NOTHING
                for quantity in self._quantities:
                    cell = suite_cases.cell(case_id, environment, quantity)
                    spread = tuple(note for note in cell.notes if "–" in note)
                    line = lines.setdefault((series, quantity), {})
                    line[axes["devices"]] = replace(cell, notes=spread)
        return {key: line for key, line in lines.items() if any(cell.value for cell in line.values())}


def _is_scipy(axes: dict[str, Any]) -> bool:
    return axes.get("implementation") in _SCIPY


def _ratio(line: dict[int, Cell], below: int, above: int) -> float | None:
    """The time with the smaller number of devices, divided by the time with the larger number."""
    fewer, more = (line[count].value if count in line else None for count in (below, above))
    return fewer / more if fewer and more else None


def _sharpest(lines: Iterable[dict[int, Cell]]) -> tuple[int, int] | None:
    """The numbers of devices before and after the largest step of any line, see steps.STEP; None without a step."""
    excesses = [
        (ratio / (above / below), (below, above))
        for line in lines
        for below, above in pairwise(sorted(count for count, cell in line.items() if cell.value))
        if (ratio := _ratio(line, below, above))
    ]
    excess, step = max(excesses, default=(0.0, None))
    return step if excess >= STEP else None
