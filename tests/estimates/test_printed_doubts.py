"""Doubts about printed numbers: each kind where it is planted, and none about numbers that are right."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import truth_of_tables
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.estimates.printed_doubts import KnownWork, PrintedCell, PrintedDoubt, doubts
from tsuishi.machine.compatibility import read_table
from tsuishi.specs.source import Hardware, read_sources
from tsuishi.verdicts.doubtful import doubts_about

NONE = KnownWork({}, {})
RATE, STEP = "throughput_images_per_s", "step_s"


def cell(quantity: str, text: str, line: str = "card", scale: float = 1.0, **axes: str | int) -> PrintedCell:
    return PrintedCell(
        line, "a place", text, {"model": "resnet50", "batch_size": 64, **axes}, quantity, float(text) * scale
    )


def only(found: list[PrintedDoubt]) -> PrintedDoubt:
    (doubt,) = found
    return doubt


def test_rate_time_and_batch_contradict_each_other_in_a_row_or_by_one_factor_in_a_table() -> None:
    good = [(1000, 64.0), (500, 128.0), (250, 256.0), (2000, 32.0)]

    def table(rows: list[tuple[int, float]]) -> list[PrintedCell]:
        both = [
            (cell(RATE, f"{rate}", model=f"n{i}"), cell(STEP, f"{ms}", scale=0.001, model=f"n{i}"))
            for i, (rate, ms) in enumerate(rows)
        ]
        return [each for pair in both for each in pair]

    assert doubts(table(good), NONE) == []
    wrong = only(doubts(table([*good[:3], (2000, 23.0)]), NONE))
    assert (wrong.kind, wrong.check, len(wrong.cells)) == ("impossible", "rate-times-step", 2)
    assert wrong.reason == "2000 images/s x 0.023 s are 46 images, not 64"
    halves = only(doubts(table([(rate, ms / 2) for rate, ms in good]), NONE))
    assert halves.reason == "card: rate x time is 0.5 times the batch in 4 of 4 rows"
    assert len(halves.cells) == 8
    assert doubts(table([(1198, 225.95 / 4)]), NONE) == [], "means of rates and of times differ by some percent"
    assert doubts(table([(3, 21333.0), (0, 1.0)])[:2], NONE) == [], "3 images/s may be 2.5 or 3.5"


@pytest.mark.parametrize("row", range(7))
def test_a_total_that_is_not_the_first_epoch_and_the_rest(row: int) -> None:
    """In a real table, whose columns are network, batch, first and later epoch, and all of a hundred epochs."""
    (source,) = (
        each for each in read_sources(Checkout().published, WORDS, tables=False) if each.name == "torch-2080ti"
    )
    table = source.numbers[-2]
    rows = [list(each) for each in table.rows]
    right = rows[row][4]
    assert isinstance(right, int)
    rows[row][4] = right // 10
    lost = table.model_copy(update={"rows": tuple(map(tuple, rows))})
    doubt = only([each for each in doubts_about([lost], source.hardware, WORDS, []) if each.kind == "impossible"])
    assert (doubt.check, doubt.cells[0].text) == ("total", str(rows[row][4]))
    assert doubt.likely == pytest.approx(right, rel=0.01)


def totals(*rows: tuple[str, str, str]) -> list[PrintedCell]:
    names = ("total_s", "first_epoch_s", "median_epoch_s")
    return [
        cell(name, text, model=f"n{row}")
        for row, texts in enumerate(rows)
        for name, text in zip(names, texts, strict=True)
    ]


def test_other_numbers_of_epochs_and_rounded_seconds_are_no_contradiction() -> None:
    ten = [("101", "11", "10"), ("202", "22", "20"), ("303", "33", "30")]
    assert doubts(totals(*ten, ("1010", "20", "10"), ("2020", "40", "20")), NONE) == []
    (one,) = doubts(totals(*ten, ("1010", "20", "10")), NONE)
    assert one.reason == "1010 s are 20 s and 99 times 10 s; other rows have 9 later epochs"
    twenty = [("202", "12", "10"), ("404", "24", "20"), ("606", "36", "30")]
    assert doubts(totals(*twenty, ("28", "1", "1"), ("49", "2", "2")), NONE) == []


def test_runs_that_failed_and_are_printed_as_zeros_are_not_checked() -> None:
    failed = [(cell(RATE, "0", model=f"n{row}"), cell(STEP, "0", model=f"n{row}")) for row in range(3)]
    right = cell(RATE, "800", model="right"), cell(STEP, "80", scale=0.001, model="right")
    assert doubts([each for pair in (*failed, right) for each in pair], NONE) == []


def test_a_rate_above_the_limit_of_the_card_is_impossible() -> None:
    work = KnownWork({"resnet50": 4_089_184_256}, {"card": {"fp32": 13.4e12}})
    training: dict[str, Any] = {"mode": "training", "precision": "fp32", "devices": 1}
    assert doubts([cell(RATE, "400", **training)], work) == []
    above = only(doubts([cell(RATE, "2751", **training)], work))
    assert (above.kind, above.check) == ("impossible", "device-limit")
    assert above.reason == "2751 images/s of training are 67.5 TFLOP/s; the limit of the hardware is 13.4"
    assert only(doubts([cell(RATE, "1600", **training)], work)).reason.endswith("is 13.4: inference would fit")
    assert doubts([cell(RATE, "1600", **{**training, "mode": "inference"})], work) == []
    assert doubts([cell(RATE, "2751", **{**training, "devices": 8})], work) == []
    assert doubts([cell(RATE, "2751", **{**training, "precision": "amp_fp16"})], work) == [], "no limit is known"
    # The same in a table of times alone; beside its rate, a time is not doubted a second time.
    step = cell(STEP, "0.0232637", **training)
    assert only(doubts([step], work)).reason.startswith("0.02326 s for 64 images of training are 67.5 TFLOP/s")
    assert only(doubts([step, cell(RATE, "2751", **training)], work)).cells[0].quantity == RATE


@pytest.mark.parametrize(
    ("rate", "mode", "kind", "would_fit"),
    [
        ("4000", "inference", "surprising", ": TF32 or Winograd's convolutions or mixed precision would fit"),
        ("9000", "inference", "surprising", ": TF32 or mixed precision would fit"),
        ("40000", "inference", "impossible", ": mixed precision would fit"),
        ("80000", "inference", "impossible", ""),
        ("2500", "training", "surprising", ": TF32 or mixed precision or inference would fit"),
    ],
)
def test_a_limit_says_what_would_fit(rate: str, mode: str, kind: str, would_fit: str) -> None:
    """PyTorch's convolutions are in TF32 by default, on cards that have it; and modes and precisions may be assumed."""
    work = KnownWork({"resnet50": 4_089_184_256}, {"card": {"fp32": 19.5e12, "tf32": 156e12, "amp_fp16": 312e12}})
    case: dict[str, Any] = {"mode": mode, "precision": "fp32", "devices": 1}
    doubt = only(doubts([cell(RATE, rate, **case)], work))
    assert doubt.kind == kind
    assert doubt.reason.endswith(f"; the limit of the hardware is 19.5{would_fit}")


