"""What tables do not say, as questions in their own words; each answer is an option of adopt and check."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from tsuishi.extras.tables.adoption import AdoptedTable, Adoption, number_cells
from tsuishi.extras.tables.printed_quantities import is_of_other_quantity
from tsuishi.specs.case import BATCH_SIZE, IMAGE_SIZE, MODEL
from tsuishi.specs.grids import SECTION
from tsuishi.specs.printed_table import HARDWARE, NOTHING, TWO_READINGS
from tsuishi.specs.vocabulary import Vocabulary


@dataclass(frozen=True)
class OptionAnswer:
    """An answer in words, and the option with its value; where the value ends with '=', a person adds the rest.

    tables: those that it is of, where the option itself cannot name them and would change others.
    """

    words: str
    option: str
    value: str
    tables: tuple[int, ...] = ()

    @property
    def typed(self) -> str:
        """The option as it is typed."""
        of_tables = f"--tables {','.join(map(str, self.tables))} " if self.tables else ""
        value = self.value + ("..." if self.value.endswith("=") else "")
        return f"{of_tables}--{self.option} {shlex.quote(value)}" if value else f"{of_tables}--{self.option}"


# The units that answers name first, in words.
_UNITS = (("images a second", "images/s"), ("milliseconds a batch", "ms"), ("milliseconds an image", "ms/image"))
_IN_PLACE_OF_UNIT = ("leave it out", NOTHING)
# The question and its answer, by words in the reason that refuses a whole table.
_OF_ALL_DEVICES = OptionAnswer("images of a step, over all devices", "set", f"{BATCH_SIZE}=")
_MISSING = (
    ("no network", "which network?", (OptionAnswer("its name", "set", f"{MODEL}="),)),
    ("no batch size", "which batch size?", (_OF_ALL_DEVICES,)),
    (
        "no mode",
        "training or inference?",
        tuple(OptionAnswer(mode, "set", f"mode={mode}") for mode in ("training", "inference")),
    ),
    (
        "may be of each device",
        "is the batch size of each device, or of all?",
        (OptionAnswer("of each", "per-device", ""), _OF_ALL_DEVICES),
    ),
    ("of a size that is not said", "images of how many pixels?", (OptionAnswer("of a side", "set", f"{IMAGE_SIZE}="),)),
)
# So many columns of a table are asked for one after another.
_MOST_COLUMNS = 4


@dataclass(frozen=True)
class OpenQuestion:
    """A question about tables, by number; `numbers` wait for its answer, or are read by an assumption meanwhile.

    example: words of the first table that it is about.
    """

    text: str
    answers: tuple[OptionAnswer, ...]
    numbers: int
    tables: tuple[int, ...] = ()
    example: str = ""

    @property
    def said(self) -> str:
        """The question with its example."""
        return f"{self.text} ({self.example})" if self.example else self.text

    @property
    def where(self) -> str:
        """Which tables it is about."""
        return f"table{'s' * (len(self.tables) > 1)} {', '.join(map(str, self.tables))}"


def open_questions(adoption: Adoption, words: Vocabulary) -> list[OpenQuestion]:
    """The open questions of all tables; most numbers wait for the first.

    A question of several tables is asked once. Where other tables have no such question, its options name its tables.
    """
    asked = [question for table in adoption.tables for question in _of_table(table, words)]
    asked.sort(key=lambda each: (each.text, str(each.answers)))
    found = []
    for (_, answers), group in groupby(asked, key=lambda each: (each.text, each.answers)):
        alike = list(group)
        numbers = tuple(sorted({number for each in alike for number in each.tables}))
        if any(number_cells(table) for table in adoption.tables if table.place not in numbers):
            answers = tuple(
                replace(each, value=",".join(f"{number}:{each.value}" for number in numbers))
                if each.option in ("columns", "set")
                else replace(each, tables=numbers)
                for each in answers
            )
        found.append(replace(alike[0], answers=answers, numbers=sum(each.numbers for each in alike), tables=numbers))
    return sorted(found, key=lambda each: -each.numbers)


def _of_table(table: AdoptedTable, words: Vocabulary) -> Iterator[OpenQuestion]:
    """The next questions of a table: further ones follow from the answers."""
    here = (table.place,)
    if not number_cells(table) and not table.reading.numbers:
        return
    if table.unread:
        for question in _of_unread(table, words):
            yield replace(question, tables=here)
        return
    if open_signs := [cell.what for cell in table.reading.refused if cell.why == TWO_READINGS]:
        signs = OptionAnswer("a point is the decimal sign", "decimal", "."), OptionAnswer("a comma is", "decimal", ",")
        yield OpenQuestion("which decimal sign?", signs, len(open_signs), here, example=open_signs[0])
    apart = [cell.what for cell in table.reading.refused if cell.why == "column" and " beside " not in cell.what]
    named = {name for name in dict.fromkeys(apart) if name in table.grid.header and name not in ("", SECTION)}
    axes = {column.name for column in table.proposed.columns}
    for name in sorted(named - axes, key=apart.index):
        answer = OptionAnswer("all rows are readings of one number", "columns", f"{_escaped(name)}={NOTHING}")
        yield OpenQuestion(f'rows differ in column "{name}", which is no axis', (answer,), apart.count(name), here)


def _of_unread(table: AdoptedTable, words: Vocabulary) -> Iterator[OpenQuestion]:
    """What keeps all numbers of a table from being read."""
    waiting = number_cells(table)
    if not any(map(table.proposed.is_quantity, table.proposed.columns)):
        yield from _of_units(table, waiting)
        return
    for refused in dict.fromkeys(table.refused_facts):
        axis, _, printed = refused.partition(", ")[0].partition(" ")
        option, values = ("set", words.axes[axis].values) if axis in words.axes else ("framework", words.frameworks)
        answers = [
            OptionAnswer(str(each), option, f"{axis}={each}" if option == "set" else str(each)) for each in values
        ] or [OptionAnswer("how many", option, f"{axis}=")]
        yield OpenQuestion(f"which {axis} is {printed!r}?", tuple(answers), waiting)
        return
    for why, text, missing in _MISSING:
        if why in table.unread:
            yield OpenQuestion(text, missing, waiting)


def _of_units(table: AdoptedTable, waiting: int) -> Iterator[OpenQuestion]:
    """What the numbers of a table are, where no column of it has a unit."""
    proposed = table.proposed
    if is_of_other_quantity(table.grid.heading):
        return
    has_networks = MODEL in proposed.axes or MODEL in table.named.case
    if not has_networks and not proposed.holds(HARDWARE) and not proposed.cases_without_unit:
        return  # nothing says that it is about speeds
    if cases := proposed.cases_without_unit:
        shown = ", ".join(cases[:_MOST_COLUMNS]) + (", ..." if cases[_MOST_COLUMNS:] else "")
        text = "what are the numbers whose headers are networks, cards or settings?"
        yield OpenQuestion(text, tuple(_units_of("all")), waiting, example=shown)
    for name in [*proposed.contested, *proposed.without_unit][:_MOST_COLUMNS]:
        text = f'what is column {table.grid.header.index(name) + 1}, "{name}"?'
        yield OpenQuestion(text, tuple(_units_of(_escaped(name))), waiting)


def _units_of(name: str) -> Iterable[OptionAnswer]:
    return [OptionAnswer(words, "columns", f"{name}={unit}") for words, unit in (*_UNITS, _IN_PLACE_OF_UNIT)]


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(",", "\\,")
