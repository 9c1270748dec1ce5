"""Checks of published numbers before they are believed: impossible by arithmetic, or surprising among the others.

A number that is impossible contradicts other numbers of its table, or the limit of its device. A number that is
surprising may be right: it differs from its neighbours as a lost digit would make it differ, it repeats a number of
another case, it does not depend on an axis on which it has to, or it needs TF32 or Winograd's convolutions and is
printed as fp32. docs/adopt.md counts what these thresholds find.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from tsuishi.specs.case import BATCH_SIZE, CONTEXT_LENGTH, DEVICES, IMAGE_SIZE, MODEL, STRATEGY

_RATE, _STEP = "throughput_images_per_s", "step_s"
# All epochs, the first, and a later epoch.
_TOTAL, _FIRST, _LATER = "total_s", "first_epoch_s", "median_epoch_s"
# Endings of times of work that is the same on any number of devices.
_WHOLE = ("_run_s", "_epoch_s")
# Rate x time may differ from the batch by this share, and by the rounding of the last printed digits: a mean of rates
# is some percent above the rate of the mean time.
_PRODUCT = 0.15
# Rates on N devices up to so many times N are within scatter and better use of caches.
_LINEAR = 1.1
# A rate up to so many times the limit of its device is within turbo clocks.
_LIMIT = 1.25
# By Winograd's algorithm for tiles of 2x2, which libraries use in fp32, a convolution of 3x3 has so many times fewer
# multiplications than are counted (Lavin, Gray, CVPR 2016).
_WINOGRAD = 2.25
# From smallest to largest, the work of a step grows so many times at least, over so many values of an axis; the line
# through the logarithms of the times grows by less than this factor over so much, where the work cannot have grown.
_GROWS, _SIZES, _CONSTANT = 16, 4, 1.25
# Axes with which the work grows: by which power at least, from which value on (less does not fill a device), and in
# words what the values are, and what the numbers may be of.
_OF_WORK = {
    BATCH_SIZE: (1, 16, "batches of {}", "of images or of another batch"),
    IMAGE_SIZE: (2, 128, "images of {} pixels", "of images of one size"),
    CONTEXT_LENGTH: (1, 512, "sequences of {} tokens", "of sequences of one length"),
}
# A cell is an outlier where the columns and the rows most like its own all expect another value: by so many scales, and
# by this factor. A scale is at least the third number; so many columns are compared, over so many rows.
_SCALES, _FACTOR, _LEAST_SCALE = 5.0, 4.0, 0.03
_FEWEST_ROWS, _FEWEST_COLUMNS, _FEWEST_BESIDE = 5, 3, 2
# Of a table with hundreds of rows, each is compared with so many.
_MOST_BESIDE = 60
# It is off by so many times the next cell of such a column: a slip is alone.
_ALONE = 2.2
# The likely value is within this of the expected value, in logarithms.
_LIKELY = 0.3
# A repeated number is surprising where chance repeats numbers in fewer of such tables.
_CHANCE = 0.002

Kind = Literal["impossible", "surprising"]


class PrintedCell(NamedTuple):
    """A published number: `line` is its hardware and software, `place` where it stands, `text` its digits as printed.

    `value` is in the unit of its quantity. `readings`: how many printed numbers it is the median of. `unit`: that in
    which it is printed, by its factor and whether the number is turned round.
    """

    line: str
    place: str
    text: str
    axes: Mapping[str, str | int]
    quantity: str
    value: float
    readings: int = 1
    unit: tuple[float, bool] = (1.0, False)


@dataclass(frozen=True)
class PrintedDoubt:
    """Why numbers are doubted: the suspect first, a check's name, a sentence with the figures, the likely value."""

    kind: Kind
    check: str
    cells: tuple[PrintedCell, ...]
    reason: str
    likely: float | None = None


@dataclass(frozen=True)
class KnownWork:
    """Multiply-adds of an image's forward pass by network, and FLOP/s of a device by line and precision."""

    multiply_adds: Mapping[str, int]
    peak: Mapping[str, Mapping[str, float]]


def by_arithmetic(cells: Sequence[PrintedCell], work: KnownWork) -> list[PrintedDoubt]:
    """The doubts that follow from arithmetic alone: no other doubt says that a number is impossible."""
    return [*_products(cells), *_totals(cells), *_above_limits(cells, work)]


