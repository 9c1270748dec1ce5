"""Tables of a report, and the words for numbers, quantities and cases, which are the same everywhere in it."""

import math
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, with_config

from tsuishi.base.checkout import Checkout
from tsuishi.base.language import in_language, in_words, mark, t
from tsuishi.estimates.intervals import Contrast
from tsuishi.estimates.ratios import Ratio, as_ratio
from tsuishi.report.parts.shown_units import PLAIN, Unit, readable
from tsuishi.results.schema import exact
from tsuishi.specs.case import PROTOCOL, SUITE
from tsuishi.specs.quantities import is_unit_of_pace, is_unit_of_rate
from tsuishi.specs.statuses import STATUSES
from tsuishi.specs.vocabulary import Vocabulary, vocabulary
from tsuishi.verdicts.hypotheses import Missing

_PROTOCOLS = {"literal": mark("as its source timed it"), "steady": mark("warm")}
NOTHING = "—"
NOT_PLANNED, NOT_MEASURED, NOT_PUBLISHED = mark("not planned"), mark("not measured"), mark("not published")

_worded: ContextVar[Vocabulary] = ContextVar("worded")


@contextmanager
def worded(words: Vocabulary) -> Iterator[None]:
    """Inside this block, the names of axes and quantities come from this vocabulary, in the report's language."""
    token = _worded.set(words)
    try:
        yield
    finally:
        _worded.reset(token)


def vocabulary_in_use() -> Vocabulary:
    """The vocabulary of the `worded` block, else of this checkout."""
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


# Of a block: report.json has its fields, in their order, and no others.
as_data = with_config(ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True))
# A field of a block that only the page has.
OF_PAGE = Field(exclude=True)


@as_data
@dataclass(frozen=True)
class Table:
    """A table of the page. `groups`: labels above the columns, each with the number of columns that it spans.

    `filters`: indexes of the columns by whose texts readers can choose rows. `anchors`: the targets of links to rows,
    empty for a row without, or none at all. A cell's `value` is the exact number behind its `text`, in the unit of the
    column; None where it is no number.
    """

    block: Literal["table"] = field(default="table", init=False)
    title: str = field(default="", kw_only=True)
    columns: list[str]
    groups: list[tuple[str, int]] = field(default_factory=list, kw_only=True)
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list, kw_only=True)
    folded: Annotated[bool, OF_PAGE] = field(default=False, kw_only=True)
    filters: Annotated[tuple[int, ...], OF_PAGE] = field(default=(), kw_only=True)
    anchors: Annotated[tuple[str, ...], OF_PAGE] = field(default=(), kw_only=True)

    @cached_property
    def numeric(self) -> list[bool]:
        """Whether each column holds numbers, which are set flush right."""
        return [any(row[index].kind == "number" for row in self.rows) for index in range(len(self.columns))]

    @cached_property
    def begins(self) -> list[bool]:
        """Which columns begin a group, but the first group."""
        begun = set(accumulate(span for _, span in self.groups))
        return [index in begun for index in range(len(self.columns))]

    @property
    def full_columns(self) -> list[str]:
        """The column headers with their groups' labels, for tables that show no groups."""
        labels = [label for label, span in self.groups for _ in range(span)] or [""] * len(self.columns)
        return [f"{label}: {column}" if label else column for label, column in zip(labels, self.columns, strict=True)]


def notes_once(tables: Iterable[Table]) -> list[Table]:
    """The tables, each note below the first open table that has it."""
    known: set[str] = set()
    shown = []
    for table in tables:
        shown.append(replace(table, notes=[note for note in table.notes if note not in known]))
        known |= set() if table.folded else set(table.notes)
    return shown


def text_cell(value: Any, kind: str = "text") -> Cell:
    """The text of a value; a dash for None and for empty text."""
    return Cell(NOTHING if value in (None, "") else str(value), kind=kind)


def number_cell(value: float, unit: Unit = PLAIN) -> Cell:
    return Cell(digits(value, unit), float(value), kind="number")


def status_cell(word: str) -> Cell:
    """A status, or the word for why there is no number."""
    absent = word in (NOTHING, NOT_PLANNED, NOT_MEASURED, NOT_PUBLISHED)
    return Cell(status_text(word), kind="absent" if absent else "status")


def status_text(statuses: str) -> str:
    """Statuses in words; commas separate them."""
    names = statuses.split(", ")
    return ", ".join(in_language(STATUSES[name].label) if name in STATUSES else t(name) for name in names)


def protocol_words(protocol: object) -> str:
    """How trials were timed, in words that need no glossary; an unknown protocol is its own word."""
    return t(_PROTOCOLS[str(protocol)]) if protocol in _PROTOCOLS else str(protocol)


