"""Published tables that stay unchanged, and the map that says which column holds which axis or quantity.

`[[tables]]` of a source names a file beside it, and what its columns hold. Every number cell of the file is either a
number of a case, or refused with the reason: nothing is left out in silence.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from tsuishi.base import toml
from tsuishi.base.errors import unknown
from tsuishi.specs import numerals
from tsuishi.specs.case import BATCH_SIZE, DEVICES, IMAGE_SIZE, MODEL, Value
from tsuishi.specs.environment import Framework
from tsuishi.specs.experiment import Digest, Factor, Inside
from tsuishi.specs.grids import PERCENTILES, Grid
from tsuishi.specs.vocabulary import NetworkFacts, Vocabulary
from tsuishi.specs.zoo_names import names_of

# A column that identifies no case, but says of which network a row is.
PARAMETERS = "parameters"
# A column may also hold the hardware of its row, or words that stand for several axes ("AMP, NHWC": `also`).
HARDWARE, WORDS = "hardware", "words"
_FACT = re.compile(r"(\d+) ?[x×*] ?\1(?: ?[x×*] ?3)?|([\d.]+) ?M")

Axes = dict[str, Value]
# Our values of axes by printed text; facts of networks by name; whether the numbers of a network are read.
Names = Mapping[str, Mapping[str, Value]]
Facts = Mapping[str, NetworkFacts]
Asked = Callable[[Value], bool]
_NOT_ASKED = "network"


class PrintedColumn(toml.Spec):
    """A column: what it holds. `name` is its header.

    holds: an axis; a quantity, in its unit after `scale`, or with `inverse` after 1 / x; the `hardware` of its row;
    the `parameters` of the network, which must be those of our network; or `words` for several axes.
    case: axes of its numbers, as printed. hardware: that of its numbers. also: further axes of rows with a printed
    value, by that value. units: of the cells that are read, where others have other units.
    """

    name: str
    holds: str
    scale: Factor = 1.0
    inverse: bool = False
    case: Axes = {}
    hardware: str = ""
    also: dict[str, Axes] = {}
    units: tuple[str, ...] = ()

    def converted(self, printed: float) -> float:
        """A printed number in the unit of the quantity. Raises ZeroDivisionError for the inverse of 0."""
        value = self.scale / printed if self.inverse else self.scale * printed
        return float(f"{value:.12g}")  # 15.39 ms are 0.01539 s, not 0.015390000000000001


class CaseNumber(NamedTuple):
    """A number cell that is a number of a case: row from 0, header, text, axes; `value` in the unit of its quantity.

    hardware: as the row prints it; empty where the table has no column of it.
    """

    row: int
    column: str
    text: str
    axes: Axes
    quantity: str
    value: float
    hardware: str


# The readings of the quantities of a case.
Readings = Mapping[str, Sequence[CaseNumber]]


class PrintedNumbers(NamedTuple):
    """All numbers of table `number` of a file, cases or not; `quantity` is empty where their column says none.

    line: the hardware and software of the table. units: of columns, as PrintedTable.unit_of has them.
    are_named: whether words tell most rows apart; else they are one thing with other settings.
    """

    file: str
    number: int
    line: str
    numbers: Sequence[CaseNumber]
    units: Mapping[str, tuple[float, bool]]
    are_named: bool


@dataclass(frozen=True)
class RefusedCell:
    """A cell that is no number of a case, and why: a reason that many cells share, and what it is about."""

    row: int
    column: str
    text: str
    why: str
    what: str


@dataclass
class TableReading:
    """The number cells of a table: those of cases, and those that are refused."""

    numbers: list[CaseNumber] = field(default_factory=list)
    refused: list[RefusedCell] = field(default_factory=list)


class PrintedTable(toml.Spec):
    """A table of a source in a file beside source.toml. `case` holds axes of all its numbers.

    number: which table of the file. address: where the file comes from. original: the SHA-256 at that address,
    where the file here has only the numbers that are used. batch_per_device: the batch is printed for each device.
    library: whose networks the names mean that suites have not.
    """

    file: Inside
    sha256: Digest
    number: Annotated[int, Field(ge=1, le=10_000)] = 1
    address: str | None = None
    original: Digest | None = None
    suite: str
    # A name in [[hardware]]; with a column of hardware, the part of the names that stands behind the printed one.
    hardware: str = ""
    framework: Framework | None = None
    library: Literal["", "torchvision", "timm", "keras"] = ""
    case: Axes = {}
    batch_per_device: bool = False
    decimal: numerals.Decimal = "."
    columns: tuple[PrintedColumn, ...] = ()
    _words: Vocabulary = PrivateAttr()

    @model_validator(mode="after")
    def _checked(self, info: ValidationInfo) -> "PrintedTable":
        assert isinstance(info.context, Vocabulary)
        self._words = words = info.context
        for axes in (self.case, *(column.case for column in self.columns)):
            for axis in axes:
                words.known_axis(axis)
        words.check(self.case)
        known = {*words.selectable, *words.quantities, PARAMETERS, HARDWARE, WORDS}
        for column in self.columns:
            if column.holds not in known:
                raise ValueError(f"columns: {unknown('axis or quantity', column.holds, known)}")
        if not any(column.holds in words.quantities for column in self.columns):
            raise ValueError("columns: no quantity among them")
        return self

    def _columns(self, header: Sequence[str]) -> dict[int, PrintedColumn]:
        """The columns that are read, by their place."""
        listed = {column.name: column for column in self.columns}
        return {index: listed[name] for index, name in enumerate(header) if name in listed}

    def read(self, grid: Grid, names: Names, facts: Facts, asked: Asked | None = None) -> TableReading:
        """Every number cell of the table. asked: leave out the numbers of other networks."""
        return _Reader(self, self._words, grid, names, facts, asked).read()

    def tables(self, numbers: Sequence[CaseNumber]) -> Iterator[tuple[dict[str, Any], list[Readings]]]:
        """The numbers as tables of a source (`[[numbers]]`), each with the readings of its rows.

        Several readings of a case and quantity are a tuple.
        """
        cases: dict[tuple[str, tuple[tuple[str, Value], ...]], dict[str, list[CaseNumber]]] = {}
        for number in numbers:
            key = self.hardware_of(number), tuple(number.axes.items())
            cases.setdefault(key, defaultdict(list))[number.quantity].append(number)
        alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[tuple[tuple[Any, ...], Readings]]]
        alike = defaultdict(list)
        for (hardware, axes), readings in cases.items():
            columns = hardware, tuple(axis for axis, _ in axes), tuple(readings)
            every = (tuple(number.value for number in of) for of in readings.values())
            values = [of[0] if len(of) == 1 else of for of in every]
            alike[columns].append(((*(value for _, value in axes), *values), readings))
        # The order is the same whichever networks were read; the last number for a case names most axes.
        for (hardware, axes_of, quantities), found in sorted(alike.items(), key=lambda each: len(each[0][1])):
            of = {"suite": self.suite, "hardware": hardware, "framework": self.framework, "note": self.file}
            rows = tuple(row for row, _ in found)
            yield {**of, "columns": (*axes_of, *quantities), "rows": rows}, [readings for _, readings in found]

    def place(self, readings: Sequence[CaseNumber]) -> str:
        """Where readings of one number stand: the row under the header, of the first of them, and the column."""
        return place_of(self.file, self.number, readings)

    def unit_of(self, number: CaseNumber) -> tuple[float, bool]:
        """The unit of a number's column: the factor to that of its quantity, and whether the number is turned round."""
        column = self._columns((number.column,))[0]
        return column.scale, column.inverse

    def hardware_of(self, number: CaseNumber) -> str:
        """The name of a number's hardware."""
        return slug(f"{number.hardware} {self.hardware}") if number.hardware or not self.hardware else self.hardware


