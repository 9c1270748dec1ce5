"""Data sets over real HTTP: fetched whole or not at all, gone on from where it stopped, and never another file."""

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests import cifar10_file
from tsuishi.artifacts import datasets
from tsuishi.artifacts.datasets import CIFAR10, DataSet, at_hand, fetch
from tsuishi.base.errors import UserError

FILE = "cifar-10-python.tar.gz"
ADVICE = (
    "; `invoke fetch-data` goes on with the kept part; --url gives another address; "
    "docs/sites.md shows ways around a network"
)


@dataclass
class Site:
    """A web server with one file, which may not know ranges, may cut, dawdle, and change its mind."""

    content: bytes
    url: str = ""
    ranges: bool = True
    # Whether it says how long a file is.
    sized: bool = True
    # Bytes after which the connection ends.
    cut: int | None = None
    # A partial answer from somewhere else than asked for.
    shifted: bool = False
    asked: list[dict[str, str]] = field(default_factory=list)

    @property
    def netloc(self) -> str:
        return self.url.split("/")[2]

    def ranges_asked(self) -> list[str | None]:
        return [headers.get("Range") for headers in self.asked]


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        site, headers = self.site, dict(self.headers)
        site.asked.append(headers)
        begin = 0
        if "Range" in headers and site.ranges:
            begin = int(headers["Range"].removeprefix("bytes=").removesuffix("-"))
        if self.path != f"/{FILE}":
            self.answer(404, b"no such file")
        elif begin >= len(site.content):
            self.answer(416, b"")
        else:
            self.answer(206 if begin else 200, site.content[begin:], begin)

    def answer(self, code: int, body: bytes, begin: int = 0) -> None:
        site = self.site
        self.send_response(code)
        if site.sized:
            self.send_header("Content-Length", str(len(body)))
        # What servers say of a .tar.gz: the file must not be decompressed for it.
        self.send_header("Content-Encoding", "x-gzip")
        if code == 206:
            size = len(site.content)
            self.send_header("Content-Range", f"bytes {begin + site.shifted}-{size - 1}/{size}")
        self.end_headers()
        body = body if site.cut is None else body[: site.cut]
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for start in range(0, len(body), 1 << 16):
                self.wfile.write(body[start : start + (1 << 16)])

    def log_message(self, *arguments: object) -> None:
        pass


def serve(site: Site) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Served", (Handler,), {"site": site}))
    site.url = f"http://127.0.0.1:{server.server_port}/{FILE}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small file in the real format."""
    path = tmp_path_factory.mktemp("made") / FILE
    cifar10_file.write_random(path, images=100)
    return path.read_bytes()


@pytest.fixture
def site(content: bytes) -> Iterator[Site]:
    made = Site(content)
    server = serve(made)
    yield made
    server.shutdown()
    server.server_close()


def data_set(content: bytes) -> DataSet:
    return DataSet("CIFAR-10", FILE, (), len(content), hashlib.sha256(content).hexdigest())


@dataclass
class Host:
    """A cache, and what was said and counted while fetching into it."""

    cache: Path
    wanted: DataSet
    said: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def fetch(self, *urls: str) -> Path:
        self.sizes.clear()
        return fetch(self.cache, urls, self.said.append, self.sizes.append, self.wanted)

    def refused(self, *urls: str) -> str:
        with pytest.raises(UserError) as caught:
            self.fetch(*urls)
        assert not (self.cache / "data" / FILE).exists()
        return str(caught.value)

    def part(self) -> Path:
        return self.cache / "data" / f"{FILE}.part"

    def files(self) -> list[str]:
        return sorted(path.name for path in (self.cache / "data").iterdir())


@pytest.fixture
def host(tmp_path: Path, content: bytes) -> Host:
    return Host(tmp_path / "cache", data_set(content))


def test_a_file_is_fetched_whole_counted_and_left_alone_the_next_time(host: Host, site: Site) -> None:
    path = host.fetch(site.url)
    assert path == host.cache / "data" / FILE
    assert path.read_bytes() == site.content
    assert sum(host.sizes) == len(site.content)
    assert host.files() == [FILE]
    assert host.said == [f"fetching {FILE} from {site.netloc}"]
    assert host.fetch(site.url) == path
    assert host.said[1:] == [f"{path}: there already, and whole"]
    assert len(site.asked) == 1


def test_a_cut_is_told_and_gone_on_from(host: Host, site: Site) -> None:
    site.cut = len(site.content) // 3
    told = host.refused(site.url)
    assert told.startswith(
        f"CIFAR-10 cannot be fetched: {site.url}: the connection broke off (peer closed connection without "
    )
    assert f" ({site.cut} of {len(site.content)} bytes are kept)" in told
    assert told.endswith(ADVICE)
    assert host.files() == [f"{FILE}.part"]
    kept, site.cut = site.cut, None
    assert host.fetch(site.url).read_bytes() == site.content
    assert site.ranges_asked() == [None, f"bytes={kept}-"]
    assert host.said[-1] == f"going on with {FILE} from {site.netloc}"
    assert sum(host.sizes) == len(site.content)
    assert host.files() == [FILE]


def test_a_server_that_knows_no_ranges_gives_it_all_again(host: Host, site: Site) -> None:
    site.cut, site.ranges = 1000, False
    host.refused(site.url)
    site.cut = None
    assert host.fetch(site.url).read_bytes() == site.content
    assert host.said[-1] == f"fetching {FILE} from {site.netloc}"
    assert sum(host.sizes) == len(site.content)