def test_more_than_n_times_as_fast_on_n_devices() -> None:
    one, four = cell(RATE, "100", devices=1), cell(RATE, "2180", devices=4, batch_size=256)
    assert only(doubts([one, four], NONE)).reason == "4 devices are 21.8 times as fast as one"
    assert doubts([one, four._replace(value=410.0)], NONE) == []
    times = [cell(STEP, "0.2", devices=1), cell(STEP, "0.05", devices=2, batch_size=128)]
    assert only(doubts(times, NONE)).check == "superlinear"


def test_times_that_do_not_depend_on_the_batch() -> None:
    constant = [cell(STEP, f"{0.0331 + size / 1e6:.5f}", batch_size=size) for size in (1, 16, 32, 64, 256, 512)]
    doubt = only(doubts(constant, NONE))
    assert (doubt.check, len(doubt.cells)) == ("independent-of-batch_size", 5)
    assert "for batches of 16 to 512" in doubt.reason
    grows = [cell(STEP, f"{size * 0.001:.4f}", batch_size=size) for size in (1, 16, 32, 64, 256, 512)]
    assert doubts(grows, NONE) == []


@pytest.mark.parametrize(
    ("axis", "sizes", "power", "words"),
    [
        ("image_size", (64, 128, 224, 384, 512), 2, "images of 128 to 512 pixels: the numbers may be of images of one"),
        ("context_length", (512, 1024, 4096, 8192), 1, "sequences of 512 to 8192 tokens: the numbers may be of "),
    ],
)
def test_times_that_do_not_depend_on_the_size_of_images_or_of_sequences(
    axis: str, sizes: tuple[int, ...], power: int, words: str
) -> None:
    axes: list[dict[str, Any]] = [{axis: size} for size in sizes]
    constant = [cell(STEP, f"{0.0331 + size / 1e7:.6f}", **case) for size, case in zip(sizes, axes, strict=True)]
    doubt = only(doubts(constant, NONE))
    assert (doubt.check, len(doubt.cells)) == (f"independent-of-{axis}", 4)
    assert f"for {words}" in doubt.reason
    grows = [cell(STEP, f"{size**power * 1e-6:.6f}", **case) for size, case in zip(sizes, axes, strict=True)]
    assert doubts(grows, NONE) == []
    assert doubts(constant[:-1], NONE) == []


