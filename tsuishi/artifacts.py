"""Artefacts: fetched on the host, checked against the lock, kept in a content-addressed cache.

    <cache>/artifacts/<sha256>/<file name>

Everything an environment is built from passes through here, so a build needs no network. Finding a file in package
indexes is unearth's work (pip's own finder, as a library): index and find-links configuration, yanked releases,
where they are configured, behave as pip's do.
"""

import ast
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from tsuishi.errors import UserError

if TYPE_CHECKING:
    from unearth import Link, PackageFinder
    from unearth.fetchers import Fetcher as HttpFetcher
    from unearth.fetchers.sync import PyPIClient

    from tsuishi.environment import Deb, Environment
    from tsuishi.lock import Pin

_CHUNK = 1 << 20
# Without a byte for so long, a server is taken to be gone.
_TIMEOUT_S = 60.0
# Where `pip install` takes its options from; a later one wins.
_PIP_SECTIONS = ("global", "install", ":env:")
Say = Callable[[str], None]
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Sources:
    """Where to look for packages, in order."""

    indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()


class Cache:
    """Files by the SHA-256 of their content."""

    def __init__(self, root: Path) -> None:
        self.root = root / "artifacts"

    def find(self, hashes: Sequence[str], python: str | None = None) -> Path | None:
        """The file with one of these hashes, by where it lies; `verified` looks at its content.

        Several hashes stand for every file of a release: only one that `python` (major.minor) can use will do.
        """
        for sha256 in hashes:
            folder = self.root / sha256
            for file in sorted(folder.iterdir()) if folder.is_dir() else ():
                if len(hashes) == 1 or _usable(file.name, python):
                    return file
        return None

    def verified(self, hashes: Sequence[str], say: Say, python: str | None = None) -> Path | None:
        """Like `find`, but an entry whose content has changed is removed, with a word about it."""
        path = self.find(hashes, python)
        if path is None:
            return None
        actual = sha256_of(path)
        if actual == path.parent.name:
            return path
        shutil.rmtree(path.parent)
        say(f"{path.name} in the cache was altered (sha256 {actual[:12]}…, expected {path.parent.name[:12]}…): removed")
        return None

    def add(self, chunks: Iterable[bytes], name: str, expected: Sequence[str], origin: str) -> Path:
        """Store what `chunks` give if its hash is one of those expected; else raise UserError and keep nothing."""
        self.root.mkdir(parents=True, exist_ok=True)
        temporary = self.root / f".{name}.part"
        digest = hashlib.sha256()
        try:
            with temporary.open("wb") as file:
                for chunk in chunks:
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() not in expected:
                raise UserError(
                    f"{name}: sha256 is {digest.hexdigest()}, the lock says {' or '.join(expected)}; "
                    f"{origin} gave something else than what was pinned: do not use it, or correct the lock"
                )
            final = self.root / digest.hexdigest() / name
            final.parent.mkdir(exist_ok=True)
            return temporary.replace(final)
        finally:
            temporary.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Fetcher:
    """Brings the artefacts of an environment into the cache."""

    def __init__(self, cache: Cache, sources: Sources, say: Say, progress: Progress = lambda size: None) -> None:
        self.cache = cache
        self.say = say
        self.progress = progress
        self._sources = sources

    @cached_property
    def _client(self) -> "PyPIClient":
        return http_client()

    def fetch(self, environment: "Environment") -> list[Path]:
        """Every wheel and sdist of the lock, verified, in the lock's order.

        Raises UserError naming package and hash for what cannot be found or is not what was pinned.
        """
        sources = Sources(self._sources.indexes + environment.indexes, self._sources.find_links)
        return [
            self.cache.verified(pin.sha256, self.say, environment.python) or self._fetch_pin(pin, sources, environment)
            for pin in environment.pins
        ]

    def fetch_debs(self, environment: "Environment") -> list[Path]:
        """Every Debian package of the spec, verified, in the spec's order."""
        return [self.cache.verified([deb.sha256], self.say) or self._fetch_deb(deb) for deb in environment.debs]

    def _fetch_pin(self, pin: "Pin", sources: Sources, environment: "Environment") -> Path:
        requirement = f"{pin.name}=={pin.version}"
        found: set[str] = set()
        problems: list[str] = []
        failure: UserError | None = None
        for finder in self._finders(sources):
            try:
                packages = list(finder.find_matches(requirement, allow_yanked=True, allow_prereleases=True))
            except failures() as error:
                problems.append(first_line(error))
                continue
            links = [package.link for package in packages if _may_be(package.link, pin, environment.python)]
            if links:
                try:
                    return self._first_good([(link.url_without_fragment, link.filename) for link in links], pin.sha256)
                except UserError as error:  # another index may have it whole
                    failure = error
            found |= {package.link.filename for package in packages}
        if failure:
            raise failure
        others = "; ".join([", ".join(sorted(found))[:300] or "nothing of that version", *problems])
        raise UserError(
            f"{environment.name}.lock: no {requirement} with sha256 {pin.sha256[0][:16]}… in the package indexes "
            f"(found: {others}); correct the hash, or add an index that has it (tsuishi.indexes)"
        )

    def _finders(self, sources: Sources) -> "Iterator[PackageFinder]":
        """One finder for the folders, then one for each index: an index out of reach hides none of the others."""
        from unearth import PackageFinder

        client = cast("HttpFetcher", self._client)
        # Compatible with what is the lock's business: the environment's Python is not the one running here.
        if sources.find_links:
            yield PackageFinder(client, find_links=sources.find_links, ignore_compatibility=True)
        for index in sources.indexes:
            yield PackageFinder(client, index_urls=[index], ignore_compatibility=True)

    def _fetch_deb(self, deb: "Deb") -> Path:
        return self._first_good([(url, deb.file) for url in deb.urls], (deb.sha256,))

    def _first_good(self, places: Sequence[tuple[str, str]], expected: Sequence[str]) -> Path:
        """Try each (URL, file name) in turn; the last failure is the one raised."""
        failure: UserError | None = None
        for url, name in places:
            self.say(f"fetching {name}")
            try:
                return self.cache.add(self._download(url), name, expected, urlsplit(url).netloc or "the folder")
            except UserError as error:
                failure = error
        raise failure or UserError(f"{name}: no URL to fetch it from")

    def _download(self, url: str) -> Iterator[bytes]:
        try:
            with self._client.stream("GET", url) as response:
                response.raise_for_status()
                for chunk in response.iter_bytes(_CHUNK):
                    self.progress(len(chunk))
                    yield chunk
        except failures() as error:
            raise UserError(f"{url}: {first_line(error)}; check the network, proxy and certificate settings") from error


