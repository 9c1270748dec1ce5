"""What the columns of a table hold, from their headers and their cells, each with the evidence for it."""

import re
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tsuishi.adopt.given_columns import given_column
from tsuishi.adopt.printed_quantities import (
    IMAGES,
    STEP,
    PrintedQuantity,
    header_words,
    is_no_mean,
    is_of_whole,
    quantity_of,
    quantity_of_headings,
    units_in,
)
from tsuishi.adopt.printed_values import COUNTED, PrintedValues, is_hardware, is_hardware_alone
from tsuishi.specs import numerals
from tsuishi.specs.case import ALONE, BATCH_SIZE, DEVICES, MODEL, STRATEGY
from tsuishi.specs.grids import Grid
from tsuishi.specs.numerals import number_in, printed_number
from tsuishi.specs.printed_table import HARDWARE, PARAMETERS, WORDS, Axes, PrintedColumn
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.specs.zoo_names import names_of

_PER_DEVICE = "batch size of a device"

# Headers of other things than axes, in lower case.
_HEADERS = {
    _PER_DEVICE: r"(?:batch ?size|batch|bs) ?(?:/|per) ?(?:gpu|device|card)|images ?/ ?gpu",
    PARAMETERS: r"(?:#\s?)?param(?:eter)?s?(?: count)?(?: ?\(m\))?|num param(?:eter)?s",
}
_TIMED = re.compile(r"\b(?:time|step|iter|iteration|batch time|latency|duration|total|train|training|inference)\b")
_RATED = re.compile(r"\b(?:throughput|speed|rate|performance)\b")
# What a time without a unit may be in: the factor to seconds.
_TIMES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
# How far rate x time may be from the batch, where a column of times tells its unit by that.
NEAR = 0.05
# More columns that differ in one value alone are said in one line.
_MOST_LISTED = 3
# A quantity, and who says it.
_Said = tuple[PrintedQuantity, str]
_AS_GIVEN = "as given"
_EPOCHS_HEADER = re.compile(r"(?:# ?|num(?:ber)? ?(?:of )?)?epochs")
# Headers of columns with the hardware of a row.
_HARDWARE_HEADER = re.compile(
    r"(?:(?:gpus?|devices?|hardware|host|machine|system|platform|cards?|accelerator|processor|cpu)"
    r"(?: (?:model|name|type))?)?"
)


@dataclass(frozen=True)
class Taken:
    """What a column was taken for, and why. `holds` is empty for a column that is not read."""

    header: str
    holds: str
    why: str


@dataclass
class ColumnMap:
    """What the columns of a table hold."""

    columns: list[PrintedColumn] = field(default_factory=list)
    batch_per_device: bool = False
    # The library that has most of the networks that suites have not.
    library: str = ""
    decimal: numerals.Decimal = "."
    # Whether it has a column of epochs: a time in seconds is that of a whole training.
    of_trainings: bool = False
    # Texts of axes in headers that hold for the whole table.
    common: dict[str, str] = field(default_factory=dict)
    evidence: list[Taken] = field(default_factory=list)

    def take(self, column: PrintedColumn, why: str) -> None:
        """Take a column for a quantity, an axis or a fact."""
        unit = f", printed x {column.scale:g}" if column.scale != 1 else ""
        unit = f", {column.scale:g} / printed" if column.inverse else unit
        case = "".join(f", {axis} {text}" for axis, text in column.case.items())
        case += ", of this hardware" if column.hardware else ""
        self.columns.append(column)
        self.evidence.append(Taken(column.name, column.holds + unit + case, why))

    def name_hardware(self, title: str) -> bool:
        """Whether the headers of quantities name hardware; then the other quantities are of the hardware `title`."""
        named = any(column.hardware for column in self.columns)
        for index, column in enumerate(self.columns):
            if named and not column.hardware and self.is_quantity(column) and not self.holds(HARDWARE):
                self.columns[index] = column.model_copy(update={"hardware": title})
        return named

    def leave_out(self, axes: Collection[str], why: str) -> None:
        """Read no column of these axes."""
        left = {column.name for column in self.columns if column.holds in axes}
        self.columns = [column for column in self.columns if column.name not in left]
        self.evidence = [Taken(each.header, "", why) if each.header in left else each for each in self.evidence]

    @property
    def axes(self) -> set[str]:
        """The axes of which columns, headers or words give values."""
        found = {column.holds for column in self.columns} | {axis for column in self.columns for axis in column.case}
        return found | {axis for column in self.columns if column.holds == WORDS for axis in _axes_of(column)}

    @property
    def axes_of_all(self) -> set[str]:
        """Those of which all numbers have values."""
        cases = [column.case for column in self.columns if self.is_quantity(column)]
        of_some = {axis for case in cases for axis in case if not all(axis in each for each in cases)}
        return self.axes - {axis for axis in of_some if not self.holds(axis)}

    def quantity_of(self, header: str) -> PrintedQuantity | None:
        """The quantity in a header with its unit; None without, and for the time of a whole training."""
        return None if self.of_trainings and is_of_whole(header) else quantity_of(header)

    @staticmethod
    def is_quantity(column: PrintedColumn) -> bool:
        """Whether a column was taken for a quantity."""
        return column.holds.endswith(("_s", "_per_s"))

    def holds(self, what: str) -> bool:
        """Whether a column is taken for it already."""
        return any(column.holds == what for column in self.columns)


