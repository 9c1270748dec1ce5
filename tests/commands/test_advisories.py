"""Advisories on our own packages: by the real uv, of a service on this machine that answers as OSV does."""

import json
import shutil
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tsuishi.base import toml
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.commands.development import ADVISORIES, AcknowledgedFile, check_advisories

TODAY = date(2026, 11, 24)
ADVISORY = {
    "id": "GHSA-0000-0000-0001",
    "summary": "a template escapes",
    "details": "",
    "aliases": ["CVE-2026-0001"],
    "modified": "2026-01-01T00:00:00Z",
    "published": "2026-01-01T00:00:00Z",
    "affected": [],
}
NAMED = "jinja2"


class Osv(BaseHTTPRequestHandler):
    """Knows of an advisory on jinja2."""

    asked: list[str] = []

    def do_POST(self) -> None:
        queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        self.asked += [query["package"]["name"] for query in queries]
        known = {"vulns": [{"id": ADVISORY["id"], "modified": ADVISORY["modified"]}]}
        self._answer({"results": [known if query["package"]["name"] == NAMED else {} for query in queries]})

    def do_GET(self) -> None:
        self._answer(ADVISORY)

    def _answer(self, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is printed."""


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Osv)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The locks of this checkout, without anything acknowledged."""
    shutil.copy(Checkout().root / "requirements-test.lock", tmp_path)
    (tmp_path / ADVISORIES).write_text("")
    return tmp_path


def acknowledge(root: Path, **changed: str) -> None:
    entry = {
        "id": '"CVE-2026-0001"',
        "package": f'"{NAMED}"',
        "reason": '"we escape"',
        "until": "2027-01-01",
        **changed,
    }
    lines = "".join(f"{key} = {value}\n" for key, value in entry.items())
    (root / ADVISORIES).write_text(f"[[acknowledged]]\n{lines}")


@pytest.mark.long
def test_every_package_of_the_lock_is_asked_about_and_an_advisory_fails(
    root: Path, service: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Osv.asked.clear()
    assert not check_advisories(root, TODAY, service)
    printed = capfd.readouterr().out
    assert all(said in printed for said in (NAMED, "GHSA-0000-0000-0001", "a template escapes"))
    pins = [line for line in (root / "requirements-test.lock").read_text().splitlines() if line[:1].isalnum()]
    assert len({*Osv.asked}) > 0.9 * len(pins), "a few are for other systems"
    assert {"invoke", "pydantic", "pytest"} <= {*Osv.asked}


@pytest.mark.long
@pytest.mark.parametrize("id", ["GHSA-0000-0000-0001", "CVE-2026-0001"])
def test_what_is_acknowledged_does_not_fail_until_its_day(
    id: str, root: Path, service: str, capfd: pytest.CaptureFixture[str]
) -> None:
    acknowledge(root, id=f'"{id}"')
    assert check_advisories(root, TODAY, service)
    assert "a template escapes" not in capfd.readouterr().out
    assert not check_advisories(root, date(2027, 1, 1), service)
    assert "a template escapes" in capfd.readouterr().out


@pytest.mark.long
def test_an_entry_that_no_advisory_has_any_more_is_named(
    root: Path, service: str, capfd: pytest.CaptureFixture[str]
) -> None:
    acknowledge(root, id='"CVE-2026-0002"')
    assert not check_advisories(root, TODAY, service)
    assert "CVE-2026-0002" in capfd.readouterr().err


@pytest.mark.long
def test_where_nobody_answers_that_is_said_and_passes_for_nothing(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not check_advisories(root, TODAY, "http://127.0.0.1:9")
    assert "Connection refused" in capfd.readouterr().err


@pytest.mark.parametrize("changed", [{"until": '"soon"'}, {"why": '"x"'}])
def test_a_wrong_entry_is_refused(root: Path, changed: dict[str, str]) -> None:
    acknowledge(root, **changed)
    with pytest.raises(UserError, match=r"advisories\.toml: .*key 'acknowledged"):
        check_advisories(root, TODAY, "http://127.0.0.1:9")


def test_the_file_of_this_checkout_is_read() -> None:
    toml.load(Checkout().root / ADVISORIES, AcknowledgedFile)
