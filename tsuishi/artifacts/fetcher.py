"""Fetches the artefacts of an environment: it tries every source in order, and verifies every file with the lock.

unearth, a library like pip's own finder, reads package indexes: the formats of an index, and the files of a release,
are as in pip.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from tsuishi.artifacts.cache import Cache, fits_python
from tsuishi.artifacts.client import IndexReader, http_client
from tsuishi.artifacts.download import Download, ExpectedFile, SourceFailed, part_lock
from tsuishi.artifacts.network import Network, failures, file_of, not_found, out_of_reach, public_url, reason
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
    """A source works and does not have the file. The user hears of it only after all sources have failed."""


@dataclass(frozen=True)
class Place:
    """A URL that may have an expected file."""

    url: str
    expected: ExpectedFile


class Fetcher:
    """Brings the artefacts of an environment into the cache. `offline` allows only those that are there already."""

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
        # Servers that gave no connection, with the reason. They are not asked again.
        self._out_of_reach: dict[str, str] = {}
        # Messages that the user has seen.
        self._said: set[str] = set()

    def fetch(self, environment: Environment) -> list[Path]:
        """Every wheel and sdist of the lock, verified, in the lock's order.

        Raises UserError where the lock is incomplete; where a package cannot be had, with every source that failed;
        and, offline, with the first that is missing.
        """
        self._refuse_open(environment)
        kept = [self.cache.verified(pin.sha256, self.say, environment.python) for pin in environment.fetched]
        for path, pin in zip(kept, environment.fetched, strict=True):
            if path and (problem := wrong_name(path.name, pin.name, pin.version)):
                raise UserError(f"{environment.name}: {problem}: remove {str(path.parent)!r} from the cache")
        return [
            path or self._first_good(environment, f"{pin.name}=={pin.version}", self._places(pin, environment))
            for path, pin in zip(kept, environment.fetched, strict=True)
        ]

    def fetch_debs(self, environment: Environment) -> list[Path]:
        """Every Debian package of the lock, verified, in the lock's order. Raises UserError as `fetch` does."""
        self._refuse_open(environment)
        kept = [self.cache.verified([deb.sha256], self.say) for deb in environment.debs]
        return [
            path or self._first_good(environment, deb.title, self._deb_places(deb))
            for path, deb in zip(kept, environment.debs, strict=True)
        ]

    def _refuse_open(self, environment: Environment) -> None:
        if refusal := open_refusal(environment):
            raise UserError(f"{environment.name}: {refusal}")

    def _first_good(self, environment: Environment, artefact: str, places: "Iterator[Place | SourceFailed]") -> Path:
        """The file from the first place that has it. Raises UserError with the problems of all places."""
        if self.offline:
            self.cache.refuse_offline({environment.name: [artefact]})
        problems: list[str] = []
        for place in places:
            try:
                if isinstance(place, SourceFailed):
                    raise place
                return self._download(place)
            except SourceFailed as error:
                problems.append(str(error))
                if not isinstance(error, NotThere) and str(error) not in self._said:
                    self.say(str(error))
                    self._said.add(str(error))
        reasons = "; ".join(problems) or "there is none: name one in tsuishi.indexes or tsuishi.find_links"
        raise UserError(
            f"{environment.name}: no source gives {artefact} as it is locked: {reasons}; correct the lock, or name "
            "another source: docs/sites.md says how"
        )

    def _download(self, place: Place) -> Path:
        expected, server = place.expected, urlsplit(place.url).netloc
        if server in self._out_of_reach:
            raise SourceFailed(self._out_of_reach[server])
        part = self.cache.part(expected.file, expected.sha256)
        with part_lock(part, expected.file, self.say):
            # Another thread or process may have fetched it meanwhile.
            kept = self.cache.find(expected.sha256) if len(expected.sha256) == 1 else None
            if kept:
                return kept
            download = Download(expected, part, self._client, self._network, self.say, self.progress)
            try:
                return self.cache.keep(part, expected.file, download.run(place.url))
            except SourceFailed as error:
                self._remember(server, error.__cause__, str(error))
                raise

    def _remember(self, server: str, cause: BaseException | None, problem: str) -> None:
        if out_of_reach(cause):
            self._out_of_reach[server] = problem

    def _places(self, pin: "Pin", environment: Environment) -> "Iterator[Place | SourceFailed]":
        """The places of a pin: folders, configured indexes, indexes of the environment, URLs.

        A source that cannot be read gives a SourceFailed in its place.
        """
        for folder in self._sources.find_links:
            yield from self._listed(folder, pin, environment.python, is_index=False)
        for index in (*self._sources.indexes, *environment.indexes):
            yield from self._listed(mirrored_url(index, self._mirrors), pin, environment.python, is_index=True)
        for url in environment.urls.get(pin.name, ()):
            yield _place(mirrored_url(url, self._mirrors), pin.file or file_of(url), pin.sha256, pin)

    def _deb_places(self, deb: "Deb") -> Iterator[Place]:
        for url in deb.urls:
            yield Place(mirrored_url(url, self._mirrors), ExpectedFile(deb.file, (deb.sha256,), deb.size_bytes))

    def _listed(
        self, source: str, pin: "Pin", python: str | None, *, is_index: bool
    ) -> "Iterator[Place | SourceFailed]":
        """The places of a pin in a folder or an index."""
        requirement, server = f"{pin.name}=={pin.version}", urlsplit(source).netloc
        if server in self._out_of_reach:
            yield SourceFailed(self._out_of_reach[server])
            return
        # unearth raises ValueError for a path that is no folder, and for a page that is no list of files.
        errors: tuple[type[Exception], ...] = (*failures(), ValueError)
        try:
            finder = self._finder(source, is_index)
            packages = list(finder.find_matches(requirement, allow_yanked=True, allow_prereleases=True))
        except errors as error:
            problem = f"{public_url(source)}: {reason(error, source, self._network)}"
            self._remember(server, error, problem)
            yield NotThere(problem) if not_found(error) else SourceFailed(problem)
            return
        links = [package.link for package in packages if _may_be(package.link, pin, python)]
        for link in links:
            url = mirrored_url(link.url_without_fragment, self._mirrors)
            yield _place(url, link.filename, (stated,) if (stated := _stated(link)) else pin.sha256, pin)
        if not packages:
            yield NotThere(f"{public_url(source)}: no {requirement}")
        elif not links:
            others = ", ".join(sorted({package.link.filename for package in packages}))[:300]
            yield SourceFailed(f"{public_url(source)}: no {requirement} with that hash (it has {others})")

    def _finder(self, source: str, is_index: bool) -> "PackageFinder":
        from unearth import PackageFinder

        reader = cast("HttpFetcher", IndexReader(self._client, self._network))
        # unearth knows this Python only, not that of the environment; the lock decides which files fit.
        if is_index:
            return PackageFinder(reader, index_urls=[source], ignore_compatibility=True)
        return PackageFinder(reader, find_links=[source], ignore_compatibility=True)

    @cached_property
    def _client(self) -> "PyPIClient":
        return http_client(self._network, self._sources.indexes)


def _place(url: str, file: str, sha256: tuple[str, ...], pin: "Pin") -> Place | SourceFailed:
    """The place of a file of a pin; SourceFailed where the name is that of another package or version."""
    if problem := wrong_name(file, pin.name, pin.version):
        return SourceFailed(f"{public_url(url)}: {problem}")
    # The lock's size is that of the file it names; another file of the release has another size.
    return Place(url, ExpectedFile(file, sha256, pin.size_bytes if file == pin.file else None))


def _stated(link: "Link") -> str:
    """The SHA-256 that an index states for a file; empty where it states none."""
    fragment = urlsplit(link.url).fragment
    return fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else (link.hashes or {}).get("sha256", "")


def _may_be(link: "Link", pin: "Pin", python: str | None) -> bool:
    """Whether a link of an index can be the pinned file: by the hash that the index states, else by the file name.

    A pin with several hashes stands for all files of a release: then only the files that `python` can use count.
    """
    if len(pin.sha256) > 1 and not fits_python(link.filename, python):
        return False
    stated = _stated(link)
    return stated in pin.sha256 if stated else pin.file in (None, link.filename)