def doubts(cells: Sequence[PrintedCell], work: KnownWork) -> list[PrintedDoubt]:
    """Every doubt about numbers of a source; numbers that are impossible take part in no further check."""
    arithmetic = by_arithmetic(cells, work)
    wrong = {id(cell) for doubt in arithmetic if doubt.kind == "impossible" for cell in doubt.cells}
    rest = [cell for cell in cells if id(cell) not in wrong and cell.value > 0]
    independent = [doubt for axis in _OF_WORK for doubt in independent_of(axis, rest)]
    return [*arithmetic, *_superlinear(rest), *independent, *_outliers(rest), *_repeated(rest)]


def _groups(cells: Iterable[PrintedCell], *without: str) -> Iterator[list[PrintedCell]]:
    """Cells of one line and quantity whose axes agree but for those of `without`."""
    groups: dict[tuple[object, ...], list[PrintedCell]] = defaultdict(list)
    for cell in cells:
        axes = frozenset((axis, value) for axis, value in cell.axes.items() if axis not in without)
        groups[cell.line, cell.quantity, axes].append(cell)
    yield from groups.values()


def _last_digit(text: str) -> float:
    """The share of a printed number that half of its last digit is."""
    digits = "".join(filter(str.isdigit, text)).lstrip("0")
    return 0.5 / float(digits) if digits else 1.0


def _case(cell: PrintedCell) -> tuple[object, ...]:
    return cell.line, frozenset(cell.axes.items())


def _together(cells: Iterable[PrintedCell], *quantities: str) -> Iterator[list[PrintedCell]]:
    """The numbers of a case in all of these quantities, in their order."""
    cases: dict[tuple[object, ...], dict[str, PrintedCell]] = defaultdict(dict)
    for cell in cells:
        if cell.quantity in quantities:
            cases[_case(cell)][cell.quantity] = cell
    for of_case in cases.values():
        if len(of_case) == len(quantities):
            yield [of_case[quantity] for quantity in quantities]


def _totals(cells: Sequence[PrintedCell]) -> Iterator[PrintedDoubt]:
    """Totals that are not the first epoch and the rest, where most rows of a line agree on the number of epochs."""
    lines: dict[str, list[tuple[float, list[PrintedCell]]]] = defaultdict(list)
    for case in _together([cell for cell in cells if cell.value > 0], _TOTAL, _FIRST, _LATER):
        total, first, later = case
        lines[total.line].append((1 + (total.value - first.value) / later.value, case))
    for found in lines.values():
        middle = statistics.median(epochs for epochs, _ in found)
        off = [
            (epochs, case)
            for epochs, case in found
            if middle > 1 and abs(epochs / middle - 1) > _PRODUCT + sum(_last_digit(cell.text) for cell in case)
        ]
        if len(off) * 2 >= len(found) or len(found) < 3:
            continue
        for epochs, (total, first, later) in off:
            # Two rows that agree with each other were trained for another number of epochs.
            if sum(abs(epochs / other - 1) <= _PRODUCT for other, _ in off) > 1:
                continue
            why = (
                f"{total.text} s are {first.text} s and {epochs - 1:.3g} times {later.text} s; "
                f"other rows have {middle - 1:.0f} later epochs"
            )
            likely = first.value + (middle - 1) * later.value
            yield PrintedDoubt("impossible", "total", (total, first, later), why, likely)


