"""The engines of this machine, and the choice among them for an environment."""

import platform
from collections.abc import Iterator
from functools import cached_property

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.engines.host import HostEngine
from tsuishi.engines.interface import Engine
from tsuishi.engines.venv import VenvEngine
from tsuishi.specs.environment import Environment, open_refusal

_ARCHITECTURE = "x86_64"
_AUTO = "auto"


class Engines:
    """Every engine, whether it can be used on this machine or not."""

    def __init__(self, settings: Settings, checkout: Checkout) -> None:
        self._asked = settings.engine
        self.docker = DockerEngine(
            checkout.dockerfile,
            settings.mirrors,
            settings.cache,
            offline=settings.offline,
            timeout_s=settings.engine_timeout_s,
        )
        self.venv = VenvEngine(settings.cache, settings.pythons)
        self.host = HostEngine(settings.host_python)
        engines: tuple[Engine, ...] = self.docker, self.venv, self.host
        self._by_name = {engine.name: engine for engine in engines}

    def __iter__(self) -> Iterator[Engine]:
        return iter(self._by_name.values())

    def __getitem__(self, name: str) -> Engine:
        return self._by_name[name]

    def chosen_for(self, environment: Environment) -> Engine:
        """The engine that the user asked for, else the best engine. Raises UserError where the former is unusable."""
        if self._asked != _AUTO:
            asked = self[self._asked]
            availability = asked.availability()
            if not availability.usable:
                raise UserError(f"engine {asked.name}: {availability.reason}; {availability.remedy}")
            return asked
        if not environment.pinned:
            return self.host
        return self.docker if self._containers else self.venv

    def refusal(self, environment: Environment) -> str:
        """Why the environment cannot be made on this machine; empty where it can."""
        if environment.pinned and platform.machine() != _ARCHITECTURE:
            return f"its lock holds {_ARCHITECTURE} packages, and this machine is {platform.machine()}"
        return open_refusal(environment) or self.chosen_for(environment).refusal(environment)

    def why_no_containers(self) -> str:
        """Why no container engine is chosen, although the user named no engine; empty where it is chosen."""
        if self._asked != _AUTO or self._containers:
            return ""
        docker = self.docker.availability()
        return f"{docker.reason}; {docker.remedy}"

    def sweep(self) -> None:
        """End what killed processes of tsuishi left running in any engine: it would disturb the measurements."""
        for engine in self:
            engine.starter.sweep()

    @cached_property
    def _containers(self) -> bool:
        return self.docker.availability().usable
