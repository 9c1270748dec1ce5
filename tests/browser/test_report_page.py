"""The report in a real browser, opened from disk as its reader does."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.look import chart, make_all_live
from tests.browser.pages import write_page
from tsuishi.report.output import vega

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
Open = Callable[..., "Page"]
PHONE = {"width": 390, "height": 844}
MOST_BYTES = 5_000_000


def test_it_opens_from_disk_with_its_charts_and_asks_for_nothing_else(open_page: Open, report: Path) -> None:
    page = open_page(report)
    assert page.title()
    charts = page.locator(".card .chart svg")
    assert charts.count() >= 1
    for number in range(charts.count()):
        box = charts.nth(number).bounding_box()
        assert box is not None
        assert box["width"] > 100
        assert box["height"] > 50


def test_every_chart_comes_alive_without_a_word_in_the_console(open_page: Open, report: Path) -> None:
    page = open_page(report)
    static = page.locator("[data-chart]").count()
    make_all_live(page)
    assert page.locator("[data-chart].live svg").count() == static


def test_a_live_chart_is_as_large_as_the_drawing_it_replaces(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks)
    sizes = "Array.from(document.querySelectorAll('[data-chart] svg'), svg => [svg.clientWidth, svg.clientHeight])"
    drawn = page.evaluate(sizes)
    assert len(drawn) == 1
    make_all_live(page)
    for (width, height), (live_width, live_height) in zip(drawn, page.evaluate(sizes), strict=True):
        assert live_width == pytest.approx(width, rel=0.1)
        assert live_height == pytest.approx(height, rel=0.1)


def test_the_page_is_small_enough_to_send(report: Path) -> None:
    assert report.stat().st_size < MOST_BYTES


@pytest.mark.parametrize("attack", ["script", "handler", "link", "eval", "style"])
def test_its_policy_forbids_whatever_it_does_not_name(browser: "Browser", blocks: Path, attack: str) -> None:
    page = browser.new_page()
    page.goto(blocks.as_uri())
    attacks = {
        "script": "document.body.append(Object.assign(document.createElement('script'), {textContent: 'done = 1'}))",
        "handler": "document.body.insertAdjacentHTML('beforeend', '<b id=attack onclick=\"done = 1\">b</b>');"
        " document.getElementById('attack').click()",
        "link": "document.body.insertAdjacentHTML('beforeend', '<a id=attack href=\"javascript:done = 1\">b</a>');"
        " document.getElementById('attack').click()",
        "eval": "setTimeout('done = 1', 0)",
        "style": "document.body.insertAdjacentHTML('beforeend', '<b id=attack style=\"position: fixed\">b</b>');"
        " if (getComputedStyle(document.getElementById('attack')).position === 'fixed') done = 1",
    }
    page.evaluate(f"() => {{ {attacks[attack]} }}")
    page.wait_for_timeout(100)
    assert page.evaluate("typeof done") == "undefined"
    page.close()


# What runs a script, or asks a server for something, where somebody writes it into a page.
PLANTED = """
<script>done = 1</script>
<script src="data:text/javascript,done = 1"></script>
<script src="planted.js"></script>
<script type="module">window.done = 1</script>
<img src="data:image/png;base64,x" onerror="done = 1">
<svg onload="done = 1"><script>done = 1</script><animate onbegin="done = 1" attributeName="x" dur="1s"/></svg>
<svg><foreignObject><iframe srcdoc="<script>parent.done = 1</script>"></iframe></foreignObject></svg>
<svg><image href="{server}/a.png"/><use href="data:image/svg+xml,<svg id='a'/>#a"/></svg>
<iframe src="javascript:parent.done = 1"></iframe>
<object data="data:text/html,<script>done = 1</script>"></object>
<link rel="stylesheet" href="data:text/css,h1{position:fixed}"><style>h1 { position: fixed }</style>
<base href="{server}/">
<form id="planted" action="{server}/"><input></form>
"""


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """The address of a server, and what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}", asked
        serving.shutdown()


@pytest.mark.parametrize("place", ["<header>", '<main id="main">', "<footer>"])
def test_what_is_planted_in_a_finished_page_does_nothing_and_the_page_goes_on(
    browser: "Browser", blocks: Path, tmp_path: Path, server: tuple[str, list[str]], place: str
) -> None:
    address, asked = server
    (tmp_path / "planted.js").write_text("done = 1")
    html = blocks.read_text(encoding="utf-8")
    assert html.count(place) == 1
    index = tmp_path / "index.html"
    index.write_text(html.replace(place, place + PLANTED.replace("{server}", address)), encoding="utf-8")
    page = browser.new_page()
    page.goto(index.as_uri())
    assert page.evaluate("[typeof done, document.baseURI]") == ["undefined", index.as_uri()]
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).position") == "static"
    page.get_by_label("source").select_option("B")
    assert page.get_by_text("4 of 8 rows").is_visible()
    page.evaluate("document.getElementById('planted').submit()")
    page.wait_for_timeout(200)
    assert (page.url, asked) == (index.as_uri(), [])
    page.close()


