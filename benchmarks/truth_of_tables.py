"""What the checks of printed numbers find: `python -m benchmarks.truth --tables [--draws N] [--files FOLDER]`.

Sub-tables of real tables (benchmarks/tables/) are clean; into each a fault is planted, and the checks look for it.
Alarms in clean tables are counted by table. Rates of 60 networks on 20 lines are from huggingface/pytorch-image-models
(results/, Apache-2.0); medians of 50 readings of 32 networks under 24 conditions, in ms, are from
ryujaehun/pytorch-gpu-benchmark (new_results/, MIT).

benchmarks/tables/listed.txt lists public tables: `clean`, or `fault` where a number is doubted rightly; repository,
path, commit, number of the table in its file, and SHA-256 of the file. --files: the same for all their numbers, from
files FOLDER/<owner>+<name>/<path>.
"""

import csv
import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from tsuishi.base.checkout import Checkout
from tsuishi.estimates.printed_doubts import KnownWork, PrintedCell, doubts, doubts_in_table
from tsuishi.extras.tables.adoption import Corrections, adopt
from tsuishi.extras.tables.as_printed import as_printed
from tsuishi.extras.tables.table_files import Licence, TableFile
from tsuishi.specs.numerals import printed_number
from tsuishi.specs.vocabulary import vocabulary
from tsuishi.verdicts.doubtful import cells_as_printed

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
_UNSAID = Corrections()


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


class Listed(NamedTuple):
    """A public table of the list: whether it is clean, its address, and its numbers by row and column."""

    is_clean: bool
    address: str
    cells: dict[tuple[int, str], PrintedCell]
    are_named: bool


def listed(folder: Path) -> Iterator[Listed]:
    """The tables of the list whose files are in the folder. Raises ValueError for a file with another digest."""
    words = vocabulary(Checkout().suites)
    for line in (FOLDER / "listed.txt").read_text(encoding="utf-8").splitlines():
        kind, repository, path, commit, number, digest = line.split()
        file = folder / repository.replace("/", "+") / path
        if not file.is_file():
            continue
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(f"{file}: not that of commit {commit}")
        tables = adopt("listed", [TableFile(file.name, content.decode(), content, "", Licence())], words, [], _UNSAID)
        printed = as_printed(tables.tables[int(number) - 1])
        yield Listed(kind == "clean", f"{repository} {path} {number}", cells_as_printed(printed), printed.are_named)


def found_in_listed(tables: Sequence[Listed], draws: int, seed: int = 2) -> Iterator[tuple[str, int, int]]:
    """(fault, tables, those in which the planted cell is doubted): of clean tables whose rows and columns compare."""
    random = np.random.default_rng(seed)
    large = [each for each in tables if each.is_clean and each.are_named and _is_large(each)]
    for fault, plant in [*FAULTS.items()][:3]:
        tried = seen = 0
        while large and tried < draws:
            table = large[tried % len(large)]
            place = [*table.cells][int(random.integers(len(table.cells)))]
            cell = table.cells[place]._replace(text=f"{printed_number(table.cells[place].text):.12g}")
            (after,) = plant((cell,), random)
            if after.text != cell.text and after.value > 0:
                tried += 1
                seen += any(after in each.cells for each in doubts_in_table({**table.cells, place: after}, True))
        yield fault, tried, seen


def _is_large(table: Listed) -> bool:
    rows, columns = ({place[side] for place in table.cells} for side in (0, 1))
    return min(len(rows), len(columns)) >= 5 and len(table.cells) >= 30


def main_of_listed(folder: Path, draws: int) -> int:
    """Print the doubts about the listed tables, and what is found of planted faults; 1 where a real fault is not."""
    tables = [*listed(folder)]
    doubted = {each.address: doubts_in_table(each.cells, each.are_named) for each in tables}
    for is_clean, what in ((True, "clean"), (False, "with faults")):
        of = [each for each in tables if each.is_clean is is_clean]
        alarmed = [each.address for each in of if doubted[each.address]]
        print(
            f"listed tables, {what}: {len(of)} with {sum(len(each.cells) for each in of)} numbers; {len(alarmed)} alarm"
        )
        for address in alarmed:
            print(f"  {address}: {doubted[address][0].reason}")
    for fault, tried, seen in found_in_listed(tables, draws):
        print(f"{fault}, in listed tables: found in {seen} of {tried} ({100 * seen / max(tried, 1):.0f} %)")
    return int(not all(each.is_clean or doubted[each.address] for each in tables))


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
