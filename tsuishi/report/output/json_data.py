"""The page as data: report.json, with everything that the page shows, and report.schema.json, which says what it is.

Whatever is added to blocks.py is added here too: an unknown block is an error, not a gap.
"""

import json
from collections.abc import Iterator

from pydantic import TypeAdapter

from tsuishi.base.language import active
from tsuishi.base.printable import visible
from tsuishi.report.output.json_models import (
    BlockData,
    BulletsData,
    ChartData,
    CodeData,
    EnvironmentData,
    ExplorerData,
    HeadingData,
    HighlightData,
    HighlightsData,
    MachineData,
    ReportData,
    RunData,
    SectionData,
    StripData,
    TableData,
    TextData,
)
from tsuishi.report.parts import blocks
from tsuishi.report.parts.blocks import Page
from tsuishi.report.parts.wording import Table
from tsuishi.verdicts.evidence import Evidence

SCHEMA_FILE = "report.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"

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
            return _chart(block)
        case blocks.Explorer():
            return ExplorerData(title=block.title, caption=block.caption, data=block.data)
        case blocks.Highlights():
            return HighlightsData(items=tuple(map(_highlight, block.items)))
        case blocks.Strip():
            return StripData(title=block.title, groups=block.groups, rows=block.rows)


def _chart(chart: blocks.Chart) -> ChartData:
    values = dict(sorted(chart.specification.get("datasets", {}).items()))
    return ChartData(title=chart.title, name=chart.name, caption=chart.caption, values=values)


def _highlight(item: blocks.Highlight) -> HighlightData:
    charts = tuple(map(_chart, item.charts))
    return HighlightData(
        topic=item.topic, title=item.title, text=item.text, certainty=item.certainty, sure=item.sure,
        anchor=item.anchor, charts=charts,
    )  # fmt: skip


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
    """Every column of the page, with the id of what was built; an environment that never started has none."""
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
