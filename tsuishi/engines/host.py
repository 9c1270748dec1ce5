"""The host engine: whatever interpreter is given, recorded rather than pinned. Nothing is built."""

import shutil
import site
from pathlib import Path

from tsuishi.artifacts.fetcher import Fetcher
from tsuishi.base.errors import BuildError
from tsuishi.base.screen import Say
from tsuishi.engines.interface import Availability, Built
from tsuishi.engines.subprocesses import SubprocessEngine
from tsuishi.machine.interpreters import full_version, real_executable
from tsuishi.specs.environment import Environment


class HostEngine(SubprocessEngine):
    """An interpreter of this machine, with whatever is installed in it."""

    name = "host"

    def __init__(self, python: str) -> None:
        self._given = python

    def more_variables(self) -> dict[str, str]:
        """Where `pip install --user` puts packages: they are among what is installed, and found by the user's home."""
        return {"PYTHONUSERBASE": site.getuserbase()}

    def availability(self) -> Availability:
        python = self._interpreter()
        if python is None:
            return Availability(False, reason=f"no interpreter '{self._given}'", remedy="give one with --host-python")
        return Availability(True, version=full_version(python))

    def refusal(self, environment: Environment) -> str:
        if environment.pinned:
            return "it is pinned, and the host engine takes an interpreter as it is: use --env host, or another engine"
        return "" if self.availability().usable else self.availability().reason

    def find(self, environment: Environment) -> Built | None:
        python = self._interpreter()
        if python is None:
            return None
        return Built(
            environment=environment,
            engine=self.name,
            engine_version=full_version(python),
            spec_id=environment.spec_id("host"),
            realised_id="",  # what is installed may have changed: known only after asking it
            python=(str(python),),
            details={"base": None, "substitutions": [], "image": None, **self.confinement(str(python))},
        )

    def build(self, environment: Environment, fetcher: Fetcher, say: Say) -> Built:
        built = self.find(environment)
        if built is None:
            raise BuildError(f"{environment.name}: {self.availability().reason}: {self.availability().remedy}")
        return built

    def discard(self, built: Built) -> None:
        """Nothing was made."""

    def _interpreter(self) -> Path | None:
        """Absolute, as workloads are started from /; links are kept, as they make a virtual environment.

        Not the shim of a version manager, which needs the user's home and variables, but what that starts.
        """
        found = shutil.which(Path(self._given).expanduser())
        return real_executable(Path(found).absolute()) if found else None
