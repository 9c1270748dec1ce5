"""Artefacts from a real index over HTTP and from folders: only what the lock pins ever gets into the cache, whole."""

import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest
from unearth import Link, PackageFinder

from tsuishi.artifacts import Cache, Fetcher, Sources, pip_sources
from tsuishi.environment import Base, Deb, Environment
from tsuishi.errors import UserError
from tsuishi.lock import Pin

WHEEL = "tiny-1.0-py3-none-any.whl"
CONTENT = bytes(range(256)) * 20_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()


@dataclass
class Index:
    """A package index as PEP 503 has it, whose files may be altered, cut short, moved or gone."""

    url: str = ""
    # Files by name; the page links to each with the hash given here, if any.
    files: dict[str, bytes] = field(default_factory=dict)
    stated: dict[str, str] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    cut: bool = False
    down: bool = False
    requests: list[str] = field(default_factory=list)

    def page(self) -> bytes:
        links = "".join(
            f'<a href="/files/{name}{f"#sha256={self.stated[name]}" if name in self.stated else ""}">{name}</a>\n'
            for name in self.files
        )
        return f"<!DOCTYPE html><html><body>{links}</body></html>".encode()


def serve(index: Index) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.requests.append(self.path)
            name = unquote(self.path.removeprefix("/files/"))
            if index.down:
                self.answer(503, b"down")
            elif self.path == "/simple/tiny/":
                self.answer(200, index.page(), "text/html")
            elif name in index.redirects:
                self.send_response(302)
                self.send_header("Location", f"/files/{index.redirects[name]}")
                self.end_headers()
            elif name in index.files and name not in index.missing:
                self.answer(200, index.files[name])
            else:
                self.answer(404, b"no such file")

        def answer(self, code: int, body: bytes, kind: str = "application/octet-stream") -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if index.cut and kind.endswith("stream") else body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_port}/simple"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


@pytest.fixture
def index() -> Iterator[Index]:
    served = Index(files={WHEEL: CONTENT}, stated={WHEEL: SHA256})
    server = serve(served)
    yield served
    server.shutdown()
    server.server_close()


@pytest.fixture
def second() -> Iterator[Index]:
    served = Index(files={WHEEL: CONTENT}, stated={WHEEL: SHA256})
    server = serve(served)
    yield served
    server.shutdown()
    server.server_close()


@dataclass
class Host:
    """A cache, and what was said and counted while fetching into it."""

    cache: Cache
    said: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def fetch(self, sources: Sources, *pins: Pin, indexes: tuple[str, ...] = ()) -> list[Path]:
        fetcher = Fetcher(self.cache, sources, self.said.append, self.sizes.append)
        return fetcher.fetch(environment(pins, indexes))

    def files(self) -> list[str]:
        """Everything in the cache, whatever it is called."""
        return sorted(str(path.relative_to(self.cache.root)) for path in self.cache.root.rglob("*") if path.is_file())


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(Cache(tmp_path / "cache"))


def environment(pins: tuple[Pin, ...], indexes: tuple[str, ...] = (), debs: tuple[Deb, ...] = ()) -> Environment:
    return Environment(
        name="env",
        title="t",
        framework="torch",
        accelerators=("cpu",),
        python="3.6",
        base=Base(reference="docker.io/library/python:3.6"),
        promises={"torch": "1"},
        pins=pins,
        indexes=indexes,
        debs=debs,
    )


def pin(*sha256: str, file: str | None = None) -> Pin:
    return Pin("tiny", "1.0", sha256 or (SHA256,), file)


def refused(host: Host, sources: Sources, *pins: Pin) -> str:
    """The error of a fetch that fails; whatever it was, the cache holds nothing after it."""
    with pytest.raises(UserError) as caught:
        host.fetch(sources, *pins)
    assert host.files() == []
    return str(caught.value)


def test_what_is_pinned_is_fetched_once_and_found_the_next_time(host: Host, index: Index) -> None:
    sources = Sources(indexes=(index.url,))
    (path,) = host.fetch(sources, pin())
    assert path == host.cache.root / SHA256 / WHEEL
    assert path.read_bytes() == CONTENT
    assert host.said == [f"fetching {WHEEL}"]
    assert sum(host.sizes) == len(CONTENT)
    assert index.requests == ["/simple/tiny/", f"/files/{WHEEL}"]
    assert host.fetch(Sources(), pin()) == [path]
    assert len(index.requests) == 2


def test_the_environments_own_index_is_asked_after_the_configured_ones(host: Host, index: Index, second: Index) -> None:
    index.files = {}
    host.fetch(Sources(indexes=(index.url,)), pin(), indexes=(second.url,))
    assert host.files() == [f"{SHA256}/{WHEEL}"]
    assert index.requests == ["/simple/tiny/"]


def test_an_altered_file_is_refused_with_both_hashes(host: Host, index: Index) -> None:
    index.files[WHEEL] = CONTENT[:-1] + b"!"
    actual = hashlib.sha256(index.files[WHEEL]).hexdigest()
    netloc = index.url.split("/")[2]
    assert refused(host, Sources(indexes=(index.url,)), pin()) == (
        f"{WHEEL}: sha256 is {actual}, the lock says {SHA256}; {netloc} gave something else than what was pinned: "
        "do not use it, or correct the lock"
    )


