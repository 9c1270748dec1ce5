"""The data of report.json, typed: its parts are the blocks of a page (report/parts/blocks.py)."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, with_config

from tsuishi.report.parts import blocks
from tsuishi.report.parts.wording import Cell
from tsuishi.results.verification import Level

# What is not described is not there.
_exactly = with_config(ConfigDict(extra="forbid"))


@_exactly
@dataclass(frozen=True, kw_only=True)
class TableData:
    """A table; `groups` are labels over the columns, with how many each spans.

    A cell's `value` is the exact number behind its `text`, in the unit of the column; null where it is no number.
    """

    block: Literal["table"] = "table"
    title: str
    columns: list[str]
    groups: list[tuple[str, int]]
    rows: list[list[Cell]]
    notes: list[str]


@_exactly
@dataclass(frozen=True, kw_only=True)
class TextData:
    """A paragraph; `topic` stands in front of it."""

    block: Literal["text"] = "text"
    kind: str
    topic: str
    text: str


@_exactly
@dataclass(frozen=True, kw_only=True)
class HeadingData:
    """A heading inside a section."""

    block: Literal["heading"] = "heading"
    level: int
    text: str


@_exactly
@dataclass(frozen=True, kw_only=True)
class BulletsData:
    """A list; `warning`: what a reader has to know before believing a number."""

    block: Literal["bullets"] = "bullets"
    title: str
    warning: bool
    items: tuple[str, ...]


@_exactly
@dataclass(frozen=True, kw_only=True)
class CodeData:
    """Something to copy."""

    block: Literal["code"] = "code"
    text: str


@_exactly
@dataclass(frozen=True, kw_only=True)
class ChartData:
    """A chart: the drawing is charts/<name>.svg; `values` are what it draws, by data set."""

    block: Literal["chart"] = "chart"
    title: str
    name: str
    caption: str
    values: dict[str, list[dict[str, Any]]]


@_exactly
@dataclass(frozen=True, kw_only=True)
class ExplorerData:
    """Telemetry to choose from, as it is drawn; all of it is in the run's telemetry.csv."""

    block: Literal["explorer"] = "explorer"
    title: str
    caption: str
    data: dict[str, Any]


@_exactly
@dataclass(frozen=True, kw_only=True)
class HighlightData:
    """What the report found; `certainty`: certain, printed (by a source) or seen; `anchor`: of the evidence."""

    topic: str
    title: str
    text: str
    certainty: blocks.Certainty
    sure: str
    anchor: str
    charts: tuple[ChartData, ...]


@_exactly
@dataclass(frozen=True, kw_only=True)
class HighlightsData:
    """What the report found, the answers to its main questions first."""

    block: Literal["highlights"] = "highlights"
    items: tuple[HighlightData, ...]


@_exactly
@dataclass(frozen=True, kw_only=True)
class StripData:
    """All claims at a glance: of each environment (`rows`), a cell for each claim of each source (`groups`)."""

    block: Literal["strip"] = "strip"
    title: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[tuple[str, tuple[blocks.StripCell, ...]], ...]


BlockData = Annotated[
    TextData | HeadingData | BulletsData | CodeData | TableData | ChartData | ExplorerData | HighlightsData | StripData,
    Field(discriminator="block"),
]


@_exactly
@dataclass(frozen=True, kw_only=True)
class SectionData:
    """A part of the page; `anchor` is its place in index.html."""

    anchor: str
    title: str
    blocks: tuple[BlockData, ...]


@_exactly
@dataclass(frozen=True, kw_only=True)
class RunData:
    """A run, as it was recorded; `created_at` in UTC.

    `files`: how far they are known to be what its runner wrote; `digest`: of the whole run, where `invoke verify` read
    everything as it is now and had no fault; `altered`: the files that differ.
    """

    run_id: str
    created_at: str
    profile: str | None
    engine: str | None
    seed: int | None
    tsuishi_version: str | None
    files: Level
    digest: str | None
    altered: tuple[str, ...]


@_exactly
@dataclass(frozen=True, kw_only=True)
class EnvironmentData:
    """An environment; `column` is what it is called on the page."""

    column: str
    name: str
    realised_id: str | None
    machine_record: str | None


@_exactly
@dataclass(frozen=True, kw_only=True)
class MachineData:
    """A machine; `record` is that of the run's records."""

    record: str
    cpu: str | None
    gpus: tuple[str, ...]


@_exactly
@dataclass(frozen=True, kw_only=True)
class ReportData:
    """A report: everything that its page shows, in reading order; exact values by row are in `tables`, by name."""

    schema_version: Literal[1] = 1
    language: str
    title: str
    runs: tuple[RunData, ...]
    environments: tuple[EnvironmentData, ...]
    machines: tuple[MachineData, ...]
    sections: tuple[SectionData, ...]
    tables: dict[str, str]
