"""The page as data: report.json, with everything that the page shows, and report.schema.json, which describes it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from tsuishi.base.language import active
from tsuishi.base.printable import visible
from tsuishi.report.parts.blocks import Block, Page
from tsuishi.report.parts.wording import as_data
from tsuishi.results.assurance import Level
from tsuishi.verdicts.evidence import Evidence

SCHEMA_FILE = "report.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@as_data
@dataclass(frozen=True, kw_only=True)
class SectionData:
    """A part of the page; `anchor` is its place in index.html."""

    anchor: str
    title: str
    blocks: tuple[Annotated[Block, Field(discriminator="block")], ...]


@as_data
@dataclass(frozen=True, kw_only=True)
class RunData:
    """A run, as recorded; `created_at` in UTC.

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


@as_data
@dataclass(frozen=True, kw_only=True)
class EnvironmentData:
    """An environment; `column` is its name on the page."""

    column: str
    name: str
    realised_id: str | None
    machine_record: str | None


@as_data
@dataclass(frozen=True, kw_only=True)
class MachineData:
    """A machine; `record` is that of the run's records."""

    record: str
    cpu: str | None
    gpus: tuple[str, ...]


@as_data
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
            SectionData(anchor=section.anchor, title=section.title, blocks=tuple(section.blocks))
            for section in page.sections
        ),
        tables={name: f"tables/{name}.csv" for name in sorted(page.tables)},
    )
    return _REPORT.dump_json(report, by_alias=True).decode() + "\n"


def report_schema() -> str:
    """The text of report.schema.json."""
    schema = {"$schema": _DIALECT, **_REPORT.json_schema(mode="serialization")}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _runs(evidence: Evidence) -> Iterator[RunData]:
    for run_id, run in evidence.results.runs.items():
        yield RunData(
            run_id=run_id,
            created_at=run.created_at or "",
            profile=run.profile,
            engine=run.engine,
            seed=run.seed,
            tsuishi_version=run.tsuishi_version,
            files=(assurance := evidence.results.assurances[run_id]).level,
            digest=assurance.root or None,
            altered=tuple(map(visible, assurance.altered)),
        )


def _environments(evidence: Evidence) -> Iterator[EnvironmentData]:
    """Every column of the page, with the id of the built environment; an environment that never started has no id."""
    outcomes, trials = evidence.outcomes, evidence.results.trials
    known = trials.drop_duplicates("column").set_index("column").to_dict("index")
    for column, name in sorted({*zip(outcomes["column"], outcomes["environment"], strict=True)}):
        trial = known.get(column, {})
        record = evidence.results.environments.get(trial.get("environment_record", ""))
        realised_id = record.realised_id if record else None
        machine = trial.get("machine") or None
        yield EnvironmentData(column=column, name=name, realised_id=realised_id, machine_record=machine)


def _machines(evidence: Evidence) -> Iterator[MachineData]:
    for record, machine in evidence.machine_records.items():
        gpus = tuple(gpu.name for gpu in machine.gpus or [])
        yield MachineData(record=record, cpu=machine.cpu.model if machine.cpu else None, gpus=gpus)
