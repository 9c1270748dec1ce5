"""The rules by which a GPU and its driver run an environment. The facts are in images/compatibility.toml.

A GPU runs native code of its own major compute capability, up to its own minor capability (CUDA C++ Programming Guide,
binary compatibility). A GPU that is newer than the code of an environment needs PTX in all libraries, cuDNN and cuBLAS
too: with environments of 2019 programs then hang, fail, or compute wrong numbers. So such an environment is refused,
and the message names environments to use instead. An environment that holds PTX alone for a GPU is used after a
numerical self-check.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

from packaging.version import Version
from pydantic import Field, model_validator

from tsuishi.base import toml
from tsuishi.machine.gpus import Nvml
from tsuishi.specs.data_sheets import DataSheet
from tsuishi.specs.environment import (
    COMPATIBILITY,
    Accelerator,
    Capability,
    Cuda,
    Environment,
    ends,
    known_environments,
    read_environment,
)

GpuDescription = Mapping[str, Any]  # an item of Nvml.describe()


class Citation(toml.Spec):
    """A source of facts in the table."""

    id: toml.Name
    title: str
    citation: str


class Toolkit(toml.Spec):
    """A release of CUDA: the oldest driver (Linux, x86-64), and the compute capabilities that its compiler knows."""

    version: str
    min_driver: str
    # The oldest driver that runs it without some features (minor version compatibility of CUDA).
    min_driver_minor_compatible: str = ""
    capabilities: tuple[Capability, Capability]
    source: str


class Architecture(toml.Spec):
    """A generation of GPUs, with the last driver branch and toolkit that support it; None while support goes on."""

    name: str
    capabilities: tuple[Capability, ...] = Field(min_length=1)
    last_driver_branch: int | None = None
    last_cuda: str | None = None
    source: str


class KnownGpu(toml.Spec):
    """A card by its marketing name."""

    name: str
    capability: Capability
    source: str


class BrokenToolkit(toml.Spec):
    """GPUs on which the libraries of toolkits before a release of CUDA fail, though native code for others loads."""

    capability: Capability
    before_cuda: str
    why: str
    source: str


class CompatibilityTable(toml.Spec):
    """The content of images/compatibility.toml."""

    sources: tuple[Citation, ...]
    cuda: tuple[Toolkit, ...]
    architectures: tuple[Architecture, ...]
    broken: tuple[BrokenToolkit, ...] = ()
    gpus: tuple[KnownGpu, ...] = ()
    data_sheets: tuple[DataSheet, ...] = ()

    @model_validator(mode="after")
    def _every_source_is_listed(self) -> "CompatibilityTable":
        known = {source.id for source in self.sources}
        entries: list[Toolkit | Architecture | BrokenToolkit | KnownGpu | DataSheet] = [*self.cuda, *self.architectures]
        entries += [*self.broken, *self.gpus, *self.data_sheets]
        for entry in entries:
            for source in entry.source.split(", "):
                if source not in known:
                    raise ValueError(
                        f"source '{source}' is not listed in [[sources]]; known: {', '.join(sorted(known))}"
                    )
        return self

    @cached_property
    def by_capability(self) -> dict[str, Architecture]:
        return {
            capability: architecture for architecture in self.architectures for capability in architecture.capabilities
        }


def read_table(images: Path) -> CompatibilityTable:
    """The table in the folder `images`. Raises UserError where its file is missing or wrong."""
    return toml.load(images / COMPATIBILITY, CompatibilityTable)


@dataclass(frozen=True)
class Misfit:
    """Why GPUs cannot run an environment. GPUs that are only newer than its code may be tried with `--force`."""

    reason: str
    remedy: str = ""
    may_be_forced: bool = False


def accelerator_for(environment: Environment, nvml: Nvml, asked: str) -> Accelerator:
    """The accelerator that an environment uses here: GPUs if it can use them and `asked` is not "cpu", else the CPU."""
    return "cpu" if asked == "cpu" or why_on_cpu(environment, nvml) else "cuda"


def why_on_cpu(environment: Environment, nvml: Nvml) -> str:
    """Why an environment computes on the CPU here; empty where it can use a GPU."""
    if "cuda" not in environment.accelerators:
        return "it is made for the CPU"
    return "" if len(nvml) else f"no GPU here ({nvml.why_not or 'none found'})"


def gpu_refusal(environment: Environment, nvml: Nvml, images: Path, asked: str, force: bool) -> str:
    """Why an environment cannot use the GPUs here as `asked` ("cpu", "cuda" or "auto"), with a remedy.

    Empty where it can, and where it may use the CPU. `force` allows GPUs that are newer than its code.
    """
    if asked == "cpu":
        return ""
    if on_cpu := why_on_cpu(environment, nvml):
        return on_cpu if asked == "cuda" else ""
    table = read_table(images)
    # A generator: the files are read only if the message names other environments.
    known = (read_environment(path) for path in known_environments(images).values())
    return refusal(environment, nvml.describe(), nvml.driver(), table, known, force)


def runs_natively(cuda: Cuda, capability: str) -> bool:
    """Whether a GPU of this compute capability runs the native code of an environment."""
    return _within(capability, cuda.native)


def by_ptx(environment: Environment, gpus: Sequence[GpuDescription], table: CompatibilityTable) -> str:
    """Why the code of an environment that these GPUs run is doubtful: it is PTX alone. Empty where it is native."""
    cuda = environment.cuda
    if cuda is None or cuda.ptx is None:
        return ""
    known = [gpu for gpu in gpus if gpu["compute_capability"] and not runs_natively(cuda, gpu["compute_capability"])]
    compiled = [gpu for gpu in known if _within(gpu["compute_capability"], cuda.ptx)]
    described = _described_all(compiled, table)
    return described and f"{described}; {_held(environment, cuda)}, which the driver compiles"


def misfit(
    environment: Environment, gpus: Sequence[GpuDescription], driver: str | None, table: CompatibilityTable
) -> Misfit | None:
    """Why these GPUs, or their driver, cannot run the environment; None where they can, by PTX (`by_ptx`) too."""
    cuda = environment.cuda
    if cuda is None:
        return None
    known = [gpu for gpu in gpus if gpu["compute_capability"]]
    if unfit := [gpu for gpu in known if not _runs(cuda, gpu["compute_capability"])]:
        too_new = all(_parts(gpu["compute_capability"]) > _parts((cuda.ptx or cuda.native)[1]) for gpu in unfit)
        why = f", and {cuda.beyond}" if too_new and cuda.beyond else ""
        reason = f"{_described_all(unfit, table)}; {_held(environment, cuda)}{why}"
        return Misfit(reason, may_be_forced=too_new)
    for broken in table.broken:
        met = [gpu for gpu in known if gpu["compute_capability"] == broken.capability]
        if met and Version(cuda.toolkit) < Version(broken.before_cuda):
            reason = f"{_described_all(met, table)}; {environment.name} has CUDA {cuda.toolkit}: {broken.why}"
            return Misfit(reason, may_be_forced=True)
    if driver and Version(driver) < Version(cuda.min_driver):
        reason = (
            f"driver {driver} is older than {cuda.min_driver}, which CUDA {cuda.toolkit} of {environment.name} needs"
        )
        ended = _last_branch(gpus, table)
        if ended and ended[1] < Version(cuda.min_driver).major:
            return Misfit(f"{reason}, and drivers for {ended[0]} end with {ended[1]}")
        return Misfit(reason, remedy="update the driver")
    return None


def refusal(
    environment: Environment,
    gpus: Sequence[GpuDescription],
    driver: str | None,
    table: CompatibilityTable,
    known: Iterable[Environment],
    force: bool = False,
) -> str:
    """Why these GPUs cannot run the environment and what to use instead, in one line; empty where they can.

    `known` are the environments to choose from. `force` allows GPUs that are newer than the environment's code.
    """
    obstacle = misfit(environment, gpus, driver, table)
    if obstacle is None or (force and obstacle.may_be_forced):
        return ""
    alternatives = _fitting(environment, gpus, driver, table, known)
    ways = [obstacle.remedy] if obstacle.remedy else []
    ways += [f"use {' or '.join(alternatives)}"] if alternatives else []
    if not ways:
        ways = ["no environment here is made for it: --accelerator cpu, or --engine host with a framework that is"]
    forced = "; --force runs a numerical self-check first" if obstacle.may_be_forced else ""
    return f"{obstacle.reason}: {', or '.join(ways)}{forced}"


def _fitting(
    environment: Environment,
    gpus: Sequence[GpuDescription],
    driver: str | None,
    table: CompatibilityTable,
    known: Iterable[Environment],
) -> list[str]:
    """Names of the oldest and the newest release of its framework that these GPUs run, with whole locks if possible."""
    like = (environment.framework, environment.machine)
    candidates = [other for other in known if other.cuda and (other.framework, other.machine) == like]
    usable = [other for other in candidates if misfit(other, gpus, driver, table) is None]
    buildable = [other for other in usable if not other.open]
    return [other.name for other in ends(sorted(buildable or usable, key=lambda other: Version(other.release)))]


def _runs(cuda: Cuda, capability: str) -> bool:
    return runs_natively(cuda, capability) or (cuda.ptx is not None and _within(capability, cuda.ptx))


def _within(capability: str, code: tuple[str, str]) -> bool:
    own, lowest, highest = map(_parts, (capability, *code))
    return lowest <= own and (own <= highest or own[0] == highest[0])


def _held(environment: Environment, cuda: Cuda) -> str:
    ptx = f" and PTX for {' to '.join(cuda.ptx)}" if cuda.ptx else ""
    return f"{environment.name} holds code for {' to '.join(cuda.native)}{ptx}"


def _described_all(gpus: Iterable[GpuDescription], table: CompatibilityTable) -> str:
    return "; ".join(dict.fromkeys(_described(gpu, table) for gpu in gpus))


def _described(gpu: GpuDescription, table: CompatibilityTable) -> str:
    capability = gpu["compute_capability"]
    architecture = table.by_capability.get(capability)
    return f"{gpu['name']} is compute capability {capability}{f' ({architecture.name})' if architecture else ''}"


def _last_branch(gpus: Sequence[GpuDescription], table: CompatibilityTable) -> tuple[str, int] | None:
    """The architecture of these GPUs whose driver support ends first, and its last branch."""
    architectures = [table.by_capability.get(gpu["compute_capability"]) for gpu in gpus]
    ends = [(known.name, known.last_driver_branch) for known in architectures if known and known.last_driver_branch]
    return min(ends, key=itemgetter(1), default=None)


def _parts(capability: str) -> tuple[int, ...]:
    return tuple(int(part) for part in capability.split("."))
