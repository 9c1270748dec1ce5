"""The doubts about the numbers of a source, from its tables, the networks of suites, and data sheets."""

import statistics
from collections.abc import Iterable, Sequence

from tsuishi.estimates.printed_doubts import (
    KnownWork,
    PrintedCell,
    PrintedDoubt,
    by_arithmetic,
    doubts,
    doubts_in_table,
)
from tsuishi.specs import numerals
from tsuishi.specs.data_sheets import DataSheet, fastest_of, sheets_of_printed
from tsuishi.specs.printed_table import PrintedNumbers, place_of
from tsuishi.specs.source import Hardware, Number, Numbers, Source
from tsuishi.specs.vocabulary import Vocabulary

# The arithmetic of a data sheet that a precision of cases uses.
_ARITHMETIC = {name: name for name in ("fp32", "tf32", "fp16", "bf16", "fp64")} | {
    "amp_fp16": "fp16",
    "amp_bf16": "bf16",
}


def doubts_about(
    numbers: Iterable[Numbers],
    hardware: Iterable[Hardware],
    words: Vocabulary,
    sheets: Sequence[DataSheet],
    printed: Iterable[PrintedNumbers] = (),
) -> list[PrintedDoubt]:
    """The doubts about the numbers of a source. hardware: of the source. printed: all numbers of its tables."""
    tables = list(numbers)
    found = doubts([cell for table in tables for cell in _cells(table)], _work(tables, hardware, words, sheets))
    places = {cell.place for doubt in found for cell in doubt.cells}
    for table in printed:
        for doubt in doubts_in_table(cells_as_printed(table), table.are_named):
            if doubt.cells[0].place not in places:
                found.append(doubt)
                places.add(doubt.cells[0].place)
    return found


def cells_as_printed(table: PrintedNumbers) -> dict[tuple[int, str], PrintedCell]:
    """The numbers of a table by row and column."""
    return {
        (each.row, each.column): PrintedCell(
            f"{each.hardware} {table.line}",
            place_of(table.file, table.number, [each]),
            each.text,
            each.axes,
            each.quantity,
            each.value,
            unit=table.units.get(each.column, (1.0, False)),
        )
        for each in table.numbers
    }


def with_impossible(source: Source, words: Vocabulary, sheets: Sequence[DataSheet]) -> Source:
    """The source whose impossible numbers say why they are, in place of being believed."""
    numbers = source.flat()
    cells = [
        PrintedCell(_line(each), "", _printed(each.value), each.axes, each.quantity, each.value) for each in numbers
    ]
    found = by_arithmetic(cells, _work(numbers, source.hardware, words, sheets))
    reasons = {id(cell): doubt.reason for doubt in found if doubt.kind == "impossible" for cell in doubt.cells}
    return source.with_impossible([reasons.get(id(cell), "") for cell in cells]) if reasons else source


def _work(
    lines: Iterable[Numbers | Number],
    hardware: Iterable[Hardware],
    words: Vocabulary,
    sheets: Sequence[DataSheet],
) -> KnownWork:
    of = {each.name: _peak(each.title, sheets) for each in hardware}
    peaks = {_line(each): of.get(each.hardware, {}) for each in lines}
    multiply_adds = {name: facts.multiply_adds for name, facts in words.networks.items() if facts.multiply_adds}
    return KnownWork(multiply_adds, peaks)


def _peak(title: str, sheets: Sequence[DataSheet]) -> dict[str, float]:
    """FLOP/s by precision of the card that a line's title names first; empty where no data sheet has it."""
    found = sheets_of_printed(title, sheets)
    peaks = {precision: fastest_of(found, key) for precision, key in _ARITHMETIC.items()}
    return {precision: fastest[1] for precision, fastest in peaks.items() if fastest}


def _line(numbers: Numbers | Number) -> str:
    return f"{numbers.hardware} {numbers.framework}" if numbers.framework else numbers.hardware


def _cells(table: Numbers) -> Iterable[PrintedCell]:
    line = _line(table)
    for number, (axes, readings) in enumerate(table.cases()):
        for quantity, values in readings.items():
            value, (place, unit) = statistics.median(values), table.printed(number, quantity)
            yield PrintedCell(line, place, _printed(value), axes, quantity, value, len(values), unit)


def likely_text(doubt: PrintedDoubt, words: Vocabulary) -> str:
    """The likely value of the suspect with its unit, that of its column where it has a name; empty without a value."""
    cell, value = doubt.cells[0], doubt.likely
    if value is None or not cell.quantity:
        return "" if value is None else f"{value:.12g}"
    own = words.quantities[cell.quantity].unit
    units = numerals.printed_units(own) | ({"it/s": (1.0, True)} if own == "s" else {})
    name = next((name for name, unit in units.items() if unit == cell.unit), "")
    if name:
        factor, turned = cell.unit
        value = factor / value if turned else value / factor
    return f"{float(f'{value:.4g}'):.12g} {name or own}"


def _printed(value: float) -> str:
    """The digits as printed: a time may be the inverse of a printed rate, which then has fewer digits."""
    return min(f"{value:.12g}", f"{1 / value:.9g}", key=len) if value else "0"
