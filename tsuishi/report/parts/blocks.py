"""Blocks: the pieces of a page, in reading order. Templates turn them into HTML and Markdown; no other code does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tsuishi.report.parts.wording import Table
from tsuishi.specs.claims import Verdict


@dataclass(frozen=True)
class Text:
    """A paragraph. Kinds: `lead` opens the page, `note` is small print. `topic`: emphasised words in front of it."""

    text: str
    kind: Literal["", "lead", "note"] = ""
    topic: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading inside a section. The section's own title has level 2."""

    text: str
    level: Literal[3, 4] = 3


@dataclass(frozen=True)
class Bullets:
    """A list; `warning`: readers have to know its items before they believe a number."""

    items: tuple[str, ...]
    title: str = ""
    warning: bool = False


@dataclass(frozen=True)
class Code:
    """Text that readers copy unchanged, a command for instance."""

    text: str


@dataclass(frozen=True)
class Chart:
    """A chart: a Vega-Lite specification with its data. `name`: of its file. `caption`: what it shows, in words."""

    title: str
    name: str
    caption: str
    specification: dict[str, Any]


@dataclass(frozen=True)
class Explorer:
    """A chart of any trial's telemetry, which readers choose. `data`: see report/sections/load.py."""

    title: str
    caption: str
    data: dict[str, Any]


Block = Text | Heading | Bullets | Code | Table | Chart | Explorer

# Rows of CSV files, by file name without .csv.
Rows = dict[str, list[dict[str, Any]]]
# The values of a table by column; None, NaN or NA where there is nothing.
Values = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class View:
    """A view of the evidence: blocks, and the same data as rows of CSV files, whose columns are in columns.py.

    `tables`: CSV files that are this view's alone, by column, as rows would be most of the work of a large table.
    """

    blocks: tuple[Block, ...] = ()
    rows: Rows = field(default_factory=dict)
    tables: Mapping[str, Values] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A part of the page with a title. `anchor`: the target of links to it."""

    anchor: str
    title: str
    views: tuple[View, ...]

    @property
    def blocks(self) -> Iterator[Block]:
        for view in self.views:
            yield from view.blocks

    @property
    def charts(self) -> Iterator[Chart]:
        return (block for block in self.blocks if isinstance(block, Chart))


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
    """

    title: str
    sections: Sequence[Section]
    tables: Mapping[str, Values]
    verdicts: tuple[ClaimVerdict, ...]
    closing: tuple[str, ...]
    more: tuple[str, ...]
