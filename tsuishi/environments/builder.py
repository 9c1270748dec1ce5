"""Making environments ready: choosing the engine, building what is missing, and making each keep its promises."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from tsuishi.artifacts.cache import Cache
from tsuishi.artifacts.fetcher import Fetcher
from tsuishi.artifacts.network import Network
from tsuishi.artifacts.pip_configuration import Sources, pip_sources
from tsuishi.base import files, toml
from tsuishi.base.checkout import Rooms
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.screen import Progress, Say
from tsuishi.base.settings import Settings
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.engines.host import HostEngine
from tsuishi.engines.interface import Built, Engine, Kept
from tsuishi.engines.venv import VenvEngine
from tsuishi.environments import provenance
from tsuishi.environments.probe import ask
from tsuishi.specs.environment import Environment, open_refusal

if TYPE_CHECKING:
    from tsuishi.locking.resolve import Locker

_ARCHITECTURE = "x86_64"
_PROBE = "probe"
# What an environment reports about itself beside packages, and may promise.
_NO_PACKAGES = ("python", "cuda", "cudnn")
_PROBE_TIMEOUT_S = 300.0


class _Reported(BaseModel):
    """What environments say about themselves (suites/workloads/experiments/probe.py), as far as it is used here."""

    model_config = ConfigDict(extra="allow", strict=True)

    python: str
    versions: dict[str, str] = {}
    packages: dict[str, str] = {}
    system_packages: dict[str, str] = {}
    flags: dict[str, Any] = {}


@dataclass(frozen=True)
class Ready:
    """An environment that has been entered and reported what it promises."""

    environment: Environment
    engine: Engine
    built: Built
    record: dict[str, Any]


class Builder:
    """Knows the engines of this machine and what has been built with them."""

    def __init__(self, settings: Settings, rooms: Rooms) -> None:
        self._settings = settings
        self._rooms = rooms
        self.cache = Cache(settings.cache)

    @cached_property
    def engines(self) -> dict[str, Engine]:
        """Every engine, whether it can be used here or not."""
        settings = self._settings
        docker = DockerEngine(
            self._rooms.dockerfile,
            settings.mirrors,
            settings.cache,
            offline=settings.offline,
            timeout_s=settings.engine_timeout_s,
        )
        return {
            "docker": docker,
            "venv": VenvEngine(settings.cache, settings.pythons),
            "host": HostEngine(settings.host_python),
        }

    def engine_for(self, environment: Environment) -> Engine:
        """The engine asked for, or the best one there is. Raises UserError where the one asked for is no use."""
        if self._settings.engine != "auto":
            chosen = self.engines[self._settings.engine]
            usable = chosen.availability()
            if not usable.usable:
                raise UserError(f"engine {chosen.name}: {usable.reason}; {usable.remedy}")
            return chosen
        if not environment.pinned:
            return self.engines["host"]
        return self._container_engine or self.engines["venv"]

    @cached_property
    def _container_engine(self) -> Engine | None:
        docker = self.engines["docker"]
        return docker if docker.availability().usable else None

    def sweep(self) -> None:
        """End what killed processes of tsuishi left running in any engine: it would disturb what is measured now."""
        for engine in self.engines.values():
            engine.sweep()

    def refusal(self, environment: Environment) -> str:
        """Why the environment cannot be made here; empty where it can."""
        if environment.pinned and platform.machine() != _ARCHITECTURE:
            return f"its lock holds {_ARCHITECTURE} packages, and this machine is {platform.machine()}"
        return open_refusal(environment) or self.engine_for(environment).refusal(environment)

    def why_no_container_engine(self) -> str:
        """Why there are no containers where an engine was not chosen by name; empty where there are."""
        if self._settings.engine != "auto" or self._container_engine:
            return ""
        docker = self.engines["docker"].availability()
        return f"{docker.reason}; {docker.remedy}"

    def fetcher(self, say: Say, progress: Progress = lambda size: None) -> Fetcher:
        """Fetches from the configured places."""
        given = self._settings
        return Fetcher(
            self.cache,
            self._sources(),
            say,
            progress,
            network=Network(given.ca_bundle),
            mirrors=given.mirrors,
            offline=given.offline,
        )

    def locker(self, say: Say) -> "Locker":
        """Makes locks from the configured places. Raises UserError offline, where there are none."""
        from tsuishi.locking.resolve import Locker

        given, docker = self._settings, self.engines["docker"]
        assert isinstance(docker, DockerEngine)
        if given.offline:
            raise UserError("a lock is made from what indexes and registries have now: leave out --offline")
        return Locker(self._sources(), self.cache, Network(given.ca_bundle), given.mirrors, docker, say)

    def _sources(self) -> Sources:
        """The package indexes and folders that are configured, or those pip is configured with."""
        given = self._settings
        return Sources(given.indexes, given.find_links) if given.indexes or given.find_links else pip_sources()

    def find(self, environment: Environment) -> Ready | None:
        """The environment as it was built and verified earlier."""
        engine = self.engine_for(environment)
        built = engine.find(environment)
        if built is None or not environment.pinned:
            return None
        reported = self._remembered(environment.name, built)
        if reported is None or broken_promises(environment, reported):
            return None
        return Ready(environment, engine, built, provenance.environment_record(built, reported))

    def missing(self, environment: Environment) -> list[str]:
        """What a build without network needs and does not find here."""
        engine = self.engine_for(environment)
        if not environment.pinned or engine.find(environment) is not None:
            return []
        return [*self.fetcher(lambda line: None).missing(environment), *engine.missing(environment)]

    def reported(self, kept: Kept) -> dict[str, Any] | None:
        """What an environment that is still there said about itself when it was built; None where it was not asked."""
        return self._remembered(kept.environment, kept)

    def forget(self, kept: Kept) -> None:
        """Drop what an environment that is gone said about itself."""
        path = self._record_path(kept.environment, kept)
        for file in (path, path.with_suffix(".cdx.json")):
            file.unlink(missing_ok=True)

    def ensure(self, environment: Environment, fetcher: Fetcher, say: Say) -> Ready:
        """The environment, built if need be, entered, and held to its promises.

        Raises BuildError where it cannot be made, or reports something else than it promises.
        """
        ready = self.find(environment)
        if ready is not None:
            return ready
        engine = self.engine_for(environment)
        refusal = engine.refusal(environment)
        if refusal:
            raise BuildError(f"{environment.name}: {refusal}")
        built = engine.find(environment) or engine.build(environment, fetcher, say)
        say("entering it to see what it reports")
        reported = self._ask(engine, built)
        broken = broken_promises(environment, reported)
        if broken:
            engine.discard(built)
            raise BuildError(f"{environment.name} does not report what it promises: {'; '.join(broken)}")
        if environment.pinned:
            self._keep(built, reported)
        else:
            built = _with_realised_id(built, reported)
        return Ready(environment, engine, built, provenance.environment_record(built, reported))

    def _keep(self, built: Built, reported: dict[str, Any]) -> None:
        """Write down what was reported, and an image's bill of materials: in the record, and as a file beside it."""
        path = self._record_path(built.environment.name, built)
        if built.details["image"]:
            from tsuishi.environments.sbom import bill_of_materials

            reported["sbom"] = bill_of_materials(built, reported)
            files.write_json(path.with_suffix(".cdx.json"), reported["sbom"])
        files.write_json(path, reported)

    def _remembered(self, environment: str, built: Built | Kept) -> dict[str, Any] | None:
        """What an environment reported when it was built; None where no such report is there: it is asked again."""
        try:
            text = files.read_bytes(self._record_path(environment, built), files.MOST_JSON_BYTES)
            return _Reported.model_validate_json(text).model_dump()
        except (UserError, ValueError):
            return None

    def _record_path(self, environment: str, built: Built | Kept) -> Path:
        folder = self._settings.cache / "environments"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{environment}-{built.engine}-{toml.digest([built.spec_id, built.realised_id])}.json"

    def _ask(self, engine: Engine, built: Built) -> dict[str, Any]:
        """What the environment reports about itself (suites/workloads/experiments/probe.py)."""
        # Whether an interpreter of this machine can use a GPU is known to nobody else.
        accelerator = "cpu" if built.environment.pinned else "cuda"
        argument: dict[str, Any] = {
            "case": {},
            "framework": framework_of(built.environment),
            "accelerator": accelerator,
            # What a machine has beside is its user's business; what an image has is the image.
            "settings": {"container": bool(built.details.get("image"))},
        }
        transcript, why_not = ask(engine, built, self._rooms, _PROBE, argument, _PROBE_TIMEOUT_S)
        if why_not:
            raise BuildError(f"{built.environment.name} was built but cannot be entered: {why_not}")
        return transcript.reported


