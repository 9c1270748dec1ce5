"""The host engine: an interpreter that the user names. It is recorded, not pinned; nothing is made or stored."""

import shutil
import site
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi.base.home import expanded
from tsuishi.engines.interface import Availability, Built
from tsuishi.machine.interpreters import full_version, real_executable
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from tsuishi.engines.subprocesses import ProcessStarter

# It stands in spec ids in place of the text of a template.
RECIPE = "host"


class HostEngine:
    """An interpreter of this machine, with the packages that are installed in it."""

    name = "host"
    maker = store = inspector = bases = None

    def __init__(self, python: str, *, confined: bool = True) -> None:
        self._given, self._confined = python, confined

    @cached_property
    def starter(self) -> "ProcessStarter":
        from tsuishi.engines.subprocesses import ProcessStarter

        # The folder of `pip install --user`. Python looks for it in the user's home, which workloads do not get.
        return ProcessStarter({"PYTHONUSERBASE": site.getuserbase()}, confined=self._confined)

    def availability(self) -> Availability:
        python = self._interpreter()
        if python is None:
            return Availability(False, reason=self._missing, remedy="give one with --host-python")
        return Availability(True, version=full_version(python))

    def refusal(self, environment: Environment) -> str:
        if environment.pinned:
            return "it is pinned, and the host engine takes an interpreter as it is: use --env host, or another engine"
        return "" if self._path() else self._missing

    def find(self, environment: Environment, *, at_a_glance: bool = False) -> Built | None:
        """The interpreter. Its realised id is empty: its packages may have changed, so it has to be asked first."""
        python = self._interpreter()
        if python is None:
            return None
        return Built(
            environment=environment,
            engine=self.name,
            engine_version=full_version(python),
            spec_id=environment.spec_id(RECIPE),
            realised_id="",
            python=(str(python),),
            details={"base": None, "substitutions": [], "image": None},
        )

    def _interpreter(self) -> Path | None:
        """The absolute path of the interpreter, because workloads start in /. Links stay, as virtual environments need.

        A shim of a version manager is replaced by the interpreter behind it, because it needs the user's variables.
        """
        path = self._path()
        return real_executable(path) if path else None

    def _path(self) -> Path | None:
        """The absolute path of the given program, which may be a shim. Starts nothing."""
        path = shutil.which(expanded(self._given))
        return Path(path).absolute() if path else None

    @property
    def _missing(self) -> str:
        return f"no interpreter '{self._given}'"
