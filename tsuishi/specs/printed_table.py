"""Published tables that stay unchanged, and the map that says which column holds which axis or quantity.

`[[tables]]` of a source names a file beside it, and what its columns hold. Every number cell of the file is either a
number of a case, or refused with the reason: nothing is left out in silence.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from tsuishi.base import toml
from tsuishi.base.errors import unknown
from tsuishi.specs import numerals
from tsuishi.specs.case import BATCH_SIZE, DEVICES, IMAGE_SIZE, MODEL, NODES, Value
from tsuishi.specs.device_counts import counted_hardware
from tsuishi.specs.environment import Framework
from tsuishi.specs.experiment import Factor, Inside
from tsuishi.specs.grids import PERCENTILES, Grid
from tsuishi.specs.vocabulary import NetworkFacts, Vocabulary
from tsuishi.specs.zoo_names import framework_of_library, name_in, names_of

# A column that identifies no case, but says of which network a row is.
PARAMETERS = "parameters"
# A column may also hold the hardware of its row, words that stand for several axes ("AMP, NHWC": `also`), the framework
# of its row (`frameworks`), or nothing that tells numbers apart, as a person says.
HARDWARE, WORDS, FRAMEWORK, NOTHING = "hardware", "words", "framework", "nothing"
# Why a number is refused that is another with the other decimal sign.
TWO_READINGS = "two readings"
# Headers of columns that differ between readings of one number: a counter; and other results.
_RUNNING = re.compile(
    r"(?:#|no\.?|nr|index|idx|id|run|rep|repeat|repetition|trial|iter|iteration|round|seed|time ?stamp|unnamed: ?0)?"
    r"(?: ?(?:#|no\.?|id|index|number|num|\d+))?"
)
_MEASURED = re.compile(
    r"\b(?:acc|accuracy|top ?-?[15]|loss|std|stdev|var|p\d\d|percentile|speed-?up|latency|time|throughput|fps"
    r"|util\w*|\w+ ?/ ?s(?:ec)?"
    r"|(?:memory|mem|power|energy)\b.*\b(?:peak|us(?:ed|age)|alloc\w*|draw|avg|mean|average)"
    r"|(?:peak|used|allocated|reserved|average|avg|mean) (?:gpu )?(?:memory|mem|power|energy))\b"
)
# The end of a name that counts repetitions: "resnet50_bs128_r2".
_REPETITION = re.compile(r"[_\- .](?:r|run|rep|trial|iter|seed)[_\- ]?\d{1,3}$", re.IGNORECASE)
_SETTING = re.compile(
    r"\b(?:limit|cap|target|budget|setting|clock|link|scale|threshold|warm\w*|input|drop\w*|sleep|delay|interval)\b"
)
_FACT = re.compile(r"(\d+) ?[x×*] ?\1(?: ?[x×*] ?3)?|([\d.]+) ?M")

# What stands behind numbers that are no speeds.
_NO_UNITS = {"x", "X", "×", "%", *numerals.KEPT} - {"fps", "FPS"}
# Numbers in two units that are nearer to each other are one number.
_ALIKE = 1.02

Axes = dict[str, Value]
# Our values of axes by printed text; facts of networks by name; whether the numbers of a network are read.
Names = Mapping[str, Mapping[str, Value]]
Facts = Mapping[str, NetworkFacts]
Asked = Callable[[Value], bool]


class PrintedColumn(toml.Spec):
    """A column: what it holds. `name` is its header.

    holds: an axis; a quantity, in its unit after `scale`, or with `inverse` after 1 / x; the `hardware` of its row;
    the `parameters` of the network, which must be those of our network; or `words` for several axes.
    case: axes of its numbers, as printed. hardware: that of its numbers. also: further axes of rows with a printed
    value, by that value. units: of the cells that are read, where others have other units; factors: those of them whose
    scale is another. framework: that of its numbers; frameworks: ours, by printed value.
    """

    name: str
    holds: str
    scale: Factor = 1.0
    inverse: bool = False
    case: Axes = {}
    hardware: str = ""
    also: dict[str, Axes] = {}
    units: tuple[str, ...] = ()
    factors: dict[str, Factor] = {}
    framework: Framework | None = None
    frameworks: dict[str, Framework] = {}

    def converted(self, printed: float, unit: str = "") -> float:
        """A printed number in the unit of the quantity. Raises ZeroDivisionError for the inverse of 0."""
        scale = self.factors.get(unit, self.scale)
        value = scale / printed if self.inverse else scale * printed
        return float(f"{value:.12g}")  # 15.39 ms are 0.01539 s, not 0.015390000000000001


class CaseNumber(NamedTuple):
    """A number cell that is a number of a case: row from 0, header, text, axes; `value` in the unit of its quantity.

    hardware, framework: as the row or the column says; empty where neither does.
    """

    row: int
    column: str
    text: str
    axes: Axes
    quantity: str
    value: float
    hardware: str
    framework: str = ""

    @property
    def case(self) -> tuple[Any, ...]:
        """What numbers of one case have in common."""
        return tuple(sorted(self.axes.items())), self.hardware, self.framework, self.quantity


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
    where the file here has only the numbers that are used. batch_per_device: the batch is printed for each device;
    devices_per_node: the devices for each node. decimal_is_open: numbers that the other sign changes are refused.
    library: whose networks the names mean that suites have not.
    """

    file: Inside
    sha256: toml.Sha256
    number: Annotated[int, Field(ge=1, le=10_000)] = 1
    address: str | None = None
    original: toml.Sha256 | None = None
    suite: str
    # A name in [[hardware]]; with a column of hardware, the part of the names that stands behind the printed one.
    hardware: str = ""
    framework: Framework | None = None
    library: Literal["", "torchvision", "timm", "keras"] = ""
    case: Axes = {}
    batch_per_device: bool = False
    devices_per_node: bool = False
    decimal: numerals.Decimal = "."
    decimal_is_open: bool = False
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
        known = {*words.selectable, *words.quantities, PARAMETERS, HARDWARE, WORDS, FRAMEWORK, NOTHING}
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
        cases: dict[tuple[Any, ...], tuple[Axes, dict[str, list[CaseNumber]]]] = {}
        for number in numbers:
            of = self.hardware_of(number), number.framework or self.framework
            key = *of, tuple(sorted(number.axes.items()))
            cases.setdefault(key, (number.axes, defaultdict(list)))[1][number.quantity].append(number)
        alike: dict[
            tuple[tuple[str, str | None], tuple[str, ...], tuple[str, ...]], list[tuple[tuple[Any, ...], Readings]]
        ]
        alike = defaultdict(list)
        for (*first, _), (axes, readings) in cases.items():
            columns = tuple(first), tuple(axes), tuple(readings)
            every = (tuple(number.value for number in of) for of in readings.values())
            values = [of[0] if len(of) == 1 else of for of in every]
            alike[columns].append(((*axes.values(), *values), readings))
        # The order is the same whichever networks were read; the last number for a case names most axes.
        for ((hardware, framework), axes_of, quantities), found in sorted(
            alike.items(), key=lambda each: len(each[0][1])
        ):
            given = {"suite": self.suite, "hardware": hardware, "framework": framework, "note": self.file}
            rows = tuple(row for row, _ in found)
            yield {**given, "columns": (*axes_of, *quantities), "rows": rows}, [readings for _, readings in found]

    def unit_of(self, number: CaseNumber) -> tuple[float, bool]:
        """The unit of a number's column: the factor to that of its quantity, and whether the number is turned round."""
        column = self._columns((number.column,))[0]
        return column.scale, column.inverse

    def hardware_of(self, number: CaseNumber) -> str:
        """The name of a number's hardware."""
        return slug(f"{number.hardware} {self.hardware}") if number.hardware or not self.hardware else self.hardware


