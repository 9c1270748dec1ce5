"""From files with tables to a source: what each column holds, which numbers are cases here, and which are not."""

import hashlib
import math
import re
import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tsuishi.base import toml
from tsuishi.base.errors import UserError, unknown
from tsuishi.extras.tables.column_maps import ColumnMap
from tsuishi.extras.tables.headers import NEAR, column_map
from tsuishi.extras.tables.named_facts import NamedFacts, named_facts
from tsuishi.extras.tables.printed_quantities import IMAGES, STEP, header_words
from tsuishi.extras.tables.printed_values import NOT_HERE, PrintedValues
from tsuishi.extras.tables.table_files import TableFile
from tsuishi.specs.case import ALONE, BATCH_SIZE, DEVICES, IMAGE_SIZE, MODEL, NODES, PROTOCOL, STRATEGY, Value
from tsuishi.specs.data_sheets import DataSheet
from tsuishi.specs.grids import Grid, grids
from tsuishi.specs.numerals import Decimal, number_in, printed_number, unit_of_cell
from tsuishi.specs.printed_table import HARDWARE, PrintedTable, TableReading, slug
from tsuishi.specs.source import Hardware, Numbers, numbers_of
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.specs.zoo_names import LIBRARIES, framework_of_library

# What the suite of an adopted source runs, and the axes that all its cases have.
WORKLOAD = "training"
STEADY = (PROTOCOL, "steady")
_AXES = ("mode", MODEL, "layout", STRATEGY, DEVICES, NODES, BATCH_SIZE, "precision", "execution")
_USUAL: Mapping[str, Value] = {DEVICES: 1, STRATEGY: ALONE}
# How several devices share a batch where a table does not say it.
_STRATEGIES = {"torch": "data_parallel", "tensorflow": "mirrored"}
UNNAMED = "unnamed hardware"


@dataclass(frozen=True)
class Corrections:
    """What a person says: axes of all numbers, columns by header, hardware, framework, the decimal sign.

    networks: axes of the numbers of a network, by its printed name. tables: the numbers of the tables to read; empty:
    all. of_tables: further corrections of a table, by its number.
    """

    case: Mapping[str, Value] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    hardware: str = ""
    framework: str = ""
    batch_per_device: bool = False
    decimal: Decimal | None = None
    tables: frozenset[int] = frozenset()
    of_tables: Mapping[int, "Corrections"] = field(default_factory=dict)
    networks: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)

    def of(self, number: int) -> "Corrections":
        """The corrections of a table."""
        if (own := self.of_tables.get(number)) is None:
            return self
        case, columns = {**self.case, **own.case}, {**self.columns, **own.columns}
        return replace(self, case=case, columns=columns, networks={**self.networks, **own.networks})


@dataclass
class AdoptedTable:
    """A table of a file: what its columns hold, and its cells. `spec` is None where it holds no quantity."""

    file: TableFile
    number: int
    # Its number among the tables of all files.
    place: int
    grid: Grid
    named: NamedFacts
    proposed: ColumnMap
    spec: PrintedTable | None = None
    reading: TableReading = field(default_factory=TableReading)
    # The name and the title of its line in charts: its hardware, and the releases where these tell tables apart.
    hardware: str = ""
    title: str = ""
    # Axes that the table does not say; and why no cell is read, for all cells at once.
    assumed: list[str] = field(default_factory=list)
    unread: str = ""
    # Facts beside it that no case here has, and that nobody says otherwise.
    refused_facts: list[str] = field(default_factory=list)


