"""The vocabulary of a checkout: every axis and quantity that its files describe, each once.

suites/axes.toml and suites/quantities.toml describe those of all suites; a suite may bring its own ([new_axes.<name>],
[new_quantities.<name>]), which sources and the other suites of the checkout may use too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from tsuishi.base import toml
from tsuishi.base.errors import UserError, unknown
from tsuishi.specs.axes import Axis, unknown_axis
from tsuishi.specs.case import PROTOCOL, SUITE, Case, Value
from tsuishi.specs.quantities import Quantity, unknown_quantity

AXES_FILE, QUANTITIES_FILE = "axes.toml", "quantities.toml"
_Described = TypeVar("_Described", Axis, Quantity)


@dataclass(frozen=True)
class Brought:
    """What the file of one suite describes: the names of axes and of quantities."""

    axes: frozenset[str] = frozenset()
    quantities: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Vocabulary:
    """Axes in canonical order and quantities in the order in which they are shown, by name.

    `everywhere`: the axes of suites/axes.toml, which every table has; of the others only those that its cases have.
    """

    axes: Mapping[str, Axis]
    quantities: Mapping[str, Quantity]
    everywhere: frozenset[str] = frozenset()
    brought: Mapping[str, Brought] = field(default_factory=dict)

    @cached_property
    def selectable(self) -> frozenset[str]:
        """The axes that files give to a case: its suite is the file."""
        return frozenset(self.axes) - {SUITE}

    @cached_property
    def of_one_gpu(self) -> frozenset[str]:
        """The quantities that are of one GPU of several."""
        return frozenset(name for name, quantity in self.quantities.items() if quantity.of_one_gpu)

    def axis(self, name: str) -> Axis:
        """The axis of that name; one that is not described is called by its name."""
        return self.axes.get(name) or unknown_axis(name, "name")

    def quantity(self, name: str) -> Quantity:
        """The quantity of that name; one that is not described is called by its name."""
        return self.quantities.get(name) or unknown_quantity(name)

    @cached_property
    def line_axes(self) -> list[str]:
        """The axes that tell the lines of a chart apart; too many lines are spread over charts in this order."""
        lines = [name for name, axis in self.axes.items() if axis.chart == "line"]
        return sorted(lines, key=lambda name: (self.axes[name].spread == 0, self.axes[name].spread))

    @cached_property
    def level_axes(self) -> list[str]:
        """The axes of which some values are levels behind lines."""
        return [name for name, axis in self.axes.items() if axis.levels]

    def level(self, case: Mapping[str, Any]) -> str:
        """What a chart calls the level that a case is; empty where it is none."""
        return next((text for name in self.level_axes if (text := self.axes[name].levels.get(case.get(name, "")))), "")

    def is_on_cpu(self, case: Mapping[str, Any]) -> bool:
        """Whether a case computes on the CPU, whatever its environment has."""
        return any(case[name] in axis.on_cpu for name, axis in self.axes.items() if name in case)

    def known_axis(self, name: str) -> None:
        """Raise ValueError where no file gives this axis to a case."""
        if name not in self.selectable:
            raise ValueError(str(unknown("axis", name, self.selectable)))

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise ValueError for the first value that its axis does not have, with the number of further ones."""
        said = {name: problem for name, value in values.items() if (problem := self.axes[name].problem(value))}
        for name, problem in said.items():
            raise ValueError(f"key '{name}': {problem}" + (f" (and {len(said) - 1} more)" if len(said) > 1 else ""))

    def case(self, values: Mapping[str, Any]) -> Case:
        """The case of these axes, in any order; what is None is left out. Raises ValueError for an unknown value."""
        given = {name: value for name, value in values.items() if value is not None}
        for name in given:
            if name not in self.axes:
                raise ValueError(str(unknown("axis", name, self.axes)))
        for name in (SUITE, PROTOCOL):
            if name not in given:
                raise ValueError(f"key '{name}' is missing; add it")
        self.check(given)
        ordered = tuple((name, given[name]) for name in self.axes if name in given)
        return Case(tuple(one for one in ordered if self.axes[one[0]].is_said(one[1], "id")), ordered)

    def completed(self, cases: Mapping[str, Mapping[str, Value]]) -> dict[str, dict[str, Value]]:
        """Cases, by any key, with the usual values that ids leave out.

        Of the axes that a case's suite brings, and of those that another case of it has.
        """
        usual = {
            name: axis.usual
            for name, axis in self.axes.items()
            if axis.usual is not None and not axis.is_said(axis.usual, "id")
        }
        used: dict[Value | None, set[str]] = {}
        for axes in cases.values():
            brought = self.brought.get(str(axes.get(SUITE)), Brought()).axes
            used.setdefault(axes.get(SUITE), set()).update(usual.keys() & {*axes, *brought})
        return {
            key: {**axes, **{name: usual[name] for name in used[axes.get(SUITE)] if name not in axes}}
            for key, axes in cases.items()
        }

    def of(self, cases: Iterable[Mapping[str, Value]]) -> "Vocabulary":
        """With the axes that every table has, and those of these cases: also axes that nothing here describes."""
        axes = {name: axis for name, axis in self.axes.items() if name in self.everywhere}
        others: dict[str, list[Value]] = {}
        for case in cases:
            for name, value in case.items():
                if name not in axes:
                    others.setdefault(name, []).append(value)
        for name, values in others.items():
            are_numbers = all(isinstance(value, int) for value in values)
            axes[name] = self.axes.get(name) or unknown_axis(name, "whole number" if are_numbers else "name")
        return replace(self, axes=_in_order(axes, self.everywhere))

    def made_of(self, suite: str) -> list[Quantity]:
        """The quantities that are taken from what workloads of a suite send: those of all suites, and its own."""
        own = self.brought.get(suite, Brought()).quantities
        others = {name for brought in self.brought.values() for name in brought.quantities} - own
        return [one for name, one in self.quantities.items() if one.origin and name not in others]


