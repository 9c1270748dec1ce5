"""The page for readers who do not see it as it was drawn: axe-core, contrast, structure."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.look import make_all_live

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
Open = Callable[..., "Page"]
SCHEMES = ("light", "dark")


def serious(page: "Page") -> list[str]:
    """What axe-core finds serious or critical, with the first place of each."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_serious_in_the_report(open_page: Open, report: Path, scheme: str) -> None:
    page = open_page(report, color_scheme=scheme, bypass_csp=True)
    for details in page.locator("details").all():
        details.evaluate("details => details.open = true")
    make_all_live(page)
    assert serious(page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_serious_in_any_block(open_page: Open, blocks: Path, scheme: str) -> None:
    page = open_page(blocks, color_scheme=scheme, bypass_csp=True)
    make_all_live(page)
    assert serious(page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_and_verdicts_can_be_read_in_light_and_dark(open_page: Open, blocks: Path, scheme: str) -> None:
    page = open_page(blocks, color_scheme=scheme)
    looks = "element => { const style = getComputedStyle(element); return [style.color, style.backgroundColor] }"
    assert contrast(*page.locator("body").evaluate(looks)) >= 7
    badges = page.locator(".badge").all()
    assert len(badges) == 8
    for badge in badges:
        assert contrast(*badge.evaluate(looks)) >= 4.5


def test_it_has_one_title_landmarks_and_a_way_past_the_contents(open_page: Open, report: Path) -> None:
    page = open_page(report)
    assert page.locator("h1").count() == 1
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(landmark).count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.hash") == "#main"
    assert page.locator("table").count() == page.locator("table > caption").count()
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator("html").get_attribute("lang") == "en"


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two CSS rgb() colours (WCAG 2.2, relative luminance)."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