def place_of(file: str, table: int, readings: Sequence[CaseNumber]) -> str:
    """Where readings of one number stand in table `table` (from 1) of a file: the first's row and column."""
    first, of_file = readings[0], f", table {table}" if table > 1 else ""
    more = f" and {len(readings) - 1} more" if readings[1:] else ""
    return f"{file}{of_file}, row {first.row + 1}{more}, column {first.column}"


class _Refused(Exception):
    """Why a cell is refused: a reason that many cells share, and what it is about."""

    def __init__(self, why: str, what: str) -> None:
        super().__init__(why, what)
        self.why, self.what = why, what


class _NotAsked(_Refused):
    """The network is none of those that are asked for: its cells are not accounted for."""

    def __init__(self, network: str) -> None:
        super().__init__("network", network)


@dataclass
class _OfRow:
    """What a row says of its numbers; `network` as printed; its parameters with the worth of their last digit."""

    axes: Axes
    network: str = ""
    parameters: tuple[float, float] | None = None
    hardware: str = ""
    framework: str = ""


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
        said = [axes for column in table.columns for axes in (column.case, *column.also.values())]
        self._of_some = [axis for axis in (BATCH_SIZE, MODEL) if any(axis in axes for axes in said)]
        self._known: dict[tuple[str, str], Value | _Refused] = {}

    def read(self) -> TableReading:
        """Every number cell; numbers of one case that other columns tell apart are refused."""
        reading = TableReading()
        for number, row in enumerate(self._grid.rows):
            why, of_row = None, _OfRow({})
            try:
                of_row = self._common(row)
            except _Refused as refused:
                if isinstance(refused, _NotAsked):
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
                    axes = self._axes(of_row, column)
                    value = self._value(text, column)
                    of = column.hardware or of_row.hardware, column.framework or of_row.framework
                    reading.numbers.append(CaseNumber(number, name, text, axes, column.holds, value, *of))
                except _Refused as refused:
                    if text or refused.why == "row":
                        reading.refused.append(RefusedCell(number, name, text, refused.why, refused.what))
        return self._told_apart(reading)

    def _told_apart(self, reading: TableReading) -> TableReading:
        """Refuse numbers of one case where anything that stands beside them differs, but for other results.

        Then they are no readings of one number: a power limit, worker processes, another column.
        """
        alike: dict[tuple[Any, ...], list[CaseNumber]] = defaultdict(list)
        for number in reading.numbers:
            alike[number.case].append(number)
        kept: list[CaseNumber] = []
        for numbers in alike.values():
            if by := self._differing(numbers) if len(numbers) > 1 else "":
                cells = [RefusedCell(each.row, each.column, each.text, "column", by) for each in numbers]
                reading.refused.extend(cells)
            else:
                kept.extend(numbers)
        return TableReading(sorted(kept, key=lambda each: each.row), reading.refused)

    def _differing(self, numbers: Sequence[CaseNumber]) -> str:
        """What tells numbers of one case apart: a column of settings or words, or their own columns; empty without."""
        by_row: dict[int, list[CaseNumber]] = defaultdict(list)
        for number in numbers:
            by_row[number.row].append(number)
        columns = [{re.sub(r"\d+", "0", each.column) for each in of_row} for of_row in by_row.values()]
        values = [[each.value for each in of_row] for of_row in by_row.values()]
        if any(of_row - max(columns, key=len) for of_row in columns) or any(
            max(of) > _ALIKE * min(of) for of in values
        ):
            return " beside ".join(dict.fromkeys(number.column for number in numbers))
        rows = [self._grid.rows[number.row] for number in numbers]
        for index in self._telling:
            if len({_REPETITION.sub("", row[index]) for row in rows}) > 1:
                return self._grid.header[index] or "a column without a header"
        return ""

    @cached_property
    def _telling(self) -> list[int]:
        """The columns that tell rows of one case apart: those that are not read, but for results and counters."""
        found = []
        for index, name in enumerate(self._grid.header):
            column, plain = self._others.get(index), " ".join(re.sub(r"[_*]+", " ", name.lower()).split())
            is_read = index in self._quantities or (column and column.holds not in (WORDS, FRAMEWORK))
            cells = [row[index] for row in self._grid.rows if index < len(row) and row[index]]
            are_numbers = all(numerals.number_in(cell) is not None for cell in cells)
            is_beside = are_numbers and _MEASURED.search(plain) and not _SETTING.search(plain)
            if not (is_read or is_beside or name == PERCENTILES or (are_numbers and _RUNNING.fullmatch(plain))):
                found.append(index)
        return found

    def _common(self, row: Sequence[str]) -> "_OfRow":
        """What a row says of its numbers. Raises _Refused where that is of no case here."""
        if len(row) != len(self._grid.header):
            raise _Refused("row", f"{len(row)} cells under {len(self._grid.header)} headers")
        found = _OfRow(dict(self._table.case))
        for index, column in self._others.items():
            self._take(found, column, row[index])
        return found

    def _take(self, found: "_OfRow", column: PrintedColumn, text: str) -> None:
        if column.holds == WORDS and text not in column.also:
            raise _Refused(column.name, text)
        if column.holds == FRAMEWORK and text not in column.frameworks:
            raise _Refused(FRAMEWORK, text or "an empty cell")
        if column.holds == HARDWARE:
            found.hardware = counted_hardware(text)[1] or text if column.also else text
        elif column.holds == FRAMEWORK:
            found.framework = column.frameworks[text]
        elif column.holds in (PARAMETERS, IMAGE_SIZE):
            self._take_fact(found, column, text)
        elif column.holds not in (WORDS, NOTHING):
            found.axes[column.holds] = self._named(column.holds, text)
            found.network = text if column.holds == MODEL else found.network
        found.axes |= column.also.get(text, {})

    def _take_fact(self, found: "_OfRow", column: PrintedColumn, text: str) -> None:
        if text and column.holds == PARAMETERS:
            found.parameters = self._fact(text, column), column.scale * _last_place(text)
        elif text:
            found.axes[IMAGE_SIZE] = round(self._fact(text, column))

    def _axes(self, of_row: "_OfRow", column: PrintedColumn) -> Axes:
        """The axes of a number. Raises _Refused where they are those of no case here."""
        axes = {**of_row.axes, **{axis: self._named(axis, str(text)) for axis, text in column.case.items()}}
        if self._table.devices_per_node and isinstance(axes.get(DEVICES), int):
            axes[DEVICES] = int(axes[DEVICES]) * int(axes.get(NODES, 1))
        if int(axes.get(NODES, 1)) > int(axes.get(DEVICES, 1)):
            raise _Refused(DEVICES, f"{axes.get(DEVICES, 1)} on {axes[NODES]} nodes")
        if self._table.batch_per_device and isinstance(axes.get(BATCH_SIZE), int):
            axes[BATCH_SIZE] = int(axes[BATCH_SIZE]) * int(axes.get(DEVICES, 1))
        if MODEL in axes and not self._asked(axes[MODEL]):  # of all numbers of the table, say
            raise _NotAsked(str(axes[MODEL]))
        library, colon, _ = str(axes.get(MODEL, "")).partition(":")
        framework = column.framework or of_row.framework
        if colon and framework and framework != framework_of_library(library):
            raise _Refused(MODEL, f"{of_row.network} of {framework}")
        if unsaid := [axis for axis in self._of_some if axis not in axes]:
            raise _Refused(unsaid[0], "said of other numbers alone")
        if (ours := self._facts.get(str(axes.get(MODEL)))) is not None:
            if axes.get(IMAGE_SIZE) == ours.image_size:
                del axes[IMAGE_SIZE]  # as usual
            if of_row.parameters and _differ(*of_row.parameters, ours.parameters):
                axes[MODEL] = self._of_library(of_row, ours.parameters, str(axes[MODEL]))
        return axes

    def _of_library(self, of_row: "_OfRow", parameters: int, network: str) -> Value:
        """The network of that name in the table's library. Raises _Refused without one: ours has other parameters."""
        library = self._table.library
        if library and (name := name_in(library, of_row.network)):
            return f"{library}:{name}"
        assert of_row.parameters
        raise _Refused(PARAMETERS, f"{network}: {of_row.parameters[0]:,.0f} parameters; here {parameters:,}")

    def _named(self, axis: str, text: str) -> Value:
        """Our value for a printed text. Raises _Refused where the axis has none."""
        if (axis, text) not in self._known:
            value = self._found(axis, text)
            is_other = axis == MODEL and not isinstance(value, _Refused) and not self._asked(value)
            self._known[axis, text] = _NotAsked(text) if is_other else value
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
            if name := name_in(self._table.library, text):
                return f"{self._table.library}:{name}"
            return _Refused(axis, f"{text} (none in {names_of(self._table.library)[0]})")
        return _Refused(axis, text or "an empty cell")

    def _fact(self, text: str, column: PrintedColumn) -> float:
        """A fact of a network; 224x224 is an image of 224 pixels, 25.6M are millions."""
        found = _FACT.fullmatch(text)
        return self._value(found[1] or found[2] if found else text, column)

    def _value(self, text: str, column: PrintedColumn) -> float:
        is_quantity = column.holds in self._words.quantities
        if is_quantity and numerals.unit_of_cell(text) in _NO_UNITS:  # a speed-up, a share, a size
            raise _Refused("unit", text)
        if self._table.decimal_is_open and (readings := numerals.two_readings(text)):
            raise _Refused(TWO_READINGS, f"{text}: {readings[0]:g} or {readings[1]:g}")
        printed = (numerals.printed_number if is_quantity else numerals.number_in)(text, self._table.decimal)
        try:
            unit = numerals.unit_of_cell(text) if column.factors else ""
            value = column.converted(printed, unit) if printed is not None else -1.0
        except ZeroDivisionError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise _Refused("no number", text)
        return value


def _differ(printed: float, last_place: float, ours: int) -> bool:
    """Whether printed parameters, whose last digit is worth `last_place`, are not ours."""
    return abs(printed - ours) > max(last_place / 2 * 1.01, 1e-9 * printed)


def slug(text: str) -> str:
    """A text as a name: lower case, digits and '-'."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"


def _last_place(text: str) -> float:
    """What the last printed digit of a number is worth: 0.01 for 25.56."""
    return 10.0 ** -len(text.partition(".")[2].rstrip("% MKmk")) if "." in text else 1.0
