"""A browser, and pages of which nothing may go wrong and nothing may leave the machine."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.look import started
from tests.browser.pages import HOSTILE, write_page
from tests.conftest import missing
from tests.hostile_run import hostile_run
from tests.reports import make_report
from tests.synthetic_run import write_example
from tsuishi.base.checkout import Checkout

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Request


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    executable = shutil.which("chromium")
    if executable is None:
        missing("no chromium")
    with started(executable) as browser:
        yield browser


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the example run."""
    root = tmp_path_factory.mktemp("report")
    checkout = Checkout()
    return make_report([write_example(root / "example")], checkout.published, checkout.templates, root / "out")


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run of hostile names."""
    root = tmp_path_factory.mktemp("hostile_report")
    checkout = Checkout()
    return make_report([hostile_run(root / "run").finish()], checkout.published, checkout.templates, root / "out")


@pytest.fixture(scope="session")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with one block of every kind."""
    return write_page(tmp_path_factory.mktemp("blocks"), ("A", "B", "C", "D", "E", "F", "G", "H", "I"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same page with names nobody wants."""
    return write_page(tmp_path_factory.mktemp("hostile"), HOSTILE)


@pytest.fixture
def open_page(browser: "Browser") -> Iterator[Callable[..., "Page"]]:
    """Opens a file; at the end nothing may have gone wrong in it, and nothing may have been asked for but the file."""
    complaints: list[str] = []
    pages = []

    def dismiss(dialog: "Dialog") -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open_it(index: Path, **options: Any) -> "Page":
        def check(request: "Request") -> None:
            if request.url != index.as_uri():
                complaints.append(f"asked for {request.url}")

        page = browser.new_page(**options)
        page.set_default_timeout(60_000)  # beside a test that measures on every core
        pages.append(page)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", dismiss)
        page.on("request", check)
        page.goto(index.as_uri())
        return page

    yield open_it
    for page in pages:
        page.close()
    assert complaints == []
