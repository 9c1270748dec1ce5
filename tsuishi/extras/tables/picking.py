"""One printed number of a table or a source, found by the words of its row."""

import difflib
import re
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tsuishi.base.errors import UserError
from tsuishi.base.printable import alphanumerics
from tsuishi.extras.tables.adoption import AdoptedTable, Adoption
from tsuishi.extras.tables.checkable import CheckableNumber
from tsuishi.extras.tables.column_maps import UNREAD_WORDS
from tsuishi.specs.case import BATCH_SIZE, DEVICES, MODEL, Value
from tsuishi.specs.grids import PERCENTILES
from tsuishi.specs.numerals import number_in
from tsuishi.specs.printed_table import CaseNumber
from tsuishi.specs.source import Source

# Characters of a heading that is no sentence.
_LONGEST_HEADING = 40
# The cells of rows with the header of a column, and why the number there is no case here.
Refusals = Iterable[tuple[tuple[str, ...], str]]
# The most readings of a question that are shown.
_SHOWN = 8


def _has(texts: Iterable[str], words: str) -> int:
    """2 where each word is a cell, or all words are one; 1 where each is a part of a cell; else 0.

    A word of digits is no part of a longer number: 8 is not 128. A word with '=' is a whole cell: batch_size=1.
    """
    every = [*texts]
    cells, numbers = {*map(alphanumerics, every)}, {number for text in every for number in re.findall(r"\d+", text)}
    asked = {letters: word for word in words.split() if (letters := alphanumerics(word))}
    if not asked:
        return 0
    if alphanumerics(words) in cells or cells.issuperset(asked):
        return 2

    def is_there(letters: str, word: str) -> bool:
        if "=" in word or letters.isdecimal():
            return letters in (cells if "=" in word else numbers)
        return any(letters in cell for cell in cells)

    return int(all(is_there(letters, word) for letters, word in asked.items()))


def numbers_of_tables(adoption: Adoption, axes: Collection[str]) -> list[CheckableNumber]:
    """The numbers of cases in adopted tables. axes: the names of all axes."""
    return [number for table in adoption.tables for number in _numbers_of(table, axes)]


def _numbers_of(table: AdoptedTable, axes: Collection[str]) -> list[CheckableNumber]:
    if table.spec is None:
        return []
    header = table.grid.header
    quantities = {each.name for each in table.spec.columns if table.proposed.is_quantity(each)}
    says = {each.name for each in table.spec.columns if each.holds in axes}
    networks = {each.name for each in table.spec.columns if MODEL in each.case}
    headings = [text for text in table.grid.heading[-2:] if len(text) <= _LONGEST_HEADING]
    of_table = [table.title, *headings, table.spec.framework or "", f"table {table.number}"]
    unread = [each.header for each in table.proposed.evidence if each.why == UNREAD_WORDS]
    found = []
    for number in table.reading.numbers:
        row = dict(zip(header, table.grid.rows[number.row], strict=False))
        texts = [text for name, text in row.items() if name not in quantities]
        said = [text for name, text in row.items() if name in says]
        headed = [number.column] if number.column in networks else []
        found.append(
            CheckableNumber(
                cells=(*texts, number.column, *_said(number.axes), number.hardware, *of_table),
                words=(*said, *headed, *filter(None, [number.hardware, *of_table])),
                column=number.column,
                text=number.text,
                place=f"row {number.row + 1}, column {number.column}, of {table.file.address}",
                axes=dict(number.axes),
                quantity=number.quantity,
                value=number.value,
                hardware=", ".join(filter(None, [number.hardware, table.title])),
                framework=number.framework or table.spec.framework or "",
                library=str(number.axes.get(MODEL, "")).rpartition(":")[0],
                software=table.named.software,
                uploads=_uploads(table, number),
                assumed=_assumed(number.axes, table.assumed),
                beside=", ".join(f"{name} {row[name]}" for name in unread if row.get(name)),
            )
        )
    return found


def tables_with(adoption: Adoption, row: str) -> set[int]:
    """The numbers of the tables that have these words in a row, with its headers and headings."""
    return {
        table.place
        for table in adoption.tables
        if any(_has((*cells, *table.grid.header, *table.grid.heading, table.title), row) for cells in table.grid.rows)
    }


def refused_in(adoption: Adoption) -> Refusals:
    """(the cells of its row with the header of its column, why) of every number that is no case here."""
    found: list[tuple[tuple[str, ...], str]] = []
    for table in adoption.tables:
        for cell in table.reading.refused:
            cells = (*table.grid.rows[cell.row], cell.column)
            found.append((cells, f"{cell.what}: no case here ({cell.why})"))
        if table.unread:
            found += [((*table.grid.header, *row), table.unread) for row in table.grid.rows]
    return found


def _said(axes: dict[str, Value]) -> Iterator[str]:
    """The words for axes that a row may be asked by, beside its cells: training, batch_size=16."""
    for axis, value in axes.items():
        yield f"{axis}={value}"
        if isinstance(value, str):
            yield value


def _uploads(table: AdoptedTable, number: CaseNumber) -> tuple[float, ...]:
    """The percentiles of the uploads of which a number is the median, in its unit; empty where it is none."""
    header = table.grid.header
    if PERCENTILES not in header:
        return ()
    column = next(each for each in table.proposed.columns if each.name == number.column)
    texts = table.grid.rows[number.row][header.index(PERCENTILES)].split()
    return tuple(column.converted(value) for text in texts if (value := number_in(text)))