def test_a_number_that_is_printed_for_two_cases() -> None:
    cells = [cell(RATE, text, model=f"n{i}") for i, text in enumerate(("1234.56", "1734.12", "1234.56"))]
    assert only(doubts(cells, NONE)).reason == "1234.56 is printed for 2 cases"
    assert doubts([cell(RATE, "120", model="a"), cell(RATE, "120", model="b")], NONE) == []


def test_a_lost_digit_in_a_table_and_the_likely_number() -> None:
    table = [
        cell(RATE, f"{100 * size * speed:.1f}", line=f"card {line}", model=f"n{size}")
        for size in range(1, 9)
        for line, speed in enumerate((1.0, 1.5, 2.2, 3.1, 0.7, 1.9))
    ]
    assert doubts(table, NONE) == []
    place = next(index for index, each in enumerate(table) if each.text == "1100.0")
    lost = table[place]._replace(text="110.0", value=110.0)
    doubt = only(doubts([*table[:place], lost, *table[place + 1 :]], NONE))
    assert (doubt.kind, doubt.check, doubt.cells) == ("surprising", "digit", (lost,))
    assert doubt.likely == pytest.approx(1100.0)


def test_nothing_is_doubted_in_the_real_tables_and_in_the_sources_of_the_checkout() -> None:
    for table in (truth_of_tables.rates(), truth_of_tables.times()):
        cells = [each for row in table for place in row for each in place]
        assert len(cells) > 700
        assert doubts(cells, NONE) == []
    sheets = read_table(Checkout().images).data_sheets
    sources = read_sources(Checkout().published, WORDS)
    found = {
        source.name: [doubt.reason for doubt in doubts_about(source.numbers, source.hardware, WORDS, sheets)]
        for source in sources
    }
    # The first run on one GPU took 14.9 s, on four 0.684 s.
    assert "4 devices are 21.8 times as fast as one" in found["conv2d-gce"]
    # Its batches are labels: see tsuishi/extras/tables/README.md.
    assert [reason[:23] for reason in found["openbenchmarking-pytorch"]] == ["the time of a step is 0"] * 3
    assert {name for name, reasons in found.items() if reasons} == {"conv2d-gce", "openbenchmarking-pytorch"}