def test_a_body_cut_short_is_refused(host: Host, index: Index) -> None:
    index.cut = True
    said = refused(host, Sources(indexes=(index.url,)), pin())
    assert said.startswith(f"{index.url.removesuffix('/simple')}/files/{WHEEL}: peer closed connection without sending")
    assert said.endswith("; check the network, proxy and certificate settings")


def test_a_file_that_is_gone_is_said_with_its_url(host: Host, index: Index) -> None:
    index.missing = {WHEEL}
    said = refused(host, Sources(indexes=(index.url,)), pin())
    url = f"{index.url.removesuffix('/simple')}/files/{WHEEL}"
    assert said == (
        f"{url}: Client error '404 Not Found' for url '{url}'; check the network, proxy and certificate settings"
    )


def test_a_wrong_hash_in_the_lock_names_package_hash_and_what_was_found(host: Host, index: Index) -> None:
    assert refused(host, Sources(indexes=(index.url,)), pin(OTHER)) == (
        f"env.lock: no tiny==1.0 with sha256 {OTHER[:16]}… in the package indexes (found: {WHEEL}); "
        "correct the hash, or add an index that has it (tsuishi.indexes)"
    )


def test_a_version_nobody_has_is_said(host: Host, index: Index) -> None:
    index.files = {"tiny-2.0-py3-none-any.whl": CONTENT}
    assert refused(host, Sources(indexes=(index.url,)), pin()) == (
        f"env.lock: no tiny==1.0 with sha256 {SHA256[:16]}… in the package indexes (found: nothing of that version); "
        "correct the hash, or add an index that has it (tsuishi.indexes)"
    )


def test_an_index_out_of_reach_hides_none_of_the_others_and_is_named_where_none_helps(host: Host, index: Index) -> None:
    closed = "http://127.0.0.1:9/simple"
    said = refused(host, Sources(indexes=(closed,)), pin())
    assert "(found: nothing of that version; [Errno 111] Connection refused)" in said
    host.fetch(Sources(indexes=(closed, index.url)), pin())
    assert host.files() == [f"{SHA256}/{WHEEL}"]


def test_an_index_that_answers_with_an_error_hides_none_of_the_others(host: Host, index: Index, second: Index) -> None:
    index.down = True
    host.fetch(Sources(indexes=(index.url, second.url)), pin())
    assert host.files() == [f"{SHA256}/{WHEEL}"]


@pytest.mark.parametrize("fault", ["missing", "altered", "cut"])
def test_a_file_broken_in_one_index_is_taken_from_the_next(host: Host, index: Index, second: Index, fault: str) -> None:
    if fault == "missing":
        index.missing = {WHEEL}
    elif fault == "altered":
        index.files[WHEEL] = b"something else"
    else:
        index.cut = True
    host.fetch(Sources(indexes=(index.url, second.url)), pin())
    assert host.files() == [f"{SHA256}/{WHEEL}"]


def test_a_redirect_is_followed(host: Host, index: Index) -> None:
    index.files = {WHEEL: b"", "moved": CONTENT}
    index.redirects = {WHEEL: "moved"}
    host.fetch(Sources(indexes=(index.url,)), pin())
    assert host.files() == [f"{SHA256}/{WHEEL}"]


def test_without_hashes_in_the_index_the_file_name_of_the_lock_decides(host: Host, index: Index) -> None:
    index.files = {"tiny-1.0-cp39-cp39-win_amd64.whl": b"not this", WHEEL: CONTENT, "tiny-1.0.tar.gz": b"nor this"}
    index.stated = {}
    host.fetch(Sources(indexes=(index.url,)), pin(file=WHEEL))
    assert host.files() == [f"{SHA256}/{WHEEL}"]
    assert index.requests == ["/simple/tiny/", f"/files/{WHEEL}"]


def test_of_several_pinned_files_each_keeps_its_own_name(host: Host, index: Index) -> None:
    """A lock with a hash for the wheel and one for the sdist: the first is gone, the second is stored as what it is."""
    sdist = b"an sdist"
    index.files = {WHEEL: CONTENT, "tiny-1.0.tar.gz": sdist}
    index.stated = {name: hashlib.sha256(content).hexdigest() for name, content in index.files.items()}
    index.missing = {WHEEL}
    (path,) = host.fetch(Sources(indexes=(index.url,)), pin(*index.stated.values()))
    assert path.name == "tiny-1.0.tar.gz"
    assert path.read_bytes() == sdist


@pytest.mark.parametrize("name", ["wheels", "with space", "100%25 sure", "ä#b?c"])
def test_a_folder_of_wheels_works_whatever_it_is_called(host: Host, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / WHEEL).write_bytes(CONTENT)
    (path,) = host.fetch(Sources(find_links=(str(folder),)), pin())
    assert path == host.cache.root / SHA256 / WHEEL


