"""What the columns of a table hold, with the evidence for it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tsuishi.extras.tables.printed_quantities import PrintedQuantity, is_of_whole, quantity_of
from tsuishi.specs import numerals
from tsuishi.specs.case import MODEL, Value
from tsuishi.specs.grids import Grid
from tsuishi.specs.printed_table import FRAMEWORK, HARDWARE, NOTHING, WORDS, PrintedColumn

# Columns whose cells give axes beside what the column holds.
_OF_ROWS = (WORDS, HARDWARE, FRAMEWORK, MODEL)
# Why a column of words is not read.
UNREAD_WORDS = "words"


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
    devices_per_node: bool = False
    # The library that has most of the networks that suites have not.
    library: str = ""
    decimal: numerals.Decimal = "."
    decimal_is_open: bool = False
    # Whether it has a column of epochs: a time in seconds is that of a whole training.
    of_trainings: bool = False
    # Texts of axes in headers that hold for the whole table.
    common: dict[str, str] = field(default_factory=dict)
    evidence: list[Taken] = field(default_factory=list)
    # Columns of numbers whose unit nothing says: those whose headers are a case and nothing else, and others.
    cases_without_unit: list[str] = field(default_factory=list)
    without_unit: list[str] = field(default_factory=list)
    # Columns of which nothing says how they differ from another.
    contested: list[str] = field(default_factory=list)

    def take(self, column: PrintedColumn, why: str) -> None:
        """Take a column for a quantity, an axis or a fact."""
        unit = conversion(column)
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

    def leave_out(self, axes: Collection[str], why: str, *, tells_apart: bool = True) -> None:
        """Read no column of these axes. tells_apart: it tells rows of one case apart all the same."""
        left = {column.name for column in self.columns if column.holds in axes}
        self.columns = [column for column in self.columns if column.name not in left]
        if not tells_apart:
            self.columns += [PrintedColumn(name=name, holds=NOTHING) for name in left]
        self.say_unread(left, why)

    def say_unread(self, headers: Collection[str], why: str) -> None:
        """Say of columns that were taken that they are not read."""
        self.evidence = [Taken(each.header, "", why) if each.header in headers else each for each in self.evidence]

    def say_of_networks(
        self, grid: Grid, cases: Mapping[str, Mapping[str, Value]], common: Mapping[str, Value]
    ) -> set[str]:
        """Give the numbers of each network (`cases`, by its printed name) further axes; those of others are `common`.

        Returns the printed names of the table's networks, in its cells and headers.
        """
        axes, names = {axis for case in cases.values() for axis in case}, {*self.cases_without_unit}
        usual = {axis: common[axis] for axis in axes if axis in common}
        for index, column in enumerate(self.columns):
            if column.holds == MODEL:
                place = grid.header.index(column.name)
                texts = {row[place] for row in grid.rows if place < len(row)}
                also = {text: {**usual, **cases.get(text, {})} for text in texts} if axes else {}
                self.columns[index] = column.model_copy(update={"also": also})
                names |= texts
            elif self.is_quantity(column) and (text := str(column.case.get(MODEL, ""))):
                said = {axis: str(value) for axis, value in {**usual, **cases.get(text, {})}.items()}
                self.columns[index] = column.model_copy(update={"case": {**column.case, **said}})
                names.add(text)
        return names

    @property
    def axes(self) -> set[str]:
        """The axes of which columns, headers or words give values."""
        found = {column.holds for column in self.columns} | {axis for column in self.columns for axis in column.case}
        return found | {axis for column in self.columns if column.holds in _OF_ROWS for axis in _axes_of(column)}

    @property
    def axes_of_all(self) -> set[str]:
        """Those of which all numbers have values."""
        cases = [column.case for column in self.columns if self.is_quantity(column)]
        of_some = {axis for case in cases for axis in case if not all(axis in each for each in cases)}
        for column in self.columns:
            of_rows = [*column.also.values()] if column.holds in _OF_ROWS else []
            of_some |= {axis for also in of_rows for axis in also if not all(axis in each for each in of_rows)}
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


def conversion(column: PrintedColumn) -> str:
    if column.inverse:
        return f", {column.scale:g} / printed"
    return f", printed x {column.scale:g}" if column.scale != 1 else ""


def _axes_of(column: PrintedColumn) -> set[str]:
    return {axis for axes in column.also.values() for axis in axes}
