"""What a reader can do with the page, by pointer and by keys."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.look import chart
from tests.browser.pages import TRIALS

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser
Open = Callable[..., "Page"]


def column(table: "Locator", number: int) -> list[str]:
    """A column as shown, without the notes of its cells."""
    cells = table.locator(f"tbody tr:visible > :nth-child({number})")
    return [text.strip().splitlines()[0].split(" (best)")[0] for text in cells.all_inner_texts()]


def numbers(page: "Page") -> "Locator":
    return page.locator("table", has_text="throughput").first


def verdicts(page: "Page") -> "Locator":
    return page.locator("table[data-filters]")


def test_a_column_of_numbers_sorts_by_the_numbers_and_what_is_absent_stays_last(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    header = page.get_by_role("button", name="throughput, images/s")
    head = page.get_by_role("columnheader", name="throughput, images/s")
    as_it_was = ["0.5", "12.2", "3.0", "not measured", "100.0"]
    for order, expected in (
        ("ascending", ["0.5", "3.0", "12.2", "100.0", "not measured"]),
        ("descending", ["100.0", "12.2", "3.0", "0.5", "not measured"]),
        (None, as_it_was),
    ):
        header.click()
        assert column(numbers(page), 2) == expected
        assert head.get_attribute("aria-sort") == order


def test_a_column_of_text_sorts_by_the_text(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    verdicts(page).get_by_role("button", name="verdict").click()
    shown = column(verdicts(page), 3)
    assert shown == sorted(shown)


def test_tables_sort_by_keys(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    button = page.get_by_role("button", name="throughput, images/s")
    button.focus()
    for key in ("Enter", "Space"):
        page.keyboard.press(key)
    assert column(numbers(page), 2)[0] == "100.0"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_filters_choose_rows_and_say_how_many(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    assert page.get_by_text("8 of 8 rows").is_visible()
    page.get_by_label("verdict").select_option("contradicted")
    assert column(verdicts(page), 3) == ["contradicted", "contradicted"]
    page.get_by_label("source").select_option("A")
    assert column(verdicts(page), 3) == []
    assert page.locator("output", has_text="0 of 8 rows").is_visible()
    page.get_by_label("verdict").select_option("all")
    assert set(column(verdicts(page), 2)) == {"A"}


def test_filters_are_chosen_by_keys(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    page.get_by_label("verdict").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert column(verdicts(page), 3) == ["contradicted", "contradicted"]


def test_filtered_rows_sort_and_stay_filtered(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    page.get_by_label("source").select_option("B")
    verdicts(page).get_by_role("button", name="verdict").click()
    assert column(verdicts(page), 3) == ["contradicted", "contradicted", "inconclusive", "inconclusive"]


def test_pointing_at_a_mark_tells_its_values(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    chart(page).locator(".mark-symbol.role-mark path").first.hover()
    told = page.locator("#vg-tooltip-element.visible")
    told.wait_for()
    rows = [row.split() for row in told.inner_text().splitlines() if row.strip()]
    assert ["series", "A"] in rows
    assert {row[0] for row in rows} == {"x", "y", "series"}


def opacities(page: "Page") -> list[float]:
    """How opaque the lines are."""
    lines = chart(page).locator(".mark-line.role-mark path")
    return [float(line.get_attribute("stroke-opacity") or line.get_attribute("opacity") or 1) for line in lines.all()]


def test_a_legend_entry_chooses_its_series_and_lets_go_of_it(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    assert opacities(page) == [1, 1, 1]
    entry = chart(page).get_by_role("button", name="A", exact=True)
    entry.click()
    pressed = chart(page).locator("[aria-pressed=true]")
    pressed.wait_for()
    assert sorted(opacities(page))[:2] == [0.12, 0.12]
    assert max(opacities(page)) == 1
    entry.click()
    pressed.wait_for(state="detached")
    assert opacities(page) == [1, 1, 1]


def test_legend_entries_are_chosen_by_keys_several_at_once(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    for name in ("A", "B"):
        chart(page).get_by_role("button", name=name, exact=True).focus()
        page.keyboard.press("Enter")
    chart(page).locator("[aria-pressed=true]").nth(1).wait_for()
    assert sorted(opacities(page)) == [0.12, 1, 1]


def panels(page: "Page") -> list[str]:
    """Titles of the y axes of the explorer."""
    titles = page.locator(".explorer .live .role-axis-title text").all_text_contents()
    return [title for title in titles if title in ("utilisation, %", "power, W")]


def test_the_explorer_draws_the_trial_that_is_chosen_with_the_quantities_it_has(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    choice = page.get_by_label("trial", exact=True)
    choice.scroll_into_view_if_needed()
    page.locator(".explorer .live svg").wait_for()
    assert choice.locator("option").count() == TRIALS
    assert panels(page) == ["utilisation, %"]
    assert {"H", "measure"} <= set(page.locator(".explorer .role-legend-label text").all_text_contents())
    choice.select_option(f"trial-{TRIALS - 1}")
    page.locator(".explorer .role-axis-title text", has_text="power, W").wait_for()
    assert panels(page) == ["utilisation, %", "power, W"]


def test_the_explorer_finds_trials_by_words(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    page.get_by_label("search").fill("e 13")
    assert page.get_by_label("trial", exact=True).locator("option").all_text_contents() == ["E 13"]
    assert page.get_by_text(f"1 of {TRIALS} trials").is_visible()
    page.locator(".explorer .role-axis-title text", has_text="power, W").wait_for()


def test_what_does_not_scroll_is_no_stop_of_the_tab_key_and_what_scrolls_is(open_page: Open, blocks: Path) -> None:
    for width, stop in ((1200, -1), (200, 0)):
        page = open_page(blocks, viewport={"width": width, "height": 800})
        page.locator(".scroll").first.and_(page.locator(f"[tabindex='{stop}']")).wait_for()
