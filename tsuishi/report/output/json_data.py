"""The page as data: report.json, with everything that the page shows, and report.schema.json, which says what it is.

Whatever is added to blocks.py is added here too: an unknown block is an error, not a gap.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, with_config

from tsuishi.base.language import active
from tsuishi.report.parts import blocks
from tsuishi.report.parts.blocks import Page
from tsuishi.report.parts.wording import Cell, Table
from tsuishi.verdicts.evidence import Evidence

SCHEMA_FILE = "report.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
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


BlockData = Annotated[
    TextData | HeadingData | BulletsData | CodeData | TableData | ChartData | ExplorerData, Field(discriminator="block")
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
    """A run, as it was recorded; `created_at` in UTC."""

    run_id: str
    created_at: str
    profile: str | None
    engine: str | None
    seed: int | None
    tsuishi_version: str | None


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


_REPORT = TypeAdapter(ReportData)


def report_json(page: Page, evidence: Evidence) -> str:
    """The text of report.json: the same for the same page."""
    report = ReportData(
        language=active(),
        title=page.title,
        runs=tuple(_runs(evidence)),
        environments=tuple(_environments(evidence)),
        machines=tuple(_machines(evidence)),
        sections=tuple(
            SectionData(anchor=section.anchor, title=section.title, blocks=tuple(map(_block, section.blocks)))
            for section in page.sections
        ),
        tables={name: f"tables/{name}.csv" for name in sorted(page.tables)},
    )
    return _REPORT.dump_json(report).decode() + "\n"


def report_schema() -> str:
    """The text of report.schema.json."""
    schema = {"$schema": _DIALECT, **_REPORT.json_schema(mode="serialization")}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _block(block: blocks.Block) -> BlockData:
    match block:
        case Table():
            return TableData(
                title=block.title, columns=block.columns, groups=block.groups, rows=block.rows, notes=block.notes
            )
        case blocks.Text():
            return TextData(kind=block.kind, topic=block.topic, text=block.text)
        case blocks.Heading():
            return HeadingData(level=block.level, text=block.text)
        case blocks.Bullets():
            return BulletsData(title=block.title, warning=block.warning, items=block.items)
        case blocks.Code():
            return CodeData(text=block.text)
        case blocks.Chart():
            values = dict(sorted(block.specification.get("datasets", {}).items()))
            return ChartData(title=block.title, name=block.name, caption=block.caption, values=values)
        case blocks.Explorer():
            return ExplorerData(title=block.title, caption=block.caption, data=block.data)


def _runs(evidence: Evidence) -> Iterator[RunData]:
    for run_id, run in evidence.results.runs.items():
        yield RunData(
            run_id=run_id,
            created_at=run.created_at or "",
            profile=run.profile,
            engine=run.engine,
            seed=run.seed,
            tsuishi_version=run.tsuishi_version,
        )


def _environments(evidence: Evidence) -> Iterator[EnvironmentData]:
    """Every column of the page, with the id of what was built; an environment that never started has none."""
    outcomes, trials = evidence.outcomes, evidence.results.trials
    known = trials.drop_duplicates("column").set_index("column").to_dict("index")
    for column, name in sorted({*zip(outcomes["column"], outcomes["environment"], strict=True)}):
        trial = known.get(column, {})
        record = evidence.results.environments.get(trial.get("environment_record", ""))
        realised_id = record.realised_id if record else None
        machine = trial.get("machine_record") or None
        yield EnvironmentData(column=column, name=name, realised_id=realised_id, machine_record=machine)


def _machines(evidence: Evidence) -> Iterator[MachineData]:
    for record, machine in evidence.machine_records.items():
        gpus = tuple(gpu.name for gpu in machine.gpus or [])
        yield MachineData(record=record, cpu=machine.cpu.model if machine.cpu else None, gpus=gpus)
