"""Published numbers: what a source reported, from reports/published/<source>.toml, with where it comes from.

A file says what is known of the source and holds its tables much as they were printed: each `[[numbers]]` is one
table, whose columns are axes (which case) and quantities (what was found), see reports/published/conv2d-gce.toml.
A number belongs to every case that has all the axes it gives: an axis left out matches anything.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PositiveInt, PrivateAttr, ValidationInfo, model_validator

from tsuishi.base import toml
from tsuishi.base.errors import unknown
from tsuishi.specs.case import SUITE
from tsuishi.specs.claims import Claim, Selection, selected
from tsuishi.specs.environment import Framework
from tsuishi.specs.quantities import GPUS, imbalance
from tsuishi.specs.vocabulary import Vocabulary


class Hardware(toml.Spec):
    """A machine, or a part of one, that numbers were measured on."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    # As in a chart's legend.
    title: str
    description: toml.Texts | None = None
    # Of one GPU, as the source states it.
    gpu_memory_mib: Annotated[float, Field(gt=0)] | None = None
    # Other hardware that its numbers are compared with: a CPU's with its machine's GPUs.
    beside: tuple[str, ...] = ()


def _as_entry(value: Any) -> Any:
    entry = tuple(value) if isinstance(value, list) else value
    readings = entry if isinstance(entry, tuple) else (entry,)
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in readings)
    if not (isinstance(entry, str) or numbers):
        raise ValueError(f"expected a word, a number, or an array of numbers; given: {value!r}")
    return entry


# What stands in one column of a row.
Entry = Annotated[str | int | float | tuple[float, ...], BeforeValidator(_as_entry)]


class Epochs(toml.Spec):
    """The whole training of the cases that `case` selects: images of an epoch, and how many epochs if that is known."""

    case: Selection
    images: PositiveInt
    count: PositiveInt | None = None

    def steps(self, batch_size: int) -> int:
        """How many batches an epoch has; the last one may be smaller."""
        return math.ceil(self.images / batch_size)


class Numbers(toml.Spec):
    """One table of a source: rows of axes and quantities, as `columns` names them; `case` holds for every row."""

    suite: str
    hardware: str
    # What computed, where a claim compares frameworks.
    framework: Framework | None = None
    case: dict[str, str | int] = Field(default_factory=dict)
    columns: tuple[str, ...] = Field(min_length=1)
    # A quantity that was read several times is an array of its readings; what counts is their median.
    rows: tuple[tuple[Entry, ...], ...] = Field(min_length=1)
    note: str = ""
    _words: Vocabulary = PrivateAttr()

    @model_validator(mode="after")
    def _checked(self, info: ValidationInfo) -> "Numbers":
        """Against the vocabulary, which is the context."""
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
        try:
            self._words.check(self.axes(row))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error

    def axes(self, row: tuple[Any, ...]) -> dict[str, str | int]:
        """The axes that identify the case of a row, without its suite."""
        given = zip(self.columns, row, strict=True)
        return {**self.case, **{column: value for column, value in given if column not in self._words.quantities}}

    def readings(self, row: tuple[Any, ...]) -> dict[str, tuple[float, ...]]:
        """The readings of every quantity of a row: what was printed, not what follows from it."""
        quantities = self._words.quantities
        given = {column: value for column, value in zip(self.columns, row, strict=True) if column in quantities}
        return {
            name: tuple(map(float, value if isinstance(value, tuple) else [value])) for name, value in given.items()
        }


@dataclass(frozen=True)
class Number:
    """One published number: `value` in the unit of its `quantity`, for the cases that have all its `axes`.

    `readings` are what it is the median of; none where it follows from other numbers of its row. `epochs`: what the
    source trained in the case, where it did.
    """

    source: str
    hardware: str
    axes: dict[str, str | int]
    quantity: str
    value: float
    note: str
    framework: str | None = None
    readings: tuple[float, ...] = ()
    epochs: Epochs | None = None

    @property
    def key(self) -> str:
        """What it is called as a column of a table: source and hardware."""
        return _key(self.source, self.hardware)

    def matches(self, case: dict[str, Any]) -> bool:
        """Whether every axis given here has the same value in a case's axes."""
        return all(case.get(axis) == value for axis, value in self.axes.items())


