"""What the columns of a table hold, from their headers and their cells, each with the evidence for it."""

import re
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from tsuishi.extras.tables.axis_columns import HARDWARE_HEADER, take_axis, take_words
from tsuishi.extras.tables.column_maps import ColumnMap, Taken, conversion
from tsuishi.extras.tables.given_columns import given_column
from tsuishi.extras.tables.hardware_names import is_hardware, is_hardware_alone, names_of_hardware
from tsuishi.extras.tables.printed_quantities import (
    IMAGES,
    OF_MANY,
    STEP,
    PrintedQuantity,
    header_words,
    is_no_mean,
    is_of_other_quantity,
    quantity_in_paragraphs,
    quantity_of,
    quantity_of_headings,
    quantity_of_unit,
    units_in,
)
from tsuishi.extras.tables.printed_values import COUNTED, PrintedValues, framework_words, named_framework
from tsuishi.specs import numerals
from tsuishi.specs.case import ALONE, BATCH_SIZE, DEVICES, MODEL, STRATEGY
from tsuishi.specs.grids import Grid
from tsuishi.specs.numerals import number_in, printed_number
from tsuishi.specs.printed_table import HARDWARE, PrintedColumn
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.specs.zoo_names import names_of

_TIMED = re.compile(r"\b(?:time|step|iter|iteration|batch time|latency|duration|total|train|training|inference)\b")
_RATED = re.compile(r"\b(?:throughput|speed|rate|performance)\b")
# What a time without a unit may be in: the factor to seconds.
_TIMES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
# How far rate x time may be from the batch, where a column of times tells its unit by that.
NEAR = 0.05
# Cells without a number in a column of numbers.
_MISSING = re.compile(
    r"oom|out of memory|n/?[atd]?|n\.a\.|na|nan|[-–—?]+|fail\w*|error|crash\w*|tbd|none|x|✗|not .*|unsupported"
)
# More columns that differ in one value alone are said in one line.
_MOST_LISTED = 3
# A quantity, and who says it.
_Said = tuple[PrintedQuantity, str]
_AS_GIVEN = "as given"
_EPOCHS_HEADER = re.compile(r"(?:# ?|num(?:ber)? ?(?:of )?)?epochs")


def column_map(
    grid: Grid,
    words: Vocabulary,
    named: PrintedValues,
    given: Mapping[str, str],
    decimal: numerals.Decimal | None = None,
) -> ColumnMap:
    """What the columns of a grid hold.

    given: what a person says of columns by header; `all`: of those whose headers are values of axes, or hardware.
    Without `all`, the nearest heading with a unit says it. decimal: the sign that a person says. Raises UserError.
    """
    of_trainings = any(map(_EPOCHS_HEADER.fullmatch, map(header_words, grid.header)))
    of_trainings |= any(re.search(OF_MANY, header_words(text)) for text in grid.heading)
    found, is_open = (decimal, False) if decimal else _decimal_of(grid)
    proposed = ColumnMap(decimal=found, decimal_is_open=is_open, of_trainings=of_trainings)
    cells = [[row[index] for row in grid.rows if index < len(row)] for index in range(len(grid.header))]
    said = _said(grid, given, words)
    unsure: list[int] = []
    for index, name in enumerate(grid.header):
        if index in said and said[index].holds not in words.quantities:
            proposed.take(said[index], _AS_GIVEN)
        elif index in said or not take_axis(proposed, name, cells[index], named, words):
            unsure.append(index)
    _leave_out_cores_of_hardware(proposed, [grid.header[index] for index in unsure], words)
    of_all = _of_all(grid, given, words)
    headers = {
        index: named.in_header(grid.header[index]) for index in sorted(unsure, key=lambda index: index not in said)
    }
    of_networks = sum(MODEL in case for case, _ in headers.values()) > 0 and not proposed.holds(MODEL)
    for index, (case, left) in headers.items():
        name = grid.header[index]
        if index not in said and not _are_numbers(name, cells[index], proposed.decimal):
            take_words(proposed, name, cells[index], named)
            continue
        is_case = ("all" in given and bool(case)) or _is_case_alone(name, case, left, of_networks)
        if of_networks and MODEL not in case and not is_hardware(name):
            case = {**case, MODEL: left or name}
        hardware = _hardware_in(name, left)
        if index in said:
            of = {"case": dict(case), "hardware": hardware, "framework": named_framework(name) or None}
            proposed.take(said[index].model_copy(update=of), _AS_GIVEN)
        elif not _quantity(proposed, name, case, hardware, cells[index], of_all if is_case else None):
            proposed.cases_without_unit += [name] if is_case else []
            _by_arithmetic(proposed, grid, index, name)
    if of_networks:
        _library(proposed, named)
    _say_once(proposed)
    _common(proposed)
    _leave_out_contested(proposed, named, {grid.header[index] for index in said})
    return proposed


