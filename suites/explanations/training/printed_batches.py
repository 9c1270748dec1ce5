"""Printed times of steps that do not grow with their batch, held against the same steps here.

One machine is so many times as fast as another: where it takes many more times as long for a printed batch than for
the smallest, the printed batch was not computed as it is called, or other machines measured it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import pairwise
from typing import Any

from tsuishi.base.language import prose, t
from tsuishi.estimates.printed_doubts import PrintedCell, independent_of
from tsuishi.report.parts.explanation import Paragraph
from tsuishi.report.parts.two_sides import Timed, compared, is_open
from tsuishi.report.parts.wording import amount, case_text, digits
from tsuishi.specs.selections import Selection, Selector
from tsuishi.verdicts.evidence import Evidence

STEP = "step_s"
_BATCH, _MODEL, _PROTOCOLS = "batch_size", "model", ("steady", "literal")
# The measured steps of a suite: the axes of a case, and its step.
Steps = Iterable[tuple[Mapping[str, Any], Timed]]


def batches_in_doubt(evidence: Evidence, suite: str, steps: Steps) -> Iterator[Paragraph]:
    """A paragraph for each network whose printed times do not grow, where the same steps were measured here."""
    measured = list(steps)
    networks = {None, *(axes.get(_MODEL) for axes, _ in measured)}
    printed = [
        PrintedCell(number.key, "", "", number.axes, STEP, number.value)
        for number in evidence.numbers
        if (number.quantity, number.axes["suite"]) == (STEP, suite)
        and number.axes.get(_MODEL) in networks
        and number.value > 0
    ]
    for doubt in independent_of(_BATCH, printed):
        first = doubt.cells[0]
        same = _but_batch(first)
        times = {
            int(cell.axes[_BATCH]): cell.value
            for cell in printed
            if cell.line == first.line and _but_batch(cell) == same
        }
        selection = {axis: (value,) for axis, value in same.items()}
        ours, literal = (_by_batch(measured, {**selection, "protocol": (name,)}, evidence) for name in _PROTOCOLS)
        doubted = {int(cell.axes[_BATCH]) for cell in doubt.cells}
        if (text := _text(evidence.hardware[first.line].title, times, doubted, ours, literal)) is not None:
            yield Paragraph(t("Printed batches: {case}", case=case_text(same, {"model"})), text)


def _by_batch(measured: Steps, selection: Selection, evidence: Evidence) -> dict[int, Timed]:
    selects = Selector(selection, usual=evidence.words.usual)
    return {int(axes[_BATCH]): step for axes, step in measured if selects(axes)}


def _but_batch(cell: PrintedCell) -> dict[str, Any]:
    return {axis: value for axis, value in cell.axes.items() if axis != _BATCH}


def _text(
    theirs: str,
    printed: Mapping[int, float],
    doubted: Set[int],
    ours: Mapping[int, Timed],
    literal: Mapping[int, Timed],
) -> str | None:
    """What the steps here say of the printed ones, by batch; None without a step of both kinds.

    ours: of the steady protocol. literal: as the source's own program says.
    """
    first = min((batch for batch in printed.keys() - doubted if batch in ours), default=0)
    batch = min((batch for batch in doubted if batch in ours), default=0)
    if not (first and batch):
        return None
    of_doubted = [printed[size] for size in doubted]
    said = [
        t(
            "{hardware}: the printed time of a step is {low} to {high} for batches of {smallest} to {largest}, and "
            "does not grow; for {first} it is {one}.",
            hardware=theirs,
            low=amount(min(of_doubted), "s"),
            high=amount(max(of_doubted), "s"),
            smallest=min(doubted),
            largest=max(doubted),
            first=first,
            one=amount(printed[first], "s"),
        ),
        t(
            "Here, {comparison}.",
            comparison=compared(
                ours[batch], ours[first], t("a batch of {size}", size=batch), t("a batch of {size}", size=first)
            ),
        ),
    ]
    if not is_open(ours[batch], ours[first]):
        slower = ours[first].value / printed[first]
        sizes = [_images(ours, slower * seconds) for seconds in of_doubted]
        said += [
            t(
                "This machine takes {slower} times as long as is printed for {first}, and {times} times as long for "
                "{batch}: a machine has one speed, so the printed batch of {batch} is not one of {batch} images, or "
                "another machine measured it.",
                slower=digits(slower),
                times=digits(ours[batch].value / printed[batch]),
                first=first,
                batch=batch,
            ),
            t(
                "At the speed of the first, steps as long as the printed ones have {low} to {high} images here.",
                low=digits(min(sizes)),
                high=digits(max(sizes)),
            ),
        ]
    said += [
        t(
            "The source's own program (`literal`), with the batch size {batch}, takes {seconds} here, {times} times as "
            "long as is printed. In `steady`, {images} images take that time.",
            seconds=amount(literal[label].value, "s"),
            batch=label,
            times=digits(literal[label].value / printed[label]),
            images=digits(_images(ours, literal[label].value)),
        )
        for label in sorted(doubted & literal.keys())
    ]
    return prose(said)


def _images(ours: Mapping[int, Timed], seconds: float) -> float:
    """The images of a step that takes so long here, on the line through the logarithms of the nearest two batches."""
    points = sorted((math.log(step.value), math.log(batch)) for batch, step in ours.items())
    at = math.log(seconds)
    below, above = next((pair for pair in pairwise(points) if pair[1][0] >= at), (points[-2], points[-1]))
    return math.exp(below[1] + (at - below[0]) * (above[1] - below[1]) / (above[0] - below[0]))
