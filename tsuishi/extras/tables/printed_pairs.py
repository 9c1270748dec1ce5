"""Pairs of printed numbers that differ on one axis, and the questions that a table asks by them."""

import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tsuishi.extras.tables.adoption import STEADY, Adoption
from tsuishi.extras.tables.printed_quantities import IMAGES, STEP
from tsuishi.specs.case import BATCH_SIZE, DEVICES, IMAGE_SIZE, MODEL, NODES, PROTOCOL, STRATEGY, Value
from tsuishi.specs.vocabulary import Vocabulary

# The most questions of a suite, and the worth of the first.
_QUESTIONS, _WORTH = 4, 6.0
# An axis with more pairs is asked nothing: they grow with the square of a table.
_MOST_PAIRS = 100_000
Axes = Mapping[str, Value]
_Line = tuple[str, str, str]


@dataclass(frozen=True)
class PrintedPair:
    """Two numbers of one hardware and framework that differ on `axis`; of devices, on what a number of them brings.

    shared: the axes that both have. faster: the images a second of the case `of` over those of the case `to`, `rate`.
    """

    axis: str
    shared: Axes
    of: Axes
    to: Axes
    faster: float
    rate: float
    quantity: str
    hardware: str
    framework: str

    def turned(self) -> "PrintedPair":
        """The pair with its sides exchanged."""
        return replace(self, of=self.to, to=self.of, faster=1 / self.faster, rate=self.faster * self.rate)

    @property
    def scope(self) -> dict[str, Value]:
        """The shared axes without the network and the size of its images."""
        return {axis: value for axis, value in self.shared.items() if axis not in (MODEL, IMAGE_SIZE)}

    @property
    def sides(self) -> tuple[Any, ...]:
        """What is compared, at any batch size."""
        sides = (tuple(item for item in side.items() if item[0] != BATCH_SIZE) for side in (self.of, self.to))
        return self.quantity, self.framework, *sides

    @property
    def where(self) -> tuple[Any, ...]:
        """The scope, and the batch sizes."""
        return tuple(self.scope.items()), tuple(self.of.items()), tuple(self.to.items())


def printed_pairs(
    adoption: Adoption, words: Vocabulary, axes: Collection[str], without: Collection[str] = ()
) -> list[list[PrintedPair]]:
    """The pairs of each axis that has any, the most first. without: places of numbers that are left out."""
    lines: dict[_Line, list[tuple[Axes, float]]] = defaultdict(list)
    for table in adoption.numbers(words):
        for number, (case, readings) in enumerate(table.cases()):
            for quantity in (IMAGES, STEP):
                if quantity in readings and table.printed(number, quantity)[0] not in without:
                    value = statistics.median(readings[quantity])
                    if value and BATCH_SIZE in case:
                        rate = value if quantity == IMAGES else int(case[BATCH_SIZE]) / value
                        lines[quantity, table.hardware, table.framework or ""].append((case, rate))
                    break
    found = [_pairs_on(axis, lines, words) for axis in axes]
    return sorted(filter(None, found), key=len, reverse=True)


def _pairs_on(axis: str, lines: Mapping[_Line, Sequence[tuple[Axes, float]]], words: Vocabulary) -> list[PrintedPair]:
    """The pairs on an axis. Devices share a batch, or have batches of one size: as the table has more pairs."""
    if axis != DEVICES:
        return _pairs(axis, lines, words, lambda case: _without(case, axis))
    shared = _pairs(axis, lines, words, lambda case: _without(case, DEVICES, STRATEGY))
    own = _pairs(
        axis,
        lines,
        words,
        lambda case: (*_without(case, DEVICES, STRATEGY, BATCH_SIZE), int(case[BATCH_SIZE]) / int(case[DEVICES])),
    )
    return max(shared, own, key=len)


def _without(case: Axes, *axes: str) -> tuple[Any, ...]:
    return tuple(sorted(item for item in case.items() if item[0] not in axes))


