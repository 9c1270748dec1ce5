"""Which printed numbers may be of a case, and which cases of a printed number."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from tsuishi.specs.case import MODEL, PROTOCOL, Value
from tsuishi.specs.selections import Selector
from tsuishi.specs.source import Number

_Of = TypeVar("_Of")


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
