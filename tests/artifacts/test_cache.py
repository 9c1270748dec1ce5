"""The cache of artefacts: only what has the right content is found in it, also by several threads and processes."""

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.artifacts.servers import Site, dripping
from tests.pinned import (
    CONTENT,
    OTHER,
    SHA256,
    WHEEL,
    environment,
    pin,
)
from tests.run.test_runner import wait_for
from tsuishi.artifacts.cache import Cache
from tsuishi.artifacts.fetcher import Fetcher
from tsuishi.artifacts.pip_configuration import Sources
from tsuishi.base.errors import UserError

ROOT = Path(__file__).parents[2]


@dataclass
class Store:
    """A cache, and what it said."""

    cache: Cache
    said: list[str] = field(default_factory=list)

    def put(self, name: str, content: bytes, sha256: str) -> Path:
        part = self.cache.part(name, [sha256])
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        return self.cache.keep(part, name, sha256)

    def files(self) -> list[str]:
        """Everything in the cache, whatever it is called."""
        return sorted(str(path.relative_to(self.cache.root)) for path in self.cache.root.rglob("*") if path.is_file())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Cache(tmp_path / "cache"))


def test_what_was_kept_is_found_by_its_hash_and_verified(store: Store) -> None:
    path = store.put(WHEEL, CONTENT, SHA256)
    assert path == store.cache.root / SHA256 / WHEEL
    assert store.cache.find([OTHER, SHA256]) == path
    assert store.cache.verified([SHA256], store.said.append) == path
    assert store.cache.find([OTHER]) is None
    assert store.said == []


@pytest.mark.parametrize("name", ["../x", "..", "", "/nonexistent/x", "a/b"])
def test_nothing_is_kept_under_a_name_that_leads_elsewhere(store: Store, name: str) -> None:
    part = store.cache.part(WHEEL, [SHA256])
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT)
    said = f"{name!r} is no name of a file: nothing is kept under it; correct the lock or the URL it is from"
    with pytest.raises(UserError) as kept:
        store.cache.keep(part, name, SHA256)
    assert str(kept.value) == said
    with pytest.raises(UserError) as begun:
        store.cache.part(name, [SHA256])
    assert str(begun.value) == said
    assert store.files() == [part.name]


def test_an_altered_file_is_removed_with_a_word_about_it(store: Store) -> None:
    store.put("a.whl", b"other", SHA256)
    assert store.cache.verified([SHA256], store.said.append) is None
    assert store.files() == []
    assert store.said == [
        f"a.whl in the cache was altered (sha256 {OTHER[:12]}…, expected {SHA256[:12]}…): removed",
    ]


def test_of_a_file_under_two_names_the_unaltered_one_is_found(store: Store) -> None:
    store.put("a.whl", b"other", SHA256)
    good = store.put("b.whl", CONTENT, SHA256)
    assert store.cache.verified([SHA256], store.said.append) == good


def test_an_empty_entry_does_not_hide_another_accepted_hash(store: Store) -> None:
    path = store.put("a.whl", CONTENT, SHA256)
    (store.cache.root / OTHER).mkdir()
    assert store.cache.find([OTHER, SHA256]) == path


def test_threads_that_want_the_same_file_download_it_once(store: Store, site: Site) -> None:
    """Eight environments at once, each with a fetcher of its own: one fetches, the others wait and find it."""
    site.faults = {WHEEL: dripping(1 << 19, 0.05)}
    begin = threading.Barrier(8)

    def fetch(number: int) -> Path:
        fetcher = Fetcher(store.cache, Sources(indexes=(site.index,)), store.said.append)
        begin.wait()
        return fetcher.fetch(environment((pin(),)))[0]

    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(fetch, range(8)))
    assert paths == {store.cache.root / SHA256 / WHEEL}
    assert store.files() == [f"{SHA256}/{WHEEL}"]
    assert paths.pop().read_bytes() == CONTENT
    assert site.requests.count(f"/files/{WHEEL}") == 1
    assert set(store.said) == {f"fetching {WHEEL} from {site.netloc}", f"waiting for another download of {WHEEL}"}


FETCH = """
import sys
from pathlib import Path
from tests.pinned import environment, pin
from tsuishi.artifacts.cache import Cache
from tsuishi.artifacts.fetcher import Fetcher
from tsuishi.artifacts.pip_configuration import Sources
cache, index = sys.argv[1:]
said = lambda line: print(line, flush=True)
print(*Fetcher(Cache(Path(cache)), Sources(indexes=(index,)), said).fetch(environment((pin(),))))
"""


def start_process(store: Store, site: Site) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", FETCH, str(store.cache.root.parent), site.index]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.long
def test_processes_that_want_the_same_file_download_it_once(store: Store, site: Site) -> None:
    site.faults = {WHEEL: dripping(1 << 18, 0.1)}
    children = [start_process(store, site) for _ in range(3)]
    said = [child.communicate()[0].splitlines() for child in children]
    assert [child.returncode for child in children] == [0, 0, 0]
    assert {lines[-1] for lines in said} == {str(store.cache.root / SHA256 / WHEEL)}
    assert store.files() == [f"{SHA256}/{WHEEL}"]
    assert (store.cache.root / SHA256 / WHEEL).read_bytes() == CONTENT
    assert site.requests.count(f"/files/{WHEEL}") == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_download_that_is_killed_leaves_a_part_that_the_next_one_goes_on_with(
    store: Store, site: Site, number: int
) -> None:
    part = store.cache.part(WHEEL, [SHA256])
    site.faults = {WHEEL: dripping(1 << 16, 0.5)}
    child = start_process(store, site)
    wait_for(lambda: part.exists() and part.stat().st_size > 0)
    child.send_signal(number)
    child.communicate()
    assert child.returncode != 0
    kept = part.stat().st_size
    assert 0 < kept < len(CONTENT)
    assert store.files() == [part.name]
    site.faults = {}
    Fetcher(store.cache, Sources(indexes=(site.index,)), store.said.append).fetch(environment((pin(),)))
    assert site.ranges == [f"bytes={kept}-"]
    assert store.said == [f"going on with {WHEEL} from {site.netloc}"]
    assert store.files() == [f"{SHA256}/{WHEEL}"]


@pytest.mark.long
def test_a_waiting_process_takes_over_where_the_one_before_it_is_killed(store: Store, site: Site) -> None:
    site.faults = {WHEEL: dripping(1 << 16, 0.5)}
    part = store.cache.part(WHEEL, [SHA256])
    first = start_process(store, site)
    wait_for(lambda: part.exists() and part.stat().st_size > 0)
    second = start_process(store, site)
    assert second.stdout is not None
    assert second.stdout.readline() == f"waiting for another download of {WHEEL}\n"
    site.faults = {}
    first.kill()
    first.communicate()
    rest = second.communicate()[0].splitlines()
    assert rest == [f"going on with {WHEEL} from {site.netloc}", str(store.cache.root / SHA256 / WHEEL)]
    assert store.files() == [f"{SHA256}/{WHEEL}"]
