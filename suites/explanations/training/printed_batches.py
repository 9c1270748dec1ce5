"""Printed times of steps that do not grow with their batch, held against the same steps here.

One machine is so many times as fast as another: where it takes many more times as long for a printed batch than for
the smallest, the printed batch was not computed as it is called, or other machines measured it.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

from tsuishi.base.language import prose, t
from tsuishi.estimates.printed_doubts import PrintedCell, independent_of_batch
from tsuishi.report.parts.compared_times import Timed, compared, is_open
from tsuishi.report.parts.explanation import Paragraph
from tsuishi.report.parts.wording import amount, case_text, digits
from tsuishi.verdicts.evidence import Evidence

_BATCH, _STEP = "batch_size", "step_s"


def batches_in_doubt(evidence: Evidence, suite: str, steps: Mapping[str, Timed]) -> Iterator[Paragraph]:
    """A paragraph for each network whose printed times do not grow. steps: the measured steps of the suite by case."""
    printed = [
        PrintedCell(number.key, "", "", dict(number.axes), _STEP, number.value)
        for number in evidence.numbers
        if number.quantity == _STEP and number.axes["suite"] == suite
    ]
    for doubt in independent_of_batch(printed):
        doubted, line = {int(cell.axes[_BATCH]): cell.value for cell in doubt.cells}, doubt.cells[0].line
        same = {axis: value for axis, value in doubt.cells[0].axes.items() if axis != _BATCH}
        below = {
            int(cell.axes[_BATCH]): cell.value
            for cell in printed
            if cell.line == line and {**cell.axes, _BATCH: 0} == {**same, _BATCH: 0} and cell.value
        }
        ours = {
            int(axes[_BATCH]): step
            for case_id, step in steps.items()
            if (axes := evidence.axes[case_id]).get("protocol") == "steady"
            and all(axes.get(axis) == value for axis, value in same.items())
        }
        if (text := _text(evidence.hardware[line].title, {**below, **doubted}, set(doubted), ours)) is not None:
            yield Paragraph(t("Printed batches: {case}", case=case_text(same, {"model"})), text)


def _text(theirs: str, printed: Mapping[int, float], doubted: set[int], ours: Mapping[int, Timed]) -> str | None:
    """What the steps here say of the printed ones, by batch; None without a step of both kinds."""
    first = min((batch for batch in printed.keys() - doubted if batch in ours), default=0)
    checked = [batch for batch in sorted(doubted) if batch in ours]
    if not (first and checked):
        return None
    batch, slower = checked[0], ours[first].value / printed[first]
    sizes = sorted(_images(ours, slower * printed[size]) for size in doubted)
    said = [
        t(
            "{hardware}: the printed time of a step is {low} to {high} for batches of {smallest} to {largest}, and "
            "does not grow; for {first} it is {one}.",
            hardware=theirs,
            low=amount(min(printed[size] for size in doubted), "s"),
            high=amount(max(printed[size] for size in doubted), "s"),
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
                low=digits(sizes[0]),
                high=digits(sizes[-1]),
            ),
        ]
    return prose(said)


def _images(ours: Mapping[int, Timed], seconds: float) -> float:
    """The images of a step that takes so long here, on the line through the logarithms of the nearest two batches."""
    points = sorted((math.log(step.value), math.log(batch)) for batch, step in ours.items())
    at = math.log(seconds)
    below, above = next((pair for pair in pairwise(points) if pair[1][0] >= at), (points[-2], points[-1]))
    return math.exp(below[1] + (at - below[0]) * (above[1] - below[1]) / (above[0] - below[0]))