def framework_of(environment: Environment) -> str | None:
    """What a workload is told to import; None where it is to look for itself."""
    return None if environment.framework == "any" else environment.framework


def broken_promises(environment: Environment, reported: Mapping[str, Any]) -> list[str]:
    """Every difference between what was promised and locked, and what is reported.

    A promise about Python holds to the digit it gives ("3.6" is kept by 3.6.15); packages, CUDA and cuDNN must match
    exactly.
    """
    packages = reported.get("packages", {})
    versions = {**packages, **{name: reported.get(name) for name in _NO_PACKAGES}, **reported.get("versions", {})}
    broken = []
    for name, promised in environment.promises.items():
        actual = versions.get(name)
        kept = actual == promised or (name == "python" and str(actual).startswith(f"{promised}."))
        if not kept:
            broken.append(f"{name} is {actual or 'not there'}, promised {promised}")
    for pin in environment.pins:
        if packages.get(pin.name) != pin.version:
            broken.append(f"package {pin.name} is {packages.get(pin.name) or 'not there'}, locked {pin.version}")
    system = {key.partition(":")[0]: version for key, version in reported.get("system_packages", {}).items()}
    for deb in environment.debs:
        if system.get(deb.name) != deb.version:
            broken.append(f"package {deb.title} is {system.get(deb.name) or 'not there'}")
    return broken


def _with_realised_id(built: Built, reported: Mapping[str, Any]) -> Built:
    """A host interpreter is what is installed in it."""
    from dataclasses import replace

    got = [reported.get("python"), sorted(reported.get("packages", {}).items())]
    return replace(built, realised_id="host:" + toml.digest(got, 16))