@dataclass
class Adoption:
    """The tables of a source, and our values for the texts that they print."""

    name: str
    tables: list[AdoptedTable] = field(default_factory=list)
    values: dict[str, dict[str, Value]] = field(default_factory=dict)

    @property
    def evidence(self) -> list[tuple[str, str, str]]:
        """(text, what it was taken for, why) of columns and of parts of names; what several tables say alike, once."""
        found: dict[tuple[str, str], tuple[str, int]] = {}
        for table in self.tables:
            if table.file.encoding:
                found[table.file.name, f"text in {table.file.encoding}"] = "it is no UTF-8", 1
            named = [(text, what, "in the name of the file, or a heading") for text, what in table.named.evidence]
            columns = [(each.header, each.holds or "not read", each.why) for each in table.proposed.evidence]
            for text, what, why in (*named, *columns):
                first, count = found.get((text, what), (why, 0))
                found[text, what] = first, count + 1
        return [
            (text, what, f"{why}; so in {count} tables" if count > 1 else why)
            for (text, what), (why, count) in found.items()
        ]

    @property
    def contradictions(self) -> list[str]:
        """Sentences on versions that files beside the tables state differently."""
        return list(dict.fromkeys(text for table in self.tables for text in table.file.contradictions))

    def numbers(self, words: Vocabulary) -> list[Numbers]:
        """The numbers of cases, as tables of a source."""
        made: list[Numbers] = []
        for table in self.tables:
            made += numbers_of(table.spec, table.reading.numbers, table.file.name, words) if table.spec else ()
        return made

    def hardware(self) -> list[Hardware]:
        """The hardware of all numbers, each once."""
        found = dict.fromkeys(
            (table.spec.hardware_of(number), ", ".join(filter(None, [number.hardware, table.title])) or UNNAMED)
            for table in self.tables
            if table.spec
            for number in table.reading.numbers
        )
        return [Hardware(name=name, title=title) for name, title in found]

    def mapped(self) -> int:
        """How many number cells are numbers of cases here."""
        return sum(len(table.reading.numbers) for table in self.tables)

    def joined(self) -> int:
        """How many of them are readings of one number: nothing tells their rows apart."""
        cases = Counter((id(table), number.case) for table in self.tables for number in table.reading.numbers)
        return sum(count for count in cases.values() if count > 1)

    def refused(self) -> Counter[tuple[str, str]]:
        """How many number cells are refused, by reason and subject."""
        found = Counter((cell.why, cell.what) for table in self.tables for cell in table.reading.refused)
        for table in self.tables:
            if table.unread:
                found["table", table.unread] += number_cells(table)
        return found


def adopt(
    name: str, files: Sequence[TableFile], words: Vocabulary, sheets: Sequence[DataSheet], said: Corrections
) -> Adoption:
    """The adoption of all tables of the files as the source `name`."""
    values, adoption, place, headers = PrintedValues(words), Adoption(name), 0, {"all"}
    networks, paragraphs = set[str](), dict[str, NamedFacts]()
    for file in files:
        try:
            found = grids(file.name, file.text)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{file.name}: not valid: {error}") from error
        for number, grid in enumerate(found, start=1):
            place += 1
            headers |= {*grid.header}
            if said.tables and place not in said.tables:
                continue
            said_of = said.of(place)
            stem = file.name.rpartition(".")[0] or file.name
            headings = [*grid.heading, *_of_all_rows(grid)]
            named = named_facts(stem, headings, values, sheets, grid.notes, grid.remarks, file.address, paragraphs)
            framework = said.framework or named.framework
            libraries = [name for name in LIBRARIES if framework in ("", framework_of_library(name))]
            values_of = PrintedValues(words, libraries, framework)
            columns = column_map(grid, words, values_of, said_of.columns, said.decimal)
            of_networks = {axis for case in said_of.networks.values() for axis in case}
            columns.leave_out({*said_of.case, *of_networks}, "--set says it", tells_apart=False)
            networks |= columns.say_of_networks(grid, said_of.networks, said_of.case)
            table = AdoptedTable(file, number, place, grid, named, columns)
            title = said.hardware or named.hardware or UNNAMED
            by_column = columns.name_hardware(title)
            table.title = "" if columns.holds(HARDWARE) or by_column else title
            adoption.tables.append(table)
    _refuse_unknown(said, headers, networks, place)
    _tell_apart(adoption.tables)
    for table in adoption.tables:
        _adopt_table(adoption, table, words, values, said.of(table.place))
    _refuse_doubled(adoption.tables)
    return adoption


def _refuse_unknown(said: Corrections, headers: Collection[str], networks: Collection[str], tables: int) -> None:
    """Raise UserError for corrections of a table, of a header or of a network that is not there."""
    numbers = {*said.of_tables, *said.tables}
    if wrong := sorted(number for number in numbers if not 1 <= number <= tables):
        raise UserError(f"there is no table {wrong[0]}: the tables are 1 to {tables}")
    for of in (said, *said.of_tables.values()):
        for name in of.columns:
            if name not in headers:
                raise UserError(f"--columns: {unknown('header', name, headers)}")
        for name in of.networks:
            if name not in networks:
                raise UserError(f"--set: {unknown('network', name, networks)}")


