"""Published numbers with their sources, from reports/published/<source>.toml.

A source is a file, or `source.toml` in a folder with its unchanged tables (`[[tables]]`, see
specs/printed_table.py). A file describes a source and holds its tables nearly as printed. Each `[[numbers]]` is a
table. Its columns are axes (they select cases) and quantities (the measured values); see
reports/published/conv2d-gce.toml. A number belongs to every case that has all the axes of its row: an axis that is not
given may have any value.
"""

import difflib
import hashlib
import math
import statistics
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, model_validator

from tsuishi.base import toml
from tsuishi.base.errors import UserError, leave_out, unknown
from tsuishi.specs.case import SUITE, Value
from tsuishi.specs.claims import Claim, Deviation
from tsuishi.specs.environment import Framework
from tsuishi.specs.grids import Grid, grids
from tsuishi.specs.pictures import Picture, Rerun
from tsuishi.specs.printed_table import Asked, CaseNumber, PrintedTable, Readings, place_of
from tsuishi.specs.quantities import GPUS, imbalance
from tsuishi.specs.selections import FRAMEWORK, Selection, Selector
from tsuishi.specs.table_text import table_text
from tsuishi.specs.vocabulary import Vocabulary

# Quantities of each GPU: its load, and its memory.
_OF_EACH_GPU = [[f"gpu{gpu}_{what}" for gpu in GPUS] for what in ("utilisation_percent", "memory_mib")]
# The file of a source that has a folder.
FILE = "source.toml"