def _leave_out_contested(proposed: ColumnMap, named: PrintedValues, given: Collection[str]) -> None:
    """Read no column of a case and quantity that another column has too, if its header has words that nothing explains.

    Of columns without such words the first is read. given: headers of columns that a person says.
    """
    alike: dict[tuple[object, ...], list[PrintedColumn]] = defaultdict(list)
    for column in proposed.columns:
        if proposed.is_quantity(column) and column.name not in given:
            alike[column.holds, column.hardware, tuple(sorted(column.case.items()))].append(column)
    for columns in alike.values():
        plain_ones = [column for column in columns if not named.unexplained(column.name)]
        first = {column.framework: column for column in reversed(plain_ones)}
        for column in columns if len(columns) > 1 else ():
            if first.get(column.framework) is column:
                continue
            other = next(each for each in columns if each is not column)
            why = (
                "an earlier column has this quantity, and no axis tells them apart"
                if column in plain_ones
                else f"no axis tells it from {other.name}"
            )
            proposed.columns.remove(column)
            proposed.contested.append(column.name)
            proposed.say_unread([column.name], why)


def _hardware_in(header: str, left: str) -> str:
    """The hardware that a header of numbers names: "Speed TensorRT V100 (ms)". left: words that are of no axis."""
    if header_words(header) in ("cpu", "cpu only", "on cpu"):
        return "CPU"
    if not is_hardware(header) or re.match(r"cpu time\b", header_words(header)):
        return ""
    (name, *more) = names_of_hardware(left) or [re.sub(r"\s*\((?:ms|s|us)\)$", "", left)]
    return left if more or is_hardware_alone(left) else name


def _said(grid: Grid, given: Mapping[str, str], words: Vocabulary) -> dict[int, PrintedColumn]:
    """The columns that a person says, by place."""
    return {index: given_column(name, given[name], words) for index, name in enumerate(grid.header) if name in given}


def _leave_out_cores_of_hardware(proposed: ColumnMap, headers: Iterable[str], words: Vocabulary) -> None:
    """Beside a column of hardware, CPUs are those that the hardware has, and no setting. headers: not read yet."""
    if proposed.holds(HARDWARE) or any(map(HARDWARE_HEADER.fullmatch, map(header_words, headers))):
        proposed.leave_out([name for name, axis in words.axes.items() if axis.is_cpus], "of the hardware")


def _of_all(grid: Grid, given: Mapping[str, str], words: Vocabulary) -> _Said | None:
    """What the numbers are whose headers say only their case: as a person says it, or the nearest heading with a unit.

    Where headers have units, and where a nearer heading is of another quantity, headings say nothing.
    """
    if "all" in given and not is_of_other_quantity(grid.heading):
        column = given_column("all", given["all"], words)
        return (column.holds, column.scale, column.inverse), _AS_GIVEN
    if any(map(quantity_of, grid.header)):
        return None
    found, text = quantity_of_headings(grid.heading)
    if found or is_of_other_quantity(grid.heading):
        return (found, f"the unit in a heading: {text}") if found else None
    for group in grid.notes:
        found, text = quantity_in_paragraphs(group)
        if found or text:
            return (found, f"the unit in a paragraph: {text}") if found else None
    return None


def _are_numbers(name: str, cells: Sequence[str], decimal: numerals.Decimal) -> bool:
    """Whether a column is of numbers: more than of words, or as many under a header with a unit."""
    are_numbers = [number_in(cell, decimal) is not None for cell in cells]
    others = [cell for cell, is_number in zip(cells, are_numbers, strict=True) if not is_number]
    words = sum(any(map(str.isalpha, cell)) and not _MISSING.fullmatch(cell.lower()) for cell in others)
    are_names = sum(map(is_hardware, cells)) * 2 > len(cells)
    most = sum(are_numbers) > words or (sum(are_numbers) == words and quantity_of(name) is not None)
    return any(are_numbers) and most and not are_names