def _of_all_rows(grid: Grid) -> list[str]:
    """The words that stand in every row of a column: they are said of the table, as its headings are."""
    said = []
    for index, name in enumerate(grid.header):
        cells = {row[index] for row in grid.rows if index < len(row)}
        version = re.fullmatch(r"(\w+?)[ _]?version", name.lower())
        text = cells.pop() if len(cells) == 1 else ""
        if text and (version or re.search(r"[^\W\d_]{2}", text)):
            said.append(f"{version[1] if version else ''} {text}".strip())
    return said


def _refuse_doubled(tables: Sequence[AdoptedTable]) -> None:
    """Refuse tables with the cases of an earlier table that nothing tells apart: they are no readings of one number."""
    first: dict[tuple[object, ...], AdoptedTable] = {}
    for table in tables:
        spec = table.spec
        if spec is None:
            continue
        of = [(spec.hardware_of(number), spec.framework, *number.case) for number in table.reading.numbers]
        if earlier := next((first[key] for key in of if key in first), None):
            other = f"{earlier.file.name}, table {earlier.number}"
            table.unread, table.spec, table.reading = f"nothing tells it from {other}", None, TableReading()
        else:
            first.update(dict.fromkeys(of, table))


def _tell_apart(tables: Sequence[AdoptedTable]) -> None:
    """Name the lines of tables; tables of one machine and of several releases are lines of their own."""
    releases: dict[str, set[str]] = {}
    for table in tables:
        releases.setdefault(table.title, set()).add(_releases(table))
    for table in tables:
        if len(releases[table.title]) > 1:
            table.title = ", ".join(filter(None, [table.title, _releases(table)]))
        table.hardware = slug(table.title) if table.title else ""


def _releases(table: AdoptedTable) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(table.named.software.items()))


def _adopt_table(
    adoption: Adoption, table: AdoptedTable, words: Vocabulary, values: PrintedValues, said: Corrections
) -> None:
    """Make the map of a table, and read its cells."""
    proposed, named = table.proposed, table.named
    held_by_some, held = proposed.axes, proposed.axes_of_all
    common = {axis: value for axis, text in proposed.common.items() if (value := values(axis, text)) is not None}
    named.refused += [f"{axis} {text}" for axis, text in proposed.common.items() if axis not in common]
    case = {axis: value for axis, value in {**named.case, **common, **said.case}.items() if axis not in held}
    if BATCH_SIZE not in held_by_some | {*case} and (batch := _batch_by_arithmetic(table.grid, proposed)):
        case[BATCH_SIZE] = batch
        named.evidence.append(("rate x time", f"{BATCH_SIZE} = {batch}"))
    others = {"framework": said.framework, "batch_per_device": said.batch_per_device or named.batch_per_device}
    table.unread = _unread(
        table, held_by_some | {*case}, {*said.case, *(name for name, is_said in others.items() if is_said)}
    )
    if table.unread:
        return
    for axis, texts in _texts(table).items():
        adoption.values.setdefault(axis, {}).update(values.renamed(axis, texts))
    framework = said.framework or named.framework or ("torch" if "pytorch" in named.software else "")
    framework = framework or (framework_of_library(proposed.library) if proposed.library else "")
    for axis in _AXES:
        if axis not in case and axis not in held:
            value = _assumed(axis, case, held_by_some, framework, words)
            if axis == "mode" and _is_of_inference(table.grid):
                value = "inference"
            if value is not None:
                case[axis] = value
                table.assumed.append(f"{axis} = {value}")
    table.assumed += [f"{axis} = {case[axis]}" for axis in _AXES if axis in case and axis in named.by_sentence]
    spec = {
        "file": table.file.name,
        "sha256": hashlib.sha256(table.file.content).hexdigest(),
        "number": table.number,
        "address": table.file.address,
        "suite": adoption.name.replace("-", "_"),
        "hardware": table.hardware,
        "framework": framework or None,
        "library": proposed.library,
        "case": {axis: case[axis] for axis in words.axes if axis in case},
        "batch_per_device": proposed.batch_per_device
        or said.batch_per_device
        or (named.batch_per_device and BATCH_SIZE not in held_by_some and BATCH_SIZE not in said.case),
        "devices_per_node": proposed.devices_per_node,
        "decimal": proposed.decimal,
        "decimal_is_open": proposed.decimal_is_open,
        "columns": [column.model_dump() for column in proposed.columns],
    }
    table.spec = toml.made(table.file.name, spec, PrintedTable, words)
    table.reading = table.spec.read(table.grid, adoption.values, words.networks)


def _is_of_inference(grid: Grid) -> bool:
    """Whether a table prints a latency, or frames per second: nobody prints those of training."""
    headers = " ".join(map(header_words, grid.header))
    return re.search(r"\b(?:latency|fps)\b", headers) is not None or any(
        unit_of_cell(cell).lower() == "fps" for row in grid.rows for cell in row
    )


