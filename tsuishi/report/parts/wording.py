"""Tables of a report, and how numbers, quantities and cases are worded in them: the same way everywhere."""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tsuishi.base.language import mark, t
from tsuishi.estimates.samples import unit_of
from tsuishi.results.directory import exact
from tsuishi.specs.case import AXES
from tsuishi.specs.quantities import QUANTITIES

NOTHING = "—"
NOT_PLANNED, NOT_MEASURED, NOT_PUBLISHED = mark("not planned"), mark("not measured"), mark("not published")

# An axis that is not here is worded as its name and its value.
_AXIS_TEXT = {
    "implementation": "{value}",
    "mode": "{value}",
    "model": "{value}",
    "layout": "{value}",
    "strategy": "{value}",
    "devices": mark("{value} devices"),
    "nodes": mark("{value} nodes"),
    "batch_size": mark("batch {value}"),
    "precision": "{value}",
    "execution": "{value}",
    "pipeline": mark("pipeline {value}"),
    "operation": "{value}",
    "matrix_size": "{value}×{value}",
    "buffer_mib": "{value} MiB",
    "images": mark("{value} images"),
    "height": mark("height {value}"),
    "width": mark("width {value}"),
    "channels": mark("channels {value}"),
    "filter_size": mark("filter {value}×{value}"),
    "data": mark("{value} data"),
    "feed": mark("{value} input"),
    "graph_optimizers": mark("graph optimisers {value}"),
    "search": mark("search {value}"),
}
# What a reader takes for granted.
_UNSAID = {("layout", "native"), ("execution", "native"), ("strategy", "none"), ("nodes", 1)}


@dataclass(frozen=True)
class Cell:
    """One cell: `value` is the exact number behind `text`; `notes` say its spread; `kind` is how it is set.

    Kinds: text, label (never broken into lines), number (with a value), status, absent, verdict. A verdict's `tone` is
    good, part, bad, open or none. `best` marks the best of its row or column, where intervals say that it is.
    """

    text: str
    value: float | None = None
    notes: tuple[str, ...] = ()
    kind: str = "text"
    best: bool = False
    tone: str = ""

    @property
    def exact(self) -> str | int:
        """The number as tables/*.csv has it; empty for none."""
        return "" if self.value is None else exact(self.value)


@dataclass(frozen=True)
class Table:
    """A table of the page. `groups`: labels over the columns, with how many they span (the first column has none).

    `filters`: indexes of the columns by whose texts a reader can choose rows.
    """

    columns: list[str]
    rows: list[list[Cell]]
    title: str = ""
    groups: list[tuple[str, int]] = field(default_factory=list)
    folded: bool = False
    notes: list[str] = field(default_factory=list)
    filters: tuple[int, ...] = ()

    @cached_property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers, and are set flush right."""
        return [any(row[index].kind == "number" for row in self.rows) for index in range(len(self.columns))]

    @property
    def full_columns(self) -> list[str]:
        """Column headers for where there are no groups over them."""
        labels = [label for label, span in self.groups for _ in range(span)] or [""] * len(self.columns)
        return [f"{label}: {column}" if label else column for label, column in zip(labels, self.columns, strict=True)]


def text_cell(value: Any, kind: str = "text") -> Cell:
    """A value as it is; a dash where there is none."""
    return Cell(NOTHING if value in (None, "") else str(value), kind=kind)


def number_cell(value: float) -> Cell:
    return Cell(digits(value), float(value), kind="number")


def status_cell(word: str) -> Cell:
    """A status, or the word for why there is nothing."""
    absent = word in (NOTHING, NOT_PLANNED, NOT_MEASURED, NOT_PUBLISHED)
    return Cell(status_text(word), kind="absent" if absent else "status")


def status_text(statuses: str) -> str:
    """A status, or several that commas separate, in words."""
    return ", ".join(t(status.replace("_", " ")) for status in statuses.split(", "))


def digits(value: float, unit: str = "") -> str:
    """A number as people read it: four significant digits; counts (whole, of unit 1) and thousands in full.

    Large rates of work have an SI prefix, for the unit in the header: "210.0 G".
    """
    if unit in ("FLOP/s", "B/s"):
        prefix, factor = next(one for one in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("", 0.0)) if abs(value) >= one[1])
        return f"{value / (factor or 1):#.4g}".removesuffix(".") + f"\u00a0{prefix}".rstrip("\u00a0")
    if abs(value) >= 1000 or (unit == "1" and value == int(value)):
        return f"{value:,.0f}"
    return f"{value:#.4g}".removesuffix(".")


def header(quantity: str) -> str:
    """A quantity as a column's header, with its unit."""
    unit = unit_of(quantity)
    name = quantity if unit == "1" else quantity.removesuffix("_" + unit.lower())
    label = QUANTITIES[quantity].label if quantity in QUANTITIES else name.replace("_", " ")
    return t(label) if unit == "1" else f"{t(label)},\u00a0{unit}"


def case_text(axes: dict[str, Any], wanted: Collection[str] = AXES) -> str:
    """A case's axes, or the wanted ones of them, in words: "4 devices, random data"."""
    texts = []
    for axis in AXES:
        if axis in wanted and axis in axes and axis not in ("suite", "protocol"):
            value = axes[axis]
            if (axis, value) in _UNSAID:
                continue
            if (axis, value) == ("devices", 1):
                texts.append(t("1 device"))
            else:
                texts.append(t(_AXIS_TEXT.get(axis, axis.replace("_", " ") + " {value}"), value=value))
    return ", ".join(texts)