def test_the_limits_of_a_card_come_from_its_data_sheet_and_its_line() -> None:
    (source,) = (
        each for each in read_sources(Checkout().published, WORDS, tables=False) if each.name == "torch-2080ti"
    )
    sheets = read_table(Checkout().images).data_sheets
    table = source.numbers[0].model_copy(
        update={
            "case": {"mode": "training", "precision": "fp32", "devices": 1},
            "columns": ("model", "batch_size", RATE),
        }
    )
    card = Hardware(name="rtx-2080ti", title="RTX 2080 Ti, PyTorch 1.1")
    fast = table.model_copy(update={"rows": (("resnet50", 64, 2751.0),)})
    assert only(doubts_about([fast], [card], WORDS, sheets)).check == "device-limit"
    assert doubts_about([fast], [Hardware(name="rtx-2080ti", title="a card")], WORDS, sheets) == []
    limits = {"fp16": "56.9", "fp64": "0.444"}
    for precision, limit in limits.items():
        of = {"case": {**fast.case, "precision": precision}, "rows": (("resnet50", 64, 4000.0),)}
        (doubt,) = doubts_about([fast.model_copy(update=of)], [card], WORDS, sheets)
        assert f"; the limit of the hardware is {limit}" in doubt.reason


def test_rates_and_times_that_confirm_each_other_are_no_lost_digits() -> None:
    """A network that really is ten times slower on one kind of machine."""
    speeds = [[100.0 * (row + 1) * (card + 1) for card in range(6)] for row in range(7)]
    speeds[2][4] /= 10

    def table(with_times: bool) -> list[PrintedCell]:
        cells = []
        for row, line in enumerate(speeds):
            for card, speed in enumerate(line):
                of: dict[str, Any] = {"line": f"card {card}", "model": f"n{row}"}
                cells.append(cell(RATE, f"{speed:.1f}", **of))
                cells += [cell(STEP, f"{64000 / speed:.2f}", scale=0.001, **of)] if with_times else []
        return cells

    assert only(doubts(table(with_times=False), NONE)).cells[0].text == "150.0"
    assert doubts(table(with_times=True), NONE) == []


def test_a_network_that_is_slower_on_all_cpus_is_no_lost_digit() -> None:
    """Rows are compared in what columns leave: a second CPU says so, too."""
    table = [
        cell(RATE, f"{100 * size * speed / (8 if size == 3 and line > 4 else 1):.1f}", line=f"{line}", model=f"n{size}")
        for size in range(1, 9)
        for line, speed in enumerate((1.0, 1.5, 2.2, 3.1, 0.7, 0.12, 0.15))
    ]
    assert doubts(table, NONE) == []
    one = [each for each in table if each.line != "6"]
    assert only(doubts(one, NONE)).cells[0].line == "5"


def test_the_list_of_public_tables_names_each_once_and_its_files_are_checked(tmp_path: Path) -> None:
    lines = [line.split() for line in (truth_of_tables.FOLDER / "listed.txt").read_text(encoding="utf-8").splitlines()]
    assert [kind for kind, *_ in lines].count("clean") == 100
    assert len({tuple(line[1:5]) for line in lines}) == len(lines)
    _, repository, path, *_ = lines[0]
    file = tmp_path / repository.replace("/", "+") / path
    file.parent.mkdir(parents=True)
    file.write_text("| a | b |", encoding="utf-8")
    with pytest.raises(ValueError, match="not that of commit"):
        [*truth_of_tables.listed(tmp_path)]


@pytest.mark.long
def test_planted_faults_are_found_in_large_tables_and_clean_tables_hardly_ever_alarm() -> None:
    found = {(fault, size): seen / tried for fault, size, tried, seen in truth_of_tables.found(12)}
    assert all(found["rate, time and batch contradict each other", f"{a}x{b}"] == 1 for a, b in truth_of_tables.SIZES)
    assert min(found[fault, "24x12"] for fault in truth_of_tables.FAULTS) >= 0.8
    alarmed = [(tables, wrong) for _, tables, wrong in truth_of_tables.alarms(12)]
    assert sum(wrong for _, wrong in alarmed) <= 0.03 * sum(tables for tables, _ in alarmed)
