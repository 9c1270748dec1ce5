"""A printed number that can be checked here."""

import re
from dataclasses import dataclass

from tsuishi.specs.case import SUITE, Value

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