def _unread(table: AdoptedTable, known: set[str], said: set[str]) -> str:
    """Why no cell of a table is read; empty where its cells are read. known: the axes that it says, or that are said.

    A number without its network, its batch size or its mode would belong to every case.
    """
    proposed = table.proposed
    if not any(map(proposed.is_quantity, proposed.columns)):
        if proposed.contested:
            return f"no axis tells {' from '.join(proposed.contested[:2])}"
        return "no column holds a quantity with a unit"
    elsewhere = proposed.axes | said
    table.refused_facts = [text for text in table.named.refused if text.partition(" ")[0] not in elsewhere]
    if refused := table.refused_facts:
        return ", ".join(NOT_HERE.format(text) for text in refused)
    needed = {MODEL: "network", BATCH_SIZE: "batch size"} | ({} if _is_of_inference(table.grid) else {"mode": "mode"})
    if missing := [axis for axis in needed if axis not in known]:
        options = ",".join(f"{axis}=..." for axis in missing)
        return f"no {' and no '.join(needed[axis] for axis in missing)} is said (--set {options})"
    of_column = any(column.holds == BATCH_SIZE for column in proposed.columns)
    if not of_column and "batch_per_device" not in said and BATCH_SIZE not in said and _has_several_devices(table):
        return "a batch size that may be of each device (--per-device, or --set batch_size=... for all)"
    if table.named.small_images and IMAGE_SIZE not in known:
        return f"images of {table.named.small_images}, of a size that is not said (--set image_size=...)"
    return ""


def _has_several_devices(table: AdoptedTable) -> bool:
    """Whether a column has counts of devices above one."""
    for column in table.proposed.columns:
        if any(int(axes.get(DEVICES, 1)) > 1 for axes in (*column.also.values(), column.case)):
            return True
        if column.holds == DEVICES:
            index = table.grid.header.index(column.name)
            return any((number_in(row[index]) or 0) > 1 for row in table.grid.rows if index < len(row))
    return False


def _assumed(axis: str, case: Mapping[str, Value], held: set[str], framework: str, words: Vocabulary) -> Value | None:
    """The value of an axis that a table does not say: the usual value; of several devices, the framework's own way."""
    several = case.get(DEVICES, 1) != 1 or DEVICES in held
    if axis == STRATEGY and several:
        return _STRATEGIES.get(framework, "data_parallel")
    return _USUAL.get(axis, words.axes[axis].usual)


def _texts(table: AdoptedTable) -> dict[str, list[str]]:
    """The texts that a table prints for each axis."""
    places = {column.name: column.holds for column in table.proposed.columns}
    cased = {column.name: column for column in table.proposed.columns if column.case}
    texts: dict[str, list[str]] = {}
    for index, name in enumerate(table.grid.header):
        if (column := cased.get(name)) is not None:
            for axis, text in column.case.items():
                texts.setdefault(axis, []).append(str(text))
        elif name in places:
            cells = [row[index] for row in table.grid.rows if index < len(row)]
            texts.setdefault(places[name], []).extend(dict.fromkeys(cells))
    return texts


def number_cells(table: AdoptedTable) -> int:
    """How many number cells a table has in columns that are not taken for another thing than a quantity."""
    others = {column.name for column in table.proposed.columns if not table.proposed.is_quantity(column)}
    places = [index for index, name in enumerate(table.grid.header) if name not in others]
    return sum(row[place][:1].isdigit() for row in table.grid.rows for place in places if place < len(row))


def _batch_by_arithmetic(grid: Grid, proposed: ColumnMap) -> int:
    """The batch size that rate x time is in every row; 0 where the rows differ, or either is not in the table."""
    places = {column.holds: column for column in proposed.columns}
    if not {IMAGES, STEP} <= places.keys():
        return 0
    found = []
    for row in grid.rows:
        if len(row) == len(grid.header):
            rate, time = (row[grid.header.index(places[holds].name)] for holds in (IMAGES, STEP))
            if (images := printed_number(rate, proposed.decimal)) and (step := printed_number(time, proposed.decimal)):
                found.append(places[IMAGES].converted(images) * places[STEP].converted(step))
    if not all(map(math.isfinite, found)):  # 1e300 x 1e300
        return 0
    batch = round(statistics.median(found)) if found else 0
    return batch if batch and all(abs(each / batch - 1) < NEAR for each in found) else 0
