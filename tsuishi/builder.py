"""Making environments ready: choosing the engine, building what is missing, and making each keep its promises."""

import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tsuishi import provenance, spec, store
from tsuishi.artifacts import Cache, Fetcher, Progress, Say, Sources, pip_sources
from tsuishi.engines.base import Built, Engine, Launch
from tsuishi.engines.docker import DockerEngine
from tsuishi.engines.host import HostEngine
from tsuishi.engines.venv import VenvEngine
from tsuishi.environment import Environment
from tsuishi.errors import BuildError, UserError
from tsuishi.events import Event
from tsuishi.listen import Timeout, Transcript, listen, why_it_ended
from tsuishi.rooms import Rooms
from tsuishi.settings import Settings

WORKLOADS_INSIDE = "/workloads"
_ARCHITECTURE = "x86_64"
_PROBE = "probe"
_PROBE_TIMEOUT_S = 300.0


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
        docker = DockerEngine(self._rooms.dockerfile, settings.mirrors, settings.cache)
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

    def refusal(self, environment: Environment) -> str:
        """Why the environment cannot be made here; empty where it can."""
        if environment.pinned and platform.machine() != _ARCHITECTURE:
            return f"its lock holds {_ARCHITECTURE} packages, and this machine is {platform.machine()}"
        return self.engine_for(environment).refusal(environment)

    def why_no_container_engine(self) -> str:
        """Why there are no containers where an engine was not chosen by name; empty where there are."""
        if self._settings.engine != "auto" or self._container_engine:
            return ""
        docker = self.engines["docker"].availability()
        return f"{docker.reason}; {docker.remedy}"

    def fetcher(self, say: Say, progress: Progress = lambda size: None) -> Fetcher:
        """Fetches from the configured indexes, or those pip is configured with."""
        given = self._settings
        sources = Sources(given.indexes, given.find_links) if given.indexes or given.find_links else pip_sources()
        return Fetcher(self.cache, sources, say, progress)

    def find(self, environment: Environment) -> Ready | None:
        """The environment as it was built and verified earlier."""
        engine = self.engine_for(environment)
        built = engine.find(environment)
        if built is None or not environment.pinned:
            return None
        path = self._record_path(built)
        if not path.exists():
            return None
        return Ready(environment, engine, built, provenance.environment_record(built, store.read_json(path)))

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
            store.write_json(self._record_path(built), reported)
        else:
            built = _with_realised_id(built, reported)
        return Ready(environment, engine, built, provenance.environment_record(built, reported))

    def _record_path(self, built: Built) -> Path:
        folder = self._settings.cache / "environments"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{built.environment.name}-{built.engine}-{spec.digest([built.spec_id, built.realised_id])}.json"
        return folder / name

    def _ask(self, engine: Engine, built: Built) -> dict[str, Any]:
        """What the environment reports about itself (suites/workloads/probe.py)."""
        script = f"{engine.inside(self._rooms.workloads, WORKLOADS_INSIDE)}/{_PROBE}.py"
        # Whether an interpreter of this machine can use a GPU is known to nobody else.
        accelerator = "cpu" if built.environment.pinned else "cuda"
        argument = spec.canonical_json(
            {"case": {}, "framework": framework_of(built.environment), "accelerator": accelerator, "settings": {}}
        )
        started, transcript, log = time.monotonic(), Transcript(), bytearray()

        def remember(piece: bytes) -> None:
            log.extend(piece)
            del log[:-4000]

        process = engine.start(
            built,
            Launch(
                arguments=("-u", script, argument),
                mounts={self._rooms.workloads: WORKLOADS_INSIDE},
                name=f"tsuishi-probe-{built.environment.name}-{time.time_ns()}",
                labels={"probe": built.environment.name},
            ),
        )
        try:
            ended = listen(process, transcript, started, _PROBE_TIMEOUT_S, _ignore, remember)
        except Timeout:
            raise BuildError(f"{built.environment.name}: no answer within {_PROBE_TIMEOUT_S:.0f} s") from None
        if not transcript.finished:
            said = transcript.failure["text"] if transcript.failure else _last_line(bytes(log))
            raise BuildError(f"{built.environment.name} was built but cannot be entered: {said or why_it_ended(ended)}")
        return transcript.reported


def framework_of(environment: Environment) -> str | None:
    """What a workload is told to import; None where it is to look for itself."""
    return None if environment.framework == "any" else environment.framework


def broken_promises(environment: Environment, reported: Mapping[str, Any]) -> list[str]:
    """Every difference between what was promised and locked, and what is reported.

    A promise about Python holds to the digit it gives ("3.6" is kept by 3.6.15); packages must match exactly.
    """
    versions = reported.get("versions", {})
    packages = reported.get("packages", {})
    broken = []
    for name, promised in environment.promises.items():
        actual = reported.get("python") if name == "python" else versions.get(name, packages.get(name))
        kept = actual == promised or (name == "python" and str(actual).startswith(f"{promised}."))
        if not kept:
            broken.append(f"{name} is {actual or 'not there'}, promised {promised}")
    for pin in environment.pins:
        if packages.get(pin.name) != pin.version:
            broken.append(f"package {pin.name} is {packages.get(pin.name) or 'not there'}, locked {pin.version}")
    return broken


def _with_realised_id(built: Built, reported: Mapping[str, Any]) -> Built:
    """A host interpreter is what is installed in it."""
    from dataclasses import replace

    got = [reported.get("python"), sorted(reported.get("packages", {}).items())]
    return replace(built, realised_id="host:" + spec.digest(got, 16))


def _ignore(event: Event) -> None:
    """The transcript holds what matters."""


def _last_line(log: bytes) -> str:
    lines = [line for line in log.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""