def vocabulary(suites: Path) -> Vocabulary:
    """All that the files of suites/ describe. Raises UserError for what is wrong, or is described twice differently."""
    stats = [(path, path.stat()) for path in sorted(suites.glob("*.toml"))]
    return _read(suites, tuple((path, found.st_mtime_ns, found.st_size) for path, found in stats))


@lru_cache(maxsize=8)
def _read(suites: Path, files: tuple[tuple[Path, int, int], ...]) -> Vocabulary:
    """As long as the files are the same, they are read once."""
    axes_file, quantities_file = suites / AXES_FILE, suites / QUANTITIES_FILE
    axes, quantities = _Collected("axis", Axis), _Collected("quantity", Quantity)
    axes.add(axes_file, "", toml.read(axes_file))
    quantities.add(quantities_file, "", toml.read(quantities_file))
    everywhere, brought = frozenset(axes.found), {}
    for path in (path for path, *_ in files if path not in (axes_file, quantities_file)):
        said = toml.read(path)
        tables = said.get("new_axes", {}), said.get("new_quantities", {})
        axes.add(path, "new_axes.", tables[0])
        quantities.add(path, "new_quantities.", tables[1])
        brought[path.stem] = Brought(frozenset(tables[0]), frozenset(tables[1]))
    for name in sorted(axes.found.keys() & quantities.found.keys()):
        raise UserError(f"{suites}: '{name}' is an axis and a quantity: give one of them another name")
    _check_charts(quantities, axes.found)
    each = {one.name: one for quantity in quantities.found.values() for one in quantity.each()}
    return Vocabulary(_in_order(axes.found, everywhere), each, everywhere, brought)


class _Collected(Generic[_Described]):
    """Descriptions of one kind, each with the file that has it."""

    def __init__(self, kind: str, model: type[_Described]) -> None:
        self._kind = kind
        self._model: type[_Described] = model
        self.files: dict[str, Path] = {}
        self.found: dict[str, _Described] = {}

    def add(self, path: Path, prefix: str, tables: Any) -> None:
        """Those of one file. Raises UserError naming file and key; both files, where two say different things."""
        for name, table in tables.items() if isinstance(tables, dict) else ():
            if not isinstance(table, dict):
                raise UserError(f"{path}: {prefix}{name}: give a table that describes the {self._kind}")
            described = toml.made(f"{path}: {prefix}{name}", {**table, "name": name}, self._model)
            if self.found.setdefault(name, described) != described:
                raise UserError(
                    f"{path}: {self._kind} '{name}' is described differently in {self.files[name]}: give it another "
                    "name, or describe it once"
                )
            self.files.setdefault(name, path)


def _check_charts(quantities: "_Collected[Quantity]", axes: Mapping[str, Axis]) -> None:
    """Raise UserError where a quantity is to be drawn over what is no axis of numbers, or with what is not drawn."""
    drawn = [name for name, quantity in quantities.found.items() if quantity.over]
    for name, quantity in quantities.found.items():
        where = f"{quantities.files[name]}: quantity '{name}'"
        if quantity.over and not (quantity.over in axes and axes[quantity.over].is_number):
            numbers = [axis for axis in axes if axes[axis].is_number]
            raise UserError(f"{where}: over: {unknown('axis of numbers', quantity.over, numbers)}")
        if quantity.drawn_with and quantity.drawn_with not in drawn:
            raise UserError(f"{where}: drawn_with: {unknown('chart of', quantity.drawn_with, drawn)}")


def _in_order(axes: Mapping[str, Axis], everywhere: frozenset[str]) -> dict[str, Axis]:
    """Canonical order: as in suites/axes.toml; then the others by name, so that no file's place changes an id."""
    first = {name: axis for name, axis in axes.items() if name in everywhere}
    return {**first, **dict(sorted((name, axis) for name, axis in axes.items() if name not in everywhere))}