def test_what_is_planted_in_the_cache_is_in_no_page(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where .venv was made without ./invoke, and has no script.
    monkeypatch.setattr(vega, "MADE", tmp_path / "none.js")
    names, kept_in = ("A", "B", "C", "D", "E", "F", "G", "H", "I"), tmp_path / "kept"
    index = write_page(tmp_path, names, kept_in)
    whole = index.read_bytes()
    kept = list(kept_in.iterdir())
    assert {path.suffix for path in kept} == {".svg", ".js"}
    for path in kept:
        path.write_text("<svg><script>done = 1</script></svg>" if path.suffix == ".svg" else "window.done = 1")
    write_page(tmp_path, names, kept_in)
    page = open_page(index)
    assert page.evaluate("typeof done") == "undefined"
    make_all_live(page)
    assert index.read_bytes() == whole


def test_without_scripts_all_charts_and_rows_are_there_and_no_control_is(open_page: Open, blocks: Path) -> None:
    page = open_page(blocks, java_script_enabled=False)
    assert page.locator("[data-chart] svg").count() == 1
    assert page.locator("tbody tr:visible").count() == 13
    assert page.locator("button, select, input, .controls").count() == 0
    assert page.get_by_text("needs a browser that runs scripts").is_visible()


def test_without_scripts_the_report_reads_the_same(open_page: Open, report: Path) -> None:
    rows = [open_page(report, java_script_enabled=scripts).locator("tbody tr").count() for scripts in (True, False)]
    assert rows[0] == rows[1] > 20


def test_on_a_phone_only_tables_and_charts_scroll_not_the_page(open_page: Open, report: Path, blocks: Path) -> None:
    for index in (report, blocks):
        page = open_page(index, viewport=PHONE)
        make_all_live(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_the_contents_do_not_eat_the_screen_of_a_phone(open_page: Open, report: Path) -> None:
    page = open_page(report, viewport=PHONE)
    page.evaluate("scrollTo({top: 3000, behavior: 'instant'})")
    box = page.locator(".contents").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 0


def test_every_number_on_the_page_is_in_the_tables(open_page: Open, report: Path) -> None:
    page = open_page(report)
    exact = page.evaluate("Array.from(document.querySelectorAll('data[value]'), cell => cell.value)")
    assert len(exact) > 20
    text = "\n".join(path.read_text(encoding="utf-8") for path in (report.parent / "tables").glob("*.csv"))
    cells = set(text.replace("\n", ",").split(","))
    assert [value for value in exact if value not in cells] == []


def test_it_prints_what_is_open(open_page: Open, report: Path, tmp_path: Path) -> None:
    page = open_page(report)
    few = len(page.pdf(path=str(tmp_path / "few.pdf")))
    page.get_by_role("button", name="Open all").click()
    make_all_live(page)
    printed = page.pdf(path=str(tmp_path / "all.pdf"))
    assert printed.startswith(b"%PDF")
    assert len(printed) > 1.5 * few


def test_print_all_opens_everything_draws_every_chart_and_folds_it_again(open_page: Open, report: Path) -> None:
    page = open_page(report)
    drawn = "document.querySelectorAll('[data-chart].live').length"
    page.evaluate(f"() => {{ window.print = () => {{ document.body.dataset.printed = {drawn} }} }}")
    folded, charts = page.locator("details:not([open])").count(), page.locator("[data-chart]").count()
    assert folded > 0
    page.get_by_role("button", name="Print all").click()
    page.locator(f"body[data-printed='{charts}']").wait_for()
    assert charts > 0
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == folded


def test_hostile_names_are_text_on_the_page_in_live_charts_and_in_the_explorer(open_page: Open, hostile: Path) -> None:
    page = open_page(hostile)
    assert page.locator("script:not([type])").count() == 2
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text() == "<script>alert(1)</script>"
    assert page.locator("h2").inner_text() == "</script><script>alert(1)</script>"
    make_all_live(page)
    assert "<!--<script>" in chart(page).locator(".role-legend-label text").all_text_contents()
    chart(page).locator(".mark-symbol.role-mark path").first.hover()
    assert "<script>" in page.locator("#vg-tooltip-element").inner_text()
    options = page.get_by_label("trial", exact=True).locator("option").all_text_contents()
    assert "</script><script>alert(1)</script> 1" in options
    page.get_by_label("source").select_option("</script><script>alert(1)</script>")
    assert page.get_by_text("4 of 8 rows").is_visible()


def test_the_report_of_a_hostile_run_is_a_page_like_any_other(open_page: Open, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    assert page.locator("script:not([type])").count() == 2
    assert page.locator("img").count() == 0
    assert page.locator("[data-chart]").count() > 0
    make_all_live(page)
    trial = page.locator(".explorer .role-legend-label text", has_text="</script><script>alert(1)</script>")
    assert trial.count() > 0
    assert page.viewport_size is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
