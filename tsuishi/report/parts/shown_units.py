"""The units that readers see: ms for short times, GFLOP/s for large rates. Data keep the unit of their quantity."""

import statistics
from collections.abc import Iterable
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit that readers see. `factor`: what a value in the unit of the data is multiplied by."""

    name: str = ""
    factor: float = 1.0

    def of(self, value: float | None) -> float | None:
        """A value of the data in this unit; None for None."""
        return None if value is None else value * self.factor


PLAIN = Unit()

_PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("", 1.0))
_LARGE = {unit: tuple((f"{prefix}{unit}", size) for prefix, size in _PREFIXES) for unit in ("FLOP/s", "B/s")}
# The units of each unit of the data, with their size in it; the largest first.
_READABLE = {"s": (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)), **_LARGE}


def readable(unit: str, values: Iterable[float | None]) -> Unit:
    """The unit for these values, which are in `unit`: the largest in which half of them are 1 or more.

    >>> readable("s", [0.0123, 0.4, 1.7]), readable("FLOP/s", [2.1e11]), readable("images/s", [0.5])
    (Unit(name='ms', factor=1000.0), Unit(name='GFLOP/s', factor=1e-09), Unit(name='images/s', factor=1.0))
    """
    known = [abs(value) for value in values if value]
    if unit not in _READABLE or not known:
        return Unit(unit)
    middle = statistics.median_high(known)
    name, size = next((each for each in _READABLE[unit] if middle >= each[1]), _READABLE[unit][-1])
    return Unit(name, 1 / size)
