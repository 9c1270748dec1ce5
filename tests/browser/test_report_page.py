"""The report in a real browser, opened from disk as its reader does."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import missing
from tests.synthetic_run import write_example
from tsuishi.report.folder import make_report
from tsuishi.rooms import Rooms

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    run = write_example(root / "results" / "example")
    rooms = Rooms()
    return make_report([run], rooms.published, rooms.templates, root / "out")


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    executable = shutil.which("chromium")
    if executable is None:
        missing("no chromium")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=arguments)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: "Browser", index: Path) -> Iterator[Any]:
    """Opens the report; at the end nothing may have gone wrong in it, and nothing may have left the machine."""
    complaints: list[str] = []
    pages = []

    def open_it(**options: Any) -> "Page":
        page = browser.new_page(**options)
        pages.append(page)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request", lambda request: request.url == index.as_uri() or complaints.append(f"asked for {request.url}")
        )
        page.goto(index.as_uri())
        return page

    yield open_it
    for page in pages:
        page.close()
    assert complaints == []


def test_it_opens_from_disk_with_its_charts_and_asks_for_nothing_else(open_page: Any) -> None:
    page = open_page()
    assert page.title()
    charts = page.locator("svg")
    assert charts.count() >= 3
    for number in range(charts.count()):
        box = charts.nth(number).bounding_box()
        assert box["width"] > 100
        assert box["height"] > 50


def test_on_a_phone_only_tables_scroll_not_the_page(open_page: Any) -> None:
    page = open_page(viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(open_page: Any, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    text, ground = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert contrast(text, ground) >= 7


def test_every_number_on_the_page_is_in_the_tables(open_page: Any, index: Path) -> None:
    page = open_page()
    exact = page.evaluate("Array.from(document.querySelectorAll('data[value]'), cell => cell.value)")
    assert len(exact) > 20
    text = "\n".join(path.read_text() for path in (index.parent / "tables").glob("*.csv"))
    cells = set(text.replace("\n", ",").split(","))
    assert [value for value in exact if value not in cells] == []


def test_it_prints(open_page: Any, tmp_path: Path) -> None:
    page = open_page()
    printed = page.pdf(path=str(tmp_path / "report.pdf"))
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") >= 2


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two CSS rgb() colours (WCAG 2.2, relative luminance)."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