def _axes_of(column: PrintedColumn) -> set[str]:
    return {axis for axes in column.also.values() for axis in axes}


def column_map(grid: Grid, words: Vocabulary, named: PrintedValues, given: Mapping[str, str]) -> ColumnMap:
    """What the columns of a grid hold.

    given: what a person says of columns by header; `all`: of those whose headers are values of axes, or hardware.
    Without `all`, the nearest heading with a unit says it. Raises UserError.
    """
    of_trainings = any(map(_EPOCHS_HEADER.fullmatch, map(header_words, grid.header)))
    proposed = ColumnMap(decimal=_decimal_of(grid), of_trainings=of_trainings)
    cells = [[row[index] for row in grid.rows if index < len(row)] for index in range(len(grid.header))]
    said = _said(grid, given, words)
    unsure: list[int] = []
    for index, name in enumerate(grid.header):
        if index in said and said[index].holds not in words.quantities:
            proposed.take(said[index], _AS_GIVEN)
        elif index in said or not _fact_or_axis(proposed, name, cells[index], named, words):
            unsure.append(index)
    _leave_out_cores_of_hardware(proposed, [grid.header[index] for index in unsure], words)
    of_all = _of_all(grid, given, words)
    headers = {
        index: named.in_header(grid.header[index]) for index in sorted(unsure, key=lambda index: index not in said)
    }
    of_networks = sum(MODEL in case for case, _ in headers.values()) > 0 and not proposed.holds(MODEL)
    takes_all = {
        index
        for index, (case, left) in headers.items()
        if ("all" in given and case) or _is_case_alone(grid.header[index], case, left, of_networks)
    }
    for index, (case, left) in headers.items():
        name = grid.header[index]
        numbers = index in said or _are_numbers(cells[index], proposed.decimal)
        if of_networks and numbers and MODEL not in case and not is_hardware(name):
            case = {**case, MODEL: left or name}
        hardware = re.sub(r"\s*\((?:ms|s|us)\)$", "", left) if is_hardware(name) else ""
        if index in said:
            proposed.take(said[index].model_copy(update={"case": dict(case), "hardware": hardware}), _AS_GIVEN)
        elif not numbers:
            _words(proposed, name, cells[index], named)
        elif not _quantity(proposed, name, case, hardware, cells[index], of_all if index in takes_all else None):
            _by_arithmetic(proposed, grid, index, name)
    if of_networks:
        _library(proposed, named)
    _say_once(proposed)
    _common(proposed)
    return proposed


def _said(grid: Grid, given: Mapping[str, str], words: Vocabulary) -> dict[int, PrintedColumn]:
    """The columns that a person says, by place."""
    return {index: given_column(name, given[name], words) for index, name in enumerate(grid.header) if name in given}


def _leave_out_cores_of_hardware(proposed: ColumnMap, headers: Iterable[str], words: Vocabulary) -> None:
    """Beside a column of hardware, CPUs are those that the hardware has, and no setting. headers: not read yet."""
    if proposed.holds(HARDWARE) or any(map(_HARDWARE_HEADER.fullmatch, map(header_words, headers))):
        proposed.leave_out([name for name, axis in words.axes.items() if axis.is_cpus], "of the hardware")