def _products(cells: Sequence[PrintedCell]) -> Iterator[PrintedDoubt]:
    """Rates, times and batches that contradict each other: one by one, or a whole line by one factor."""
    lines: dict[str, list[tuple[float, float, PrintedCell, PrintedCell]]] = defaultdict(list)
    sized = [cell for cell in cells if isinstance(cell.axes.get(BATCH_SIZE), int)]
    for rate, step in _together([cell for cell in sized if cell.value > 0], _RATE, _STEP):
        factor = rate.value * step.value / float(rate.axes[BATCH_SIZE])
        open_by = _PRODUCT + _last_digit(rate.text) + _last_digit(step.text)
        lines[rate.line].append((factor, open_by, rate, step))
    for line, found in lines.items():
        off = [each for each in found if abs(each[0] - 1) > each[1]]
        middle = statistics.median(factor for factor, *_ in found)
        together = [each for each in off if abs(each[0] / middle - 1) <= each[1]]
        if len(together) * 2 > len(found) and len(found) > 2:
            pairs = tuple(cell for _, _, rate, step in together for cell in (rate, step))
            why = f"{line}: rate x time is {middle:.3g} times the batch in {len(together)} of {len(found)} rows"
            yield PrintedDoubt("impossible", "rate-times-step", pairs, why)
            off = [each for each in off if each not in together]
        for factor, _, rate, step in off:
            batch = float(rate.axes[BATCH_SIZE])
            why = f"{rate.text} images/s x {step.value:.4g} s are {factor * batch:.4g} images, not {batch:g}"
            yield PrintedDoubt("impossible", "rate-times-step", (rate, step), why)


def _above_limits(cells: Sequence[PrintedCell], work: KnownWork) -> Iterator[PrintedDoubt]:
    """Rates, and times of steps without a rate beside them, above the limit of the device by the network's arithmetic.

    The reason says what would fit: the source may not say its mode and precision.
    """
    # The multiply-adds are those of the network's own size of images.
    known = [cell for cell in cells if cell.axes.get(MODEL) in work.multiply_adds and IMAGE_SIZE not in cell.axes]
    rated = {_case(cell) for cell in known if cell.quantity == _RATE}
    steps = {_case(cell): cell for cell in known if cell.quantity == _STEP}
    for cell in known:
        precision, peaks = str(cell.axes.get("precision")), work.peak.get(cell.line, {})
        each, mode = work.multiply_adds[str(cell.axes[MODEL])], str(cell.axes.get("mode", ""))
        if precision not in peaks or cell.value <= 0:
            continue
        is_step = cell.quantity == _STEP and BATCH_SIZE in cell.axes and _case(cell) not in rated
        if not is_step and cell.quantity != _RATE:
            continue
        devices, forward = float(cell.axes.get(DEVICES, 1)), 2 * each * _speed(cell)
        flops = forward * (3 if mode == "training" else 1)
        limits = {name: _LIMIT * peak * devices for name, peak in peaks.items()}
        if flops > limits[precision]:
            fit, other = _would_fit(flops, precision, limits)
            if mode == "training" and forward <= limits[precision]:
                other.append("inference")
            what = f"{cell.text} images/s" if not is_step else f"{cell.value:.4g} s for {cell.axes[BATCH_SIZE]} images"
            why = (
                f"{what}{f' of {mode}' if mode else ''} are {flops / 1e12:.3g} TFLOP/s; the limit of the hardware is "
                f"{peaks[precision] * devices / 1e12:.3g}"
            )
            why += f": {' or '.join([*fit, *other])} would fit" if fit or other else ""
            # The time of the step beside a rate is as doubtful as the rate.
            beside = [steps[_case(cell)]] if not is_step and _case(cell) in steps else []
            yield PrintedDoubt("surprising" if fit else "impossible", "device-limit", (cell, *beside), why)


