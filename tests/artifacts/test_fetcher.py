"""Where artefacts come from: folders, indexes and URLs in order, the cache alone, and what a lock does not know yet."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from unearth import Link

from tests.artifacts.servers import Site, redirected, status
from tests.pinned import (
    CONTENT,
    OTHER,
    SHA256,
    WHEEL,
    environment,
    pin,
)
from tsuishi.artifacts.cache import Cache
from tsuishi.artifacts.fetcher import Fetcher, _may_be
from tsuishi.artifacts.pip_configuration import Sources
from tsuishi.base.errors import UserError
from tsuishi.specs.debian import Deb
from tsuishi.specs.lock import Pin

CLOSED = "http://127.0.0.1:9"
ADVICE = "correct the lock, or name another source: docs/sites.md says how"


@dataclass
class Host:
    """A cache, and what was said and counted while fetching into it."""

    cache: Cache
    said: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def fetcher(self, sources: Sources, **options: Any) -> Fetcher:
        return Fetcher(self.cache, sources, self.said.append, self.sizes.append, **options)

    def fetch(self, sources: Sources, *pins: Pin, indexes: tuple[str, ...] = (), **options: Any) -> list[Path]:
        return self.fetcher(sources, **options).fetch(environment(pins or (pin(),), indexes))

    def files(self) -> list[str]:
        """Everything in the cache, whatever it is called."""
        return sorted(str(path.relative_to(self.cache.root)) for path in self.cache.root.rglob("*") if path.is_file())

    def refused(self, sources: Sources, *pins: Pin, **options: Any) -> str:
        """The error of a fetch that fails; whatever it was, the cache holds nothing after it."""
        with pytest.raises(UserError) as caught:
            self.fetch(sources, *pins, **options)
        assert self.files() == []
        return str(caught.value)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(Cache(tmp_path / "cache"))


def test_what_is_pinned_is_fetched_once_and_found_the_next_time(host: Host, site: Site) -> None:
    (path,) = host.fetch(Sources(indexes=(site.index,)))
    assert path == host.cache.root / SHA256 / WHEEL
    assert path.read_bytes() == CONTENT
    assert host.said == [f"fetching {WHEEL} from {site.netloc}"]
    assert sum(host.sizes) == len(CONTENT)
    assert site.requests == ["/simple/tiny/", f"/files/{WHEEL}"]
    assert host.files() == [f"{SHA256}/{WHEEL}"]
    assert host.fetch(Sources()) == [path]
    assert len(site.requests) == 2


def test_the_environments_own_index_is_asked_after_the_configured_ones(host: Host, site: Site, second: Site) -> None:
    site.files = {}
    host.fetch(Sources(indexes=(site.index,)), indexes=(second.index,))
    assert host.files() == [f"{SHA256}/{WHEEL}"]
    assert site.requests == ["/simple/tiny/"]
    assert host.said == [f"fetching {WHEEL} from {second.netloc}"]


def test_every_source_that_fails_is_told_as_it_fails_and_all_of_them_in_order_in_the_end(
    host: Host, site: Site, second: Site, tmp_path: Path
) -> None:
    (tmp_path / "wheels").mkdir()
    site.faults = {"simple": status(503)}
    second.files = {WHEEL: CONTENT[:-1] + b"!"}
    actual = hashlib.sha256(second.files[WHEEL]).hexdigest()
    wanted = environment((pin(),), (second.index,), urls={"tiny": (f"{CLOSED}/{WHEEL}", second.file("tiny-1.0.zip"))})
    sources = Sources(indexes=(site.index,), find_links=(str(tmp_path / "none"), str(tmp_path / "wheels")))
    with pytest.raises(UserError) as caught:
        host.fetcher(sources).fetch(wanted)
    problems = [
        f"{tmp_path}/none: Invalid find link or non-existing path: {tmp_path}/none",
        f"{tmp_path}/wheels: no tiny==1.0",
        f"{site.index}: 503 Service Unavailable",
        f"{second.file(WHEEL)}: sha256 is {actual}, expected {SHA256}: that is another file",
        f"{CLOSED}/{WHEEL}: [Errno 111] Connection refused",
        f"{second.file('tiny-1.0.zip')}: 404 Not Found",
    ]
    told = [line for line in host.said if not line.startswith("fetching")]
    assert told == [problem for problem in problems if "wheels" not in problem], "not to have it is no failure"
    assert str(caught.value) == f"env: no source gives tiny==1.0 as it is locked: {'; '.join(problems)}; {ADVICE}"
    assert host.files() == []


def test_a_url_of_the_environment_is_taken_where_no_index_has_it(host: Host, site: Site) -> None:
    fetcher = host.fetcher(Sources())
    (path,) = fetcher.fetch(environment((pin(),), urls={"tiny": (site.file("tiny-1.0.zip"), site.file(WHEEL))}))
    assert path == host.cache.root / SHA256 / WHEEL
    assert host.said == [
        f"{site.file('tiny-1.0.zip')}: 404 Not Found",
        f"fetching {WHEEL} from {site.netloc}",
    ]


@pytest.mark.parametrize("name", ["..%2f..%2fx", "..", "", "a%0Ab", "a%00b"])
def test_a_name_that_leads_out_of_the_cache_is_refused_before_anything_is_fetched(
    host: Host, site: Site, name: str
) -> None:
    wanted = environment((pin(),), urls={"tiny": (site.file(name),)})
    with pytest.raises(UserError) as caught:
        host.fetcher(Sources()).fetch(wanted)
    assert f"{unquote(name)!r} is no name of a wheel or an sdist of tiny 1.0; {ADVICE}" in str(caught.value)
    assert site.requests == []
    assert not host.cache.root.exists()


def test_a_server_out_of_reach_is_asked_and_told_once(host: Host, site: Site) -> None:
    """An air-gapped site with a default index: every package would wait for the connection to time out."""
    pins = (pin(), Pin("other", "1.0", (OTHER,)))
    told = host.refused(Sources(indexes=(f"{CLOSED}/simple",)), *pins)
    assert told == (
        f"env: no source gives tiny==1.0 as it is locked: {CLOSED}/simple: [Errno 111] Connection refused; {ADVICE}"
    )
    host.said.clear()
    wanted = environment(pins, urls={"tiny": (site.file(WHEEL),), "other": (site.file("other-1.0.zip"),)})
    site.files["other-1.0.zip"] = b"other"
    host.fetcher(Sources(indexes=(f"{CLOSED}/simple",))).fetch(wanted)
    assert host.said.count(f"{CLOSED}/simple: [Errno 111] Connection refused") == 1


def test_without_any_source_it_is_said_where_to_name_one(host: Host) -> None:
    assert host.refused(Sources()) == (
        "env: no source gives tiny==1.0 as it is locked: there is none: name one in tsuishi.indexes or "
        f"tsuishi.find_links; {ADVICE}"
    )


def test_a_wrong_hash_in_the_lock_is_told_with_what_the_index_has(host: Host, site: Site) -> None:
    assert f"{site.index}: no tiny==1.0 with that hash (it has {WHEEL})" in host.refused(
        Sources(indexes=(site.index,)), pin(OTHER)
    )


def test_a_redirect_is_followed(host: Host, site: Site) -> None:
    site.files["moved"] = CONTENT
    site.faults = {WHEEL: redirected("/files/moved")}
    host.fetch(Sources(indexes=(site.index,)))
    assert host.files() == [f"{SHA256}/{WHEEL}"]


def test_without_hashes_in_the_index_the_file_name_of_the_lock_decides(host: Host, site: Site) -> None:
    site.files = {"tiny-1.0-cp39-cp39-win_amd64.whl": b"not this", WHEEL: CONTENT, "tiny-1.0.tar.gz": b"nor this"}
    site.stated = {}
    host.fetch(Sources(indexes=(site.index,)), pin(file=WHEEL))
    assert host.files() == [f"{SHA256}/{WHEEL}"]
    assert site.requests == ["/simple/tiny/", f"/files/{WHEEL}"]


def test_of_several_pinned_files_each_keeps_its_own_name(host: Host, site: Site) -> None:
    """A lock with a hash for the wheel and one for the sdist: the first is gone, the second is stored as what it is."""
    sdist = b"an sdist"
    site.files = {WHEEL: CONTENT, "tiny-1.0.tar.gz": sdist}
    site.stated = {name: hashlib.sha256(content).hexdigest() for name, content in site.files.items()}
    site.faults = {WHEEL: status(404)}
    (path,) = host.fetch(Sources(indexes=(site.index,)), pin(*site.stated.values()))
    assert path.name == "tiny-1.0.tar.gz"
    assert path.read_bytes() == sdist


def test_of_a_release_pinned_by_several_hashes_the_file_for_the_environments_python_is_taken() -> None:
    several = Pin("numpy", "1.16.6", ("a" * 64, "b" * 64))
    old = Link(f"https://files.example/numpy-1.16.6-cp36-cp36m-manylinux1_x86_64.whl#sha256={'a' * 64}")
    new = Link(f"https://files.example/numpy-1.16.6-cp311-cp311-manylinux2014_x86_64.whl#sha256={'b' * 64}")
    assert [_may_be(link, several, "3.6") for link in (old, new)] == [True, False]
    assert [_may_be(link, several, "3.11") for link in (old, new)] == [False, True]
    source = Link(f"https://files.example/numpy-1.16.6.zip#sha256={'a' * 64}")
    assert _may_be(source, several, "3.6")


@pytest.mark.parametrize("name", ["wheels", "with space", "100%25 sure", "ä#b?c"])
def test_a_folder_of_wheels_works_whatever_it_is_called(host: Host, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / WHEEL).write_bytes(CONTENT)
    (path,) = host.fetch(Sources(find_links=(str(folder),)))
    assert path == host.cache.root / SHA256 / WHEEL


def test_an_altered_file_in_a_folder_is_refused(host: Host, tmp_path: Path) -> None:
    (tmp_path / WHEEL).write_bytes(b"other")
    told = host.refused(Sources(find_links=(str(tmp_path),)))
    assert f"file://{tmp_path}/{WHEEL}: sha256 is {OTHER}, expected {SHA256}: that is another file; " in told


def test_an_altered_file_in_the_cache_is_fetched_again(host: Host, site: Site) -> None:
    (path,) = host.fetch(Sources(indexes=(site.index,)))
    path.write_bytes(b"other")
    host.said.clear()
    assert host.fetch(Sources(indexes=(site.index,))) == [path]
    assert path.read_bytes() == CONTENT
    assert host.said == [
        f"{WHEEL} in the cache was altered (sha256 {OTHER[:12]}…, expected {SHA256[:12]}…): removed",
        f"fetching {WHEEL} from {site.netloc}",
    ]


def test_a_deb_is_taken_from_the_first_url_that_gives_what_is_pinned(host: Host, site: Site) -> None:
    site.files = {"bad.deb": b"x", "good.deb": CONTENT}
    urls = tuple(site.file(name) for name in ("gone.deb", "bad.deb", "good.deb"))
    deb = Deb(name="lib", version="1", sha256=SHA256, file="lib_1.deb", urls=urls)
    fetcher = host.fetcher(Sources())
    assert fetcher.fetch_debs(environment((), debs=(deb,))) == [host.cache.root / SHA256 / "lib_1.deb"]
    assert host.said == [
        f"{urls[0]}: 404 Not Found",
        f"fetching lib_1.deb from {site.netloc}",
        f"{urls[1]}: sha256 is {hashlib.sha256(b'x').hexdigest()}, expected {SHA256}: that is another file",
        f"fetching lib_1.deb from {site.netloc}",
    ]


def test_a_deb_that_is_nowhere_is_told_with_every_url(host: Host, site: Site) -> None:
    deb = Deb(name="lib", version="1", sha256=SHA256, file="lib.deb", urls=(site.file("a"), f"{CLOSED}/b"))
    with pytest.raises(UserError) as caught:
        host.fetcher(Sources()).fetch_debs(environment((), debs=(deb,)))
    assert str(caught.value) == (
        f"env: no source gives lib=1 as it is locked: {site.file('a')}: 404 Not Found; "
        f"{CLOSED}/b: [Errno 111] Connection refused; {ADVICE}"
    )


def test_what_a_lock_does_not_know_yet_is_never_fetched(host: Host, site: Site) -> None:
    opened = environment((pin(), Pin("torch", "1.1.0", ())), debs=(Deb("python3.6", "", ""), Deb("lib", "1", "")))
    for fetch in (host.fetcher(Sources(indexes=(site.index,))).fetch, host.fetcher(Sources()).fetch_debs):
        with pytest.raises(UserError) as caught:
            fetch(opened)
        assert str(caught.value) == (
            "env: not known yet: torch==1.1.0, python3.6, lib=1: run `invoke lock --env env` on a machine that reaches "
            "their sources; a build never resolves"
        )
    assert site.requests == []


def test_addresses_are_replaced_as_the_mirror_map_has_it(host: Host, site: Site) -> None:
    mirrors = {"https://packages.example": site.url, "http://archive.example/ubuntu": f"{site.url}/files"}
    host.fetch(Sources(), indexes=("https://packages.example/simple/",), mirrors=mirrors)
    wanted = environment((pin(),), urls={"tiny": (f"https://packages.example/files/{WHEEL}",)})
    (host.cache.root / SHA256 / WHEEL).unlink()
    host.fetcher(Sources(), mirrors=mirrors).fetch(wanted)
    site.files["pool/lib.deb"] = b"other"
    deb = Deb("lib", "1", OTHER, "lib.deb", ("http://archive.example/ubuntu/pool/lib.deb",))
    host.fetcher(Sources(), mirrors=mirrors).fetch_debs(environment((), debs=(deb,)))
    assert site.requests == ["/simple/tiny/", f"/files/{WHEEL}", f"/files/{WHEEL}", "/files/pool/lib.deb"]


def test_a_folder_stands_in_for_an_address(host: Host, tmp_path: Path) -> None:
    (tmp_path / "lib.deb").write_bytes(b"other")
    deb = Deb("lib", "1", OTHER, "lib.deb", ("https://archive.example/nvidia/lib.deb",))
    mirrors = {"https://archive.example/nvidia": f"file://{tmp_path}"}
    (path,) = host.fetcher(Sources(), mirrors=mirrors).fetch_debs(environment((), debs=(deb,)))
    assert path.read_bytes() == b"other"
    assert host.said == [f"fetching lib.deb from {tmp_path}"]


def test_offline_the_cache_is_enough_and_no_server_is_asked(host: Host, site: Site) -> None:
    paths = host.fetch(Sources(indexes=(site.index,)))
    asked = len(site.requests)
    assert host.fetch(Sources(indexes=(site.index,)), offline=True) == paths
    assert len(site.requests) == asked


def test_offline_what_is_missing_is_told_and_no_server_is_asked_for_it(host: Host, site: Site) -> None:
    host.fetch(Sources(indexes=(site.index,)))
    deb = Deb("lib", "1", "d" * 64, "lib.deb", (site.file("lib.deb"),))
    wanted = environment((pin(), Pin("torch", "1.1.0", (OTHER,)), Pin("six", "1.16.0", ("c" * 64,))), debs=(deb,))
    fetcher = host.fetcher(Sources(indexes=(site.index,)), offline=True)
    for fetch, missing in ((fetcher.fetch, "torch==1.1.0"), (fetcher.fetch_debs, "lib=1")):
        with pytest.raises(UserError) as caught:
            fetch(wanted)
        assert str(caught.value) == (
            f"offline, and not in the cache are, of env: {missing}: fill it with `invoke fetch --env env` where there "
            f"is a network, and carry {host.cache.root.parent} over"
        )
    assert site.requests == ["/simple/tiny/", f"/files/{WHEEL}"]


def test_offline_an_altered_file_counts_as_missing(host: Host, site: Site) -> None:
    (path,) = host.fetch(Sources(indexes=(site.index,)))
    path.write_bytes(b"other")
    with pytest.raises(UserError, match=r"^offline, and not in the cache are, of env: tiny==1.0: "):
        host.fetch(Sources(indexes=(site.index,)), offline=True)
    assert host.said[-1].endswith(": removed")


ODD = "tiny-1.0-1$(touch${IFS}here)-py3-none-any.whl"


@pytest.mark.parametrize("stated", [True, False])
def test_a_right_file_of_an_odd_name_is_refused_before_it_is_fetched(host: Host, site: Site, stated: bool) -> None:
    """Right bytes, right hash; but its name would be read by a shell."""
    site.files, site.stated = {ODD: CONTENT}, {ODD: SHA256} if stated else {}
    told = host.refused(Sources(indexes=(site.index,)))
    assert f"/files/{ODD}: {ODD!r} is no name of a wheel or an sdist of tiny 1.0; " in unquote(told)
    assert site.requests == ["/simple/tiny/"]


def test_a_right_file_of_an_odd_name_in_a_folder_is_refused(host: Host, tmp_path: Path) -> None:
    (tmp_path / ODD).write_bytes(CONTENT)
    assert f"{ODD!r} is no name of a wheel or an sdist of tiny 1.0" in host.refused(
        Sources(find_links=(str(tmp_path),))
    )


def test_a_right_file_of_an_odd_name_is_passed_over_where_another_source_has_it(
    host: Host, site: Site, second: Site
) -> None:
    site.files, site.stated = {ODD: CONTENT}, {ODD: SHA256}
    (path,) = host.fetch(Sources(indexes=(site.index, second.index)))
    assert path.name == WHEEL


def test_a_right_file_of_an_odd_name_in_a_cache_that_was_brought_along_is_refused(host: Host, site: Site) -> None:
    folder = host.cache.root / SHA256
    folder.mkdir(parents=True)
    (folder / ODD).write_bytes(CONTENT)
    for offline in (True, False):
        with pytest.raises(UserError) as caught:
            host.fetch(Sources(indexes=(site.index,)), offline=offline)
        said = f"env: {ODD!r} is no name of a wheel or an sdist of tiny 1.0: remove {str(folder)!r} from the cache"
        assert str(caught.value) == said