class Hardware(toml.Spec):
    """The hardware on which numbers were measured: a machine, or a part of a machine."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    # Its name in the legends of charts.
    title: str
    description: toml.Texts | None = None
    # The memory of each GPU, as the source states it.
    gpu_memory_mib: Annotated[float, Field(gt=0, le=1e9)] | None = None
    # Other hardware of the source to compare its numbers with: the GPUs of a CPU's machine, say.
    beside: tuple[str, ...] = ()


def _as_entry(value: Any) -> Any:
    if type(value) in (float, str):  # nearly every value of a table
        return value
    entry = tuple(value) if isinstance(value, list) else value
    readings = entry if isinstance(entry, tuple) else (entry,)
    numbers = all(isinstance(reading, int | float) and not isinstance(reading, bool) for reading in readings)
    if not (isinstance(entry, str) or numbers):
        raise ValueError(f"expected a word, a number, or an array of numbers; given: {value!r}")
    return entry


# The value of a column in a row.
Entry = Annotated[str | int | float | tuple[float, ...], BeforeValidator(_as_entry)]


class Epochs(toml.Spec):
    """The whole training of the cases that `case` selects: images of an epoch, and the number of epochs if known."""

    case: Selection
    images: toml.Count
    count: toml.Count | None = None

    def steps(self, batch_size: int) -> int:
        """How many batches an epoch has; the last batch may be smaller."""
        return math.ceil(self.images / batch_size)

    def whole_steps(self, batch_size: int) -> float:
        """How many whole batches an epoch is worth: the last batch counts by its images."""
        return self.images / batch_size


class Numbers(toml.Spec):
    """A table of a source. `columns` names the axes and quantities of its rows; `case` holds axes of all rows."""

    suite: str
    hardware: str
    # The framework, where a claim compares frameworks.
    framework: Framework | None = None
    case: dict[str, str | int] = Field(default_factory=dict)
    columns: tuple[str, ...] = Field(min_length=1)
    # A quantity that was read several times is an array of its readings; their median counts.
    rows: tuple[tuple[Entry, ...], ...] = Field(min_length=1)
    note: str = ""
    _words: Vocabulary = PrivateAttr()
    # The table in a file that they come from, and the readings of each row there.
    _printed: tuple[PrintedTable, list[Readings]] | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _checked(self, info: ValidationInfo) -> "Numbers":
        """Checks the table against the vocabulary, which is the context of the validation."""
        assert isinstance(info.context, Vocabulary)
        self._words = words = info.context
        quantities = words.quantities
        for axis in self.case:
            if axis not in words.selectable:
                raise ValueError(f"case: {unknown('axis', axis, words.selectable)}")
        for column in self.columns:
            if column not in quantities and column not in words.selectable:
                raise ValueError(f"columns: {unknown('axis or quantity', column, {*words.selectable, *quantities})}")
        twice = {name for name in self.columns if self.columns.count(name) > 1 or name in self.case}
        if twice:
            raise ValueError(f"columns: '{min(twice)}' is given twice; give it once, in 'columns' or in 'case'")
        if not set(self.columns) & set(quantities):
            raise ValueError(f"columns: no quantity among them; add one of: {', '.join(quantities)}")
        for number, row in enumerate(self.rows):
            self._check_row(f"rows[{number}]", row)
        return self

    def _check_row(self, where: str, row: tuple[Any, ...]) -> None:
        if len(row) != len(self.columns):
            raise ValueError(f"{where} has {len(row)} values for {len(self.columns)} columns; make them as many")
        quantities = self._words.quantities
        for column, value in zip(self.columns, row, strict=True):
            if column in quantities and (isinstance(value, str) or value == ()):
                raise ValueError(
                    f"{where}: '{column}' is {value!r}; give a number in {quantities[column].unit}, or several"
                )
        given = zip(self.columns, row, strict=True)
        try:
            self._words.check({**self.case, **{name: value for name, value in given if name not in quantities}})
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error

    def cases(self) -> Iterator[tuple[dict[str, str | int], dict[str, tuple[float, ...]]]]:
        """The axes of each row that identify its case, without its suite, and its printed readings by quantity."""
        quantities = self._words.quantities
        for row in self.rows:
            axes: dict[str, Any] = dict(self.case)
            readings: dict[str, tuple[float, ...]] = {}
            for column, value in zip(self.columns, row, strict=True):
                if column in quantities:
                    readings[column] = tuple(map(float, value if isinstance(value, tuple) else [value]))
                else:
                    axes[column] = value
            yield axes, readings

    def printed(self, row: int, quantity: str) -> tuple[str, tuple[float, bool]]:
        """Where the number of a row (from 0) is printed, and its unit there, as numerals.printed_units has it."""
        if self._printed is None:
            place = f"{self.note or self.suite}, row {row + 1} of {self.hardware}, column {quantity}"
            return place, (1.0, False)
        table, rows = self._printed
        readings = rows[row][quantity]
        return place_of(table.file, table.number, readings), table.unit_of(readings[0])


class Number(NamedTuple):
    """A published number: `value` in the unit of its `quantity`, for the cases that have all its `axes`.

    `key`: the name of its column in tables, from source and hardware. `case`: its axes, as a key. `value` is the median
    of `readings`; these are empty where it was calculated from other numbers of its row. `epochs`: the training of the
    case in the source; None where it did not train the case. `impossible`: why the number cannot be right; it is shown,
    and compared with nothing.
    """

    source: str
    hardware: str
    key: str
    axes: dict[str, str | int]
    case: frozenset[tuple[str, str | int]]
    quantity: str
    value: float
    note: str
    framework: str | None = None
    readings: tuple[float, ...] = ()
    epochs: Epochs | None = None
    impossible: str = ""

    def matches(self, case: dict[str, Any]) -> bool:
        """Whether `case`, values by axis, has all axes of the number with the same values."""
        return all(case.get(axis) == value for axis, value in self.axes.items())

    def may_be(self, *selections: Selection) -> bool:
        """Whether the selections select a case that the number may belong to."""
        return Selector(*selections, partial=True)({**self.axes, FRAMEWORK: self.framework})


class Source(toml.Spec):
    """A published source. Unknown facts (author, address) are left out, never invented."""

    name: str
    title: str
    author: str | None = None
    address: str | None = None
    # 2019, 2019-05 or 2019-05-14; 2018/2019 where it is any of these years.
    date: Annotated[str, Field(pattern=r"^[0-9]{4}(-[0-9]{2}){0,2}(/[0-9]{4}(-[0-9]{2}){0,2})?$")] | None = None
    # ISO 639-1.
    language: Annotated[str, Field(pattern=r"^[a-z]{2}$")]
    hardware: tuple[Hardware, ...] = Field(min_length=1)
    # Name and version, as the source says it.
    software: dict[str, str] = Field(default_factory=dict)
    # The assumptions of a replication about facts that the source does not give.
    assumed: tuple[toml.Texts, ...] = ()
    notes: tuple[toml.Texts, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    # Measured durations of shortened epochs, or of steps, are converted to the duration of these epochs.
    epochs: tuple[Epochs, ...] = ()
    numbers: tuple[Numbers, ...] = ()
    # Tables in files beside source.toml; and our values of axes by the texts that these print.
    tables: tuple[PrintedTable, ...] = ()
    values: dict[str, dict[str, Value]] = {}
    claims: tuple[Claim, ...] = ()
    # Its figures and tables in its order, and what it takes to add our points to them.
    figures: tuple[Picture, ...] = ()
    rerun: Rerun | None = None
    # Its file and the vocabulary, as long as tables in files were not read.
    _unread: tuple[Path, Vocabulary] | None = PrivateAttr(None)
    _flat: tuple[Number, ...] | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _ids_differ(self) -> "Source":
        for key, several in (("claims", self.claims), ("figures", self.figures)):
            names = [each.id for each in several]
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{key}: '{name}' is given twice; give the second another id")
        return self

    @model_validator(mode="after")
    def _hardware_is_listed(self) -> "Source":
        listed = {hardware.name for hardware in self.hardware}
        for hardware in self.hardware:
            for other in hardware.beside:
                if other not in listed:
                    raise ValueError(f"hardware '{hardware.name}': beside: {unknown('hardware', other, listed)}")
        _check_hardware(self.hardware, self.numbers)
        return self

    @model_validator(mode="after")
    def _figures_have_numbers(self) -> "Source":
        if self.figures and not self.rerun:
            raise ValueError("figures: add [rerun] with the environments and GPUs that measure their cases")
        for figure in self.figures:
            figure.check(self.flat())
        return self

    def with_tables(self, suites: Container[str] | None = None, asked: Asked | None = None) -> "Source":
        """The source with the numbers of its tables in files, of these suites and networks (`asked`) or of all.

        Raises UserError for a file that is missing, altered, or has no such table, and for hardware that is not listed.
        """
        if self._unread is None:
            return self
        path, words = self._unread
        numbers = list(self.numbers)
        for table in self.tables:
            if suites is None or table.suite in suites:
                reading = table.read(_grid(path.parent, table), self.values, words.networks, asked)
                numbers += numbers_of(table, reading.numbers, f"{path}: {table.file}", words)
        try:
            _check_hardware(self.hardware, numbers)
        except ValueError as error:
            raise UserError(f"{path}: tables: {error}") from error
        read = self.model_copy(update={"numbers": tuple(numbers)})
        read._unread = read._flat = None
        return read

    def flat(self) -> tuple[Number, ...]:
        """Every number, in the order of the file; each row ends with numbers calculated from the readings of GPUs."""
        if self._flat is None:
            self._flat = tuple(self._numbers())
        return self._flat

    def credible(self) -> Iterator[Number]:
        """The numbers of `flat` that are not known to be impossible."""
        return (number for number in self.flat() if not number.impossible)

    def with_impossible(self, reasons: Sequence[str]) -> "Source":
        """The source, with the reasons why its numbers are impossible: one for each of `flat`, empty for none."""
        marked = self.model_copy()
        marked._flat = tuple(number._replace(impossible=why) for number, why in zip(self.flat(), reasons, strict=True))
        return marked

    def _numbers(self) -> Iterator[Number]:
        memory_mib = {hardware.name: hardware.gpu_memory_mib for hardware in self.hardware}
        for table in self.numbers:
            origin = self.name, table.hardware, _key(self.name, table.hardware)
            for own, readings in table.cases():
                axes = {SUITE: table.suite, **own}
                case = frozenset(axes.items())
                epochs = epochs_of([self], axes)
                printed = {quantity: statistics.median(values) for quantity, values in readings.items()}
                for quantity, value in {**printed, **_of_all_gpus(printed, memory_mib[table.hardware])}.items():
                    more = table.note, table.framework, readings.get(quantity, ())
                    yield Number(*origin, axes, case, quantity, value, *more, epochs)


def _of_all_gpus(printed: Mapping[str, float], memory_mib: float | None) -> dict[str, float]:
    """Quantities of all GPUs, calculated from those of each GPU: mean load, imbalance, the least share of memory used.

    `printed` holds the printed values by quantity; `memory_mib` is the memory of each GPU.
    """
    loads, memories = ([printed[name] for name in names if name in printed] for names in _OF_EACH_GPU)
    calculated = {}
    if len(loads) > 1:
        calculated = {"gpu_utilisation_percent": statistics.fmean(loads), "gpu_imbalance": imbalance(loads)}
    if memories and memory_mib:
        calculated["least_gpu_memory_share"] = min(memories) / memory_mib
    return calculated


def _key(source: str, hardware: str) -> str:
    return f"published_{source}_{hardware}".replace("-", "_")


def epochs_of(sources: Iterable[Source], axes: Mapping[str, Any]) -> Epochs | None:
    """The epochs of a case (`axes`: its values by axis) in the first source that gives them; None if none does."""
    return next((epochs for source in sources for epochs in source.epochs if Selector(epochs.case)(axes)), None)


def hardware_by_key(sources: Iterable[Source]) -> dict[str, Hardware]:
    """The hardware of every source, by Number.key."""
    return {_key(source.name, hardware.name): hardware for source in sources for hardware in source.hardware}


def read_source(path: Path, words: Vocabulary, tables: bool = True) -> Source:
    """The source in a file, checked against a vocabulary. tables: read the numbers of its tables in files, too.

    Raises UserError naming file, key and remedy.
    """
    source = toml.load(path, Source, words, name=path.parent.name if path.name == FILE else path.stem)
    source._unread = path, words
    return source.with_tables() if tables else source


def _check_hardware(hardware: Iterable[Hardware], numbers: Iterable[Numbers]) -> None:
    """Raise ValueError where numbers are of hardware that the source does not list."""
    listed = {each.name for each in hardware}
    for number, table in enumerate(numbers):
        if table.hardware not in listed:
            raise ValueError(f"numbers[{number}]: {unknown('hardware', table.hardware, listed)}")


def _grid(folder: Path, table: PrintedTable) -> Grid:
    """The cells of a table in a file of a source's folder."""
    path = folder / table.file
    content = toml.read_content(path)
    if (digest := hashlib.sha256(content).hexdigest()) != table.sha256:
        raise UserError(f"{path}: its SHA-256 is {digest}, and {FILE} has {table.sha256}: restore the file")
    try:
        return grids(path.name, table_text(str(path), content)[0])[table.number - 1]
    except (ValueError, IndexError, RecursionError) as error:
        raise UserError(f"{path}: no table {table.number} in it") from error