def _would_fit(flops: float, precision: str, limits: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """What is printed as fp32 and reaches so many FLOP/s, and what is printed otherwise; limits: by precision."""
    if precision != "fp32":
        return [], []
    printed_so = {"TF32": limits.get("tf32", 0.0), "Winograd's convolutions": _WINOGRAD * limits[precision]}
    otherwise = {"mixed precision": max(limits.get(name, 0.0) for name in ("amp_fp16", "amp_bf16"))}
    fit, other = ([name for name, most in of.items() if flops <= most] for of in (printed_so, otherwise))
    return fit, other


def _speed(cell: PrintedCell) -> float:
    """Work per second of a rate, of the time of a step, or of the time of a run or an epoch, whose work is the same."""
    if cell.quantity == _RATE:
        return cell.value
    return (float(cell.axes.get(BATCH_SIZE, 1)) if cell.quantity == _STEP else 1.0) / cell.value


def _superlinear(cells: Sequence[PrintedCell]) -> Iterator[PrintedDoubt]:
    """N devices that are more than N times as fast; by batches that are the same, or the same for each device."""
    timed = [cell for cell in cells if cell.quantity in (_RATE, _STEP) or cell.quantity.endswith(_WHOLE)]
    speeds = [cell for cell in timed if isinstance(cell.axes.get(DEVICES), int)]
    for group in _groups(speeds, DEVICES, BATCH_SIZE, STRATEGY):
        by_devices: dict[int, dict[float, PrintedCell]] = defaultdict(dict)
        for cell in group:
            devices, batch = int(cell.axes[DEVICES]), float(cell.axes.get(BATCH_SIZE, 0))
            by_devices[devices][batch / devices] = cell
        for devices, several in by_devices.items():
            for share, cell in several.items():
                of_one = by_devices.get(1, {})
                one = of_one.get(share) or of_one.get(share * devices)
                if one is None or devices == 1:
                    continue
                times = _speed(cell) / _speed(one)
                if times > _LINEAR * devices:
                    why = f"{devices} devices are {times:.3g} times as fast as one"
                    yield PrintedDoubt("surprising", "superlinear", (cell, one), why)


def independent_of(axis: str, cells: Sequence[PrintedCell]) -> Iterator[PrintedDoubt]:
    """Times of steps that do not depend on an axis (of _OF_WORK) with which their work grows."""
    power, least, what, instead = _OF_WORK[axis]
    for group in _groups([cell for cell in cells if cell.quantity == _STEP and axis in cell.axes], axis):
        sizes = sorted({int(cell.axes[axis]): cell for cell in group}.items())
        upper = [(size, cell) for size, cell in sizes if size >= least]
        if len(upper) < _SIZES or upper[-1][0] ** power < _GROWS * upper[0][0] ** power:
            continue
        values = [cell.value for _, cell in upper]
        slope = float(np.polyfit(power * np.log([size for size, _ in upper]), np.log(values), 1)[0])
        if slope < math.log(_CONSTANT) / math.log(_GROWS):
            those = what.format(f"{upper[0][0]} to {upper[-1][0]}")
            why = (
                f"the time of a step is {min(values):.3g} to {max(values):.3g} s for {those}: the numbers may be "
                f"{instead}, or other machines measured them"
            )
            yield PrintedDoubt("surprising", f"independent-of-{axis}", tuple(cell for _, cell in upper), why)


def _outliers(cells: Sequence[PrintedCell]) -> Iterator[PrintedDoubt]:
    """Cells that fit neither their row nor their column, in logarithms."""
    for quantity, without in ((_RATE, (MODEL, BATCH_SIZE)), (_STEP, (MODEL,))):
        table: dict[tuple[object, object], PrintedCell] = {}
        those = [cell for cell in cells if cell.quantity == quantity]
        for cell in those:
            condition = frozenset((axis, value) for axis, value in cell.axes.items() if axis not in without)
            table[cell.axes.get(MODEL), (cell.line, condition)] = cell
        # Rates hardly depend on the batch, where each network has a batch of its own.
        if len(table) == len(those):
            yield from _outliers_of(table)


def _outliers_of(table: Mapping[tuple[object, object], PrintedCell]) -> Iterator[PrintedDoubt]:
    rows, columns = (list(dict.fromkeys(key[side] for key in table)) for side in (0, 1))
    if len(rows) < _FEWEST_ROWS or len(columns) < _FEWEST_COLUMNS:
        return
    grid = np.full((len(rows), len(columns)), np.nan)
    places = [{name: index for index, name in enumerate(names)} for names in (rows, columns)]
    for (row, column), cell in table.items():
        grid[places[0][row], places[1][column]] = math.log(cell.value)
    by_columns, by_rows = _offs(grid), _offs(grid.T).T
    off = np.where(np.abs(by_columns) < np.abs(by_rows), by_columns, by_rows)
    for row, column in np.argwhere(np.isfinite(off) & (off != 0)):
        cell = table[rows[row], columns[column]]
        times = math.exp(abs(off[row, column]))
        how = "more" if off[row, column] > 0 else "less"
        why = f"{cell.text} is {times:.3g} times {how} than its row and its column say"
        yield PrintedDoubt(
            "surprising", "digit", (cell,), why, _nearest_digits(cell, cell.value / math.exp(off[row, column]))
        )


Grid = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _offs(grid: Grid) -> Grid:
    """How far each logarithm is from the value that the most similar columns expect; 0 where one of them expects it.

    Columns are similar where their differences scatter little over the rows. NaN where too few columns are.
    """
    offs = np.full(grid.shape, np.nan)
    for column in range(grid.shape[1]):
        others = np.delete(np.arange(grid.shape[1]), column)
        differences = grid[:, [column]] - grid[:, others[:: -(-len(others) // _MOST_BESIDE)]]
        enough = np.isfinite(differences).sum(axis=0) >= _FEWEST_ROWS
        differences = differences[:, enough]
        if differences.shape[1] < _FEWEST_BESIDE:
            continue
        rest = differences - _medians(differences)
        scales = np.maximum(1.4826 * _medians(np.abs(rest)), _LEAST_SCALE)
        second = np.sort(np.nan_to_num(np.abs(rest)), axis=0)[-2]  # the next cell that is far off, too
        near = np.argsort(scales)[:_FEWEST_BESIDE]
        rest, scales, second = rest[:, near], scales[near], second[near]
        beyond = np.abs(rest) > np.maximum(np.maximum(_SCALES * scales, _ALONE * second), math.log(_FACTOR))
        known = np.isfinite(rest)
        same_side = np.abs(np.nansum(np.sign(rest), axis=1)) == known.sum(axis=1)
        whole = (known.sum(axis=1) >= _FEWEST_BESIDE) & (beyond | ~known).all(axis=1) & same_side
        least = np.where(known, np.abs(rest), np.inf).argmin(axis=1)
        nearest = rest[np.arange(len(rest)), least]
        offs[:, column] = np.where(np.isfinite(grid[:, column]), np.where(whole, nearest, 0.0), np.nan)
    return offs


def _medians(grid: Grid) -> Grid:
    """The median of each column without its NaNs; no column is all NaN. np.nanmedian takes 50 times as long."""
    ordered, known = np.sort(grid, axis=0), np.isfinite(grid).sum(axis=0)
    lower, upper = (
        np.take_along_axis(ordered, place[np.newaxis], axis=0)[0] for place in ((known - 1) // 2, known // 2)
    )
    return np.asarray((lower + upper) / 2)


def _nearest_digits(cell: PrintedCell, fitting: float) -> float | None:
    """The value that the text has with a digit more, a digit less, or another decimal point; None if none fits."""
    digits = "".join(each for each in cell.text if each.isdigit() or each == ".")
    try:
        printed = float(digits)
    except ValueError:
        return None
    candidates = {printed * 10, printed / 10, printed * 100, printed / 100}
    for place in range(len(digits)):
        shorter = digits[:place] + digits[place + 1 :]
        if shorter.count(".") <= 1 and shorter.strip("."):
            candidates.add(float(shorter))
    values = [cell.value * candidate / printed for candidate in candidates if candidate > 0 and printed]
    best = min(values, key=lambda value: abs(math.log(value / fitting)), default=None)
    return best if best and abs(math.log(best / fitting)) < _LIKELY else None


def _repeated(cells: Sequence[PrintedCell]) -> Iterator[PrintedDoubt]:
    """Numbers that are printed for two cases, where chance would hardly repeat one."""
    for quantity in (_RATE, _STEP):
        those = [cell for cell in cells if cell.quantity == quantity and cell.readings == 1]
        digits = [len("".join(each for each in cell.text if each.isdigit()).strip("0")) for cell in those]
        if len(those) < 2 or min(digits) < 1:
            continue
        same: dict[str, list[tuple[PrintedCell, int]]] = defaultdict(list)
        for cell, count in zip(those, digits, strict=True):
            same[cell.text].append((cell, count))
        pairs = len(those) * (len(those) - 1) / 2
        for text, found in same.items():
            # A number of n digits has 9 x 10^(n - 1) values in each power of ten.
            if len(found) > 1 and pairs / (9 * 10 ** (found[0][1] - 1)) < _CHANCE:
                twice = tuple(cell for cell, _ in found)
                why = f"{text} is printed for {len(found)} cases"
                yield PrintedDoubt("surprising", "repeated", twice, why)
