"""Fetching the artefacts of an environment: every source in order, every file held to the lock.

Finding a file in package indexes is unearth's work (pip's own finder, as a library): what an index may look like, and
which files are of a release, is as pip has it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from tsuishi.artifacts.cache import Cache, usable
from tsuishi.artifacts.download import Download, SourceFailed, Wanted, held
from tsuishi.artifacts.network import (
    IndexReader,
    Network,
    failures,
    file_of,
    http_client,
    not_found,
    out_of_reach,
    shown,
    why,
)
from tsuishi.artifacts.pip_configuration import Sources
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Progress, Say
from tsuishi.base.settings import mirrored_url
from tsuishi.specs.environment import Environment, open_refusal
from tsuishi.specs.lock import wrong_name

if TYPE_CHECKING:
    from unearth import Link, PackageFinder
    from unearth.fetchers import Fetcher as HttpFetcher
    from unearth.fetchers.sync import PyPIClient

    from tsuishi.specs.debian import Deb
    from tsuishi.specs.lock import Pin


class NotThere(SourceFailed):
    """A source that works, and does not have it: nothing to tell before all of them have failed."""


@dataclass(frozen=True)
class Place:
    """A URL that may give what is wanted."""

    url: str
    wanted: Wanted


class Fetcher:
    """Brings the artefacts of an environment into the cache; offline, finds them there."""

    def __init__(
        self,
        cache: Cache,
        sources: Sources,
        say: Say,
        progress: Progress = lambda size: None,
        *,
        network: Network | None = None,
        mirrors: Mapping[str, str] | None = None,
        offline: bool = False,
    ) -> None:
        self.cache = cache
        self.say = say
        self.progress = progress
        self.offline = offline
        self._sources = sources
        self._network = network or Network()
        self._mirrors = mirrors or {}
        # Servers that gave no connection, with the reason: asked, and told, once.
        self._out_of_reach: dict[str, str] = {}
        self._told: set[str] = set()

    def fetch(self, environment: Environment) -> list[Path]:
        """Every wheel and sdist of the lock, verified, in the lock's order.

        Raises UserError for what the lock does not know yet, naming package and every source that failed for what
        cannot be had, and, offline, everything that is missing.
        """
        self._refuse_open(environment)
        found = [self.cache.verified(pin.sha256, self.say, environment.python) for pin in environment.pins]
        self._refuse_missing(environment)
        for path, pin in zip(found, environment.pins, strict=True):
            if path and (problem := wrong_name(path.name, pin.name, pin.version)):
                raise UserError(f"{environment.name}: {problem}: remove {str(path.parent)!r} from the cache")
        return [
            path or self._first_good(environment, f"{pin.name}=={pin.version}", self._places(pin, environment))
            for path, pin in zip(found, environment.pins, strict=True)
        ]

    def fetch_debs(self, environment: Environment) -> list[Path]:
        """Every Debian package of the lock, verified, in the lock's order. Raises UserError as `fetch` does."""
        self._refuse_open(environment)
        found = [self.cache.verified([deb.sha256], self.say) for deb in environment.debs]
        self._refuse_missing(environment)
        return [
            path or self._first_good(environment, deb.title, self._deb_places(deb))
            for path, deb in zip(found, environment.debs, strict=True)
        ]

    def missing(self, environment: Environment) -> list[str]:
        """What of an environment is not in the cache, as its locks name it."""
        pins = [pin for pin in environment.pins if not self.cache.find(pin.sha256, environment.python)]
        debs = [deb.title for deb in environment.debs if not self.cache.find([deb.sha256])]
        return [f"{pin.name}=={pin.version}" for pin in pins] + debs

    def _refuse_open(self, environment: Environment) -> None:
        if refusal := open_refusal(environment):
            raise UserError(f"{environment.name}: {refusal}")

    def _refuse_missing(self, environment: Environment) -> None:
        missing = self.missing(environment) if self.offline else []
        if missing:
            total = len(environment.pins) + len(environment.debs)
            raise UserError(
                f"{environment.name}: offline, and {len(missing)} of {total} artefacts are not in the cache: "
                f"{', '.join(missing)}; fill it with `invoke fetch --env {environment.name}` where there is a network, "
                f"and carry {self.cache.root} over"
            )

    def _first_good(self, environment: Environment, what: str, places: "Iterator[Place | SourceFailed]") -> Path:
        """The first place that gives what was pinned; each that fails is told as it does, and all in the end."""
        problems: list[str] = []
        for place in places:
            try:
                if isinstance(place, SourceFailed):
                    raise place
                return self._download(place)
            except SourceFailed as error:
                problems.append(str(error))
                if not isinstance(error, NotThere) and str(error) not in self._told:
                    self.say(str(error))
                    self._told.add(str(error))
        told = "; ".join(problems) or "there is none: name one in tsuishi.indexes or tsuishi.find_links"
        raise UserError(
            f"{environment.name}: no source gives {what} as it is locked: {told}; correct the lock, or name another "
            "source: docs/sites.md says how"
        )

    def _download(self, place: Place) -> Path:
        wanted, server = place.wanted, urlsplit(place.url).netloc
        if server in self._out_of_reach:
            raise SourceFailed(self._out_of_reach[server])
        part = self.cache.part(wanted.file, wanted.sha256)
        with held(part, wanted.file, self.say):
            there = self.cache.find(wanted.sha256) if len(wanted.sha256) == 1 else None
            if there:
                return there
            download = Download(wanted, part, self._client, self._network, self.say, self.progress)
            try:
                return self.cache.keep(part, wanted.file, download.run(place.url))
            except SourceFailed as error:
                self._remember(server, error.__cause__, str(error))
                raise

    def _remember(self, server: str, cause: BaseException | None, problem: str) -> None:
        if out_of_reach(cause):
            self._out_of_reach[server] = problem

    def _places(self, pin: "Pin", environment: Environment) -> "Iterator[Place | SourceFailed]":
        """Folders, configured indexes, the environment's indexes, then URLs; a source that fails is in its place."""
        for folder in self._sources.find_links:
            yield from self._listed(folder, pin, environment.python, is_index=False)
        for index in (*self._sources.indexes, *environment.indexes):
            yield from self._listed(mirrored_url(index, self._mirrors), pin, environment.python, is_index=True)
        for url in environment.urls.get(pin.name, ()):
            yield _place(mirrored_url(url, self._mirrors), pin.file or file_of(url), pin.sha256, pin)

    def _deb_places(self, deb: "Deb") -> Iterator[Place]:
        for url in deb.urls:
            yield Place(mirrored_url(url, self._mirrors), Wanted(deb.file, (deb.sha256,), deb.size_bytes))

    def _listed(
        self, source: str, pin: "Pin", python: str | None, *, is_index: bool
    ) -> "Iterator[Place | SourceFailed]":
        """What a folder or an index has of what is pinned."""
        requirement, server = f"{pin.name}=={pin.version}", urlsplit(source).netloc
        if server in self._out_of_reach:
            yield SourceFailed(self._out_of_reach[server])
            return
        # unearth raises ValueError for a folder or a page that is none.
        reasons: tuple[type[Exception], ...] = (*failures(), ValueError)
        try:
            finder = self._finder(source, is_index)
            packages = list(finder.find_matches(requirement, allow_yanked=True, allow_prereleases=True))
        except reasons as error:
            problem = f"{shown(source)}: {why(error, source, self._network)}"
            self._remember(server, error, problem)
            yield NotThere(problem) if not_found(error) else SourceFailed(problem)
            return
        links = [package.link for package in packages if _may_be(package.link, pin, python)]
        for link in links:
            url = mirrored_url(link.url_without_fragment, self._mirrors)
            yield _place(url, link.filename, (stated,) if (stated := _stated(link)) else pin.sha256, pin)
        if not packages:
            yield NotThere(f"{shown(source)}: no {requirement}")
        elif not links:
            others = ", ".join(sorted({package.link.filename for package in packages}))[:300]
            yield SourceFailed(f"{shown(source)}: no {requirement} with that hash (it has {others})")

    def _finder(self, source: str, is_index: bool) -> "PackageFinder":
        from unearth import PackageFinder

        reader = cast("HttpFetcher", IndexReader(self._client, self._network))
        # Compatible with what is the lock's business: the environment's Python is not the one running here.
        if is_index:
            return PackageFinder(reader, index_urls=[source], ignore_compatibility=True)
        return PackageFinder(reader, find_links=[source], ignore_compatibility=True)

    @cached_property
    def _client(self) -> "PyPIClient":
        return http_client(self._network, self._sources.indexes)


def _place(url: str, file: str, sha256: tuple[str, ...], pin: "Pin") -> Place | SourceFailed:
    """Where a file of a pin is, unless its name is that of something else; the lock says the size of what it names."""
    if problem := wrong_name(file, pin.name, pin.version):
        return SourceFailed(f"{shown(url)}: {problem}")
    return Place(url, Wanted(file, sha256, pin.size_bytes if file == pin.file else None))


def _stated(link: "Link") -> str:
    """The hash that an index states of a file; empty where it states none."""
    fragment = urlsplit(link.url).fragment
    return fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else (link.hashes or {}).get("sha256", "")


def _may_be(link: "Link", pin: "Pin", python: str | None) -> bool:
    """Whether an index's link can be what is pinned, going by the hash it states, else by the file name.

    A pin with several hashes stands for every file of a release: of those, the ones that Python can use.
    """
    if len(pin.sha256) > 1 and not usable(link.filename, python):
        return False
    stated = _stated(link)
    return stated in pin.sha256 if stated else pin.file in (None, link.filename)
