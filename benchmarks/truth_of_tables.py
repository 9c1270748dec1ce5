"""What the checks of printed numbers find: `python -m benchmarks.truth --tables [--draws N]` from the root.

Sub-tables of real tables (benchmarks/tables/) are clean; into each a fault is planted, and the checks look for it.
Alarms in clean tables are counted by table. Rates of 60 networks on 20 lines are from huggingface/pytorch-image-models
(results/, Apache-2.0); medians of 50 readings of 32 networks under 24 conditions, in ms, are from
ryujaehun/pytorch-gpu-benchmark (new_results/, MIT).
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.stats import beta

from tsuishi.estimates.printed_doubts import KnownWork, PrintedCell, doubts

FOLDER = Path(__file__).parent / "tables"
SIZES = ((2, 3), (3, 4), (5, 4), (6, 5), (8, 6), (12, 8), (24, 12))
_RATE, _STEP = "throughput_images_per_s", "step_s"
# Cells of a table by row and column: those of one printed place.
Table = list[list[tuple[PrintedCell, ...]]]


def rates() -> Table:
    """Networks x lines; each place has a rate and the time of a step."""
    with (FOLDER / "timm.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    table: Table = []
    for model, *cells in rows:
        line: list[tuple[PrintedCell, ...]] = []
        for name, cell in zip(header[1:], cells, strict=True):
            rate, batch, step = cell.split() if cell else ("0", "1", "0")
            axes: dict[str, str | int] = {"model": model, "batch_size": int(float(batch)), "mode": "inference"}
            found = PrintedCell(name, model, rate, axes, _RATE, float(rate))
            line.append((found, PrintedCell(name, model, step, axes, _STEP, float(step) / 1000)) if cell else ())
        table.append(line)
    return table


def times() -> Table:
    """Networks x conditions of one line; each place has the time of a step."""
    with (FOLDER / "pytorch-gpu-benchmark.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    table: Table = []
    for model, *cells in rows:
        line: list[tuple[PrintedCell, ...]] = []
        for name, cell in zip(header[1:], cells, strict=True):
            devices, _, precision, mode = name.split()
            axes: dict[str, str | int] = {"model": model, "batch_size": 12 * int(devices), "devices": int(devices)}
            axes |= {"precision": precision, "mode": mode}
            line.append((PrintedCell("card", model, cell, axes, _STEP, float(cell) / 1000),) if cell else ())
        table.append(line)
    return table


def drawn(table: Table, size: tuple[int, int], random: np.random.Generator) -> Table:
    """A sub-table of random rows and columns."""
    rows = random.choice(len(table), size[0], replace=False)
    columns = random.choice(len(table[0]), size[1], replace=False)
    return [[table[row][column] for column in columns] for row in rows]


def changed(cell: PrintedCell, text: str) -> PrintedCell:
    """The cell with another printed text."""
    return cell._replace(text=text, value=cell.value * float(text) / float(cell.text))


def _digit_lost(cells: tuple[PrintedCell, ...], random: np.random.Generator) -> tuple[PrintedCell, ...]:
    whole, point, rest = cells[0].text.partition(".")
    place = int(random.integers(len(whole)))
    text = whole[:place] + whole[place + 1 :] + point + rest
    return (changed(cells[0], text) if float(text or 0) else cells[0],)


def _digit_added(cells: tuple[PrintedCell, ...], random: np.random.Generator) -> tuple[PrintedCell, ...]:
    whole, point, rest = cells[0].text.partition(".")
    place = int(random.integers(len(whole))) + 1
    return (changed(cells[0], whole[:place] + str(random.integers(10)) + whole[place:] + point + rest),)


def _point_shifted(cells: tuple[PrintedCell, ...], random: np.random.Generator) -> tuple[PrintedCell, ...]:
    return (cells[0]._replace(text=f"{float(cells[0].text) * 10:g}", value=cells[0].value * 10),)


def _contradicted(cells: tuple[PrintedCell, ...], random: np.random.Generator) -> tuple[PrintedCell, ...]:
    return (cells[0]._replace(value=cells[0].value * float(random.choice([0.5, 0.8, 1.25, 2]))), *cells[1:])


FAULTS: dict[str, Callable[[tuple[PrintedCell, ...], np.random.Generator], tuple[PrintedCell, ...]]] = {
    "a digit is lost": _digit_lost,
    "a digit is added": _digit_added,
    "the decimal point is shifted": _point_shifted,
    "rate, time and batch contradict each other": _contradicted,
}
_NONE = KnownWork({}, {})


def _flat(table: Table, both: bool) -> list[PrintedCell]:
    return [cell for row in table for place in row for cell in (place if both else place[:1])]


def alarms(draws: int, seed: int = 0) -> Iterator[tuple[str, int, int]]:
    """(kind of table and size, clean tables, those with an alarm); `rates`: without the times beside them."""
    random = np.random.default_rng(seed)
    for name, table in (("rates and times", rates()), ("rates", rates()), ("times", times())):
        for size in SIZES:
            clean = [_flat(drawn(table, size, random), both=" and " in name) for _ in range(draws)]
            yield f"{name} {size[0]}x{size[1]}", draws, sum(bool(doubts(cells, _NONE)) for cells in clean)


def found(draws: int, seed: int = 1) -> Iterator[tuple[str, str, int, int]]:
    """(fault, size, tables, those in which the planted cell is the first of a doubt)."""
    random = np.random.default_rng(seed)
    for fault, plant in FAULTS.items():
        contradicts = plant is _contradicted
        tables = [rates()] if contradicts else [rates(), times()]
        for size in SIZES:
            tried = seen = 0
            while tried < draws:
                table = drawn(tables[tried % len(tables)], size, random)
                row, column = (int(random.integers(count)) for count in size)
                if not table[row][column]:
                    continue
                before, after = table[row][column], plant(table[row][column], random)
                if after[0] == before[0]:
                    continue
                table[row][column] = after
                tried += 1
                seen += any(after[0] in doubt.cells for doubt in doubts(_flat(table, contradicts), _NONE))
            yield fault, f"{size[0]}x{size[1]}", tried, seen


def main(draws: int) -> int:
    """Print what is found and the alarms; 1 where more than one of 100 clean tables has an alarm."""
    for fault, size, tried, seen in found(draws):
        print(f"{fault}, {size}: found in {seen} of {tried} ({100 * seen / tried:.0f} %)")
    clean = wrong = 0
    for name, tables, alarmed in alarms(draws):
        clean, wrong = clean + tables, wrong + alarmed
        print(f"clean, {name}: {alarmed} of {tables} tables with an alarm")
    upper = 100 * float(beta.ppf(0.95, wrong + 1, clean - wrong))
    share = 100 * wrong / clean
    print(f"clean tables with an alarm: {wrong} of {clean} ({share:.2f} %; at most {upper:.2f} %, at 95 %)")
    return int(share > 1)
