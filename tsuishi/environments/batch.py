"""Builds or fetches several environments at once, and prints a table of the results."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tsuishi import extras
from tsuishi.base import exclusion, threads, units
from tsuishi.base.errors import BuildError, EngineLost, UserError
from tsuishi.base.screen import Progress, Say, Screen, WorkProgress
from tsuishi.base.settings import Settings
from tsuishi.environments.build_plan import build_name
from tsuishi.environments.builder import Builder
from tsuishi.environments.entry import Ready
from tsuishi.machine.history import DOWNLOAD, DOWNLOAD_BYTES, History
from tsuishi.specs.environment import Environment

Made = TypeVar("Made")
Job = Callable[[Environment, Say, Progress], Made]

# More jobs would only wait for disk and network.
_MOST_AT_ONCE = 4
# Smaller downloads say nothing about the speed of downloads.
_LEAST_DOWNLOAD_BYTES = 5_000_000
# The file in the cache whose lock the process has that builds.
BUILDING = "building.lock"


@dataclass(frozen=True)
class Fetched:
    """An environment in the cache: the number of its files, their bytes, and the bytes of its base image."""

    files: int
    file_bytes: int
    base_bytes: int


@dataclass(frozen=True)
class JobResult(Generic[Made]):
    """The result of a job for an environment, or its failure; its seconds, and its downloaded bytes."""

    name: str
    took_s: float
    downloaded: int
    made: Made | None
    failure: UserError | None


def jobs(settings: Settings) -> int:
    """The number of environments that are built or fetched at once."""
    return settings.jobs or min(_MOST_AT_ONCE, len(os.sched_getaffinity(0)))


class Building:
    """Builds and fetches environments with a builder, and prints progress and results."""

    def __init__(self, builder: Builder, screen: Screen, history: History) -> None:
        self._builder = builder
        self._settings = builder.settings
        self._screen = screen
        self._history = history
        self._at_once = jobs(builder.settings)
        # The sources of images that are not built here.
        self._places = [place(builder) for place in extras.given("images", "place")]
        # The environments that the places were asked for, and those that came from there.
        self._asked: set[str] = set()
        self._received: set[str] = set()
        # The bytes that were downloaded before the build, by environment.
        self._downloaded: dict[str, int] = {}
        # The environments that the user knows to be built.
        self._known: set[str] = set()

    def build(self, environments: Sequence[Environment]) -> dict[str, Ready]:
        """Every environment, ready to be entered. Raises UserError for failures, after the others are built."""
        self._builder.engines.sweep()
        earlier = {environment.name: self._builder.find(environment) for environment in environments}
        if there := [name for name, ready in earlier.items() if ready is not None and name not in self._known]:
            self._screen.say(f"{', '.join(there)}: built already, nothing to do")
        to_build = [environment for environment in environments if earlier[environment.name] is None]
        made = self._make(to_build) if to_build else {}
        self._known |= earlier.keys()
        return {name: ready or made[name] for name, ready in earlier.items()}

    def alone(self) -> AbstractContextManager[None]:
        """Inside the block this process alone builds. See `exclusion.file`."""
        waits = self._screen.say if self._settings.wait else None
        return exclusion.file(self._settings.cache / BUILDING, "building environments", waits)

    def _make(self, environments: Sequence[Environment]) -> dict[str, Ready]:
        """Build environments, and enter those of interpreters. See `build`."""
        with self.alone() if any(environment.pinned for environment in environments) else nullcontext():
            if self._settings.offline:
                self._refuse_missing(environments)
            # Environments that another cache or an import left built are only entered: their durations do not count.
            chosen_for = self._builder.engines.chosen_for
            new = {wanted.name for wanted in environments if chosen_for(wanted).find(wanted) is None}
            try:
                begun = time.monotonic()
                results = self._do_each("building", environments, self._build)
                self._learn(result for result in results if result.name in new - self._received)
                self._print_built(results, time.monotonic() - begun)
            finally:
                self._tidy([environment for environment in environments if environment.pinned])
        self._raise_failures(results, "built")
        return {result.name: result.made for result in results if result.made}

    def download(self, environments: Sequence[Environment]) -> None:
        """Put the packages of these environments into the cache, except of those that are built.

        Raises UserError as `build` does.
        """
        pinned = [environment for environment in environments if environment.pinned]
        wanted = [environment for environment in pinned if not self._builder.is_built(environment)]
        results = self._do_each("fetching", wanted, self._image_or_packages)
        self._raise_failures(results, "fetched")
        # An image of the place is also entered meanwhile: its time is none of a download.
        fetched = [result for result in results if result.name not in self._received]
        self._downloaded |= {result.name: result.downloaded for result in results}
        size = sum(result.downloaded for result in fetched)
        if size > _LEAST_DOWNLOAD_BYTES:
            took_s = sum(result.took_s for result in fetched) / min(len(fetched), self._at_once)
            self._screen.say(f"fetched {units.megabytes(size)} in {units.duration(took_s)}")
            self._history.learn(DOWNLOAD, took_s / size * DOWNLOAD_BYTES)
            self._history.keep()

    def fetch(self, environments: Sequence[Environment]) -> None:
        """Put packages and base images of these environments into the cache. Raises UserError as `build` does."""
        results = self._do_each("fetching", environments, self._fetch)
        self._print_fetched(results)
        self._raise_failures(results, "fetched")
        bare = [result.name for result in results if result.made and not result.made.base_bytes]
        but = f", but for the base images of {', '.join(bare)}" if bare else ""
        self._screen.say(f"{self._settings.cache} holds what `invoke build --offline` needs{but}; carry it over")

    def _do_each(self, doing: str, environments: Sequence[Environment], job: Job[Made]) -> list[JobResult[Made]]:
        """The job's result for each environment, in their order. `doing` is the verb for the screen, as "building".

        A failure does not stop the other jobs.
        """
        with self._screen.working(doing, [environment.name for environment in environments]) as lines:

            def do(environment: Environment) -> JobResult[Made]:
                result = _result(environment, lines[environment.name], job)
                if result.failure and len(environments) > 1:
                    self._screen.say(f"{result.name}: failed after {units.duration(result.took_s)}; the others go on")
                return result

            return threads.each(environments, do, self._at_once)

    def _raise_failures(self, results: Sequence[JobResult[Made]], done: str) -> None:
        """Raise a single failure as it is. Print several failures, and raise BuildError with their number.

        `done` is the participle for messages, as "built".
        """
        failures = {result.name: result.failure for result in results if result.failure}
        if len(failures) == 1:
            raise next(iter(failures.values()))
        for name, failure in failures.items():
            self._screen.say(f"{name}: not {done}: {failure}")
        if failures:
            raise BuildError(f"{len(failures)} environments could not be {done}: {', '.join(failures)}; see above")

    def _build(self, environment: Environment, say: Say, downloaded: Progress) -> Ready:
        begun = time.monotonic()
        ready = self._shared(environment, say, downloaded)
        ready = ready or self._builder.ensure(environment, say, downloaded)
        threads.check()
        versions = {"Python": ready.record.python, **dict(sorted((ready.record.versions or {}).items()))}
        listed = ", ".join(f"{name} {version}" for name, version in versions.items())
        of_image = f", {units.megabytes(size)}" if (size := _image_bytes(ready)) else ""
        took = units.duration(time.monotonic() - begun)
        self._screen.say(f"{environment.name}: ready in {took}{of_image}: {listed}")
        return ready

    def _image_or_packages(self, environment: Environment, say: Say, downloaded: Progress) -> list[Path]:
        return [] if self._shared(environment, say, downloaded) else self._packages(environment, say, downloaded)

    def _shared(self, environment: Environment, say: Say, downloaded: Progress) -> Ready | None:
        """The environment from a place that has it. Each place is asked once; a line gives the result."""
        asked = [place for place in self._places if place.is_asked_for(environment)]
        if environment.name in self._asked or not asked:
            return None
        self._asked.add(environment.name)
        if self._builder.engines.chosen_for(environment).find(environment) is not None:
            return None
        ready: Ready | None = None
        for place in asked:
            ready, origin = place.receive(environment, say, downloaded)
            self._screen.say(f"{environment.name}: {origin}")
            if ready:
                self._received.add(environment.name)
                break
        return ready

    def _packages(self, environment: Environment, say: Say, downloaded: Progress) -> list[Path]:
        fetcher = self._builder.fetcher(say, downloaded)
        return [*fetcher.fetch(environment), *fetcher.fetch_debs(environment)]

    def _fetch(self, environment: Environment, say: Say, downloaded: Progress) -> Fetched:
        files = self._packages(environment, say, downloaded)
        bases = self._builder.engines.chosen_for(environment).bases
        base_bytes = bases.fetch(environment, say, downloaded) if bases else 0
        return Fetched(len(files), sum(file.stat().st_size for file in files), base_bytes)

    def _refuse_missing(self, environments: Sequence[Environment]) -> None:
        """Raise UserError where neither the cache nor a place has what a build needs."""
        lacking = [wanted for wanted in environments if not any(place.has_file(wanted) for place in self._places)]
        self._builder.cache.refuse_offline({wanted.name: self._builder.missing(wanted) for wanted in lacking})

    def _learn(self, results: Iterable[JobResult[Ready]]) -> None:
        """Remember how long builds took."""
        for result in results:
            if result.made:
                engine, guess_s = result.made.built.engine, result.made.environment.expect.build_s
                self._history.learn(build_name(result.name, engine), result.took_s, guess_s, (f"build {engine}",))
                self._history.keep()

    def _print_built(self, results: Sequence[JobResult[Ready]], took_s: float) -> None:
        made = [result for result in results if result.made]
        if made and len(results) > 1:
            sum_s = units.duration(sum(result.took_s for result in results))
            size = sum(result.downloaded + self._downloaded.get(result.name, 0) for result in made)
            self._screen.say(
                f"{len(made)} built in {units.duration(took_s)}; their times add up to {sum_s}; "
                f"{units.megabytes(size)} downloaded"
            )

    def _print_fetched(self, results: Sequence[JobResult[Fetched]]) -> None:
        rows = [
            (
                result.name,
                fetched.files,
                units.megabytes(fetched.file_bytes),
                units.megabytes(fetched.base_bytes) if fetched.base_bytes else "none",
                units.megabytes(result.downloaded),
                units.duration(result.took_s),
            )
            for result in results
            if (fetched := result.made)
        ]
        if rows:
            headers = ("environment", "files", "size", "base image", "downloaded", "time")
            self._screen.table("In the cache", headers, rows)

    def _tidy(self, environments: Sequence[Environment]) -> None:
        with suppress(UserError, EngineLost):  # the failures of the builds say the same
            for engine in {self._builder.engines.chosen_for(environment) for environment in environments}:
                if engine.maker:
                    engine.maker.tidy()


def _result(environment: Environment, line: WorkProgress, job: Job[Made]) -> JobResult[Made]:
    begun = time.monotonic()
    made, failure = None, None

    def say(text: str) -> None:
        threads.check()
        line.say(text)

    def downloaded(size: int) -> None:
        threads.check()
        line.downloaded(size)

    line.begins()
    try:
        made = job(environment, say, downloaded)
    except UserError as error:
        failure = error
    except EngineLost as lost:
        failure = UserError(f"{environment.name}: the engine stopped answering: {lost}; start it again")
    except OSError as error:
        failure = UserError(f"{environment.name}: {error.strerror or error}: {error.filename or ''}")
    threads.check()
    took_s = time.monotonic() - begun
    line.ends()
    return JobResult(environment.name, took_s, line.bytes, made, failure)


def _image_bytes(ready: Ready) -> int:
    """The size of an image; 0 for an environment that is no image."""
    return (ready.record.image.size_bytes if ready.record.image else None) or 0
