"""The vocabulary of a checkout: all axes and quantities that its files describe.

suites/axes.toml and suites/quantities.toml describe those of all suites. The file of a suite may describe more of them
([new_axes.<name>], [new_quantities.<name>]); sources and other suites of the checkout may use these too.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from packaging.version import Version

from tsuishi.base import toml
from tsuishi.base.errors import UserError, leave_out, unknown
from tsuishi.base.files import read_json
from tsuishi.base.language import in_language, t
from tsuishi.specs.axes import Axis, unknown_axis
from tsuishi.specs.case import PROTOCOL, SUITE, Case, Value
from tsuishi.specs.quantities import Quantity, unknown_quantity

AXES_FILE, QUANTITIES_FILE = "axes.toml", "quantities.toml"
_Described = TypeVar("_Described", Axis, Quantity)
_Key = TypeVar("_Key")


class Brought(toml.Spec):
    """The names of the axes and quantities that the file of a suite describes, what its batches are of, its source."""

    axes: frozenset[str] = frozenset()
    quantities: frozenset[str] = frozenset()
    batch_of: toml.Texts | None = None
    source: str | None = None


@dataclass(frozen=True)
class NetworkFacts:
    """What a table may print of a network: trainable parameters, and the usual size of an image in pixels."""

    parameters: int
    image_size: int
    # Of an image's forward pass; 0 where the file does not say it.
    multiply_adds: int = 0


# The layers of a network's file, and the values that each may have (suites/workloads/common/networks.py).
_LAYERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("norm", "relu", "relu6", "global_average_pool", "flatten"), frozenset[str]()),
    "conv": frozenset({"size", "stride", "bias"}),
    "depthwise": frozenset({"stride", "bias"}),
    "average_pool": frozenset[str](),
    "max_pool": frozenset({"stride"}),
    "dense": frozenset[str](),
    "residual": frozenset({"shortcut"}),
}


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Axes in canonical order, and quantities in the order of reports, by name.

    `everywhere`: the axes of suites/axes.toml. Every table has these; other axes only where its cases have them.
    `brought`: what the files of suites describe, by suite. `frameworks`: those that workloads can compute with.
    `networks`: facts of the networks that have a file, by name. `folder`: where the files lie. `wrong`: what is wrong
    with files of suites, by file; they describe nothing here.
    """

    axes: Mapping[str, Axis]
    quantities: Mapping[str, Quantity]
    everywhere: frozenset[str] = frozenset()
    brought: Mapping[str, Brought] = field(default_factory=dict)
    frameworks: frozenset[str] = frozenset()
    folder: Path | None = None
    networks: Mapping[str, NetworkFacts] = field(default_factory=dict)
    wrong: Mapping[Path, str] = field(default_factory=dict)

    @cached_property
    def selectable(self) -> frozenset[str]:
        """The axes that files can give to a case. The suite is not among them: it is the name of the file."""
        return frozenset(self.axes) - {SUITE}

    @cached_property
    def of_one_gpu(self) -> frozenset[str]:
        """The quantities that describe one GPU of a machine."""
        return frozenset(name for name, quantity in self.quantities.items() if quantity.of_one_gpu)

    @cached_property
    def usual(self) -> dict[str, Value | None]:
        """The usual values that go without saying, by axis: no id of a case has them.

        None: a setting of the process is usually not given.
        """
        return {
            name: axis.usual
            for name, axis in self.axes.items()
            if axis.is_of_process or (axis.usual is not None and not axis.is_said(axis.usual, "id"))
        }

    def axis(self, name: str) -> Axis:
        """The axis of that name; an axis labelled by its name where no file describes it."""
        return self.axes.get(name) or unknown_axis(name, "name")

    def quantity(self, name: str) -> Quantity:
        """The quantity of that name; a quantity labelled by its name where no file describes it."""
        return self.quantities.get(name) or unknown_quantity(name)

    @cached_property
    def line_axes(self) -> list[str]:
        """The axes whose values are lines of a chart, in the order in which too many lines are spread over charts."""
        lines = [name for name, axis in self.axes.items() if axis.chart == "line"]
        return sorted(lines, key=lambda name: (self.axes[name].spread == 0, self.axes[name].spread))

    @cached_property
    def level_axes(self) -> list[str]:
        """The axes with values that charts draw as levels behind lines."""
        return [name for name, axis in self.axes.items() if axis.levels]

    def level(self, case: Mapping[str, Any]) -> str:
        """The text of the level that charts draw for a case; empty for cases that are drawn as lines."""
        return next((text for name in self.level_axes if (text := self.axes[name].levels.get(case.get(name, "")))), "")

    def is_on_cpu(self, case: Mapping[str, Any]) -> bool:
        """Whether a case computes on the CPU in every environment."""
        return any(case[name] in axis.on_cpu for name, axis in self.axes.items() if name in case)

    def not_yet(self, case: Mapping[str, Any], framework: str, release: str) -> str:
        """Why a release of a framework is known to refuse a case: it appeared before a value. Empty where it is not."""
        for name, axis in self.axes.items():
            first = axis.since.get(str(case.get(name)), {}).get(framework)
            if first and Version(release) < Version(first):
                return f"{name} {case[name]!r}: {framework} {release} has none ({first} and newer do)"
        return ""

    def known_axis(self, name: str) -> None:
        """Raise ValueError where files cannot give this axis to a case."""
        if name not in self.selectable:
            raise ValueError(str(unknown("axis", name, self.selectable)))

    def known_quantity(self, name: str) -> None:
        """Raise ValueError for an unknown quantity."""
        if name not in self.quantities:
            raise ValueError(str(unknown("quantity", name, self.quantities)))

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise ValueError for the first value that its axis does not have, with the number of further such values."""
        problems = {name: problem for name, value in values.items() if (problem := self.axes[name].problem(value))}
        for name, problem in problems.items():
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise ValueError(f"key '{name}': {problem}{more}")

    def case(self, values: Mapping[str, Any]) -> Case:
        """The case with these values by axis, in any order; None stands for no value.

        Raises ValueError for an unknown axis or value, and where the suite or the protocol is missing.
        """
        given = {name: value for name, value in values.items() if value is not None}
        for name in given:
            if name not in self.axes:
                raise ValueError(str(unknown("axis", name, self.axes)))
        for name in (SUITE, PROTOCOL):
            if name not in given:
                raise ValueError(f"key '{name}' is missing; add it")
        self.check(given)
        ordered = tuple((name, given[name]) for name in self.axes if name in given)
        of_id = tuple((name, value) for name, value in ordered if self.axes[name].is_said(value, "id"))
        return Case(of_id, ordered, self._of_process(given))

    def cases(self, axes: Mapping[str, Sequence[Value]]) -> Iterator[Case]:
        """The product of the axes; the last axis changes fastest. Raises ValueError as `case` does."""
        known = {SUITE, PROTOCOL} <= axes.keys() <= self.axes.keys()
        if not known or any(self.axes[name].problem(value) for name, values in axes.items() for value in values):
            for values in itertools.product(*axes.values()):
                yield self.case(dict(zip(axes, values, strict=True)))
            return
        # All values were checked above, once: suites have thousands of cases.
        order = [list(axes).index(name) for name in self.axes if name in axes]
        items = [
            [((name, value), self.axes[name].is_said(value, "id")) for value in values] for name, values in axes.items()
        ]
        of_process = self._of_process(axes)
        for combined in itertools.product(*items):
            ordered = [combined[index] for index in order]
            said = tuple(item for item, said in ordered if said)
            yield Case(said, tuple(item for item, _ in ordered), of_process)

    def _of_process(self, names: Iterable[str]) -> tuple[Axis, ...]:
        return tuple(axis for name in names if (axis := self.axes[name]).is_of_process)

    def completed(self, cases: Mapping[_Key, Mapping[str, Value]]) -> dict[_Key, dict[str, Value]]:
        """The cases with usual values that ids leave out. Keys are any; a case is its values by axis.

        A case gets the axes that the file of its suite describes, and those that another case of its suite has.
        """
        usual = {name: value for name, value in self.usual.items() if value is not None}
        used: dict[Value | None, set[str]] = {}
        for axes in cases.values():
            brought = self.brought.get(str(axes.get(SUITE)), Brought()).axes
            used.setdefault(axes.get(SUITE), set()).update(usual.keys() & {*axes, *brought})
        return {
            key: {**axes, **{name: usual[name] for name in used[axes.get(SUITE)] if name not in axes}}
            for key, axes in cases.items()
        }

    def of(self, cases: Iterable[Mapping[str, Value]]) -> "Vocabulary":
        """The vocabulary with the axes of `everywhere` and of these cases. No file needs to describe these axes."""
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

    def batch_of(self, suite: str) -> str:
        """What a suite's batches are of, in the active language: images, or what its file says."""
        of = self.brought.get(suite, Brought()).batch_of
        return in_language(of) if of else t("images")

    def made_of(self, suite: str) -> list[Quantity]:
        """The quantities that workloads of a suite send: those of all suites, and those that its file describes."""
        own = self.brought.get(suite, Brought()).quantities
        others = {name for brought in self.brought.values() for name in brought.quantities} - own
        return [quantity for name, quantity in self.quantities.items() if quantity.origin and name not in others]