def _of_all(grid: Grid, given: Mapping[str, str], words: Vocabulary) -> _Said | None:
    """What the numbers are whose headers say only their case: as a person says it, or the nearest heading with a unit.

    Where headers have units, and where a nearer heading is of another quantity, headings say nothing.
    """
    if "all" in given:
        column = given_column("all", given["all"], words)
        return (column.holds, column.scale, column.inverse), _AS_GIVEN
    if any(map(quantity_of, grid.header)):
        return None
    found, text = quantity_of_headings(grid.heading)
    return (found, f"the unit in a heading: {text}") if found else None


def _are_numbers(cells: Sequence[str], decimal: numerals.Decimal) -> bool:
    are_names = sum(map(is_hardware, cells)) * 2 > len(cells)
    return not are_names and any(number_in(cell, decimal) is not None for cell in cells)


def _library(proposed: ColumnMap, named: PrintedValues) -> None:
    """Take the library of the networks in headers that suites have not."""
    networks = {str(column.case[MODEL]) for column in proposed.columns if MODEL in column.case}
    proposed.library, found = named.library_of([name for name in networks if named(MODEL, name) is None])
    if found:
        why = f"{found} of {len(networks)} headers are networks of {names_of(proposed.library)[0]}"
        proposed.evidence.append(Taken("networks in headers", MODEL, why))


def _common(proposed: ColumnMap) -> None:
    """Take the axes that headers give in one value alone for the whole table: "inference time" beside "fps".

    A count, as "bs=1", is that of its column alone.
    """
    texts: dict[str, set[str]] = {}
    for column in proposed.columns:
        for axis, text in column.case.items():
            texts.setdefault(axis, set()).add(str(text))
    proposed.common = {axis: found.pop() for axis, found in texts.items() if len(found) == 1 and axis not in COUNTED}
    counts_devices = DEVICES in texts and not proposed.holds(DEVICES)
    for index, column in enumerate(proposed.columns):
        case = {axis: text for axis, text in column.case.items() if axis not in proposed.common}
        if counts_devices and proposed.is_quantity(column):
            case.setdefault(DEVICES, "1")
        if case.get(DEVICES) == "1":
            case[STRATEGY] = ALONE
        proposed.columns[index] = column.model_copy(update={"case": case})


def _decimal_of(grid: Grid) -> numerals.Decimal:
    """The decimal sign of most numbers that have only one reading: 66,7 or 66.7."""
    cells = [cell for row in grid.rows for cell in row]
    points, commas = ([number_in(cell, sign) is not None for cell in cells] for sign in (".", ","))
    only = [point - comma for point, comma in zip(points, commas, strict=True)]
    return "," if only.count(-1) > only.count(1) else "."


def _words(proposed: ColumnMap, name: str, cells: Sequence[str], named: PrintedValues) -> None:
    """Take a column of words for the hardware of its row, for several axes, or for nothing."""
    known = sum(map(is_hardware, cells))
    also: dict[str, Axes] = {text: case for text in dict.fromkeys(cells) if (case := named.case_of(text))}
    if not proposed.holds(HARDWARE) and (
        known * 2 > len(cells) or (known and _HARDWARE_HEADER.fullmatch(header_words(name)))
    ):
        proposed.take(PrintedColumn(name=name, holds=HARDWARE), f"{known} of {len(cells)} cells name hardware")
    elif len(also) > 1 and not any(proposed.holds(axis) for case in also.values() for axis in case):
        proposed.take(
            PrintedColumn(name=name, holds=WORDS, also=also),
            "cells are values of " + ", ".join(dict.fromkeys(axis for case in also.values() for axis in case)),
        )
    else:
        proposed.evidence.append(Taken(name or "(no header)", "", "words"))


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
    unit = f", printed x {first.scale:g}" if first.scale != 1 else ""
    headers = f"{first.name}, {cased[1].name}, and {len(cased) - 2} more"
    proposed.evidence.append(Taken(headers, f"{first.holds}{unit}, headers are values of {axis}", why))