def _assumed(axes: Mapping[str, Value], texts: Iterable[str]) -> frozenset[str]:
    """The axes whose values the texts say to be assumed, as "layout = native"."""
    parts = {part.strip() for text in texts for part in text.rpartition(":")[2].split(",")}
    return frozenset(axis for axis, value in axes.items() if f"{axis} = {value}" in parts)


def numbers_of_source(source: Source) -> list[CheckableNumber]:
    """The numbers of a source."""
    titles = {hardware.name: hardware.title for hardware in source.hardware}
    return [
        CheckableNumber(
            cells=(
                *map(str, number.axes.values()),
                *_said(number.axes),
                titles[number.hardware],
                number.framework or "",
                number.note,
            ),
            words=(
                *(value if isinstance(value, str) else f"{axis}={value}" for axis, value in number.axes.items()),
                titles[number.hardware],
            ),
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
            assumed=_assumed(number.axes, [text["en"] for text in source.assumed]),
        )
        for number in source.flat()
    ]


def pick(numbers: Sequence[CheckableNumber], row: str, column: str, refused: Refusals) -> CheckableNumber:
    """The number whose row has the words `row`, in the column.

    Of several readings of one case, it is the median. refused: of `refused_in`. Raises UserError where no row has these
    words, and where several cases, or a refused row too, have them.
    """
    ranked = [(_has(each.cells, row), each) for each in numbers]
    best = max((rank for rank, _ in ranked), default=0)
    found = [each for rank, each in ranked if rank == best and rank]
    if not found:
        raise _not_there(numbers, row, refused)
    if column:
        exact = [each for each in found if alphanumerics(each.column) == alphanumerics(column)]
        columns = dict.fromkeys(each.column for each in found)
        found = exact or [each for each in found if alphanumerics(column) in alphanumerics(each.column)]
        if not found:
            raise UserError(f"--column {column}: row {row} has no such column; it has {', '.join(columns)}")
    cases = {(tuple(each.axes.items()), each.hardware, each.framework): each for each in reversed(found)}
    if len(cases) > 1:
        raise _several(row, list(cases.values())[::-1])
    if why := [why for cells, why in refused if cells[-1] == found[0].column and _has(cells, row) >= best]:
        can = f"“{found[0].case}” ({found[0].text} in {found[0].column}) can be checked"
        raise UserError(f"--row {row} is also in a row that is refused: {why[0]}; {can}: add words of it to --row")
    readings = sorted((each for each in found if each.column == found[0].column), key=lambda each: each.value)
    low, high = readings[(len(readings) - 1) // 2], readings[len(readings) // 2]
    if len(readings) == 1:
        return low
    text = low.text if low.value == high.value else f"{low.text} to {high.text}"
    place = f"{low.place}, the median of {len(readings)}"
    return replace(low, text=text, value=statistics.median([low.value, high.value]), place=place)


def nearest_below(numbers: Iterable[CheckableNumber], number: CheckableNumber, devices: int) -> str:
    """A number of the same network on no more devices and of a smaller batch: its words, value and column; else empty.

    Of several it is that of the most devices, and then of the nearest batch.
    """

    def size(each: CheckableNumber) -> tuple[int, int]:
        return int(each.axes.get(DEVICES, 1)), int(each.axes.get(BATCH_SIZE, 0))

    most, batch = size(number)
    of = number.axes.get(MODEL), number.quantity
    fit = [each for each in numbers if (each.axes.get(MODEL), each.quantity) == of and size(each)[0] <= devices]
    fit = [each for each in fit if size(each)[0] < most or size(each) < (most, batch)]
    if not fit:
        return ""
    best = max(fit, key=lambda each: (size(each)[0], -abs(size(each)[1] - batch)))
    return f"the nearest that may be checked: {best.text} in {best.column} ({best.case})"


def _not_there(numbers: Sequence[CheckableNumber], row: str, refused: Refusals) -> UserError:
    ranked = sorted(((_has(cells, row), why) for cells, why in refused), key=lambda each: -each[0])
    why = ranked[0][1] if ranked and (ranked[0][0] or not numbers) else "no row has these words"
    shown = zip(numbers, _differing(numbers), strict=True)
    names = list(dict.fromkeys(str(each.axes.get(MODEL) or differs or each.case) for each, differs in shown))
    near = difflib.get_close_matches(row, names, n=3, cutoff=0.3) or names[:3]
    nearest = f"; the nearest that can be checked: {', '.join(f'“{each}”' for each in near)}" if near else ""
    return UserError(f"--row {row}: {why}{nearest}")


def _differing(numbers: Sequence[CheckableNumber]) -> list[str]:
    """The words of each number that not all of them have."""
    common = set.intersection(*({*each.words} for each in numbers)) if numbers else set()
    return [" ".join(word for word in each.words if word not in common) for each in numbers]


def _several(row: str, found: Sequence[CheckableNumber]) -> UserError:
    """The question between several cases: each with the words that tell it from the others."""
    columns = {each.column for each in found}
    shown = []
    for each, differs in zip(found[:_SHOWN], _differing(found), strict=False):
        shown.append(f"“{differs or (each.column if len(columns) > 1 else each.case)}” ({each.text} in {each.column})")
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return UserError(
        f"--row {row} is in {len(found)} cases: {'; '.join(shown)}{more}: add words of the right one to --row, or give "
        "--column"
    )
