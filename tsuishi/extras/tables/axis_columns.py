"""Columns of axes and facts, by their headers and cells: networks, batches, devices, hardware, frameworks, words."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from tsuishi.extras.tables.column_maps import UNREAD_WORDS, ColumnMap, Taken
from tsuishi.extras.tables.hardware_names import is_hardware
from tsuishi.extras.tables.printed_quantities import header_words
from tsuishi.extras.tables.printed_values import PrintedValues, framework_words, named_framework
from tsuishi.specs.case import ALONE, BATCH_SIZE, DEVICES, MODEL, STRATEGY
from tsuishi.specs.device_counts import counted_hardware
from tsuishi.specs.numerals import number_in
from tsuishi.specs.printed_table import FRAMEWORK, HARDWARE, PARAMETERS, WORDS, Axes, PrintedColumn
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.specs.zoo_names import names_of

_PER_DEVICE, _PER_NODE = "batch size of a device", "devices of a node"

# Headers of other things than axes, in lower case.
_HEADERS = {
    _PER_DEVICE: r"(?:batch ?size|batch|bs) ?(?:/|per) ?(?:gpu|device|card)|images ?/ ?gpu"
    r"|local (?:batch ?size|batch|bs)",
    _PER_NODE: r"(?:gpus?|devices|cards) ?(?:/|per) ?node|gpu num per node|(?:num|n) gpus per node",
    PARAMETERS: r"(?:#\s?)?param(?:eter)?s?(?: count)?(?: ?\(m\))?|num param(?:eter)?s",
}
# Headers of columns with the hardware of a row.
HARDWARE_HEADER = re.compile(
    r"(?:(?:gpus?|devices?|hardware|host|machine|system|platform|cards?|accelerator|processor|cpu)"
    r"(?: (?:model|name|type))?)?"
)
# Networks have more parameters: smaller numbers are millions.
_FEWEST_PARAMETERS = 1e5
# A smaller number counts devices; a larger is the name of a card: 1080, 3090.
_FEWEST_OF_A_NAME = 750
# Cells of rows that are no speeds, in a table whose columns are networks or cards.
_OTHER_ROW = re.compile(
    r"^(?:batch ?size|optimi[sz]er|learning rate|(?:peak |gpu )?memory|accuracy|param\w*|flops|top ?-?[15])\b"
)
# Cells that say that something was not there.
_NONE = re.compile(r"none|no|n/?a|off|false|without|-|—|x|✗|0")


def take_axis(proposed: ColumnMap, name: str, cells: Sequence[str], named: PrintedValues, words: Vocabulary) -> bool:
    """Take a column for an axis or a fact; whether it is one."""
    column = _Column(proposed, name, cells, named, words)
    if column.are_networks:
        proposed.library = column.library or proposed.library
        proposed.take(PrintedColumn(name=name, holds=MODEL), column.why_networks)
        return True
    if column.are_numbers_of_cards:
        proposed.take(PrintedColumn(name=name, holds=HARDWARE), "numbers of cards")
        return True
    if not column.holds or column.is_refuted:
        return False
    if column.holds == MODEL:
        proposed.library = column.library or proposed.library
    proposed.batch_per_device |= column.holds == _PER_DEVICE
    proposed.devices_per_node |= column.holds == _PER_NODE
    proposed.take(*column.taken)
    return True


class _Column:
    """A column that may be of an axis or a fact."""

    def __init__(
        self, proposed: ColumnMap, name: str, cells: Sequence[str], named: PrintedValues, words: Vocabulary
    ) -> None:
        self._proposed, self._name, self._cells, self._named, self._words = proposed, name, cells, named, words
        unknown = [cell for cell in cells if named(MODEL, cell) is None]
        self._known = len(cells) - len(unknown)
        self.library, self._of_library = named.library_of(unknown)
        self._printed = [number_in(cell, proposed.decimal) for cell in cells]
        self._numbers = list(filter(None, self._printed))

    @property
    def are_networks(self) -> bool:
        """Whether most cells are networks, whatever the header says."""
        most = (self._known + self._of_library) * 2 > len(self._cells)
        return most and not self._numbers and not self._proposed.holds(MODEL)

    @property
    def why_networks(self) -> str:
        """The evidence for networks."""
        why = f"{self._known} of {len(self._cells)} cells are networks here"
        return f"{why}, {self._of_library} more of {names_of(self.library)[0]}" if self.library else why

    @cached_property
    def _by_cells(self) -> str:
        return "" if self._numbers else self._named.axis_of([*filter(None, self._cells)])

    @cached_property
    def holds(self) -> str:
        """What the cells, or the header, say that it holds; empty without, and where another column holds that."""
        headers = {**_HEADERS, **{axis: about.headers for axis, about in self._words.axes.items() if about.headers}}
        plain = header_words(self._name)
        found = self._by_cells or next((holds for holds, header in headers.items() if re.fullmatch(header, plain)), "")
        return "" if self._proposed.holds(found) else found

    @property
    def are_numbers_of_cards(self) -> bool:
        """Whether a column of GPUs has the numbers of their names: 1080, 3090."""
        smallest = min(self._numbers, default=0.0)
        return self.holds == DEVICES and smallest >= _FEWEST_OF_A_NAME and not self._proposed.holds(HARDWARE)

    @property
    def is_refuted(self) -> bool:
        """Whether the cells contradict the header.

        A column "Model" may be of processors, a column "GPU" of their names or indices, a column "batch" of times.
        """
        holds, numbers = self.holds, self._numbers
        axis = self._words.axes.get(holds)
        if self._named.switch(self._name, [*filter(None, self._cells)]):  # "AMP", True or False
            return True
        if axis and not axis.is_number and numbers:  # "16bit" is a number with a unit elsewhere
            return not all(holds in self._named.within(cell)[0] for cell in self._cells)
        if holds in (BATCH_SIZE, _PER_DEVICE, _PER_NODE, DEVICES) or (axis and axis.is_of_process):
            no_count = holds == DEVICES and (0.0 in self._printed or max(numbers, default=0.0) >= _FEWEST_OF_A_NAME)
            return not numbers or no_count
        if holds == MODEL and not self._known:
            of_hardware = sum(map(is_hardware, self._cells)) * 2 > len(self._cells)
            return of_hardware or header_words(self._name) in ("architecture", "arch", "name")
        if holds == "mode":  # "Object Detection", "Sync"
            return all(self._named(holds, cell) is None for cell in self._cells)
        return holds == PARAMETERS and not numbers  # "Device: CPU, ..."

    @property
    def taken(self) -> tuple[PrintedColumn, str]:
        """The column as it is taken, and why."""
        if self.holds == PARAMETERS:
            millions = bool(self._numbers) and max(self._numbers) < _FEWEST_PARAMETERS
            why = f"the largest is {max(self._numbers, default=0):g}: millions" if millions else "the header"
            return PrintedColumn(name=self._name, holds=PARAMETERS, scale=1e6 if millions else 1.0), why
        if self.holds == _PER_DEVICE:
            return PrintedColumn(name=self._name, holds=BATCH_SIZE), "the header; times the devices"
        if self.holds == _PER_NODE:
            return PrintedColumn(name=self._name, holds=DEVICES), "the header; times the nodes"
        alone = [text for text in self._cells if number_in(text, self._proposed.decimal) == 1]
        also: dict[str, Axes] = {text: {STRATEGY: ALONE} for text in alone if self.holds == DEVICES}
        why = "its cells" if self._by_cells else "the header"
        return PrintedColumn(name=self._name, holds=self.holds, also=also), why


def take_words(proposed: ColumnMap, name: str, cells: Sequence[str], named: PrintedValues) -> None:
    """Take a column of words for the hardware or the framework of its row, for several axes, or for nothing."""
    known = sum(map(is_hardware, cells))
    texts = list(dict.fromkeys(filter(None, cells)))
    said = {text: None if _OTHER_ROW.search(text.lower()) else named.facts_of_cell(text) for text in texts}
    axes = {axis for facts in said.values() if facts for axis in facts}
    frameworks = {text: named_framework(text) for text in texts if framework_words(text)}
    names = sum(is_hardware(cell) and ":" not in cell for cell in cells)
    if not proposed.holds(HARDWARE) and (
        names * 2 > len(cells) or (known and HARDWARE_HEADER.fullmatch(header_words(name)))
    ):
        _take_hardware(proposed, name, cells, f"{known} of {len(cells)} cells name hardware")
    elif frameworks and not proposed.holds(FRAMEWORK):
        ours = {text: of for text, of in frameworks.items() if of and said[text] is not None}
        also = {text: facts for text in ours if (facts := said[text])}
        column = PrintedColumn(name=name, holds=FRAMEWORK, frameworks=ours, also=also)
        proposed.take(column, f"{len(frameworks)} of {len(texts)} texts name frameworks")
    elif switched := named.switch(name, texts):
        proposed.take(PrintedColumn(name=name, holds=WORDS, also=switched), "yes or no")
    elif re.fullmatch("cudnn(?: version)?", header_words(name)):  # what ran without it is no case here
        with_it: dict[str, Axes] = {text: {} for text in texts if not _NONE.fullmatch(text.lower())}
        proposed.take(PrintedColumn(name=name, holds=WORDS, also=with_it), "what has cuDNN")
    elif (axes or None in said.values()) and not any(map(proposed.holds, axes)):
        also = {text: facts for text in ("", *texts) if (facts := said.get(text, {})) is not None}
        proposed.take(
            PrintedColumn(name=name, holds=WORDS, also=also),
            "cells are values of " + (", ".join(sorted(axes)) or "what no case here has"),
        )
    else:
        proposed.evidence.append(Taken(name or "(no header)", "", UNREAD_WORDS))


def _take_hardware(proposed: ColumnMap, name: str, cells: Iterable[str], why: str) -> None:
    """Take a column for the hardware of its row; counts in it, as 8x A100, are devices where no column has these."""
    counts = {text: counted_hardware(text)[0] for text in cells}
    also: dict[str, Axes] = {}
    if any(counts.values()) and not proposed.holds(DEVICES):
        also = {
            text: {DEVICES: count} if count > 1 else {DEVICES: 1, STRATEGY: ALONE}
            for text, found in counts.items()
            for count in [max(found, 1)]
        }
        why += ", and counts of devices"
    proposed.take(PrintedColumn(name=name, holds=HARDWARE, also=also), why)