def _pairs(
    axis: str,
    lines: Mapping[_Line, Sequence[tuple[Axes, float]]],
    words: Vocabulary,
    rest: Callable[[Axes], tuple[Any, ...]],
) -> list[PrintedPair]:
    """The pairs of numbers that agree on `rest`; empty for more than _MOST_PAIRS."""
    pairs = [*itertools.islice(_every_pair(axis, lines, words, rest), _MOST_PAIRS + 1)]
    return pairs if len(pairs) <= _MOST_PAIRS else []


def _every_pair(
    axis: str,
    lines: Mapping[_Line, Sequence[tuple[Axes, float]]],
    words: Vocabulary,
    rest: Callable[[Axes], tuple[Any, ...]],
) -> Iterator[PrintedPair]:
    values = words.axes[axis].values

    def place(of: tuple[Axes, float]) -> int:
        value = of[0][axis]
        return int(value) if words.axes[axis].is_number else [*values, value].index(value)

    for (quantity, *line), cases in lines.items():
        groups: dict[tuple[Any, ...], list[tuple[Axes, float]]] = defaultdict(list)
        for case, rate in cases:
            if axis in case and (axis != MODEL or case[MODEL] in words.networks):
                groups[rest(case)].append((case, rate))
        for group in groups.values():
            for (to, slow), (of, fast) in itertools.combinations(sorted(group, key=place), 2):
                if of[axis] != to[axis]:
                    shared = {name: value for name, value in of.items() if to.get(name) == value}
                    ours, theirs = ({name: case[name] for name in case if name not in shared} for case in (of, to))
                    yield PrintedPair(axis, shared, ours, theirs, fast / slow, slow, quantity, *line)


def grouped(pairs: Iterable[PrintedPair], by: str) -> list[list[PrintedPair]]:
    """The pairs in groups that agree on a property, the largest group first."""
    groups: dict[Any, list[PrintedPair]] = defaultdict(list)
    for pair in pairs:
        groups[getattr(pair, by)].append(pair)
    return sorted(groups.values(), key=len, reverse=True)


def settings(pairs: Iterable[PrintedPair], words: Vocabulary) -> list[list[PrintedPair]]:
    """The pairs by their settings: most pairs first, then those with the most usual values and the smallest batch."""

    def rank(group: Sequence[PrintedPair]) -> tuple[int, int, int]:
        case = {**group[0].scope, **group[0].to}
        unusual = sum(value != words.axes[axis].usual for axis, value in case.items() if words.axes[axis].usual)
        return -len(group), unusual, int(case[BATCH_SIZE])

    return sorted(grouped(pairs, "where"), key=rank)


def said(axes: Axes, words: Vocabulary, always: str = "") -> str:
    """Values in English; those that go without saying are left out, but for the axis `always`, which is named."""
    texts = []
    for name, value in axes.items():
        axis = words.axes[name]
        if name == always or axis.is_said(value, "words"):
            named = {"en": f"{axis.label['en']} {{value}}"}
            text = (name == always and axis.values and named) or axis.words_of.get(str(value)) or axis.words or named
            texts.append(text["en"].format(value=value))
    return ", ".join(texts)


def proposed_questions(adoption: Adoption, words: Vocabulary) -> list[dict[str, Any]]:
    """A question for each axis that the table compares: of the values, and where, it has the most pairs."""
    questions = []
    compared = [axis for axis in words.line_axes if axis != NODES]
    for worth, pairs in enumerate(printed_pairs(adoption, words, compared)[:_QUESTIONS]):
        alike = settings(grouped(pairs, "sides")[0], words)[0]
        pair = max(alike, key=lambda pair: (pair.shared[MODEL] in words.networks, pair.rate))  # costs least
        networks = {**pair.scope, MODEL: pair.shared[MODEL]}
        sides = [said(side, words, pair.axis) for side in (pair.of, pair.to)]
        questions.append(
            {
                "id": pair.axis,
                "title": f"{said(networks, words)}: {' against '.join(sides)}",
                "worth": _WORTH - worth,
                "quantity": IMAGES,
                "cases": [{PROTOCOL: STEADY[1], **networks}],
                "of": dict(pair.of),
                "to": dict(pair.to),
            }
        )
    return questions