def vocabulary(suites: Path) -> Vocabulary:
    """The vocabulary of the files in suites/. Raises UserError for a wrong file of axes, quantities or a network.

    A suite whose file is wrong, or describes what another file describes differently, is named and left out.
    """
    paths = [*sorted(suites.glob("[!.]*.toml")), *sorted((suites / "workloads" / "networks").glob("[!.]*.json"))]
    states = [(path, path.stat() if path.exists() else path.lstat()) for path in paths]  # a link may lead nowhere
    frameworks = frozenset(path.parent.name for path in (suites / "workloads" / "frameworks").glob("*/__init__.py"))
    found = _read(suites, tuple((path, state.st_mtime_ns, state.st_size) for path, state in states), frameworks)
    for problem in found.wrong.values():
        leave_out(problem)
    return found


@lru_cache(maxsize=8)
def _read(suites: Path, files: tuple[tuple[Path, int, int], ...], frameworks: frozenset[str]) -> Vocabulary:
    """The vocabulary. Files with the same time and size are read only once."""
    networks = {path.stem: _facts(path) for path, *_ in files if path.suffix == ".json"}
    axes_file, quantities_file = suites / AXES_FILE, suites / QUANTITIES_FILE
    axes, quantities = _Collected("axis", Axis), _Collected("quantity", Quantity)
    axes.add(axes_file, "", _with_networks(toml.read(axes_file), networks))
    quantities.add(quantities_file, "", toml.read(quantities_file))
    _check_together(axes_file, axes, quantities)
    everywhere, brought, wrong = frozenset(axes.by_name), {}, {}
    for path in (path for path, *_ in files if path.suffix == ".toml" and path not in (axes_file, quantities_file)):
        before = axes.copy(), quantities.copy()
        try:
            brought[path.stem] = _brought(path, axes, quantities)
        except UserError as error:
            wrong[path] = str(error)
            axes, quantities = before
    each = {quantity.name: quantity for described in quantities.by_name.values() for quantity in described.each()}
    ordered = _in_order(axes.by_name, everywhere)
    return Vocabulary(ordered, each, everywhere, brought, frameworks, suites.resolve(), networks, wrong)


