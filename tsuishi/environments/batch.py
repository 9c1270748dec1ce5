"""Several environments built, or fetched, at once: what one of them fails of keeps none of the others back."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from tsuishi.base import exclusion, threads, units
from tsuishi.base import screen as console
from tsuishi.base.errors import BuildError, EngineLost, UserError
from tsuishi.base.screen import Progress, Say
from tsuishi.base.settings import Settings
from tsuishi.environments.build_plan import build_name
from tsuishi.environments.builder import Builder, Ready
from tsuishi.machine.history import DOWNLOAD, DOWNLOAD_BYTES, History
from tsuishi.specs.environment import Environment

Made = TypeVar("Made")
Work = Callable[[Environment, Say, Progress], Made]

# Less says nothing of how fast downloads are.
_LEAST_DOWNLOAD = 5_000_000
# More at once wait for one another's disk and network.
_MOST_JOBS = 4


@dataclass(frozen=True)
class Fetched:
    """What the cache holds of one environment, in bytes."""

    files: int
    file_bytes: int
    base_bytes: int


@dataclass(frozen=True)
class JobResult(Generic[Made]):
    """What became of one environment: something made, or why not."""

    name: str
    took_s: float
    downloaded: int
    made: Made | None
    failure: UserError | None


def jobs(settings: Settings) -> int:
    """How many environments are made at once."""
    return settings.jobs or min(_MOST_JOBS, len(os.sched_getaffinity(0)))


class Building:
    """Builds and fetches with one builder, telling one screen."""

    def __init__(self, builder: Builder, settings: Settings, screen: console.Screen, history: History) -> None:
        self._builder = builder
        self._settings = settings
        self._screen = screen
        self._history = history

    def build(self, environments: Sequence[Environment]) -> dict[str, Ready]:
        """Every environment, ready to be entered. Raises UserError for those that cannot be made, after the others."""
        with exclusion.file(self._settings.cache / "building.lock", "building environments"):
            self._builder.sweep()
            found = {environment.name: self._builder.find(environment) for environment in environments}
            for name, ready in found.items():
                if ready is not None:
                    self._screen.say(f"{name}: built already, nothing to do")
            to_build = [environment for environment in environments if found[environment.name] is None]
            if self._settings.offline:
                self._refuse_missing(to_build)
            new = [one for one in to_build if self._builder.engine_for(one).find(one) is None]
            try:
                begun = time.monotonic()
                outcomes = self._each("building", to_build, self._build)
                self._learn(outcomes, new)
                self._sum_up(outcomes, time.monotonic() - begun)
            finally:
                self._tidy(to_build)
        self._tell_failures(outcomes, "built")
        made = {outcome.name: outcome.made for outcome in outcomes}
        return {name: ready for name in found if (ready := found[name] or made[name])}

    def download(self, environments: Sequence[Environment]) -> None:
        """The packages that building these environments takes, into the cache. Raises UserError as `build` does."""
        wanted = [one for one in environments if one.pinned and self._builder.find(one) is None]
        outcomes = self._each("fetching", wanted, self._packages)
        self._tell_failures(outcomes, "fetched")
        size = sum(outcome.downloaded for outcome in outcomes)
        if size > _LEAST_DOWNLOAD:
            took_s = sum(outcome.took_s for outcome in outcomes) / min(len(outcomes), jobs(self._settings))
            self._screen.say(f"fetched {units.megabytes(size)} in {units.duration(took_s)}")
            self._history.learn(DOWNLOAD, took_s / size * DOWNLOAD_BYTES)
            self._history.keep()

    def fetch(self, environments: Sequence[Environment]) -> None:
        """All that these environments are built from, into the cache. Raises UserError as `build` does."""
        outcomes = self._each("fetching", environments, self._fetch)
        rows = [
            (
                outcome.name,
                fetched.files,
                units.megabytes(fetched.file_bytes),
                units.megabytes(fetched.base_bytes) if fetched.base_bytes else "none",
                units.megabytes(outcome.downloaded),
                units.duration(outcome.took_s),
            )
            for outcome in outcomes
            if (fetched := outcome.made)
        ]
        if rows:
            headers = ("environment", "files", "size", "base image", "downloaded", "time")
            self._screen.table("In the cache", headers, rows)
        self._tell_failures(outcomes, "fetched")
        bare = [outcome.name for outcome in outcomes if outcome.made and not outcome.made.base_bytes]
        but = f", but for the base images of {', '.join(bare)}" if bare else ""
        self._screen.say(f"{self._settings.cache} holds what `invoke build --offline` needs{but}; carry it over")

    def _each(self, doing: str, environments: Sequence[Environment], work: Work[Made]) -> list[JobResult[Made]]:
        with self._screen.working(doing, [environment.name for environment in environments]) as lines:

            def one(environment: Environment) -> JobResult[Made]:
                return self._one(environment, lines[environment.name], work, alone=len(environments) == 1)

            return threads.each(environments, one, jobs(self._settings))

    def _one(
        self, environment: Environment, line: console.WorkProgress, work: Work[Made], *, alone: bool
    ) -> JobResult[Made]:
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
            made = work(environment, say, downloaded)
        except UserError as error:
            failure = error
        except EngineLost as lost:
            failure = UserError(f"{environment.name}: the engine stopped answering: {lost}; start it again")
        except OSError as error:
            failure = UserError(f"{environment.name}: {error.strerror or error}: {error.filename or ''}")
        threads.check()
        took = time.monotonic() - begun
        line.ends()
        if failure is not None and not alone:
            self._screen.say(f"{environment.name}: failed after {units.duration(took)}; the others go on")
        return JobResult(environment.name, took, line.bytes, made, failure)

    def _build(self, environment: Environment, say: Say, downloaded: Progress) -> Ready:
        begun = time.monotonic()
        ready = self._builder.ensure(environment, self._builder.fetcher(say, downloaded), say)
        threads.check()
        versions = {"Python": ready.record["python"], **dict(sorted(ready.record["versions"].items()))}
        told = ", ".join(f"{name} {version}" for name, version in versions.items())
        self._screen.say(f"{environment.name}: ready in {units.duration(time.monotonic() - begun)}: {told}")
        return ready

    def _packages(self, environment: Environment, say: Say, downloaded: Progress) -> int:
        fetcher = self._builder.fetcher(say, downloaded)
        return len([*fetcher.fetch(environment), *fetcher.fetch_debs(environment)])

    def _fetch(self, environment: Environment, say: Say, downloaded: Progress) -> Fetched:
        fetcher = self._builder.fetcher(say, downloaded)
        files = [*fetcher.fetch(environment), *fetcher.fetch_debs(environment)]
        base_bytes = self._builder.engine_for(environment).fetch(environment, say, downloaded)
        return Fetched(len(files), sum(file.stat().st_size for file in files), base_bytes)

    def _refuse_missing(self, environments: Sequence[Environment]) -> None:
        lacking = {environment.name: self._builder.missing(environment) for environment in environments}
        told = [f"{name}: {', '.join(missing)}" for name, missing in lacking.items() if missing]
        if told:
            names = ",".join(name for name, missing in lacking.items() if missing)
            raise UserError(
                f"offline, and not in the cache are, of {'; of '.join(told)}: fill it with "
                f"`invoke fetch --env {names}` where there is a network, and carry {self._settings.cache} over"
            )

    def _learn(self, outcomes: Sequence[JobResult[Ready]], new: Sequence[Environment]) -> None:
        """Remember what building took; not of what another cache, or an import, had left to be entered only."""
        names = {environment.name for environment in new}
        for outcome in outcomes:
            if outcome.made and outcome.name in names:
                engine, expect = outcome.made.built.engine, outcome.made.environment.expect
                name = build_name(outcome.name, engine)
                self._history.learn(name, outcome.took_s, expect.build_s, (f"build {engine}",))
                self._history.keep()

    def _sum_up(self, outcomes: Sequence[JobResult[Ready]], took_s: float) -> None:
        built = [(outcome, outcome.made) for outcome in outcomes if outcome.made]
        if not built:
            return
        rows = [
            (
                outcome.name,
                units.duration(outcome.took_s),
                units.megabytes(size) if (size := _size(ready)) else "",
                units.megabytes(outcome.downloaded),
            )
            for outcome, ready in built
        ]
        self._screen.table("Built", ("environment", "time", "size", "downloaded"), rows)
        if len(outcomes) > 1:
            parts = sum(outcome.took_s for outcome in outcomes)
            self._screen.say(
                f"{len(built)} built in {units.duration(took_s)}; their times add up to {units.duration(parts)}"
            )

    def _tidy(self, environments: Sequence[Environment]) -> None:
        with suppress(UserError, EngineLost):  # what ended the builds is told, or has been
            for engine in {self._builder.engine_for(environment) for environment in environments}:
                engine.tidy()

    def _tell_failures(self, outcomes: Sequence[JobResult[Made]], done: str) -> None:
        """Raise UserError where something failed: the failure itself, or how many there were, each told before."""
        failures = {outcome.name: outcome.failure for outcome in outcomes if outcome.failure}
        if len(failures) == 1:
            raise next(iter(failures.values()))
        for name, failure in failures.items():
            self._screen.say(f"{name}: not {done}: {failure}")
        if failures:
            raise BuildError(f"{len(failures)} environments could not be {done}: {', '.join(failures)}; see above")


def _size(ready: Ready) -> int:
    """Bytes of an image; 0 for what is none."""
    return int((ready.record.get("image") or {}).get("size_bytes") or 0)
