"""The table of releases: what a row says, and that it goes between two marks of a page."""

from pathlib import Path

import pytest

from benchmarks import releases
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.specs.environment import read_environment
from tsuishi.specs.suite import read_suite

NAMED = ("tf2.16-cpu", "2.16.2", "2024-06-28", "3.11")


def row(**found: object) -> tuple[str, ...]:
    return releases.row(read_environment(Checkout().images / "tf2.16-cpu.toml"), found)


def test_a_row_says_what_ran_and_why_the_rest_did_not() -> None:
    statuses = {
        "parity steady mlp training none 1": ["ok", ""],
        "parity steady cnn10 training mirrored 2": [
            "unsupported",
            "Unsupported: strategy 'mirrored': the optimizer of Keras 3.4.1 does not add up the gradients",
        ],
        "conv2d literal towers 3": ["failed", "no answer"],
    }
    assert row(built_s=52.8, size_bytes=1.7e9, numpy="1.26.4", error=2.5e-05, statuses=statuses) == (
        *NAMED,
        "1.26.4",
        "1.7 GB",
        "53 s",
        "2.5e-05",
        "1 of 3",
        "failed: conv2d literal towers 3: no answer; strategy 'mirrored'",
    )


def test_a_row_of_an_environment_that_was_not_built_says_why() -> None:
    assert row(failed="tf2.16-cpu does not report what it promises") == (
        *NAMED,
        *[""] * 5,
        "tf2.16-cpu does not report what it promises",
    )


def test_the_table_stands_between_the_marks_and_the_rest_of_the_page_stays(tmp_path: Path) -> None:
    page = tmp_path / "releases.md"
    page.write_text(f"before\n{releases.BEGIN}\nold\n{releases.END}\nafter\n")
    rows = [row(failed="no")]
    for _ in range(2):
        releases.write_table(page, rows)
    lines = page.read_text().splitlines()
    assert lines[0] == "before"
    assert lines[-1] == "after"
    assert lines[4] == "| tf2.16-cpu | 2.16.2 | 2024-06-28 | 3.11 |  |  |  |  |  | no |"
    assert len(lines) == 7
    page.write_text("no marks\n")
    with pytest.raises(UserError, match="put <!-- releases"):
        releases.write_table(page, rows)


def test_the_page_of_this_checkout_has_the_marks() -> None:
    text = (Checkout().root / releases.PAGE).read_text()
    assert text.index(releases.BEGIN) < text.index(releases.END)


def test_of_every_case_that_a_suite_has_it_is_known_whether_it_is_wanted() -> None:
    checkout = Checkout()
    for name in releases.SUITES:
        cases = [case for case, _ in read_suite(checkout.suites / f"{name}.toml", WORDS).cases("smoke", "cpu", None)]
        assert any(map(releases.is_wanted, cases))
        assert not all(map(releases.is_wanted, cases))
