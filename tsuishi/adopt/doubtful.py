"""The doubts about the numbers of a source, from its tables, the networks of suites, and data sheets."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from tsuishi.estimates.printed_doubts import KnownWork, PrintedCell, PrintedDoubt, doubts
from tsuishi.machine.data_sheets import DataSheet, fastest_of, sheets_of_printed
from tsuishi.specs import numerals
from tsuishi.specs.source import Hardware, Numbers
from tsuishi.specs.vocabulary import NetworkFacts, Vocabulary

# The arithmetic of a data sheet that a precision of cases uses.
_ARITHMETIC = {"fp32": "fp32", "tf32": "tf32", "amp_fp16": "fp16", "amp_bf16": "bf16"}


def doubts_about(
    numbers: Iterable[Numbers], hardware: Iterable[Hardware], words: Vocabulary, sheets: Sequence[DataSheet]
) -> list[PrintedDoubt]:
    """The doubts about the numbers of a source. hardware: of the source."""
    tables, of = list(numbers), {each.name: _peak(each.title, sheets) for each in hardware}
    peaks = {_line(table): of.get(table.hardware, {}) for table in tables}
    return doubts(
        [cell for table in tables for cell in _cells(table)], KnownWork(_multiply_adds(words.networks), peaks)
    )


def _multiply_adds(networks: Mapping[str, NetworkFacts]) -> dict[str, int]:
    return {name: facts.multiply_adds for name, facts in networks.items() if facts.multiply_adds}


def _peak(title: str, sheets: Sequence[DataSheet]) -> dict[str, float]:
    """FLOP/s by precision of the card that a line's title names first; empty where no data sheet has it."""
    found = sheets_of_printed(title, sheets)
    peaks = {precision: fastest_of(found, key) for precision, key in _ARITHMETIC.items()}
    return {precision: fastest[1] for precision, fastest in peaks.items() if fastest}


def _line(table: Numbers) -> str:
    return f"{table.hardware} {table.framework}" if table.framework else table.hardware


def _cells(table: Numbers) -> Iterable[PrintedCell]:
    line = _line(table)
    for number, row in enumerate(table.rows):
        for quantity, values in table.readings(row).items():
            value, (place, unit) = statistics.median(values), table.printed(number, quantity)
            yield PrintedCell(line, place, _printed(value), table.axes(row), quantity, value, len(values), unit)


def likely_text(doubt: PrintedDoubt, words: Vocabulary) -> str:
    """The likely value of the suspect with its unit, that of its column where it has a name; empty without a value."""
    cell, value = doubt.cells[0], doubt.likely
    if value is None:
        return ""
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