def _brought(path: Path, axes: "_Collected[Axis]", quantities: "_Collected[Quantity]") -> Brought:
    """Add what the file of a suite describes. Raises UserError naming file and key."""
    suite = toml.read(path)
    new_axes, new_quantities = suite.get("new_axes", {}), suite.get("new_quantities", {})
    axes.add(path, "new_axes.", new_axes)
    quantities.add(path, "new_quantities.", new_quantities, as_printed="experiment" in suite)
    _check_together(path, axes, quantities)
    given = {"axes": [*new_axes], "quantities": [*new_quantities]}
    return toml.made(str(path), {**given, "batch_of": suite.get("batch_of"), "source": suite.get("source")}, Brought)


def _facts(path: Path) -> NetworkFacts:
    """The facts of a network. Raises UserError where its file has none, and for a layer that no framework builds."""
    described = read_json(path)
    for layer in _layers(described.get("layers")):
        values = {layer} if isinstance(layer, str) else {*layer}
        kind = next((each for each in _LAYERS if each in values), "")
        if not kind or (wrong := values - {kind} - _LAYERS[kind]):
            what = f"unknown {min(wrong)!r}" if kind else "unknown layer"
            raise UserError(f"{path}: {what} in {json.dumps(layer)}; layers: {', '.join(_LAYERS)}")
    shape, parameters = described.get("shape"), described.get("parameters")
    if not (isinstance(shape, list) and shape and isinstance(shape[0], int) and isinstance(parameters, int)):
        raise UserError(f"{path}: give shape = [height, width, channels], and the number of parameters")
    multiply_adds = described.get("multiply_adds")
    return NetworkFacts(parameters, shape[0], multiply_adds if isinstance(multiply_adds, int) else 0)


