"""Enters an environment: starts run.py, the program of all workloads, in it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsuishi.base import toml
from tsuishi.base.processes import Process
from tsuishi.engines import sandbox
from tsuishi.engines.interface import Built, Launch, Starter
from tsuishi.results.records import EnvironmentRecord
from tsuishi.specs.environment import ANY, Environment

if TYPE_CHECKING:  # the typed events are slow to import
    from tsuishi.stream.events import Failed

WORKLOADS_INSIDE = "/workloads"
ENTRY = "run.py"  # its argument names the experiment
# The class of a workload's error where GPUs that it was given are not there (suites/workloads/common/cuda_devices.py).
_GPUS_MISSING = "GpusMissing"


@dataclass(frozen=True)
class Ready:
    """An environment that was entered and has the promised versions. `record` is its environment record."""

    environment: Environment
    starter: Starter
    built: Built
    record: EnvironmentRecord

    @property
    def as_built(self) -> Environment:
        """The environment with its real framework and accelerators: only a host interpreter itself knows them."""
        if self.environment.pinned:
            return self.environment
        known: dict[str, Any] = {} if self.record.cuda_usable else {"accelerators": ("cpu",)}
        if self.environment.framework == ANY and (framework := self.record.framework) not in (None, ANY):
            release = (self.record.versions or {}).get(framework, "0").partition("+")[0]
            known |= {"framework": framework, "promises": {framework: release}}
        return self.environment.model_copy(update=known)

    def without_walls(self, program: str) -> str:
        """A line on the powers of a program in it where nothing confines programs; else empty."""
        kind, _, why = (self.record.sandbox or "").partition(": ")
        if kind != "none":
            return ""
        return (
            f"{program} runs in {self.environment.name} without a sandbox ({why}): it can read your files, keys too, "
            f"and the variables of your programs: {sandbox.remedy_for(why)}, or use a container engine"
        )


def start_workload(
    starter: Starter, built: Built, workloads: Path, argument: Mapping[str, Any], launch: Launch
) -> Process:
    """Start run.py of the folder `workloads` with this argument, and with the number of its GPUs.

    launch: its arguments, if any, make Python start several processes of run.py; its mounts are further folders for
    run.py to read. Raises OSError or UserError where it cannot be started, EngineLost where the engine does not answer.
    """
    gpus = len(launch.limits.gpus)
    text = toml.canonical_json({**argument, **({"gpus": gpus} if gpus else {})})
    arguments = ("-u", *launch.arguments, f"{starter.inside(workloads, WORKLOADS_INSIDE)}/{ENTRY}", text)
    mounts = {workloads: WORKLOADS_INSIDE, **launch.mounts}
    return starter.start(built, replace(launch, arguments=arguments, mounts=mounts))


def why_it_failed(failure: "Failed", starter: Starter) -> str:
    """The text of a workload's failure; with the engine's remedy where GPUs did not arrive in the environment."""
    return f"{failure.text}: {starter.gpu_remedy()}" if failure.type == _GPUS_MISSING else failure.text


def framework_of(environment: Environment) -> str | None:
    """The framework that a workload imports; None where the workload itself looks for a framework."""
    return None if environment.framework == ANY else environment.framework