def place_of(file: str, table: int, readings: Sequence[CaseNumber]) -> str:
    """Where readings of one number stand in table `table` (from 1) of a file."""
    first, of_file = readings[0], f", table {table}" if table > 1 else ""
    more = f" and {len(readings) - 1} more" if readings[1:] else ""
    return f"{file}{of_file}, row {first.row + 1}{more}, column {first.column}"


class _Refused(Exception):
    """Why a cell is refused: a reason that many cells share, and what it is about."""

    def __init__(self, why: str, what: str) -> None:
        super().__init__(why, what)
        self.why, self.what = why, what


class _Reader:
    """Reads the cells of a table."""

    def __init__(
        self, table: PrintedTable, words: Vocabulary, grid: Grid, names: Names, facts: Facts, asked: Asked | None
    ) -> None:
        self._table, self._words, self._grid, self._names, self._facts = table, words, grid, names, facts
        self._asked = asked or (lambda network: True)
        columns = table._columns(grid.header)
        self._quantities = {index: column for index, column in columns.items() if column.holds in words.quantities}
        self._others = {index: column for index, column in columns.items() if index not in self._quantities}
        self._has_batches = any(BATCH_SIZE in column.case for column in table.columns)
        self._known: dict[tuple[str, str], Value | _Refused] = {}

    def read(self) -> TableReading:
        """Every number cell; numbers of one case that other columns tell apart are refused."""
        reading = TableReading()
        for number, row in enumerate(self._grid.rows):
            why, hardware = None, ""
            try:
                common, parameters, hardware = self._common(row)
            except _Refused as refused:
                if refused.why == _NOT_ASKED:
                    continue
                why = refused
            for index, column in self._quantities.items():
                text = row[index] if index < len(row) else ""
                name = self._grid.header[index]
                try:
                    if why:
                        raise why
                    if column.units and numerals.unit_of_cell(text) not in column.units:
                        raise _Refused("unit", text)
                    axes = self._axes(common, parameters, column)
                    value = self._value(text, column)
                    reading.numbers.append(
                        CaseNumber(number, name, text, axes, column.holds, value, column.hardware or hardware)
                    )
                except _Refused as refused:
                    if text or refused.why == "row":
                        reading.refused.append(RefusedCell(number, name, text, refused.why, refused.what))
        return self._told_apart(reading)

    def _told_apart(self, reading: TableReading) -> TableReading:
        """Refuse numbers of one case whose rows differ in a column of words that is no axis here."""
        unread = [
            index
            for index, name in enumerate(self._grid.header)
            if index not in self._quantities and index not in self._others and name != PERCENTILES
        ]
        if not unread:
            return reading
        alike: dict[tuple[Any, ...], list[CaseNumber]] = defaultdict(list)
        for number in reading.numbers:
            alike[tuple(number.axes.items()), number.hardware, number.quantity].append(number)
        kept: list[CaseNumber] = []
        for numbers in alike.values():
            rows = [self._grid.rows[number.row] for number in numbers] if len(numbers) > 1 else []
            by = [index for index in unread if len({row[index] for row in rows}) > 1 and _are_words(rows, index)]
            if by:
                name = self._grid.header[by[0]] or "a column without a header"
                cells = [RefusedCell(each.row, each.column, each.text, "column", name) for each in numbers]
                reading.refused.extend(cells)
            else:
                kept.extend(numbers)
        return TableReading(kept, reading.refused)

    def _common(self, row: Sequence[str]) -> tuple[Axes, tuple[float, float] | None, str]:
        """A row's axes; the parameters of its network and the worth of their last digit; its hardware."""
        if len(row) != len(self._grid.header):
            raise _Refused("row", f"{len(row)} cells under {len(self._grid.header)} headers")
        axes, parameters, hardware = dict(self._table.case), None, ""
        for index, column in self._others.items():
            if column.holds == HARDWARE:
                hardware = row[index]
            elif column.holds == WORDS:
                if row[index] not in column.also:
                    raise _Refused(column.name, row[index])
                axes |= column.also[row[index]]
            elif column.holds == PARAMETERS:
                if row[index]:
                    parameters = self._fact(row[index], column), column.scale * _last_place(row[index])
            elif column.holds == IMAGE_SIZE:
                if row[index]:
                    axes[IMAGE_SIZE] = round(self._fact(row[index], column))
            else:
                axes[column.holds] = self._named(column.holds, row[index])
                axes |= column.also.get(row[index], {})
        return axes, parameters, hardware

    def _axes(self, common: Axes, parameters: tuple[float, float] | None, column: PrintedColumn) -> Axes:
        """The axes of a number. Raises _Refused where they are those of no case here."""
        axes = {**common, **{axis: self._named(axis, str(text)) for axis, text in column.case.items()}}
        if self._table.batch_per_device and isinstance(axes.get(BATCH_SIZE), int):
            axes[BATCH_SIZE] = int(axes[BATCH_SIZE]) * int(axes.get(DEVICES, 1))
        if MODEL in axes and not self._asked(axes[MODEL]):  # of all numbers of the table, say
            raise _Refused(_NOT_ASKED, str(axes[MODEL]))
        if self._has_batches and BATCH_SIZE not in axes:
            raise _Refused(BATCH_SIZE, "said of other columns alone")
        if (ours := self._facts.get(str(axes.get(MODEL)))) is not None:
            if axes.get(IMAGE_SIZE) == ours.image_size:
                del axes[IMAGE_SIZE]  # as usual
            if parameters and abs(parameters[0] - ours.parameters) > max(
                parameters[1] / 2 * 1.01, 1e-9 * parameters[0]
            ):
                has = f"{axes[MODEL]}: {parameters[0]:,.0f} parameters; here {ours.parameters:,}"
                raise _Refused(PARAMETERS, has)
        return axes

    def _named(self, axis: str, text: str) -> Value:
        """Our value for a printed text. Raises _Refused where the axis has none."""
        if (axis, text) not in self._known:
            value = self._found(axis, text)
            is_other = axis == MODEL and not isinstance(value, _Refused) and not self._asked(value)
            self._known[axis, text] = _Refused(_NOT_ASKED, text) if is_other else value
        found = self._known[axis, text]
        if isinstance(found, _Refused):
            raise found
        return found

    def _found(self, axis: str, text: str) -> Value | _Refused:
        value = self._names.get(axis, {}).get(text, text)
        if self._words.axes[axis].is_number and isinstance(value, str):
            plain = value.replace(",", "").removesuffix(".0")
            value = int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 16 else value
        if not self._words.axes[axis].problem(value):
            return value
        if axis == MODEL and self._table.library:
            release, names = names_of(self._table.library)
            return f"{self._table.library}:{text}" if text in names else _Refused(axis, f"{text} (none in {release})")
        return _Refused(axis, text or "an empty cell")

    def _fact(self, text: str, column: PrintedColumn) -> float:
        """A fact of a network; 224x224 is an image of 224 pixels, 25.6M are millions."""
        found = _FACT.fullmatch(text)
        return self._value(found[1] or found[2] if found else text, column)

    def _value(self, text: str, column: PrintedColumn) -> float:
        is_quantity = column.holds in self._words.quantities
        printed = (numerals.printed_number if is_quantity else numerals.number_in)(text, self._table.decimal)
        try:
            value = column.converted(printed) if printed is not None else -1.0
        except ZeroDivisionError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise _Refused("no number", text)
        return value


def _are_words(rows: Sequence[Sequence[str]], index: int) -> bool:
    return any(not numerals.forms(row[index]) for row in rows if row[index])


def slug(text: str) -> str:
    """A text as a name: lower case, digits and '-'."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"


def _last_place(text: str) -> float:
    """What the last printed digit of a number is worth: 0.01 for 25.56."""
    return 10.0 ** -len(text.partition(".")[2].rstrip("% MKmk")) if "." in text else 1.0