def numbers_of(table: PrintedTable, found: Sequence[CaseNumber], where: str, words: Vocabulary) -> Iterator[Numbers]:
    """The numbers of cases in a table, as tables of a source. where: the file in the words of an error."""
    for axis, value in dict.fromkeys(item for number in found for item in number.axes.items()):
        try:
            words.check({axis: value})
        except ValueError as error:
            raise UserError(f"{where}: {error}") from error
    for values, readings in table.tables(found):
        made = Numbers.model_construct(**values)
        made._words, made._printed = words, (table, readings)
        yield made


def check_names(published: Path, sources: Iterable[Source], words: Vocabulary) -> None:
    """Raise UserError where a source names a suite or a framework that is not here: nothing would be held against it.

    Tables may be of suites and frameworks of other people, as those of an archive: of these, only near names are wrong.
    """
    for source in sources:
        selections = [*(each.case for each in source.epochs), *(each.case for each in source.deviations)]
        selections += [
            case for figure in source.figures for case in (figure.case, *(one.case for one in figure.series))
        ]
        claimed = {suite for selection in selections for suite in selection.get(SUITE, ())}
        claimed |= {suite for claim in source.claims for suite in claim.named(SUITE)}
        suites, frameworks = frozenset(words.brought), words.frameworks
        named = [("suite", str(suite), suites, False) for suite in sorted(map(str, claimed))]
        named += [("suite", table.suite, suites, True) for table in source.numbers]
        named += [("framework", table.framework, frameworks, True) for table in source.numbers if table.framework]
        for kind, name, known, only_near in named:
            if name not in known and (not only_near or difflib.get_close_matches(name, known)):
                raise UserError(f"{published / source.name}.toml: {unknown(kind, name, known)}")