def _fact_or_axis(
    proposed: ColumnMap, name: str, cells: Sequence[str], named: PrintedValues, words: Vocabulary
) -> bool:
    plain = header_words(name)
    headers = {**_HEADERS, **{axis: about.headers for axis, about in words.axes.items() if about.headers}}
    found = next((holds for holds, header in headers.items() if re.fullmatch(header, plain)), "")
    unknown = [cell for cell in cells if named(MODEL, cell) is None]
    known = len(cells) - len(unknown)
    library, of_library = named.library_of(unknown)
    printed = [number_in(cell, proposed.decimal) for cell in cells]
    numbers = list(filter(None, printed))
    if not proposed.holds(MODEL) and (known + of_library) * 2 > len(cells) and not numbers:
        why = f"{known} of {len(cells)} cells are networks here"
        if library:
            proposed.library, why = library, f"{why}, {of_library} more of {names_of(library)[0]}"
        proposed.take(PrintedColumn(name=name, holds=MODEL), why)
        return True
    by_cells = "" if numbers else named.axis_of([*filter(None, cells)])
    found = by_cells or found
    # A column "Model" may be of processors, a column "GPU" of their names, a column "batch" of times.
    is_words = found in words.axes and not words.axes[found].is_number
    # "16bit" is a number with a unit elsewhere.
    are_numbers = numbers and not all(found in named.within(cell)[0] for cell in cells)
    if not found or proposed.holds(found) or (is_words and are_numbers):
        return False
    is_count = found in (BATCH_SIZE, _PER_DEVICE, DEVICES) or (found in words.axes and words.axes[found].is_of_process)
    if is_count and (not numbers or (found == DEVICES and 0.0 in printed)):  # no count, but the indices of GPUs
        return False
    if found == MODEL and not known and plain in ("architecture", "arch", "name"):
        return False
    if plain == "task" and all(named(found, cell) is None for cell in cells):  # "Object Detection"
        return False
    if found == MODEL and not known and sum(map(is_hardware, cells)) * 2 > len(cells):
        return False
    if found == PARAMETERS:
        millions = bool(numbers) and max(numbers) < 1e5
        why = f"the largest is {max(numbers, default=0):g}: millions" if millions else "the header"
        proposed.take(PrintedColumn(name=name, holds=found, scale=1e6 if millions else 1.0), why)
    elif found == _PER_DEVICE:
        proposed.batch_per_device = True
        proposed.take(PrintedColumn(name=name, holds=BATCH_SIZE), "the header; times the devices")
    else:
        also: dict[str, Axes] = {
            text: {STRATEGY: ALONE} for text in cells if found == DEVICES and number_in(text, proposed.decimal) == 1
        }
        proposed.take(PrintedColumn(name=name, holds=found, also=also), "its cells" if by_cells else "the header")
    return True


def _quantity(
    proposed: ColumnMap,
    name: str,
    case: Mapping[str, str],
    hardware: str,
    cells: Sequence[str],
    of_all: _Said | None,
) -> bool:
    """Take a column for a quantity: its unit is in the header or in its cells, or is said for all such columns."""
    quantity, why = proposed.quantity_of(name), "the unit in its header"
    units = [] if quantity else units_in(cells)
    of_units = {unit: found for unit in units if (found := proposed.quantity_of(f"{name} ({unit})"))}
    quantity = next(iter(of_units.values()), quantity)
    read = tuple(unit for unit, found in of_units.items() if found == quantity)
    if read:
        others = ", ".join(each for each in units if each not in read)
        why = f"the unit in its cells: {', '.join(read)}{others and f' (not {others})'}"
    if quantity is None and of_all and (case or hardware) and (of_all[1] == _AS_GIVEN or not units):
        quantity, why = of_all
    same = [each for each in proposed.columns if quantity and each.holds == quantity[0] and each.hardware == hardware]
    if quantity is None or any({**each.case} == {**case} for each in same):
        return False
    holds, scale, inverse = quantity
    column = PrintedColumn(name=name, holds=holds, scale=scale, inverse=inverse, case=dict(case), hardware=hardware)
    proposed.take(column.model_copy(update={"units": read if len(read) < len(units) else ()}), why)
    return True


def _is_case_alone(header: str, case: Mapping[str, str], left: str, of_networks: bool) -> bool:
    """Whether a header is values of axes, or a card, and nothing else: "V100 price ($)" and "FP16 speedup" are not.

    case, left: its axes and further words, which in a table of networks are a network that is not known here.
    """
    if is_hardware(header):
        return is_hardware_alone(header)
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
    if is_no_mean(name) or of_whole:
        proposed.evidence.append(Taken(name, "", "no mean of whole steps"))
        return
    if quantity_of(name):
        proposed.evidence.append(Taken(name, "", "an earlier column has this quantity, and no axis tells them apart"))
        return
    of = "images/s" if _RATED.search(header_words(name)) else "ms" if _TIMED.search(header_words(name)) else ""
    without = f'no unit in its header: --columns "{name}={of}"' if of else "not known"
    proposed.evidence.append(Taken(name, "", without))
