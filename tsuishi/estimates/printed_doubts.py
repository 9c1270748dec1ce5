"""Checks of published numbers before they are believed: impossible by arithmetic, or surprising among the others.

A number that is impossible contradicts other numbers of its table, or the limit of its device. A number that is
surprising may be right: it differs from its neighbours as a lost digit would make it differ, it repeats a number of
another case, it does not depend on an axis on which it has to, or it needs TF32 or Winograd's convolutions and is
printed as fp32. tsuishi/extras/tables/README.md counts what these thresholds find.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

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
# So many where a table may not say what else differs.
_LINEAR_UNSAID = 1.5
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
# A cell is an outlier where the columns and the rows most like its own expect another value, by so many scales: a scale
# is how far they scatter, and a half (a factor of 1.6) more. It is off by so many halves (a factor of 2.7) at least.
_SCALES, _BESIDE, _FACTOR = 2.4, 0.5, 2
# Where cases do not say that columns are of one kind, they are compared if they scatter by no more.
_ALIKE = 0.7
# So many columns are compared, of those with so many common rows; their own line through the logarithms counts half.
_NEAREST, _FEWEST, _SLOPE = 4, 5, 0.5
# A scale is known from few rows: so many more have the usual scale of the table; it is at least the last number.
_USUAL_ROWS, _LEAST_SCALE = 3, 0.05
# Of a table with hundreds of rows, each is compared with so many.
_MOST_BESIDE = 40
# So many numbers are compared at once, as the caches of a CPU hold.
_MOST_AT_ONCE = 50_000
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
    rest = _possible(cells, arithmetic)
    independent = [doubt for axis in _OF_WORK for doubt in independent_of(axis, rest)]
    return [*arithmetic, *_superlinear(rest), *independent, *_outliers(rest), *_repeated(rest)]


def doubts_in_table(table: Mapping[tuple[int, str], PrintedCell], are_named: bool) -> list[PrintedDoubt]:
    """The doubts about numbers of a table by row and column that need no network; axes are printed texts.

    A quantity that is empty is not known: rows and columns are compared, and N devices with one. are_named: words tell
    its rows apart; those of one thing with other settings are not compared, for its times need not grow alike.
    """
    cases: dict[tuple[object, ...], list[PrintedCell]] = defaultdict(list)
    for cell in table.values():
        cases[*_case(cell), cell.quantity].append(cell)
    # Something that is no axis here tells two numbers of one case apart.
    cells = [of_case[0] for of_case in cases.values() if len(of_case) == 1]
    totals, agreed = [*_totals(cells)], _agreed(cells)
    rest = _possible(cells, totals)
    outliers = _outliers_of(table, _ALIKE) if are_named else ()
    unexplained = [doubt for doubt in outliers if id(doubt.cells[0]) not in agreed]
    return [*totals, *_superlinear(rest, _LINEAR_UNSAID), *unexplained, *_repeated(rest)]


def _possible(cells: Iterable[PrintedCell], arithmetic: Iterable[PrintedDoubt]) -> list[PrintedCell]:
    """The cells above 0 that arithmetic does not call impossible."""
    wrong = {id(cell) for doubt in arithmetic if doubt.kind == "impossible" for cell in doubt.cells}
    return [cell for cell in cells if id(cell) not in wrong and cell.value > 0]


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
    for product in _rates_by_steps(cells):
        lines[product[2].line].append(product)
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


def _rates_by_steps(cells: Iterable[PrintedCell]) -> Iterator[tuple[float, float, PrintedCell, PrintedCell]]:
    """(rate x time / batch, how far it may be from 1, the rate, the time) of every case that has both."""
    sized = [cell for cell in cells if isinstance(cell.axes.get(BATCH_SIZE), int) and cell.value > 0]
    for rate, step in _together(sized, _RATE, _STEP):
        open_by = _PRODUCT + _last_digit(rate.text) + _last_digit(step.text)
        yield rate.value * step.value / float(rate.axes[BATCH_SIZE]), open_by, rate, step


def _agreed(cells: Iterable[PrintedCell]) -> set[int]:
    """The ids of rates and times that confirm each other."""
    return {id(cell) for factor, _, *pair in _rates_by_steps(cells) if abs(factor - 1) <= _PRODUCT for cell in pair}


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
    if cell.quantity == _STEP or cell.quantity.endswith(_WHOLE):
        return (float(cell.axes.get(BATCH_SIZE, 1)) if cell.quantity == _STEP else 1.0) / cell.value
    return cell.value


def _superlinear(cells: Sequence[PrintedCell], linear: float = _LINEAR) -> Iterator[PrintedDoubt]:
    """N devices that are more than N x `linear` as fast; by batches that are the same, or the same for each device."""
    timed = [cell for cell in cells if cell.quantity in (_RATE, _STEP, "") or cell.quantity.endswith(_WHOLE)]
    speeds = [cell for cell in timed if isinstance(cell.axes.get(DEVICES), int) and cell.axes[DEVICES]]
    for group in _groups(speeds, DEVICES, BATCH_SIZE, STRATEGY):
        by_devices: dict[int, dict[float, PrintedCell]] = defaultdict(dict)
        for cell in group:
            devices, batch = int(cell.axes[DEVICES]), cell.axes.get(BATCH_SIZE, 0)
            by_devices[devices][float(batch if isinstance(batch, int) else 0) / devices] = cell
        for devices, several in by_devices.items():
            for share, cell in several.items():
                of_one = by_devices.get(1, {})
                one = of_one.get(share) or of_one.get(share * devices)
                if one is None or devices == 1:
                    continue
                times = _speed(cell) / _speed(one)
                if cell.quantity:
                    how = f"are {times:.3g} times as fast as one"
                else:
                    # A rate or a time: neither grows by more.
                    how, times = f"have {times:.3g} times the number of one", max(times, 1 / times)
                if times > linear * devices:
                    yield PrintedDoubt("surprising", "superlinear", (cell, one), f"{devices} devices {how}")


def independent_of(axis: str, cells: Sequence[PrintedCell]) -> Iterator[PrintedDoubt]:
    """Times of steps that do not depend on an axis (of _OF_WORK) with which their work grows."""
    power, least, what, instead = _OF_WORK[axis]
    for group in _groups([cell for cell in cells if cell.quantity == _STEP], axis):
        sizes = sorted({size: cell for cell in group if isinstance(size := cell.axes.get(axis), int)}.items())
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
    """Cells that fit neither row nor column, in logarithms; not rates and times that confirm each other."""
    agreed = _agreed(cells)
    for quantity, without in ((_RATE, (MODEL, BATCH_SIZE)), (_STEP, (MODEL,))):
        table: dict[tuple[object, object], PrintedCell] = {}
        those = [cell for cell in cells if cell.quantity == quantity]
        for cell in those:
            condition = frozenset((axis, value) for axis, value in cell.axes.items() if axis not in without)
            table[cell.axes.get(MODEL), (cell.line, condition)] = cell
        # Rates hardly depend on the batch, where each network has a batch of its own.
        if len(table) == len(those) and any(id(cell) not in agreed for cell in those):
            yield from (doubt for doubt in _outliers_of(table) if id(doubt.cells[0]) not in agreed)


def _outliers_of(table: Mapping[tuple[Any, Any], PrintedCell], most: float = math.inf) -> Iterator[PrintedDoubt]:
    """The cells that fit neither row nor column. most: how far rows and columns scatter that are compared."""
    rows, columns = (list(dict.fromkeys(key[side] for key in table)) for side in (0, 1))
    if len(rows) < _FEWEST or len(columns) < _FEWEST:
        return
    grid, digits = (np.full((len(rows), len(columns)), start) for start in (np.nan, 0.0))
    places = [{name: index for index, name in enumerate(names)} for names in (rows, columns)]
    for (row, column), cell in table.items():
        grid[places[0][row], places[1][column]] = math.log(cell.value)
        digits[places[0][row], places[1][column]] = _last_digit(cell.text)
    off = _outliers_in(grid, digits, most)
    for row, column in np.argwhere(off != 0):
        cell = table[rows[row], columns[column]]
        times = math.exp(abs(off[row, column]))
        how = "more" if off[row, column] > 0 else "less"
        why = f"{cell.text} is {times:.3g} times {how} than its row and its column say"
        yield PrintedDoubt(
            "surprising", "digit", (cell,), why, _nearest_digits(cell, cell.value / math.exp(off[row, column]))
        )


Grid = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _outliers_in(grid: Grid, digits: Grid, most: float) -> Grid:
    """How far logarithms are from those that the most similar columns and rows expect; 0 without surprise.

    digits: the share of each number that half of its last digit is. Rows are compared in what columns leave, and
    columns in what rows leave: a row that is unusual in columns of one kind is no surprise where a row like it is so,
    too.
    """
    (beside_columns, apart_columns), (beside_rows, apart_rows) = _beside(grid), (each.T for each in _beside(grid.T))
    (by_rows, of_rows), (by_columns, of_columns) = (each.T for each in _beside(beside_columns.T)), _beside(beside_rows)
    beside = _BESIDE + digits
    scales = np.sqrt(np.abs(by_rows * by_columns) / ((of_rows + beside) * (of_columns + beside)))
    least = np.where(np.abs(beside_rows) < np.abs(beside_columns), beside_rows, beside_columns)
    agree = (by_rows * by_columns > 0) & (by_rows * least > 0) & (np.abs(least) > _FACTOR * beside)
    is_alike = np.maximum(apart_columns, apart_rows) <= most
    return np.where(agree & (scales > _SCALES) & is_alike, least, 0.0)


def _beside(grid: Grid) -> tuple[Grid, Grid]:
    """How far each logarithm is from the value that the most similar columns expect, and the scatter of these columns.

    Columns are similar where they scatter little about the line through both; 0 where too few can be compared.
    """
    known, count = np.isfinite(grid), grid.shape[1]
    centred = grid - _medians(np.where(known.any(axis=0), grid, 0.0))
    others = np.arange(count)[:: -(-count // _MOST_BESIDE)]
    rests, scales = np.full((_NEAREST, *grid.shape), np.nan), np.full((_NEAREST, count), np.inf)
    for columns in np.array_split(np.arange(count), -(-grid.size * len(others) // _MOST_AT_ONCE)):
        alone = (columns[:, np.newaxis] == others) | (known[:, columns].T.astype(int) @ known[:, others] < _FEWEST)
        beside = np.where(alone, 0.0, centred[:, np.newaxis, others])
        rest = np.where(alone, 0.0, centred[:, columns, np.newaxis] - beside)
        rest = rest - _medians(rest)
        rest = rest - _SLOPE * _slopes(rest, beside) * beside
        rest = rest - _medians(rest)
        scatter = np.where(alone, np.inf, 1.4826 * _medians(np.abs(rest)))
        near = np.argsort(scatter, axis=1)[:, :_NEAREST]
        nearest = np.take_along_axis(scatter, near, axis=1)
        rest = np.where(np.isfinite(nearest), np.take_along_axis(rest, near[np.newaxis], axis=2), np.nan)
        rests[: near.shape[1], :, columns] = np.transpose(rest, (2, 0, 1))
        scales[: near.shape[1], columns] = nearest.T
    usual = _medians(scales[:1].T)
    rows = known.sum(axis=0)
    scales = np.sqrt((scales**2 * rows + usual**2 * _USUAL_ROWS) / (rows + _USUAL_ROWS) + _LEAST_SCALE**2)
    weights = np.where(np.isfinite(rests), scales[:, np.newaxis] ** -2, 0.0)
    total = weights.sum(axis=0)
    mean = (np.nan_to_num(rests) * weights).sum(axis=0) / np.where(total > 0, total, 1.0)
    return np.where(known, mean, np.nan), np.broadcast_to(scales[0], grid.shape)


def _slopes(rest: Grid, beside: Grid) -> Grid:
    """The slope of the line through 0 that is nearest to most of each column's points: their weighted median."""
    ratios = np.divide(rest, beside, out=np.full(rest.shape, np.inf), where=np.isfinite(rest) & (beside != 0))
    order = np.argsort(ratios, axis=0)
    weights = np.cumsum(np.take_along_axis(np.where(np.isfinite(ratios), np.abs(beside), 0.0), order, axis=0), axis=0)
    middle = (weights >= weights[-1] / 2).argmax(axis=0)
    slopes = np.take_along_axis(np.take_along_axis(ratios, order, axis=0), middle[np.newaxis], axis=0)[0]
    return np.where(np.isfinite(slopes), slopes, 0.0)


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
