"""What is folded, and how readers open it: by pointer, by keys, by a link or an address."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.look import open_all

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
Open = Callable[..., "Page"]
HEIGHT = "document.documentElement.scrollHeight"
# On the example run: a page of the screen size that it was made for, and a phone.
MOST_HEIGHT = {1280: 6000, 390: 8000}


def is_open(page: "Page", anchor: str) -> bool:
    return bool(page.locator(f"details:has(> summary #{anchor})").evaluate("details => details.open"))


def test_only_the_summary_is_open_and_the_page_is_short(open_page: Open, report: Path) -> None:
    for width, most in MOST_HEIGHT.items():
        page = open_page(report, viewport={"width": width, "height": 800})
        assert page.evaluate(HEIGHT) < most
        sections = page.locator("main > section")
        assert sections.count() > 5
        assert sections.nth(0).locator("> details.folded").count() == 0
        assert page.locator("details.folded").count() == sections.count() - 1
        assert page.locator("details[open]").count() == 0


def test_a_section_opens_by_keys_and_its_charts_are_drawn_then_and_not_before(open_page: Open, report: Path) -> None:
    page = open_page(report)
    charts = page.locator("details:has(> summary #suite-conv2d) [data-chart]")
    assert charts.count() > 0
    page.wait_for_timeout(300)
    assert page.locator("[data-chart].live").count() == 0
    for _ in range(100):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.querySelector('h2')?.id") == "suite-conv2d":
            break
    page.keyboard.press("Enter")
    assert is_open(page, "suite-conv2d")
    for number in range(charts.count()):
        charts.nth(number).and_(page.locator(".live")).wait_for(state="attached")
    page.keyboard.press("Space")
    assert not is_open(page, "suite-conv2d")


def test_every_fold_is_reached_and_opened_by_keys_alone(open_page: Open, report: Path) -> None:
    page = open_page(report)
    count = page.locator("main > section > details, main > section:first-child details").count()
    reached = set()
    for _ in range(300):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            reached.add(page.evaluate("document.activeElement.textContent"))
            page.keyboard.press("Enter")
            assert page.evaluate("document.activeElement.parentElement.open")
            page.keyboard.press("Enter")
    assert len(reached) == count


def test_a_link_and_an_address_open_what_is_folded_around_their_place(open_page: Open, report: Path) -> None:
    page = open_page(report)
    link = page.locator(".contents a[href='#suite-conv2d']")
    for _ in range(2):  # the second time, the address stays the same
        page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = false })")
        link.click()
        page.locator("details[open] > summary #suite-conv2d").wait_for()
    assert not is_open(page, "claims")
    page.locator(".contents a[href='#claims']").click()
    page.locator("details[open] > summary #claims").wait_for()
    page.go_back()
    page.wait_for_url("**#suite-conv2d")
    page.goto(f"{report.as_uri()}#telemetry")
    page.reload()
    assert is_open(page, "telemetry")


def test_every_card_leads_to_its_evidence(open_page: Open, report: Path) -> None:
    page = open_page(report)
    links = page.locator(".card h3 a")
    assert links.count() > 0
    for number in range(links.count()):
        page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = false })")
        anchor = links.nth(number).get_attribute("href")
        links.nth(number).click()
        place = page.locator(f"[id='{anchor.removeprefix('#')}']" if anchor else "none")
        place.wait_for(state="visible")


@pytest.mark.parametrize("address", ["#%", "#nothing", "#main"])
def test_an_address_of_no_folded_place_does_no_harm(open_page: Open, report: Path, address: str) -> None:
    page = open_page(report)
    page.evaluate(f"location.hash = '{address}'")
    page.wait_for_timeout(100)
    assert page.locator("details[open]").count() == 0


def test_a_button_opens_all_and_closes_all(open_page: Open, report: Path) -> None:
    page = open_page(report)
    folded = page.locator("details.folded").count()
    page.get_by_role("button", name="Open all").click()
    assert page.locator("details.folded[open]").count() == folded
    page.get_by_role("button", name="Close all").click()
    assert page.locator("details.folded[open]").count() == 0
    assert page.get_by_role("button", name="Open all").is_visible()


def test_no_table_is_wider_than_the_page_but_in_a_frame_that_scrolls(open_page: Open, report: Path) -> None:
    page = open_page(report, viewport={"width": 1280, "height": 800})
    open_all(page)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    wide = "[...document.querySelectorAll('.scroll')].filter(part => part.scrollWidth > part.clientWidth + 1)"
    assert page.evaluate(f"{wide}.every(part => part.classList.contains('wide'))")
    assert page.evaluate(f"{wide}.length") <= 1


def test_without_scripts_sections_open_and_a_note_stands_for_their_charts(open_page: Open, report: Path) -> None:
    page = open_page(report, java_script_enabled=False)
    assert page.locator(".card .chart svg").count() > 0
    page.locator("summary:has(#suite-conv2d)").click()
    note = page.locator("details:has(> summary #suite-conv2d) [data-chart] .note").first
    assert note.is_visible()
    assert "needs a browser that runs scripts" in note.inner_text()
