"""How tests look at a page."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page


@contextmanager
def started(executable: str) -> Iterator["Browser"]:
    """A Chromium that looks at pages of this machine alone."""
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        yield browser
        browser.close()


def open_all(page: "Page") -> None:
    """Open whatever is folded, sections and tables."""
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")


def make_all_live(page: "Page") -> None:
    """Pass every chart, as a reader who scrolls does, until each is drawn by the page's scripts."""
    open_all(page)
    charts = page.locator("[data-chart], .explorer .chart")
    for number in range(charts.count()):
        charts.nth(number).scroll_into_view_if_needed()
        charts.nth(number).and_(page.locator(".live")).wait_for(state="attached")


def chart(page: "Page") -> "Locator":
    """The first chart, live."""
    first = page.locator("[data-chart]").first
    first.scroll_into_view_if_needed()
    first.and_(page.locator(".live")).wait_for(state="attached")
    return first
