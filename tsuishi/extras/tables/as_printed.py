"""Every number of a table as it is printed, whether or not it is one of a case here: what checks of numbers compare."""

from collections import Counter
from collections.abc import Iterable, Mapping

from tsuishi.extras.tables.adoption import AdoptedTable
from tsuishi.extras.tables.hardware_names import is_hardware
from tsuishi.specs.case import BATCH_SIZE, DEVICES
from tsuishi.specs.device_counts import counted_hardware
from tsuishi.specs.numerals import printed_number, unit_of_cell
from tsuishi.specs.printed_table import HARDWARE, PARAMETERS, Axes, CaseNumber, PrintedColumn, PrintedNumbers

# A column is one of numbers where so many of its cells with digits are.
_NUMBERS = 0.8
# The axis of a number whose column is no quantity: the header.
_COLUMN = "column"

_Columns = Mapping[str, PrintedColumn]


def as_printed(table: AdoptedTable) -> PrintedNumbers:
    """The numbers of a table above 0; the axes of each are the texts that are printed for it."""
    grid, proposed = table.grid, table.proposed
    columns = {column.name: column for column in proposed.columns}
    numbers, settings, words = list[int](), list[int](), list[int]()
    for index, name in enumerate(grid.header):
        cells = [row[index] for row in grid.rows if index < len(row) and any(map(str.isdigit, row[index]))]
        printed = [printed_number(cell, proposed.decimal) is not None for cell in cells]
        column = columns.get(name)
        if column is not None and proposed.is_quantity(column):
            numbers.append(index)
        elif (
            column is None
            and sum(printed) > _NUMBERS * len(cells)
            and not all(_without_devices(cell)[0] for cell in cells)
        ):
            is_setting = all(map(str.isdecimal, cells)) and 2 * len({*cells}) <= len(cells)
            (settings if is_setting else numbers).append(index)
        elif column is None or column.holds != PARAMETERS:
            words.append(index)
    rows = {row: number for number, row in reversed([*enumerate(grid.rows)]) if len(row) == len(grid.header)}
    said = {row: _said(((grid.header[index], row[index]) for index in words), columns) for row in rows}
    named = {(*(text for text in axes.values() if isinstance(text, str)), hardware) for axes, hardware in said.values()}
    # A count that repeats may be a setting, where words do not tell rows apart; or grow with the devices, like watts.
    if max(Counter(map(str, said.values())).values(), default=0) > 1:
        for row, (axes, _) in said.items():
            axes |= {grid.header[index]: row[index] for index in settings}
    cells_of = (
        _number(table, columns.get(grid.header[index]), (rows[row], grid.header[index], row[index]), *said[row])
        for index in numbers
        for row in sorted(rows, key=lambda row: rows[row])
    )
    units = {name: (column.scale, column.inverse) for name, column in columns.items()}
    are_named = len(named) * 2 > len(rows)
    return PrintedNumbers(table.file.name, table.number, table.title, [*filter(None, cells_of)], units, are_named)


def _said(cells: Iterable[tuple[str, str]], columns: _Columns) -> tuple[Axes, str]:
    """What the cells of a row say that are no numbers: texts by axis or header, and the hardware of one device."""
    axes, hardware = Axes(), ""
    for name, text in cells:
        holds = columns[name].holds if name in columns else name
        devices, rest = _without_devices(text)
        if holds in (DEVICES, BATCH_SIZE):
            number = printed_number(text)
            axes[holds] = int(number) if number is not None and number.is_integer() else devices or text
        elif holds == HARDWARE:
            hardware = rest
        else:
            axes[holds] = rest
        if devices:
            axes.setdefault(DEVICES, devices)
    return axes, hardware


def _without_devices(text: str) -> tuple[int, str]:
    """The number of devices in the name of hardware, and the name of one; 0 without a number."""
    is_name = is_hardware(text) or "gpu" in text.lower() or not any(map(str.isalpha, text.lower().replace("x", "")))
    return counted_hardware(text) if is_name else (0, text)


def _number(
    table: AdoptedTable, column: PrintedColumn | None, cell: tuple[int, str, str], said: Axes, hardware: str
) -> CaseNumber | None:
    """The number in a cell (row, header, text); None where there is none above 0 in the unit of its column."""
    row, name, text = cell
    printed = printed_number(text, table.proposed.decimal)
    if printed is None or not 0 < printed < float("inf"):
        return None
    devices, rest = _without_devices(name)
    axes: Axes = {DEVICES: devices or 1, **said}
    if column is not None and table.proposed.is_quantity(column):
        if column.units and unit_of_cell(text) not in column.units:
            return None
        axes |= {axis: int(value) if str(value).isdecimal() else value for axis, value in column.case.items()}
        quantity, value, hardware = column.holds, column.converted(printed), column.hardware or hardware
    else:
        quantity, value, axes[_COLUMN] = "", printed, rest
    if table.proposed.batch_per_device and isinstance(axes.get(BATCH_SIZE), int):
        axes[BATCH_SIZE] = int(axes[BATCH_SIZE]) * int(axes[DEVICES])
    return CaseNumber(row, name, text, axes, quantity, value, _without_devices(hardware)[1])