def test_a_changed_file_is_found_by_the_hash_and_begun_anew(host: Host, site: Site, content: bytes) -> None:
    site.content, site.cut = bytes(len(content)), 1000
    host.refused(site.url)
    site.content, site.cut = content, None
    assert host.fetch(site.url).read_bytes() == content
    assert site.ranges_asked() == [None, "bytes=1000-", None]
    assert host.said[-2:] == [
        f"the kept part of {FILE} does not fit {site.url}: starting over",
        f"fetching {FILE} from {site.netloc}",
    ]


@pytest.mark.parametrize(("size", "told"), [(500, "at most 1000"), (5000, "5000")])
def test_what_is_kept_is_not_given_up_for_another_file(
    host: Host, site: Site, content: bytes, size: int, told: str
) -> None:
    site.cut = 1000
    host.refused(site.url)
    site.content, site.cut, site.ranges = bytes(size), None, size < 1000  # a page of a login is sent whole
    assert host.refused(site.url) == (
        f"CIFAR-10 cannot be fetched: {site.url}: it has {told} bytes, and {FILE} {len(content)} (1000 of "
        f"{len(content)} bytes are kept){ADVICE}"
    )
    site.content, site.ranges = content, True
    assert host.fetch(site.url).read_bytes() == content
    assert site.ranges_asked() == [None, "bytes=1000-", "bytes=1000-"]


def test_other_bytes_than_asked_for_are_not_put_together(host: Host, site: Site) -> None:
    site.cut = 1000
    host.refused(site.url)
    site.cut, site.shifted = None, True
    assert host.fetch(site.url).read_bytes() == site.content
    assert site.ranges_asked() == [None, "bytes=1000-", None]


def test_another_address_goes_on_where_the_first_stopped(host: Host, site: Site, content: bytes) -> None:
    second = Site(content)
    server = serve(second)
    try:
        site.cut = 1000
        assert host.fetch(site.url, second.url).read_bytes() == content
    finally:
        server.shutdown()
        server.server_close()
    assert second.ranges_asked() == ["bytes=1000-"]


def test_another_file_is_refused_with_both_sums_and_leaves_nothing(host: Host, site: Site) -> None:
    site.content, site.sized = b"<html>Please log in</html>", False
    assert host.refused(site.url) == (
        f"CIFAR-10 cannot be fetched: {site.url}: sha256 is {hashlib.sha256(site.content).hexdigest()}, expected "
        f"{host.wanted.sha256}: that is an HTML page{ADVICE}"
    )
    assert host.files() == []


def test_a_folder_of_this_machine_will_do(host: Host, tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    (url,) = datasets.places([f"file://{tmp_path}/"], host.wanted)
    assert host.fetch(url).read_bytes() == content


def test_every_address_that_fails_is_told(host: Host, site: Site) -> None:
    first, second = "http://127.0.0.1:9/none", site.url.replace(FILE, "gone")
    told = host.refused(first, second)
    assert told == (
        f"CIFAR-10 cannot be fetched: {first}: [Errno 111] Connection refused; {second}: 404 Not Found{ADVICE}"
    )
    assert host.files() == []


def test_an_altered_file_is_fetched_again(host: Host, site: Site) -> None:
    path = host.fetch(site.url)
    path.write_bytes(b"altered")
    assert host.fetch(site.url).read_bytes() == site.content
    assert f"{FILE} was altered: fetching it again" in host.said


def test_nothing_is_at_hand_until_it_is_fetched(host: Host, site: Site) -> None:
    assert at_hand(None, host.cache, host.wanted) is None
    path = host.fetch(site.url)
    found = at_hand(None, host.cache, host.wanted)
    assert found is not None
    assert (found.path, found.record) == (path, {"file": FILE, "sha256": host.wanted.sha256})


def test_what_is_given_is_a_file_under_any_name_or_a_folder(host: Host, tmp_path: Path, content: bytes) -> None:
    for name in ("of-ada.tgz", FILE):
        (tmp_path / name).write_bytes(content)
    for given in (tmp_path / "of-ada.tgz", tmp_path):
        found = at_hand(given, host.cache, host.wanted)
        assert found is not None
        assert found.name == FILE, "a user's own name for it is not told"


def test_what_is_given_and_not_there_or_another_file_is_refused(host: Host, tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UserError) as caught:
        at_hand(tmp_path, host.cache, host.wanted)
    assert str(caught.value) == f"--data: there is no file {tmp_path / FILE}: `invoke fetch-data` gets {FILE}"
    (tmp_path / FILE).write_bytes(b"other")
    other = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(UserError) as caught:
        at_hand(tmp_path, host.cache, host.wanted)
    assert str(caught.value) == (
        f"{tmp_path / FILE} is not CIFAR-10: its sha256 is {other}, expected {host.wanted.sha256}; give another --data"
    )


def test_a_fetched_file_that_was_altered_is_refused(host: Host, site: Site) -> None:
    host.fetch(site.url).write_bytes(b"other")
    with pytest.raises(UserError, match=r"; get it again with `invoke fetch-data`$"):
        at_hand(None, host.cache, host.wanted)


def test_places_are_the_publishers_unless_folders_are_configured() -> None:
    assert datasets.places([]) == list(CIFAR10.urls)
    assert datasets.places(["https://a/data/", "https://b"]) == [f"https://a/data/{FILE}", f"https://b/{FILE}"]
