"""A start by another program than the engine: by the scheduler of a cluster, which starts the engine on each node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsuishi.base.processes import Process
from tsuishi.engines.interface import Built, Launch, Starter
from tsuishi.engines.subprocesses import ChildProcess
from tsuishi.machine.gpus import Gpu


@dataclass(frozen=True)
class ForeignStarter:
    """A Starter that runs a command in place of every program; in all else it is `own`, the starter of an engine."""

    own: Starter
    command: Sequence[str]
    variables: Mapping[str, str]

    def start(self, built: Built, launch: Launch) -> Process:
        """Run the command, whose output is that of the program."""
        return ChildProcess(self.command, self.variables, is_workload=False)

    def confinement(self, python: str) -> Mapping[str, Any]:
        return self.own.confinement(python)

    def why_no_gpus(self, gpus: Sequence[Gpu]) -> str:
        return self.own.why_no_gpus(gpus)

    def gpu_remedy(self) -> str:
        return self.own.gpu_remedy()

    def inside(self, path: Path, place: str) -> str:
        return self.own.inside(path, place)
