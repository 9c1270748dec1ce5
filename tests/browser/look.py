"""How tests look at a page."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def make_all_live(page: "Page") -> None:
    """Pass every chart, as a reader who scrolls does, until each is drawn by the page's scripts."""
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
