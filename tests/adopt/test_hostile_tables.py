"""Tables made to break a reader: each is read, or refused in one line, in a time that grows with its length alone."""

import json
import time
from collections.abc import Callable

import pytest

from tests.adopt.test_columns import adopted, numbers
from tests.words import WORDS
from tsuishi.adopt.printed_quantities import quantity_of
from tsuishi.adopt.printed_values import PrintedValues
from tsuishi.base.errors import UserError
from tsuishi.specs.grids import MOST_CELLS, MOST_COLUMNS, MOST_OF_PAGE, grids

LONG = "word " * 100_000


def seconds(of: Callable[[], object]) -> float:
    begun = time.process_time()
    of()
    return time.process_time() - begun


@pytest.mark.parametrize("rate", ["1e300", "1e999", "1e-320"])
def test_a_rate_and_a_time_without_bounds_are_no_batch_size(rate: str) -> None:
    """Their product is infinite, and no integer."""
    table = f"model,precision,images/s,ms/step\nresnet50,fp32,{rate},{rate}\n"
    adoption = adopted(table, "table.csv")
    assert "batch size" in adoption.tables[0].unread


@pytest.mark.parametrize(
    "table",
    [
        "model,batch_size,images/s\nresnet50,{},100\n",
        "model,images/s (bs={})\nresnet50,100\n",
        "# Batch size {}\n\n| model | images/s |\n|---|---|\n| resnet50 | 100 |\n",
        "model,batch_size,images/s,GPUs\nresnet50,1,{},1\n",
    ],
)
def test_integers_of_thousands_of_digits_are_no_setting(table: str) -> None:
    """Python refuses to read them: ValueError."""
    assert numbers(adopted(table.format("9" * 5000), "table.md" if table[0] == "#" else "table.csv")) == []


def test_an_integer_of_json_with_thousands_of_digits_is_refused_in_a_line() -> None:
    with pytest.raises(UserError, match=r"^table\.json: not valid: Exceeds the limit"):
        adopted(f'[{{"model": "resnet50", "batch_size": {"9" * 5000}}}]', "table.json")


def test_the_words_of_a_header_take_a_time_in_proportion() -> None:
    """Each word had a copy of all that follow."""
    named = PrintedValues(WORDS)
    assert seconds(lambda: named.within("word " * 20_000)) < 3
    assert seconds(lambda: quantity_of("per image (" * 20_000)) < 3
    assert quantity_of("time per image, batch of 8 (ms)") == quantity_of("ms/image")


def test_a_quotation_mark_that_nothing_closes_is_refused_in_a_line() -> None:
    with pytest.raises(UserError, match=r"^table\.csv: not valid: no CSV: field larger than field limit"):
        adopted('model,images/s\nresnet50,"' + "1,\n" * 100_000, "table.csv")


def test_a_table_in_a_cell_of_a_table_is_a_table_of_its_own() -> None:
    inner = "<table><tr><th>model<th>images/s</tr><tr><td>vgg16<td>20</tr></table>"
    outer = f"<table><tr><th>model<th>images/s<tr><td>resnet50{inner}<td>10</tr><tr><td>cnn10<td>30</table>"
    found = grids("table.html", outer)
    assert [grid.rows for grid in found] == [(("vgg16", "20"),), (("resnet50", "10"), ("cnn10", "30"))]
    assert len(grids("table.html", "<table><tr><td>a" * 500 + "<tr><td>b</table>" * 500)) == 500


@pytest.mark.parametrize(
    ("name", "text", "bound"),
    [
        ("keys.json", json.dumps([{f"k{index}": 1} for index in range(2_000)]), f"{MOST_CELLS:,} cells"),
        ("wide.csv", "," * MOST_COLUMNS + "\n1", f"{MOST_COLUMNS:,} columns"),
        ("long.csv", "a\n" + "1\n" * MOST_CELLS, f"{MOST_CELLS:,} cells"),
        ("spans.html", "<table>" + "<tr><td colspan=100 rowspan=100>x" * 500, f"{MOST_COLUMNS:,} columns"),
        ("texts.html", f"<table><tr><td colspan=100 rowspan=9>{LONG}{'<tr>' * 9}", f"{MOST_CELLS:,} cells"),
        (
            "headings.html",
            f"<h1>{LONG}</h1>" + "<table><tr><td>a<tr><td>1</table>" * 200,
            f"{MOST_CELLS:,} cells",
        ),
        ("tables.json", json.dumps({f"t{of}": [{f"k{key}": 1} for key in range(600)] for of in range(9)}), "cells"),
        ("page.md", "[" * (MOST_OF_PAGE + 1), f"{MOST_OF_PAGE:,} characters"),
        ("page.html", "<" * (MOST_OF_PAGE + 1), f"{MOST_OF_PAGE:,} characters"),
        ("marked.html", "<![a<![a", "no HTML"),
        ("deep.json", json.dumps([{"k" * 1_000_000: {str(index): 1 for index in range(900)}}]), "key of more"),
    ],
)
def test_a_file_of_too_many_cells_or_of_none_is_refused_with_the_bound(name: str, text: str, bound: str) -> None:
    def read() -> None:
        with pytest.raises(ValueError, match=bound):
            grids(name, text)

    assert seconds(read) < 5


def test_the_facts_above_a_page_take_a_time_in_proportion() -> None:
    """Lines that begin with "-" were read in two ways each."""
    begun = "---\n" + "-a: b\n" * 1_000
    assert seconds(lambda: grids("table.md", begun)) < 3
    table = "| model | images/s |\n|---|---|\n| resnet50 | 100 |\n"
    (grid,) = grids("table.md", f"{begun}---\n{table}")
    assert grid.heading == ()
    assert grid.rows == (("resnet50", "100"),)