def _layers(described: Any) -> Iterator[Any]:
    """Every layer of a network's description, those of repetitions and branches too."""
    for layer in described if isinstance(described, list) else ():
        inner = [layer.get(key) for key in ("layers", "residual", "shortcut")] if isinstance(layer, dict) else []
        if isinstance(layer, str) or (isinstance(layer, dict) and layer and "times" not in layer):
            yield layer
        for each in inner:
            yield from _layers(each)


def _with_networks(tables: Mapping[str, Any], networks: Iterable[str]) -> dict[str, Any]:
    """The tables of axes, with the names of networks among the values of those that have them."""
    return {
        name: {**table, "values": list(dict.fromkeys([*table.get("values", ()), *networks]))}
        if isinstance(table, dict) and table.get("networks") is True
        else table
        for name, table in tables.items()
    }


class _Collected(Generic[_Described]):
    """Descriptions of axes or of quantities, with the file of each."""

    def __init__(self, kind: str, model: type[_Described]) -> None:
        self._kind = kind
        self._model: type[_Described] = model
        self.files: dict[str, Path] = {}
        self.by_name: dict[str, _Described] = {}

    def copy(self) -> "_Collected[_Described]":
        copied = _Collected(self._kind, self._model)
        copied.files, copied.by_name = dict(self.files), dict(self.by_name)
        return copied

    def add(self, path: Path, prefix: str, tables: Any, *, as_printed: bool = False) -> None:
        """Add the tables of a file. Raises UserError naming file and key; both files where descriptions differ.

        as_printed: whether metrics of the file are numbers that a script prints; then their labels say so.
        """
        for name, table in tables.items() if isinstance(tables, dict) else ():
            if not isinstance(table, dict):
                raise UserError(f"{path}: {prefix}{name}: give a table that describes the {self._kind}")
            described = toml.made(f"{path}: {prefix}{name}", {**table, "name": name}, self._model)
            if as_printed and isinstance(described, Quantity):
                described = described.as_printed()
            if self.by_name.setdefault(name, described) != described:
                raise UserError(
                    f"{path}: {self._kind} '{name}' is described differently in {self.files[name]}: give it another "
                    "name, or describe it once"
                )
            self.files.setdefault(name, path)


def _check_together(path: Path, every: "_Collected[Axis]", quantities: "_Collected[Quantity]") -> None:
    """Raise UserError where a name is of both, `over` is no axis of numbers, or `drawn_with` is no chart.

    path: the file that was added last.
    """
    axes = every.by_name
    for name in sorted(axes.keys() & quantities.by_name.keys()):
        raise UserError(f"{path}: '{name}' is an axis and a quantity: give one of them another name")
    drawn = [name for name, quantity in quantities.by_name.items() if quantity.over]
    for name, quantity in quantities.by_name.items():
        where = f"{quantities.files[name]}: quantity '{name}'"
        if quantity.over and not (quantity.over in axes and axes[quantity.over].is_number):
            numbers = [axis for axis in axes if axes[axis].is_number]
            raise UserError(f"{where}: over: {unknown('axis of numbers', quantity.over, numbers)}")
        if quantity.drawn_with and quantity.drawn_with not in drawn:
            raise UserError(f"{where}: drawn_with: {unknown('chart of', quantity.drawn_with, drawn)}")


def _in_order(axes: Mapping[str, Axis], everywhere: frozenset[str]) -> dict[str, Axis]:
    """The axes in canonical order, on which ids depend: as in suites/axes.toml, then the others by name."""
    first = {name: axis for name, axis in axes.items() if name in everywhere}
    return {**first, **dict(sorted((name, axis) for name, axis in axes.items() if name not in everywhere))}