class Source(toml.Spec):
    """A published source. What is not known of it (author, address) is left out, never invented."""

    name: str
    title: str
    author: str | None = None
    address: str | None = None
    # 2019, 2019-05 or 2019-05-14; 2018/2019 where it is one of several years.
    date: Annotated[str, Field(pattern=r"^[0-9]{4}(-[0-9]{2}){0,2}(/[0-9]{4}(-[0-9]{2}){0,2})?$")] | None = None
    # ISO 639-1.
    language: Annotated[str, Field(pattern=r"^[a-z]{2}$")]
    hardware: tuple[Hardware, ...] = Field(min_length=1)
    # Name and version, as the source says it.
    software: dict[str, str] = Field(default_factory=dict)
    # What a replication has to assume, because the source does not say it.
    assumed: tuple[toml.Texts, ...] = ()
    notes: tuple[toml.Texts, ...] = ()
    # Shortened epochs, and epochs that follow from steps, are brought to these.
    epochs: tuple[Epochs, ...] = ()
    numbers: tuple[Numbers, ...] = ()
    claims: tuple[Claim, ...] = ()

    @model_validator(mode="after")
    def _claims_are_told_apart(self) -> "Source":
        names = [claim.id for claim in self.claims]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"claims: '{name}' is given twice; give the second another id")
        return self

    @model_validator(mode="after")
    def _hardware_is_listed(self) -> "Source":
        listed = [hardware.name for hardware in self.hardware]
        for hardware in self.hardware:
            for other in hardware.beside:
                if other not in listed:
                    raise ValueError(f"hardware '{hardware.name}': beside: {unknown('hardware', other, listed)}")
        for number, table in enumerate(self.numbers):
            if table.hardware not in listed:
                raise ValueError(f"numbers[{number}]: {unknown('hardware', table.hardware, listed)}")
        return self

    def flat(self) -> Iterator[Number]:
        """Every single number, in the order of the file; after each row, what follows from its GPUs' readings."""
        memory_mib = {hardware.name: hardware.gpu_memory_mib for hardware in self.hardware}
        for table in self.numbers:
            for row in table.rows:
                axes, readings = {SUITE: table.suite, **table.axes(row)}, table.readings(row)
                epochs = epochs_of([self], axes)
                printed = {quantity: statistics.median(values) for quantity, values in readings.items()}
                for quantity, value in {**printed, **_of_all_gpus(printed, memory_mib[table.hardware])}.items():
                    more = table.note, table.framework, readings.get(quantity, ())
                    yield Number(self.name, table.hardware, axes, quantity, value, *more, epochs)


def _of_all_gpus(printed: Mapping[str, float], memory_mib: float | None) -> dict[str, float]:
    """What follows from load and memory of each GPU: mean load, its imbalance, the least share of memory taken."""
    loads, memories = (
        [printed[name] for gpu in GPUS if (name := f"gpu{gpu}_{what}") in printed]
        for what in ("utilisation_percent", "memory_mib")
    )
    found = {}
    if len(loads) > 1:
        found = {"gpu_utilisation_percent": statistics.fmean(loads), "gpu_imbalance": imbalance(loads)}
    if memories and memory_mib:
        found["least_gpu_memory_share"] = min(memories) / memory_mib
    return found


def _key(source: str, hardware: str) -> str:
    return f"published_{source}_{hardware}".replace("-", "_")


def epochs_of(sources: Iterable[Source], axes: Mapping[str, Any]) -> Epochs | None:
    """What the first source that says it trained in a case; None where no source says it."""
    return next((one for source in sources for one in source.epochs if selected(axes, one.case)), None)


def hardware_by_key(sources: Iterable[Source]) -> dict[str, Hardware]:
    """What numbers were measured on, by Number.key."""
    return {_key(source.name, hardware.name): hardware for source in sources for hardware in source.hardware}


def read_source(path: Path, words: Vocabulary) -> Source:
    """The source of a file, in the words of a checkout. Raises UserError naming file, key and remedy."""
    return toml.load(path, Source, words, name=path.stem)


def read_sources(published: Path, words: Vocabulary) -> tuple[Source, ...]:
    """Every source in a directory, in alphabetical order."""
    return tuple(read_source(path, words) for path in sorted(published.glob("*.toml")))
