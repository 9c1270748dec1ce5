"""Pictures: the figures and tables of a source as it drew them. They are part of reports/published/<source>.toml.

A picture is data: its axis, the values on it and its series, each in the source's order. A series selects cases, which
may be of any suite: a chart on which a source compares the cases of two suites is one picture. The numbers of the
source, and those of a run, stand in a series if it selects their cases.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationInfo, model_validator

from tsuishi.base import toml
from tsuishi.specs.case import SUITE
from tsuishi.specs.selections import OF_ENVIRONMENTS, Selecting, Selection, Selector
from tsuishi.specs.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tsuishi.specs.source import Number


class PictureSeries(toml.Spec):
    """A line of a figure, or rows of a table. `case` selects its cases, as a claim does (`framework` included)."""

    title: toml.Texts
    case: Selection
    # The quantity of a level, where it is not the picture's.
    quantity: str = ""
    # False where the source draws the series and prints no number of it.
    printed: bool = True


class Picture(Selecting):
    """A figure or a table of a source."""

    # Part of the names of files.
    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    kind: Literal["figure", "table"]
    title: toml.Texts
    # The axis below a figure, or down a table, with its values in the source's order.
    x: str = ""
    values: tuple[str | int, ...] = ()
    # A figure has a panel for each, in a common unit; a table has a column for each.
    quantities: tuple[str, ...] = Field(min_length=1)
    scale: Literal["linear", "log"] = "linear"
    # The quantities of v0 and t_cost, where the source printed these constants of each line and no points: the line is
    # v(b) = b / (b / v0 + t_cost).
    line: tuple[str, str] | None = None
    # The titles of the readings of each number, where the rows of a table are single readings.
    readings: tuple[toml.Texts, ...] = ()
    # Selects the cases of all series.
    case: Selection = {}
    series: tuple[PictureSeries, ...] = Field(min_length=1)
    # Differences from the source's picture, and parts of the picture that have no axis or quantity here.
    note: toml.Texts | None = None

    @model_validator(mode="after")
    def _names_are_known(self, info: ValidationInfo) -> "Picture":
        words: Vocabulary | None = info.context
        if words is None:
            return self
        of_series = [series.quantity for series in self.series if series.quantity]
        for name in (*self.quantities, *(self.line or ()), *of_series):
            words.known_quantity(name)
        if self.x:
            words.known_axis(self.x)
        for value in self.values if self.x else ():
            words.check({self.x: value})
        if self.kind == "figure":
            self._check_figure(words)
        return self

    def _check_figure(self, words: Vocabulary) -> None:
        if self.x and not words.axes[self.x].is_number:
            raise ValueError(f"a figure has an axis of numbers below; '{self.x}' has names: make it a table")
        drawn = {*self.quantities, *(series.quantity for series in self.series if series.quantity)}
        units = sorted({words.quantities[name].unit for name in drawn})
        if len(units) > 1:
            raise ValueError(f"a figure has one unit; given: {', '.join(units)}: make a figure of each")

    @model_validator(mode="after")
    def _is_a_figure_or_a_table(self) -> "Picture":
        if bool(self.x) != bool(self.values):
            raise ValueError("'x' and 'values' go together; give both, or neither")
        if len(set(self.values)) < len(self.values):
            raise ValueError("values: a value is given twice; give each once")
        if self.kind == "figure" and not self.x:
            raise ValueError("a figure needs 'x' and 'values'; add them, or make it a table")
        if self.kind == "figure" and self.readings:
            raise ValueError("a figure has no use for 'readings'; remove them, or make it a table")
        if self.kind == "table" and (self.line or self.scale != "linear" or any(one.quantity for one in self.series)):
            raise ValueError("a table has no use for 'line', 'scale' and the 'quantity' of a series; remove them")
        if self.x and self.readings:
            raise ValueError("rows are either values of 'x' or 'readings'; remove one of them")
        return self

    @model_validator(mode="after")
    def _series_differ(self) -> "Picture":
        titles = [series.title["en"] for series in self.series]
        for title, series in zip(titles, self.series, strict=True):
            if titles.count(title) > 1:
                raise ValueError(f"series: '{title}' is given twice; give the second another title")
            if SUITE not in {**self.case, **series.case}:
                raise ValueError(f"series '{title}': no suite; add one to its 'case', or to that of the figure")
        return self

    def selections(self, series: PictureSeries) -> tuple[Selection, Selection]:
        """What selects the cases of a series."""
        return self.case, series.case

    def selector(self, series: PictureSeries) -> Selector:
        """Selects the cases that a series shows."""
        return Selector(*self.selections(series), usual=self._usual)

    def open_axes(self, series: PictureSeries) -> dict[str, tuple[str | int, ...]]:
        """The axes on which a series selects several values, as several ways to do the same; its own first."""
        chosen = {**self.case, **series.case}
        return {
            axis: values
            for axis, values in chosen.items()
            if len(values) > 1 and axis not in (*OF_ENVIRONMENTS, self.x)
        }

    def suites(self, series: PictureSeries) -> list[str]:
        """The suites that measure the cases of a series."""
        return [str(suite) for suite in {**self.case, **series.case}[SUITE]]

    def wanted(self, series: PictureSeries) -> tuple[str, ...]:
        """The quantities of a series."""
        return (series.quantity,) if series.quantity else self.quantities

    def check(self, numbers: Iterable["Number"]) -> None:
        """Raise ValueError where a series lacks the numbers of the source that it says are printed, or has others."""
        for series in self.series:
            asked = self.line or self.wanted(series)
            where = f"figures '{self.id}': series '{series.title['en']}'"
            readings = {
                number.quantity: len(number.readings)
                for number in numbers
                if number.quantity in asked and number.may_be(*self.selections(series))
            }
            if readings and not series.printed:
                raise ValueError(f"{where}: the source prints {min(readings)} of it; remove 'printed'")
            missing = [name for name in asked if name not in readings]
            if missing and series.printed:
                raise ValueError(f"{where}: no number of {missing[0]} in [[numbers]]; add it, or give printed = false")
            for name, count in readings.items() if self.readings else ():
                if count != (titles := len(self.readings)):
                    raise ValueError(f"{where}: {name} has {count} readings for {titles} titles; make them as many")


class Rerun(toml.Spec):
    """What it takes to measure the cases of a source's pictures: the options of `invoke run-suite`, and a machine."""

    environments: tuple[toml.Name, ...] = Field(min_length=1)
    # GPUs of one machine.
    gpus: Annotated[int, Field(ge=0)]
    # Environments that measure some of the cases, or smaller ones, on a CPU.
    on_cpu: tuple[toml.Name, ...] = ()
