"""The tables of a run: columns with names, units, types and meanings, as data, and how a value is written in them.

datapackage.json is made of this.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, Literal

from tsuishi.specs.axes import Axis
from tsuishi.specs.statuses import RECORDED

Type = Literal["string", "integer", "number", "boolean", "datetime", "array", "object"]


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    type: Type
    description: str


# Of a trial; behind them stand DETAILS, and then the axes of the cases in canonical order.
TRIALS = (
    Column("trial_id", "string", "case, environment, repetition and attempt, readable"),
    Column("case_id", "string", "hash of the case's canonical JSON: the same case everywhere"),
    Column("environment", "string", "name of the environment (images/<name>.toml)"),
    Column("environment_record", "string", "records/environment-<id>.json"),
    Column("machine_record", "string", "records/machine-<id>.json"),
    Column("workload_record", "string", "records/workload-<id>.json"),
    Column("framework", "string", "framework and version, as it reported itself"),
    Column("device", "string", "what computed: cpu, or the GPU's name"),
    Column("repetition", "integer", "1, 2, …: independent trials of one case"),
    Column("attempt", "integer", "1, 2, …: a trial that had to be run again has several"),
    Column("status", "string", f"{', '.join(RECORDED[:-1])} or {RECORDED[-1]}"),
    Column("reason", "string", "why it is not ok, and what to do"),
    Column("simulated", "boolean", "several devices were asked for, and they were not all distinct real GPUs"),
    Column("synthetic", "boolean", "the data were made up"),
    Column(
        "forced",
        "string",
        "why the environment has no native code for this GPU: it passed a numerical self-check before",
    ),
    Column("started_at", "datetime", "UTC"),
    Column("duration_s", "number", "from the start of the process or container to its end"),
    Column("startup_s", "number", "from the start to the first event of the workload"),
    Column(
        "exit_code",
        "integer",
        "of the workload; a signal's number is negative, or has 128 added in a container",
    ),
    Column("energy_j", "number", "GPU energy over the measured phases, all devices of the trial"),
    Column("energy_source", "string", "counter (NVML total energy) or power_integral (sampled power)"),
    Column("peak_process_memory_mib", "number", "largest sum of resident memory of the trial's processes seen"),
    Column("others_cpu_percent", "number", "share of the usable cores that other programs took while it was measured"),
    Column("events_garbled", "integer", "records in the event stream that were no event, or out of order"),
    Column("events_missing", "integer", "gaps in the numbering of events"),
)

# Of a trial, as JSON.
DETAILS = (
    Column("phases", "array", "its parts: name, begin_s and end_s, in seconds since it started"),
    Column("flags", "object", "settings of the framework, as the workload reported them"),
    Column("settings", "object", "how long it measures, and its seed"),
    Column("command", "array", "runs the case once more inside its environment"),
)

SAMPLES = (
    Column("trial_id", "string", "the trial it belongs to"),
    Column("phase", "string", "what was timed"),
    Column("index", "integer", "0, 1, … within the phase"),
    Column("steps", "integer", "steps timed together"),
    Column("images", "integer", "images processed in them"),
    Column("seconds", "number", "wall time of all of them"),
)

METRICS = (
    Column("trial_id", "string", "the trial it belongs to"),
    Column("name", "string", "what it is"),
    Column("value", "number", "how much"),
    Column("unit", "string", "the unit of the value; 1 is a pure number"),
)

TELEMETRY = (
    Column("trial_id", "string", "the trial it belongs to"),
    Column("elapsed_s", "number", "since the trial started"),
    Column("phase", "string", "phase of the workload up to that moment; empty between phases"),
    Column("device", "string", "host, or gpu<index>"),
    Column("utilisation_percent", "number", "host: all CPUs together; GPU: share of time with a kernel running"),
    Column(
        "process_memory_mib", "number", "host: resident memory of the trial's processes, shared pages counted in each"
    ),
    Column("load_1min", "number", "host: load average over one minute"),
    Column(
        "others_cpu_percent", "number", "host: share of the usable cores that went to others than trial and tsuishi"
    ),
    Column(
        "memory_used_mib",
        "number",
        "GPU: memory in use, by any program; with the driver's reserve where its record has no memory_reserved_mib",
    ),
    Column(
        "power_w",
        "number",
        "GPU: power draw; by the record's power_reading at this instant, or else (usage) on Ampere and newer, but "
        "GA100, the mean of the last second",
    ),
    Column("energy_j", "number", "GPU: energy since the driver was loaded"),
    Column("temperature_c", "number", "GPU: core temperature"),
    Column("sm_clock_mhz", "number", "GPU: clock of the multiprocessors"),
    Column("memory_clock_mhz", "number", "GPU: clock of the memory"),
    Column("throttle_reasons", "string", "GPU: why the clocks are held back, joined by '+'; empty: they are not"),
)

# The tables of which every trial writes a part.
OF_A_TRIAL = {"samples": SAMPLES, "metrics": METRICS, "telemetry": TELEMETRY}


def column_names(table: str) -> list[str]:
    """Column names, in order, of a table of which every trial writes a part."""
    return [column.name for column in OF_A_TRIAL[table]]


def axis_column(axis: Axis) -> Column:
    """The column of an axis in any table."""
    return Column(axis.name, "integer" if axis.is_number else "string", f"axis of the case: {axis.name}")


def data_package(name: str, tables: Mapping[str, tuple[Column, ...]]) -> dict[str, object]:
    """Frictionless Data Package description (v1 table schemas) of tables, of a run or of a report."""
    return {
        "profile": "tabular-data-package",
        "name": name,
        "resources": [
            {
                "name": table,
                "path": f"{table}.csv",
                "profile": "tabular-data-resource",
                "encoding": "utf-8",
                "schema": {
                    "fields": [
                        {"name": column.name, "type": column.type, "description": column.description}
                        for column in columns
                    ],
                    "missingValues": [""],
                },
            }
            for table, columns in tables.items()
        ],
    }


def csv_writer(table: str, file: IO[str]) -> "csv.DictWriter[str]":
    """A writer for a trial's part of a table, which has no trial_id: the gathered table adds it."""
    columns = [name for name in column_names(table) if name != "trial_id"]
    writer = csv.DictWriter(file, columns, lineterminator="\n", restval="")
    writer.writeheader()
    return writer


def csv_value(value: Any) -> Any:
    """A value as tables hold it: nothing for None, true and false in lower case, floats to twelve significant digits.

    Twelve keep the millijoules of an energy counter that has run for a year. A carriage return ends a row for some
    readers, and Python's writer does not quote it: every end of a line is written as a newline.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, str):
        return value.replace("\r\n", "\n").replace("\r", "\n")
    return "" if value is None else value


def exact(value: Any) -> Any:
    """A value of a report's table: a float has all its digits, everything else is as csv_value writes it."""
    value = value.item() if hasattr(value, "item") else value
    return repr(float(value)) if isinstance(value, float) else csv_value(value)
