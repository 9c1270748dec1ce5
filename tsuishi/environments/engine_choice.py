"""The engines of this machine, and the choice among them for an environment."""

import platform
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from tsuishi import extras
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.engines.docker.daemon import address
from tsuishi.engines.host import HostEngine
from tsuishi.engines.interface import Engine, FileEngine
from tsuishi.engines.venv import VenvEngine
from tsuishi.specs.environment import Environment, open_refusal

if TYPE_CHECKING:
    from tsuishi.engines.docker.engine import DockerEngine

_AUTO = "auto"
# The end of a remedy for Docker that is taken already, where virtual environments are used.
_OR_VENV = re.compile(r"[,;] or use (?:--engine )?venv$")


class Engines:
    """Every engine, whether it can be used on this machine or not."""

    def __init__(self, settings: Settings, checkout: Checkout) -> None:
        self._settings = settings
        self._checkout = checkout
        self.venv = VenvEngine(settings.cache, settings.pythons, confined=settings.sandbox)
        self.host = HostEngine(settings.host_python, confined=settings.sandbox)
        # Further engines, whose images come by `import` alone.
        self.of_files: tuple[FileEngine, ...] = tuple(
            engine
            for further in extras.given("engines", "engines")
            for engine in further(settings, checkout.dockerfile)
        )

    @cached_property
    def docker(self) -> "DockerEngine":
        # Without a container engine it is never needed, and slow to import.
        from tsuishi.engines.docker.engine import DockerEngine

        return DockerEngine(
            self._checkout.dockerfile,
            self._settings.mirrors,
            self._settings.cache,
            offline=self._settings.offline,
            timeout_s=self._settings.engine_timeout_s,
        )

    def __iter__(self) -> Iterator[Engine]:
        yield from (self.docker, self.venv, self.host)
        yield from self.of_files

    def __getitem__(self, name: str) -> Engine:
        """The engine of this name. Raises UserError where it is of an extra that this installation lacks."""
        known = {engine.name: engine for engine in self}
        if name not in known:
            raise UserError(
                f"engine {name} is of an extra that is not in tsuishi/extras/: put the extra back, or use an engine "
                f"that is here: {', '.join(known)}"
            )
        return known[name]

    def chosen_for(self, environment: Environment) -> Engine:
        """The engine that the user asked for, else the best engine. Raises UserError where the former is unusable."""
        if environment.engine or self._settings.engine != _AUTO:
            asked = self[environment.engine or self._settings.engine]
            availability = asked.availability()
            if not availability.usable:
                raise UserError(f"engine {asked.name}: {availability.reason}; {availability.remedy}")
            return asked
        if not environment.pinned:
            return self.host
        return self.docker if self._containers else self.venv

    def refusal(self, environment: Environment) -> str:
        """Why the environment cannot be made on this machine; empty where it can."""
        return (
            machine_refusal(environment)
            or open_refusal(environment)
            or self.chosen_for(environment).refusal(environment)
        )

    def why_no_containers(self) -> str:
        """Why no container engine is chosen, although the user named no engine; empty where it is chosen."""
        if self._settings.engine != _AUTO or self._containers:
            return ""
        docker = self.docker.availability()
        return f"{docker.reason}; {_OR_VENV.sub('', docker.remedy)}"

    def abandoned(self) -> list[str]:
        """What `sweep` would end, in words."""
        from tsuishi.engines.subprocesses import abandoned_programs

        return [*self.docker.starter.abandoned(), *abandoned_programs()]

    def sweep(self) -> None:
        """End what killed processes of tsuishi left running in any engine: it would disturb the measurements."""
        from tsuishi.engines.subprocesses import end_abandoned

        self.docker.starter.sweep()
        end_abandoned()

    @cached_property
    def _containers(self) -> bool:
        return bool(address()) and self.docker.availability().usable


def machine_refusal(environment: Environment) -> str:
    """Why the packages of an environment do not run on machines like this; empty where they do."""
    if not environment.pinned or platform.machine() == environment.machine:
        return ""
    return f"its lock holds {environment.machine} packages, and this machine is {platform.machine()}"
