"""One printed number of a table or a source, found by the words of its row."""

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tsuishi.adopt.adoption import AdoptedTable, Adoption
from tsuishi.adopt.printed_values import plain
from tsuishi.base.errors import UserError
from tsuishi.estimates.printed_doubts import PrintedCell
from tsuishi.specs.case import MODEL, SUITE, Value
from tsuishi.specs.source import Source

# What tables call a framework that we call otherwise.
_NAMES = {"torch": "pytorch"}
# The most readings of a question that are shown.
_SHOWN = 8


@dataclass(frozen=True)
class PrintedNumber:
    """A printed number: the cells of its row, its column, its text and place; its case, quantity and value in its unit.

    words: the cells that say its case, and its hardware. software: the releases that its table or source says, by name.
    """

    cells: tuple[str, ...]
    words: tuple[str, ...]
    column: str
    text: str
    place: str
    axes: dict[str, Value]
    quantity: str
    value: float
    hardware: str
    framework: str
    library: str
    software: dict[str, str]

    @property
    def case(self) -> str:
        """Its axes, as --row and --case take them."""
        return ", ".join(f"{axis}={value}" for axis, value in self.axes.items() if axis != SUITE)

    @property
    def release(self) -> str:
        """The release of its framework that its table or source says; empty where it says none."""
        framework = self.framework or "torch"
        said = self.software.get(_NAMES.get(framework, framework), "") or self.software.get(framework, "")
        release = re.match(r"\d+(\.\d+)+", said)
        return release[0] if release else ""

    def is_of(self, cell: PrintedCell) -> bool:
        """Whether a cell of a table's numbers is this number."""
        axes = {axis: value for axis, value in self.axes.items() if axis != SUITE}
        return (cell.axes, cell.quantity) == (axes, self.quantity)

    def has(self, words: str) -> int:
        """How well its row has these words: 2 where each is a cell, 1 where each is part of a cell, 0 where not."""
        cells, asked = {*map(plain, self.cells)}, [plain(word) for word in words.split() if plain(word)]
        if plain(words) in cells or cells.issuperset(asked):
            return 2
        return int(all(any(word in cell for cell in cells) for word in asked))


def numbers_of_tables(adoption: Adoption, axes: Collection[str]) -> list[PrintedNumber]:
    """The numbers of cases in adopted tables. axes: the names of all axes."""
    return [number for table in adoption.tables for number in _numbers_of(table, axes)]


def _numbers_of(table: AdoptedTable, axes: Collection[str]) -> list[PrintedNumber]:
    if table.spec is None:
        return []
    says = {each.name for each in table.spec.columns if each.holds in axes}
    places = [index for index, name in enumerate(table.grid.header) if name in says]
    found = []
    for number in table.reading.numbers:
        row = table.grid.rows[number.row]
        said = [row[place] for place in places if place < len(row)]
        across = [number.column] if table.spec.across else []
        found.append(
            PrintedNumber(
                cells=(*row, number.column, *map(str, number.axes.values()), number.hardware, table.title),
                words=(*said, *across, *filter(None, [number.hardware or table.title])),
                column=number.column,
                text=number.text,
                place=f"row {number.row + 1}, column {number.column}, of {table.file.address}",
                axes=dict(number.axes),
                quantity=number.quantity,
                value=number.value,
                hardware=", ".join(filter(None, [number.hardware, table.title])),
                framework=table.spec.framework or "",
                library=str(number.axes.get(MODEL, "")).rpartition(":")[0],
                software=table.named.software,
            )
        )
    return found


def numbers_of_source(source: Source) -> list[PrintedNumber]:
    """The numbers of a source."""
    titles = {hardware.name: hardware.title for hardware in source.hardware}
    return [
        PrintedNumber(
            cells=(*map(str, number.axes.values()), titles[number.hardware], number.framework or "", number.note),
            words=(*map(str, number.axes.values()), titles[number.hardware]),
            column=number.quantity,
            text=f"{number.value:g}",
            place=", ".join(filter(None, [number.note, source.address or source.title])),
            axes=dict(number.axes),
            quantity=number.quantity,
            value=number.value,
            hardware=titles[number.hardware],
            framework=number.framework or "",
            library="",
            software=source.software,
        )
        for number in source.flat()
    ]


def pick(numbers: Sequence[PrintedNumber], row: str, column: str, refused: Iterable[tuple[str, str]]) -> PrintedNumber:
    """The number whose row has the words `row`, in the column.

    refused: the cells of rows that are no cases here, and why. Raises UserError where no row has these words, and where
    several cases have them.
    """
    ranked = [(each.has(row), each) for each in numbers]
    best = max((rank for rank, _ in ranked), default=0)
    found = [each for rank, each in ranked if rank == best and rank]
    if not found:
        raise _not_there(numbers, row, refused)
    if column:
        exact = [each for each in found if plain(each.column) == plain(column)]
        columns = dict.fromkeys(each.column for each in found)
        found = exact or [each for each in found if plain(column) in plain(each.column)]
        if not found:
            raise UserError(f"--column {column}: row {row} has no such column; it has {', '.join(columns)}")
    cases = {(tuple(each.axes.items()), each.hardware): each for each in reversed(found)}
    if len(cases) > 1:
        raise _several(row, list(cases.values())[::-1])
    return found[0]


def _not_there(numbers: Sequence[PrintedNumber], row: str, refused: Iterable[tuple[str, str]]) -> UserError:
    why = next((why for cells, why in refused if plain(row) in plain(cells)), "no row has these words")
    names = dict.fromkeys(cell for each in numbers for cell in each.cells[:1])
    near = difflib.get_close_matches(row, names, n=3, cutoff=0.3) or list(names)[:3]
    nearest = f"; the nearest that can be checked: {', '.join(near)}" if near else ""
    return UserError(f"--row {row}: {why}{nearest}")


def _several(row: str, found: Sequence[PrintedNumber]) -> UserError:
    """The question between several cases: each with the words that tell it from the others."""
    common = set.intersection(*({*each.words} for each in found))
    columns = {each.column for each in found}
    shown = []
    for each in found[:_SHOWN]:
        differs = " ".join(word for word in each.words if word not in common)
        shown.append(f"“{differs or (each.column if len(columns) > 1 else each.case)}” ({each.text} in {each.column})")
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return UserError(
        f"--row {row} is in {len(found)} cases: {'; '.join(shown)}{more}: add words of the right one to --row, or give "
        "--column"
    )