def test_an_altered_file_in_a_folder_is_refused(host: Host, tmp_path: Path) -> None:
    (tmp_path / WHEEL).write_bytes(b"other")
    assert refused(host, Sources(find_links=(str(tmp_path),)), pin()) == (
        f"{WHEEL}: sha256 is {OTHER}, the lock says {SHA256}; the folder gave something else than what was pinned: "
        "do not use it, or correct the lock"
    )


def test_an_altered_file_in_the_cache_is_noticed_removed_and_fetched_again(host: Host, index: Index) -> None:
    (path,) = host.fetch(Sources(indexes=(index.url,)), pin())
    path.write_bytes(b"other")
    host.said.clear()
    assert host.fetch(Sources(indexes=(index.url,)), pin()) == [path]
    assert path.read_bytes() == CONTENT
    assert host.said == [
        f"{WHEEL} in the cache was altered (sha256 {OTHER[:12]}…, expected {SHA256[:12]}…): removed",
        f"fetching {WHEEL}",
    ]


def test_an_altered_entry_with_two_names_is_removed_whole(host: Host) -> None:
    for name in ("a.whl", "b.whl"):
        host.cache.add([CONTENT], name, [SHA256], "here")
    (host.cache.root / SHA256 / "a.whl").write_bytes(b"other")
    assert host.cache.verified([SHA256], host.said.append) is None
    assert host.files() == []


def test_an_empty_entry_does_not_hide_another_accepted_hash(host: Host) -> None:
    added = host.cache.add([CONTENT], "a.whl", [SHA256], "here")
    (host.cache.root / OTHER).mkdir()
    assert host.cache.find([OTHER, SHA256]) == added


def test_a_download_that_is_interrupted_leaves_nothing(host: Host) -> None:
    def chunks() -> Iterator[bytes]:
        yield CONTENT[:10]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        host.cache.add(chunks(), "a.whl", [SHA256], "here")
    assert host.files() == []


def test_a_deb_is_taken_from_the_first_url_that_gives_what_is_pinned(host: Host, index: Index) -> None:
    files = index.url.removesuffix("/simple") + "/files"
    index.files = {"bad.deb": b"x", "good.deb": CONTENT}
    deb = Deb(file="lib_1.deb", sha256=SHA256, urls=(f"{files}/gone.deb", f"{files}/bad.deb", f"{files}/good.deb"))
    fetcher = Fetcher(host.cache, Sources(), host.said.append)
    assert fetcher.fetch_debs(environment((), debs=(deb,))) == [host.cache.root / SHA256 / "lib_1.deb"]


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """pip without any configuration; a file to configure it with."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "pip.conf"


# Where pip looks when nobody tells it anything.
DEFAULT_INDEX = PackageFinder().sources[0]["url"]


def configure(file: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(text)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))


def test_an_unconfigured_pip_looks_in_pypi(pip: Path) -> None:
    assert pip_sources() == Sources((DEFAULT_INDEX,), ())


def test_pips_variables_are_read(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://a/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://b/simple https://c/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels https://d/links")
    assert pip_sources() == Sources(
        ("https://a/simple", "https://b/simple", "https://c/simple"), ("/wheels", "https://d/links")
    )


def test_pips_file_is_read_also_over_several_lines(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(pip, "[global]\nextra-index-url =\n    https://a/simple\n    https://b/simple\n", monkeypatch)
    assert pip_sources().indexes == (DEFAULT_INDEX, "https://a/simple", "https://b/simple")


def test_a_variable_beats_the_install_section_beats_the_global_one(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "[global]\nindex-url = https://global/\n[wheel]\nindex-url = https://wheel/\n"
    configure(pip, text, monkeypatch)
    assert pip_sources().indexes == ("https://global/",)
    configure(pip, text + "[install]\nindex-url = https://install/\n", monkeypatch)
    assert pip_sources().indexes == ("https://install/",)
    monkeypatch.setenv("PIP_INDEX_URL", "https://variable/")
    assert pip_sources().indexes == ("https://variable/",)


@pytest.mark.parametrize(("word", "indexes"), [("1", ()), ("true", ()), ("0", (DEFAULT_INDEX,))])
def test_no_index_leaves_the_folders_only(
    pip: Path, monkeypatch: pytest.MonkeyPatch, word: str, indexes: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", word)
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    assert pip_sources() == Sources(indexes, ("/wheels",))


def test_of_a_release_pinned_by_several_hashes_the_file_for_the_environments_python_is_taken() -> None:
    from tsuishi.artifacts import _may_be
    from tsuishi.lock import Pin

    pin = Pin("numpy", "1.16.6", ("a" * 64, "b" * 64))
    old = Link(f"https://files.example/numpy-1.16.6-cp36-cp36m-manylinux1_x86_64.whl#sha256={'a' * 64}")
    new = Link(f"https://files.example/numpy-1.16.6-cp311-cp311-manylinux2014_x86_64.whl#sha256={'b' * 64}")
    assert [_may_be(link, pin, "3.6") for link in (old, new)] == [True, False]
    assert [_may_be(link, pin, "3.11") for link in (old, new)] == [False, True]
    source = Link(f"https://files.example/numpy-1.16.6.zip#sha256={'a' * 64}")
    assert _may_be(source, pin, "3.6")