def read_sources(
    published: Path, words: Vocabulary, tables: bool = True, needed: Container[str | None] | None = None
) -> tuple[Source, ...]:
    """Every source in a directory, in alphabetical order. tables: as read_source has it.

    needed: the names of sources that the command cannot go on without, all by default; others whose file is wrong are
    named, and left out. Raises UserError as read_source does.
    """
    found = {path.stem: path for path in published.glob("[!.]*.toml")}
    found |= {path.parent.name: path for path in published.glob(f"[!.]*/{FILE}")}
    sources = []
    for name, path in sorted(found.items()):
        try:
            sources.append(read_source(path, words, tables))
        except UserError as error:
            if needed is None or name in needed:
                raise
            leave_out(str(error))
    return tuple(sources)


def sources_for(published: Path, words: Vocabulary, suites: Iterable[str]) -> tuple[Source, ...]:
    """Every source in a directory, without its tables in files. suites: of runs; asked for only where a file is wrong.

    Raises UserError for a wrong file of one of these suites, or of its source.
    """
    if not words.wrong:
        with suppress(UserError):
            return read_sources(published, words, tables=False)
    ran = {*suites}
    for path, problem in words.wrong.items():
        if path.stem in ran:
            raise UserError(problem)
    needed = {words.brought[name].source for name in ran & words.brought.keys()}
    return read_sources(published, words, tables=False, needed=needed)
