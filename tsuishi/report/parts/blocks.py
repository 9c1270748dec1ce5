"""Blocks: what a page is made of, in the order in which it is read. Templates set them; nothing else knows HTML."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tsuishi.report.parts.wording import Table
from tsuishi.specs.claims import Verdict

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Text:
    """A paragraph; `lead` opens the page, `note` is small print, `topic` stands in front of it, emphasised."""

    text: str
    kind: Literal["", "lead", "note"] = ""
    topic: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading inside a section: level 3 or 4, as the section's own title is of level 2."""

    text: str
    level: Literal[3, 4] = 3


@dataclass(frozen=True)
class Bullets:
    """A list; `warning`: what a reader has to know before believing a number."""

    items: tuple[str, ...]
    title: str = ""
    warning: bool = False


@dataclass(frozen=True)
class Code:
    """Something to copy, as it is."""

    text: str


@dataclass(frozen=True)
class Chart:
    """A chart: a Vega-Lite specification with its data, its file name and what it shows in words."""

    title: str
    name: str
    caption: str
    specification: dict[str, Any]


@dataclass(frozen=True)
class Explorer:
    """Telemetry of every trial, to choose from: see report/telemetry.py for what `data` is."""

    title: str
    caption: str
    data: dict[str, Any]


Block = Text | Heading | Bullets | Code | Table | Chart | Explorer

# Rows of CSV files, by the file's name without .csv.
Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class View:
    """One look at the evidence: its blocks, and what they show as rows of CSV files (columns.py says of which)."""

    blocks: tuple[Block, ...] = ()
    rows: Rows = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A part of the page with a title and a place to link to."""

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
    """The verdict on one claim in some environments, which are separated by " / "."""

    verdict: Verdict
    source: str
    claim: str
    environments: str


@dataclass(frozen=True)
class Page:
    """A report in the order in which it is read: headline, environments compared, suites, and all it takes to redo it.

    `sections` hold everything a reader sees; `tables` the same as data, exact values, by file name without .csv.
    `verdicts`: the verdict on every claim, in the order of the page. `closing`: the lines that the command ends with.
    `more`: what more time would bring.
    """

    title: str
    sections: Sequence[Section]
    tables: Mapping[str, "pd.DataFrame"]
    verdicts: tuple[ClaimVerdict, ...]
    closing: tuple[str, ...]
    more: tuple[str, ...]