def http_client() -> "PyPIClient":
    """A client for http, https and file URLs that follows redirects and does not wait for a dead server."""
    from unearth.fetchers.sync import PyPIClient

    return PyPIClient(follow_redirects=True, timeout=_TIMEOUT_S)


def failures() -> tuple[type[Exception], ...]:
    """What can go wrong between here and a server."""
    from httpx2 import HTTPError, InvalidURL
    from unearth.errors import URLError

    return HTTPError, InvalidURL, URLError


def _may_be(link: "Link", pin: "Pin", python: str | None) -> bool:
    """Whether an index's link can be what is pinned, going by the hash it states, else by the file name.

    A pin with several hashes stands for every file of a release: of those, the ones that Python can use.
    """
    if len(pin.sha256) > 1 and not _usable(link.filename, python):
        return False
    fragment = urlsplit(link.url).fragment
    hashes = dict(link.hashes or {})
    if fragment.startswith("sha256="):
        hashes["sha256"] = fragment.removeprefix("sha256=")
    if "sha256" in hashes:
        return hashes["sha256"] in pin.sha256
    return pin.file is None or pin.file == link.filename


def _usable(file: str, python: str | None) -> bool:
    """Whether a wheel is for that Python (major.minor) on this platform; anything else is taken to be an sdist."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename
    from unearth import TargetPython

    try:
        tags = parse_wheel_filename(file)[3]
    except InvalidWheelFilename:
        return True
    version = tuple(int(part) for part in python.split(".")) if python else None
    return not tags.isdisjoint(TargetPython(py_ver=version).supported_tags())


def first_line(error: Exception) -> str:
    """What an exception says, in one line."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def pip_sources() -> Sources:
    """The indexes and folders pip is configured with (files, environment variables), pip's own index first."""
    from unearth import PackageFinder

    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    values: dict[str, list[str]] = {}
    for section in _PIP_SECTIONS:
        for line in listed.stdout.splitlines():
            key, _, value = line.partition("=")
            place, _, option = key.rpartition(".")
            if place == section:
                values[option] = str(ast.literal_eval(value)).split()
    default = [source["url"] for source in PackageFinder().sources]
    indexes = (
        []
        if values.get("no-index", [""])[0].lower() in ("1", "true", "yes", "on", "y", "t")
        else [*values.get("index-url", default), *values.get("extra-index-url", [])]
    )
    return Sources(tuple(indexes), tuple(values.get("find-links", [])))
