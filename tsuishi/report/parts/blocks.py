"""Blocks: the pieces of a page, in reading order. Templates turn them into HTML and Markdown; no other code does.

report.json has the fields of each, in their order, but for those that are OF_PAGE.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field, PlainSerializer

from tsuishi.report.parts.wording import OF_PAGE, Table, as_data
from tsuishi.specs.claims import Verdict

if TYPE_CHECKING:
    import pandas as pd


@as_data
@dataclass(frozen=True)
class Text:
    """A paragraph. Kinds: `lead` opens the page, `note` is small print. `topic`: emphasised words in front of it."""

    block: Literal["text"] = field(default="text", init=False)
    kind: Literal["", "lead", "note"] = field(default="", kw_only=True)
    topic: str = field(default="", kw_only=True)
    text: str


@as_data
@dataclass(frozen=True)
class Heading:
    """A heading inside a section. The section's own title has level 2."""

    block: Literal["heading"] = field(default="heading", init=False)
    level: Literal[3, 4] = field(default=3, kw_only=True)
    text: str


@as_data
@dataclass(frozen=True)
class Bullets:
    """A list; `warning`: readers have to know its items before they believe a number."""

    block: Literal["bullets"] = field(default="bullets", init=False)
    title: str = field(default="", kw_only=True)
    warning: bool = field(default=False, kw_only=True)
    items: tuple[str, ...]


@as_data
@dataclass(frozen=True)
class Code:
    """Text that readers copy unchanged, a command for instance."""

    block: Literal["code"] = field(default="code", init=False)
    text: str


def _drawn(specification: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The data of a chart, by data set."""
    return dict(sorted(specification.get("datasets", {}).items()))


@as_data
@dataclass(frozen=True)
class Chart:
    """A chart: a Vega-Lite specification with its data. `caption`: what it shows, in words.

    The drawing is charts/<name>.svg; `values` are its data, by data set.
    """

    block: Literal["chart"] = field(default="chart", init=False)
    title: str
    name: str
    caption: str
    specification: Annotated[dict[str, Any], PlainSerializer(_drawn), Field(serialization_alias="values")]


@as_data
@dataclass(frozen=True)
class Explorer:
    """A chart of any trial's telemetry, which readers choose. `data`: see report/sections/load.py."""

    block: Literal["explorer"] = field(default="explorer", init=False)
    title: str
    caption: str
    data: dict[str, Any]


# How sure readers can be of a highlight: a statement of the report's family (certain); numbers of a source (printed);
# or findings that no question asked for before the measurement (seen).
Certainty = Literal["certain", "printed", "seen"]


@as_data
@dataclass(frozen=True)
class Highlight:
    """What a report found, as a card. `topic`: what it is about. `title`: the finding. `sure`: its certainty in words.

    `anchor`: of the section with the evidence. `charts`: the card's small chart, or none.
    """

    topic: str
    title: str
    text: str
    certainty: Certainty
    sure: str
    anchor: str
    charts: tuple[Chart, ...] = ()


@as_data
@dataclass(frozen=True)
class Highlights:
    """The cards at the top of a page."""

    block: Literal["highlights"] = field(default="highlights", init=False)
    items: tuple[Highlight, ...]


class StripCell(NamedTuple):
    """A verdict by its letter; `tone` as in wording.Cell; `words`: the claim and its verdicts; `anchor`: its row."""

    letter: str
    tone: str
    words: str
    name: str = ""
    anchor: str = ""


class StripRow(NamedTuple):
    """The claims of a source; `about`: its title, author and date; `address`: where it is read, or empty."""

    source: str
    about: str
    address: str
    cells: tuple[StripCell, ...]


@as_data
@dataclass(frozen=True)
class Strip:
    """All claims at a glance: a row for each source that has a verdict, a cell for each of its claims.

    `others`: a line on the sources without a verdict. `legend`: the letters with their tones and verdicts.
    """

    block: Literal["strip"] = field(default="strip", init=False)
    title: str
    rows: tuple[StripRow, ...]
    others: str
    legend: Annotated[tuple[StripCell, ...], OF_PAGE]
    anchor: Annotated[str, OF_PAGE]


Block = Text | Heading | Bullets | Code | Table | Chart | Explorer | Highlights | Strip

# Rows of CSV files, by file name without .csv.
Rows = dict[str, list[dict[str, Any]]]
# The values of a table by column; None, NaN or NA where there is nothing.
TableValues = Mapping[str, "Sequence[Any] | pd.Series[Any]"]


@dataclass(frozen=True)
class View:
    """A view of the evidence: blocks, and the same data as rows of CSV files, whose columns are in TABLES.

    `tables`: CSV files of this view alone, by column, as rows would be most of the work for a large table.
    """

    blocks: tuple[Block, ...] = ()
    rows: Rows = field(default_factory=dict)
    tables: Mapping[str, TableValues] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A part of the page with a title. `anchor`: the target of links to it.

    `folded`: readers open it. Its charts are drawn by the page then, and not when the report is made. `about`: a few
    words on what is inside.
    """

    anchor: str
    title: str
    views: tuple[View, ...]
    about: str = ""
    folded: bool = True

    @property
    def blocks(self) -> Iterator[Block]:
        for view in self.views:
            yield from view.blocks

    @property
    def charts(self) -> Iterator[Chart]:
        """The charts, also those of cards."""
        for block in self.blocks:
            if isinstance(block, Chart):
                yield block
            elif isinstance(block, Highlights):
                yield from (chart for item in block.items for chart in item.charts)


class BaselineCase(NamedTuple):
    """A case in an environment against the baseline, in words."""

    environment: str
    case: str
    standing: Literal["slower", "not slower", "open", "lost", "not matched"]
    text: str

    @property
    def fails(self) -> bool:
        """Whether it fails a gate."""
        return self.standing in ("slower", "lost")


class BaselineOutcome(NamedTuple):
    """The result of a comparison with a baseline. `anchor`: of the section with the evidence.

    unchecked: why no case could be slower; else empty.
    """

    summary: str
    anchor: str
    cases: tuple[BaselineCase, ...]
    unchecked: str = ""

    @property
    def failing(self) -> list[str]:
        """A line for each case that is slower, or lost."""
        return [f"{case.standing}: {case.text}" for case in self.cases if case.fails]


class ClaimVerdict(NamedTuple):
    """The verdict on a claim in some environments, which are separated by " / "."""

    verdict: Verdict
    source: str
    claim: str
    environments: str


@dataclass(frozen=True)
class Page:
    """A report. `sections`: everything that readers see, in reading order.

    `tables`: the same as exact values, by file name without .csv. `verdicts`: the verdict on every claim, in the order
    of the page. `closing`: the last lines that the command prints. `more`: lines on what more time would bring.
    `baseline`: the comparison with a baseline; None without one.
    """

    title: str
    sections: Sequence[Section]
    tables: Mapping[str, TableValues]
    verdicts: tuple[ClaimVerdict, ...]
    closing: tuple[str, ...]
    more: tuple[str, ...]
    baseline: BaselineOutcome | None = None
