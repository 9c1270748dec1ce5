"""Printed numbers beside cases: a number that can be checked here, and which numbers may be of a case."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tsuishi.specs.case import MODEL, PROTOCOL, SUITE, Value
from tsuishi.specs.selections import Selector
from tsuishi.specs.source import Number

_Of = TypeVar("_Of")

# What tables call a framework that we call otherwise.
_NAMES = {"torch": "pytorch"}


@dataclass(frozen=True)
class CheckableNumber:
    """A printed number: the cells of its row, its column, its text and place; its case, quantity and value in its unit.

    words: the cells that say its case (of a source, numbers as axis=value), and its hardware. uploads: of a median of
    results that people sent in, their percentiles, in its unit. software: the releases that its table or source says,
    by name. assumed: the axes whose values its table or source does not say. beside: words of its row in columns that
    nobody reads.
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
    uploads: tuple[float, ...] = ()
    assumed: frozenset[str] = frozenset()
    beside: str = ""

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


def of_usual_values(
    found: Sequence[_Of],
    axes: Callable[[_Of], Mapping[str, Any]],
    named: Collection[str],
    usual: Mapping[str, Value | None],
) -> list[_Of]:
    """Of each protocol, those whose axes have usual values but for the axes `named`; of a protocol without such, all.

    A printed number says few axes: a case that departs from the usual in another axis is another case.
    """
    is_usual = Selector(usual=usual, free=named)
    plain = {axes(each).get(PROTOCOL) for each in found if is_usual(axes(each))}
    return [each for each in found if axes(each).get(PROTOCOL) not in plain or is_usual(axes(each))]


def numbers_by_network(numbers: Iterable[Number]) -> dict[Value | None, list[Number]]:
    """The numbers that may be of a network's cases, by network, in their order; by None those that name no network."""
    found: dict[Value | None, list[Number]] = {None: []}
    for number in numbers:
        network = number.axes.get(MODEL)
        for of_network in [found.setdefault(network, [*found[None]])] if network else found.values():
            of_network.append(number)
    return found
