"""Tables of a report, and how numbers, quantities and cases are worded in them: the same way everywhere."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tsuishi.base.checkout import Checkout
from tsuishi.base.language import in_language, mark, t
from tsuishi.estimates.intervals import Contrast
from tsuishi.estimates.ratios import Ratio, as_ratio
from tsuishi.results.schema import exact
from tsuishi.specs.case import PROTOCOL, SUITE
from tsuishi.specs.statuses import STATUSES
from tsuishi.specs.vocabulary import Vocabulary, vocabulary

NOTHING = "—"
NOT_PLANNED, NOT_MEASURED, NOT_PUBLISHED = mark("not planned"), mark("not measured"), mark("not published")

_worded: ContextVar[Vocabulary] = ContextVar("worded")


@contextmanager
def worded(words: Vocabulary) -> Iterator[None]:
    """Axes and quantities are called as this vocabulary has it in this block, in the language that is spoken."""
    token = _worded.set(words)
    try:
        yield
    finally:
        _worded.reset(token)


def words() -> Vocabulary:
    """What axes and quantities are called by: the vocabulary of the block, else of this checkout."""
    return _worded.get(None) or vocabulary(Checkout().suites)


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
    names = statuses.split(", ")
    return ", ".join(in_language(STATUSES[name].label) if name in STATUSES else t(name) for name in names)


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


def unit_of(quantity: str) -> str:
    """The unit of a quantity; 1 for a pure number."""
    return words().quantity(quantity).unit


def label(quantity: str) -> str:
    """What a quantity is called, without its unit."""
    return in_language(words().quantity(quantity).label)


def header(quantity: str) -> str:
    """A quantity as a column's header, with its unit."""
    unit = unit_of(quantity)
    return label(quantity) if unit == "1" else f"{label(quantity)},\u00a0{unit}"


def case_text(axes: dict[str, Any], wanted: Collection[str] | None = None) -> str:
    """A case's axes, or the wanted ones of them, in words: "4 devices, random data"."""
    known = words()
    names = [*known.axes, *(name for name in axes if name not in known.axes)]
    texts = [
        known.axis(name).worded(axes[name])
        for name in names
        if name in axes and name not in (SUITE, PROTOCOL) and (wanted is None or name in wanted)
    ]
    return ", ".join(filter(None, texts))


def ratio_cell(logarithm: Contrast, notes: tuple[str, ...], best: bool = False) -> Cell:
    """A ratio, given by its logarithm, with its interval."""
    ratio = as_ratio(logarithm)
    return Cell(ratio_text(ratio), ratio.value, notes, "number", best=best)


def ratio_text(ratio: Ratio) -> str:
    """A ratio with its interval, where it has one: 1.23 [1.10, 1.37]."""
    if ratio.low is None or ratio.high is None:
        return short(ratio.value)
    return f"{short(ratio.value)} [{short(ratio.low)}, {short(ratio.high)}]"


def short(ratio: float) -> str:
    """A ratio with three digits, or all of those before the point."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:#.3g}"