def digits(value: float, unit: Unit = PLAIN) -> str:
    """A number for readers, without its unit: three significant digits, all of a whole number and from 1000 on.

    >>> digits(0.28791), digits(0.28791, Unit("ms", 1e3)), digits(7677.5), digits(4), digits(1.0)
    ('0.288', '288', '7,678', '4', '1.00')
    >>> digits(999.7), digits(99.97)
    ('1,000', '100')
    """
    whole = isinstance(value, int) or (unit.name == "1" and value == int(value))
    value *= unit.factor
    return f"{value:,.0f}" if whole or abs(value) >= 999.5 else f"{value:#.3g}".removesuffix(".")


def amount(value: float, unit: str) -> str:
    r"""A number with its unit, for sentences: three significant digits, times below a second in ms or µs.

    >>> amount(0.2879, "s"), amount(0.0000871, "s"), amount(61.27, "images/s"), amount(2.1e11, "FLOP/s")
    ('288\xa0ms', '87.1\xa0µs', '61.3\xa0images/s', '210\xa0GFLOP/s')
    """
    shown = readable(unit, [value])
    text = digits(value, shown)
    return text if unit == "1" else f"{text}\u00a0{shown.name}"


def unit_of(quantity: str) -> str:
    """The unit of a quantity; 1 for a pure number."""
    return vocabulary_in_use().quantity(quantity).unit


def is_rate(quantity: str) -> bool:
    """Whether more of a quantity is faster: its unit is something per time."""
    return is_unit_of_rate(unit_of(quantity))


def is_pace(quantity: str) -> bool:
    """Whether a quantity is a time, a time per something, or a rate."""
    return is_unit_of_pace(unit_of(quantity))


def label(quantity: str) -> str:
    """The name of a quantity, without its unit."""
    return in_language(vocabulary_in_use().quantity(quantity).label)


def no_number_text(missing: Missing) -> str:
    """Why cases have no number that can be compared; empty where nothing was tried."""
    if not missing.without_ratio:
        return in_words(map(status_text, sorted({*missing.statuses})))
    quantity, value = missing.without_ratio
    if value is None:
        return t("no trial has the number “{what}”", what=label(quantity))
    unit = unit_of(quantity)
    found = f"{value:g}" if unit == "1" else f"{value:g} {unit}"
    return t("{what} is {value}, and a ratio takes numbers above 0", what=label(quantity), value=found)


def capital(text: str) -> str:
    """The text as the beginning of a sentence.

    >>> capital("step, mean"), capital("GPU load")
    ('Step, mean', 'GPU load')
    """
    return text[:1].upper() + text[1:]


def header(quantity: str, unit: Unit | None = None) -> str:
    """The header of a quantity's column, with the unit: without `unit`, that of the data."""
    name = unit.name if unit else unit_of(quantity)
    return label(quantity) if name == "1" else f"{label(quantity)}, {name}"


def shown_in(quantity: str, values: Iterable[float | None]) -> Unit:
    """The unit in which readers see these values of a quantity, which are in the unit of the data."""
    return readable(unit_of(quantity), values)


def case_text(axes: dict[str, Any], wanted: Collection[str] | None = None, always: bool = False) -> str:
    """A case's axes, or only the wanted axes, in words: "4 devices, random data". always: usual values too."""
    known = vocabulary_in_use()
    names = [*known.axes, *(name for name in axes if name not in known.axes)]
    texts = [
        known.axis(name).worded(axes[name], always)
        for name in names
        if name in axes and name not in (SUITE, PROTOCOL) and (wanted is None or name in wanted)
    ]
    return ", ".join(filter(None, texts))


def ratio_cell(logarithm: Contrast, notes: tuple[str, ...], best: bool = False) -> Cell:
    """A cell with a ratio and its interval, from the logarithm of the ratio."""
    ratio = as_ratio(logarithm)
    return Cell(ratio_text(ratio), ratio.value, notes, "number", best=best)


def ratio_text(ratio: Ratio) -> str:
    """A ratio, with its interval if there is an interval: 1.23 [1.10, 1.37]."""
    if ratio.low is None or ratio.high is None:
        return digits(ratio.value)
    return f"{digits(ratio.value)} [{end_text(ratio.low)}, {end_text(ratio.high)}]"


def end_text(end: float) -> str:
    """An end of a ratio's interval, with as many digits as tell it from 1: it decides whether the sides differ.

    >>> end_text(1.864), end_text(1.0034), end_text(0.99968), end_text(1.0)
    ('1.86', '1.003', '0.9997', '1.00')
    """
    apart = round(abs(end - 1), 9)
    return f"{end:.{-math.floor(math.log10(apart))}f}" if 0 < apart < 0.005 else digits(end)