def _library(proposed: ColumnMap, named: PrintedValues) -> None:
    """Take the library of the networks in headers that suites have not."""
    networks = {str(column.case[MODEL]) for column in proposed.columns if MODEL in column.case}
    proposed.library, found = named.library_of([name for name in networks if named(MODEL, name) is None])
    if found:
        why = f"{found} of {len(networks)} headers are networks of {names_of(proposed.library)[0]}"
        proposed.evidence.append(Taken("networks in headers", MODEL, why))


def _common(proposed: ColumnMap) -> None:
    """Take the axes that headers give in one value alone for the whole table: "inference time" beside "fps".

    A count, as "bs=1", is of its column alone; so is a value that a column of the same quantity lacks ("img/s" beside
    "AMP img/s").
    """
    texts: dict[str, set[str]] = {}
    for column in proposed.columns:
        for axis, text in column.case.items():
            texts.setdefault(axis, set()).add(str(text))
    once = {axis: found.pop() for axis, found in texts.items() if len(found) == 1 and axis not in COUNTED}
    proposed.common = {axis: text for axis, text in once.items() if not _is_of_some(proposed, axis)}
    counts_devices = DEVICES in texts and not proposed.holds(DEVICES)
    for index, column in enumerate(proposed.columns):
        case = {axis: text for axis, text in column.case.items() if axis not in proposed.common}
        if counts_devices and proposed.is_quantity(column):
            case.setdefault(DEVICES, "1")
        if case.get(DEVICES) == "1":
            case[STRATEGY] = ALONE
        proposed.columns[index] = column.model_copy(update={"case": case})


def _is_of_some(proposed: ColumnMap, axis: str) -> bool:
    """Whether a column without a value of the axis has the quantity of a column with one."""
    of = [column for column in proposed.columns if proposed.is_quantity(column)]
    quantities = [{column.holds for column in of if (axis in column.case) == has} for has in (True, False)]
    return bool(quantities[0] & quantities[1])


def _decimal_of(grid: Grid) -> tuple[numerals.Decimal, bool]:
    """The decimal sign of most numbers that have only one reading, 66,7 or 66.7; and whether others stay open.

    They do where numbers of one reading have both signs, or none is there and either a semicolon parts the cells, or
    1.234 stands beside whole numbers of a column, as 987.
    """
    cells = [cell for row in grid.rows for cell in row]
    points, commas = ([number_in(cell, sign) is not None for cell in cells] for sign in (".", ","))
    only = [point - comma for point, comma in zip(points, commas, strict=True)]
    with_point, with_comma = only.count(1), only.count(-1)
    if with_point or with_comma:
        return "," if with_comma > with_point else ".", bool(with_point and with_comma)
    columns = [[row[index] for row in grid.rows if index < len(row)] for index in range(len(grid.header))]
    return ".", grid.delimiter == ";" or any(map(_has_whole_numbers_beside_points, columns))


def _has_whole_numbers_beside_points(cells: Sequence[str]) -> bool:
    grouped = any("." in cell and numerals.two_readings(cell) for cell in cells)
    return grouped and any(cell.isdecimal() and len(cell) > 2 for cell in cells)


def _say_once(proposed: ColumnMap) -> None:
    """Say in one line what many columns hold that differ in the value of an axis alone, which is their header."""
    cased = [column for column in proposed.columns if column.case]
    alike = {(*column.case, column.holds, column.scale, column.inverse, column.hardware) for column in cased}
    whole = all([*column.case.values()] == [column.name] for column in cased)
    if len(cased) <= _MOST_LISTED or len(alike) > 1 or not whole:
        return
    (axis,), first = cased[0].case, cased[0]
    why = next(each.why for each in proposed.evidence if each.header == first.name)
    names = {column.name for column in cased}
    proposed.evidence = [each for each in proposed.evidence if each.header not in names]
    unit = conversion(first)
    headers = f"{first.name}, {cased[1].name}, and {len(cased) - 2} more"
    proposed.evidence.append(Taken(headers, f"{first.holds}{unit}, headers are values of {axis}", why))


