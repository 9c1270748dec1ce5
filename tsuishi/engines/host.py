"""The host engine: the interpreter that the user names, recorded rather than pinned. It makes and stores nothing."""

import shutil
import site
from pathlib import Path

from tsuishi.engines.interface import Availability, Built
from tsuishi.engines.subprocesses import ProcessStarter
from tsuishi.machine.interpreters import full_version, real_executable
from tsuishi.specs.environment import Environment


class HostEngine:
    """An interpreter of this machine, with the packages that are installed in it."""

    name = "host"
    maker = store = inspector = bases = None

    def __init__(self, python: str) -> None:
        self._given = python
        # Where `pip install --user` puts packages; Python finds it by the user's home, which workloads do not get.
        self.starter = ProcessStarter({"PYTHONUSERBASE": site.getuserbase()})

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
        """The interpreter, without a realised id: its packages may have changed, and only asking it shows that."""
        python = self._interpreter()
        if python is None:
            return None
        return Built(
            environment=environment,
            engine=self.name,
            engine_version=full_version(python),
            spec_id=environment.spec_id("host"),
            realised_id="",
            python=(str(python),),
            details={"base": None, "substitutions": [], "image": None, **self.starter.confinement(str(python))},
        )

    def _interpreter(self) -> Path | None:
        """Its absolute path, as workloads are started from /. Links stay: a virtual environment is found by its link.

        In place of a version manager's shim, which needs the user's home and variables, the interpreter behind it.
        """
        path = shutil.which(Path(self._given).expanduser())
        return real_executable(Path(path).absolute()) if path else None
