"""Doubts about numbers that are no cases here: language models, unknown cards, devices in the name of hardware."""

from typing import Any

import pytest

from tests.extras.tables.test_columns import SHEETS, adopted
from tests.words import WORDS
from tsuishi.estimates.printed_doubts import PrintedDoubt
from tsuishi.extras.tables.as_printed import as_printed
from tsuishi.verdicts.doubtful import doubts_about, likely_text

CARDS = ("A10", "L4", "A100 40GB", "A100 80GB", "H100", "H200")
SPEEDS = (410.5, 238.4, 1190.2, 1311.7, 2487.3, 2963.8)
MODELS = {"llama-7b": 1.0, "llama-13b": 0.52, "falcon-7b": 0.93, "mpt-30b": 0.22, "phi-2": 2.7, "qwen-14b": 0.47}


def doubted(text: str, name: str = "table.md", **said: Any) -> list[PrintedDoubt]:
    found = adopted(text, name, **said)
    printed = map(as_printed, found.tables)
    return doubts_about(found.numbers(WORDS), found.hardware(), WORDS, SHEETS, printed)


def reasons(found: list[PrintedDoubt]) -> list[tuple[str, str]]:
    return [(doubt.cells[0].place.partition(", ")[2], doubt.reason) for doubt in found]


def speeds(**changed: str) -> str:
    """Tokens per second by language model and card, in CSV; changed: other texts by card, for the first model."""
    lines = [",".join(("model", *CARDS))]
    for model, factor in MODELS.items():
        texts = {
            card: f"{speed * factor * (1 + 0.03 * (len(card) % 3)):.1f}"
            for card, speed in zip(CARDS, SPEEDS, strict=True)
        }
        lines.append(",".join((model, *(texts | (changed if model == "llama-7b" else {})).values())))
    return "\n".join(lines) + "\n"


def test_a_lost_digit_in_a_table_of_language_models_without_a_unit() -> None:
    assert adopted(speeds(), "speeds.csv").mapped() == 0
    assert doubted(speeds(), "speeds.csv") == []
    (doubt,) = doubted(speeds(H100="261.7"), "speeds.csv")  # 2611.7
    assert (doubt.kind, doubt.check) == ("surprising", "digit")
    assert doubt.cells[0].place == "speeds.csv, row 1, column H100"
    assert likely_text(doubt, WORDS) == "2617"
    (doubt,) = doubted(speeds(A10="42281"), "speeds.csv")  # 422.8
    assert doubt.cells[0].text == "42281"


def test_rows_that_are_settings_of_one_thing_are_not_compared() -> None:
    """Times in a server's queue under 1 to 64 requests: the first need not wait."""
    rows = [
        f"| {n} | {90 * n} | {0.02 if n == 1 else 3.0 * n} | {9.1 * n} | {9.9 * n} | {12.0 * n} |" for n in range(1, 9)
    ]
    head = "| Requests | Rate | Queue | p50 | p90 | p99 |\n|-|-|-|-|-|-|\n"
    assert doubted(head + "\n".join(rows)) == []


@pytest.mark.parametrize(
    ("one", "four"),
    [
        ("Dell H100 80GB SXM5", "Dell 4x H100 80GB SXM5"),
        ("lab_1xH200_140GB", "lab_4xH200_140GB"),
        ("RTX A6000", "RTX A6000 (x4)"),
        ("1 GPU", "4 GPUs"),
    ],
)
def test_devices_in_the_name_of_hardware_are_devices(one: str, four: str) -> None:
    def table(ncf: int) -> str:
        return f"machine,ssd,ncf\n{one},865,70240500\n{four},3416,{ncf}\n"

    assert doubted(table(260586100), "m.csv") == []
    for wrong in (13346091200, 260586):
        ((place, reason),) = reasons(doubted(table(wrong), "m.csv"))
        assert place == "row 2, column ncf"
        assert reason.startswith("4 devices have ")


def test_devices_in_headers_and_in_a_column_of_counts() -> None:
    headers = "| model | V100 (img/s) | 4x V100 (img/s) |\n|-|-|-|\n| bert | 52 | {} |\n| gnmt | 800 | 3100 |\n"
    assert doubted(headers.format(201)) == []
    assert reasons(doubted(headers.format(2010))) == [
        ("row 1, column 4x V100 (img/s)", "4 devices are 38.7 times as fast as one")
    ]
    counts = "GPUs,batch size / GPU,bert throughput\n1,8,277\n1,2,117\n8,8,{}\n"
    assert doubted(counts.format(1783), "t.csv") == []
    assert reasons(doubted(counts.format(17830), "t.csv")) == [
        ("row 3, column bert throughput", "8 devices have 64.4 times the number of one")
    ]


def test_sizes_of_images_are_no_devices() -> None:
    table = "card,ssd\nV100 8x,61\nV100 1024x1024,900\nresnext101 32x4d on a V100,20\nV100,9\n"
    ((_, reason),) = reasons(doubted(table.replace("61", "610"), "m.csv"))
    assert reason == "8 devices have 67.8 times the number of one"
    assert doubted(table, "m.csv") == []


def test_the_same_number_twice_and_totals_of_unknown_networks() -> None:
    twice = "model,batch size,img/s\na-net,8,1234.56\nb-net,8,1234.56\nc-net,8,911.2\n"
    assert reasons(doubted(twice, "t.csv")) == [("row 1, column img/s", "1234.56 is printed for 2 cases")]
    # One row that is printed twice is one case.
    assert doubted(twice.replace("b-net", "a-net"), "t.csv") == []
    columns = {"all": "total_s", "first": "first_epoch_s", "later": "median_epoch_s"}
    totals = "model,all,first,later\na-net,101,11,10\nb-net,202,22,20\nc-net,303,33,30\nd-net,40,44,40\n"
    (doubt,) = doubted(totals, "t.csv", columns=columns, case={"batch_size": 8})
    assert (doubt.kind, doubt.check) == ("impossible", "total")
    assert likely_text(doubt, WORDS) == "404 s"


def test_a_number_of_a_case_is_doubted_once() -> None:
    """Four known networks among unknown ones: the others are their neighbours."""
    networks = ("resnet50", "vgg16", "cnn10", "a-net", "b-net", "c-net")
    cards = ("V100", "T4", "A100", "P100", "K80")
    rows = [
        ",".join((name, "64", *(f"{100 * (row + 1) * (card + 1):.1f}" for card in range(5))))
        for row, name in enumerate(networks)
    ]
    rows[0] = rows[0].replace("300.0", "30.0")
    text = "\n".join([",".join(("model", "batch size", *(f"{card} (img/s)" for card in cards))), *rows])
    found = [doubt for doubt in doubted(text, "t.csv") if doubt.cells[0].place == "t.csv, row 1, column A100 (img/s)"]
    assert [doubt.check for doubt in found] == ["digit"]