def _quantity(
    proposed: ColumnMap,
    name: str,
    case: Mapping[str, str],
    hardware: str,
    cells: Sequence[str],
    of_all: _Said | None,
) -> bool:
    """Take a column for a quantity: its unit is in the header or in its cells, or is said for all such columns.

    A column of a framework that is not here, or of two, is left out. Returns whether something is decided.
    """
    if framework_words(name) and not named_framework(name):
        proposed.evidence.append(Taken(name, "", f"of {' or '.join(framework_words(name))}: no case here"))
        return True
    of_header, units = proposed.quantity_of(name), units_in(cells)
    if of_header:
        found_of = {unit: quantity_of_unit(unit) for unit in units}
    else:
        found_of = {unit: proposed.quantity_of(f"{name} ({unit})") for unit in units}
    of_units = {unit: found for unit, found in found_of.items() if found}
    quantity, why = of_header or next(iter(of_units.values()), None), "the unit in its header"
    alike = {
        unit: found
        for unit, found in of_units.items()
        if quantity and (found[0], found[2]) == (quantity[0], quantity[2])
    }
    read = tuple(alike)
    if read and not of_header:
        others = ", ".join(each for each in units if each not in read)
        why = f"the unit in its cells: {', '.join(read)}{others and f' (not {others})'}"
    if quantity is None and of_all and (case or hardware) and (of_all[1] == _AS_GIVEN or not units):
        quantity, why = of_all
    if quantity is None:
        return False
    holds, scale, inverse = quantity
    column = PrintedColumn(name=name, holds=holds, scale=scale, inverse=inverse, case=dict(case), hardware=hardware)
    factors = {unit: found[1] for unit, found in alike.items() if found[1] != scale}
    of = {
        "units": ("", *read) if of_header and units else read if len(read) < len(units) else (),
        "factors": factors,
        "framework": named_framework(name) or None,
    }
    proposed.take(column.model_copy(update=of), why)
    return True


def _is_case_alone(header: str, case: Mapping[str, str], left: str, of_networks: bool) -> bool:
    """Whether a header is values of axes, or a card, and nothing else: "V100 price ($)" and "FP16 speedup" are not.

    case, left: its axes and further words, which in a table of networks are a network that is not known here.
    """
    if is_hardware(header):
        return is_hardware_alone(left or header)
    return not left or (of_networks and MODEL not in case)


def _by_arithmetic(proposed: ColumnMap, grid: Grid, index: int, name: str) -> None:
    """Take a column of times for the step, in the unit by which rate x time is the batch size."""
    places = {column.holds: grid.header.index(column.name) for column in proposed.columns}
    if _TIMED.search(header_words(name)) and STEP not in places and {IMAGES, BATCH_SIZE} <= places.keys():
        found = [
            [printed_number(row[place], proposed.decimal) for place in (places[IMAGES], index, places[BATCH_SIZE])]
            for row in grid.rows
            if len(row) == len(grid.header)
        ]
        ratios = [rate * time / batch for rate, time, batch in found if rate and time and batch]
        middle = statistics.median(ratios) if ratios else 0.0
        for unit, seconds in _TIMES.items():
            holding = sum(abs(ratio * seconds - 1) < NEAR for ratio in ratios)
            if ratios and abs(middle * seconds - 1) < NEAR:
                why = f"in {unit}, rate x time is the batch size in {holding} of {len(ratios)} rows"
                proposed.take(PrintedColumn(name=name, holds=STEP, scale=seconds), why)
                return
    of_whole = "time" in header_words(name) and not proposed.quantity_of(f"{name} (s)")
    if is_no_mean(name) or of_whole or quantity_of(name):
        proposed.evidence.append(Taken(name, "", "no mean of whole steps"))
        return
    of = "images/s" if _RATED.search(header_words(name)) else "ms" if _TIMED.search(header_words(name)) else ""
    if name not in proposed.cases_without_unit:
        proposed.without_unit.append(name)
    without = f'no unit in its header: --columns "{name}={of}"' if of else "not known"
    proposed.evidence.append(Taken(name, "", without))
