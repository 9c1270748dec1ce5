"""Towers: first and later runs against the number of devices, and the step from three towers to four.

A line is one environment (or published hardware) and quantity, with a cell for every number of devices.
"""

from dataclasses import replace
from typing import Any

from tsuishi.comparison import Comparison
from tsuishi.tables import (
    NOT_PLANNED,
    NOT_PUBLISHED,
    NOTHING,
    Cell,
    Table,
    case_text,
    header,
    number_cell,
    status_cell,
    text_cell,
)

RATIO_COLUMNS = ["suite", "protocol", "series", "quantity", "ratio_3_to_4_devices"]
RUN_TIMES = ("first_run_s", "later_run_s")

Lines = dict[tuple[str, str], dict[int, Cell]]


def tower_lines(comparison: Comparison) -> Lines:
    """By series and quantity: a cell for every number of devices. None where devices do not turn, or nothing ran.

    Ours come first, then the published ones.
    """
    measured = set(comparison.cases["quantity"])
    quantities = [name for name in RUN_TIMES if name in measured]
    lines = _our_lines(comparison, quantities)
    if not any(len(line) > 1 for line in lines.values()):
        return {}
    lines = {key: line for key, line in lines.items() if any(cell.value for cell in line.values())}
    for number in comparison.evidence.numbers if lines else []:
        if number.quantity in quantities and number.axes["suite"] == comparison.suite:
            series = f"{comparison.evidence.hardware[number.key].title} (published)"
            # SciPy's own row of a source has no devices: one CPU.
            devices = int(number.axes.get("devices", 1))
            lines.setdefault((series, number.quantity), {})[devices] = number_cell(number.value)
    return lines


def _our_lines(comparison: Comparison, quantities: list[str]) -> Lines:
    lines: Lines = {}
    telling = [axis for axis in comparison.varying if axis not in ("devices", "implementation")]
    for environment in comparison.environments:
        for case_id in comparison.case_ids:
            axes = comparison.axes[case_id]
            if "devices" not in axes:
                continue
            text = case_text(axes, telling)
            scipy = axes.get("implementation") == "scipy"
            series = f"{environment}, SciPy" if scipy else f"{environment}: {text}".removesuffix(": ")
            for quantity in quantities:
                cell = comparison.cell(case_id, environment, quantity)
                spread = tuple(note for note in cell.notes if "–" in note)
                lines.setdefault((series, quantity), {})[axes["devices"]] = replace(cell, notes=spread)
    return lines


def tower_table(lines: Lines) -> Table | None:
    """The lines as a table; None where there is at most one number of devices."""
    counts = sorted({count for line in lines.values() for count in line})
    if len(counts) < 2:
        return None
    rows = []
    for (series, quantity), line in lines.items():
        # SciPy has one CPU and no towers.
        without = NOTHING if "SciPy" in series else NOT_PUBLISHED if "(published)" in series else NOT_PLANNED
        cells = [line.get(count, status_cell(without)) for count in counts]
        ratio = _ratio(line)
        row = [text_cell(series), text_cell(header(quantity), "label"), *cells]
        rows.append([*row, number_cell(ratio) if ratio else status_cell(NOTHING)])
    columns = ["", "", *[f"{count} tower{'s' if count > 1 else ''}" for count in counts], "3 ÷ 4 towers"]
    return Table(columns, rows, "First and later runs against the number of towers")


def tower_ratios(comparison: Comparison, lines: Lines) -> list[dict[str, Any]]:
    """For ratios.csv: every line that has three devices and four, with RATIO_COLUMNS."""
    where = {"suite": comparison.suite, "protocol": comparison.protocol}
    return [
        {**where, "series": series, "quantity": quantity, "ratio_3_to_4_devices": ratio}
        for (series, quantity), line in lines.items()
        if (ratio := _ratio(line))
    ]


def _ratio(line: dict[int, Cell]) -> float | None:
    """How many times longer 3 devices take than 4."""
    three, four = (line[count].value if count in line else None for count in (3, 4))
    return three / four if three and four else None
