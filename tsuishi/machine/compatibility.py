"""Which GPU and driver run which environment: the rules; the facts are data, in images/compatibility.toml.

A GPU runs native code of its own major compute capability up to its own minor one (CUDA C++ Programming Guide, binary
compatibility). What is newer than all that a stack holds would need PTX in every library of it, cuDNN and cuBLAS too:
stacks of 2019 then hang, fail, or compute wrong numbers. So they are refused, with the environment to use instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.version import Version
from pydantic import Field, model_validator

from tsuishi.base import toml
from tsuishi.specs.environment import COMPATIBILITY, Capability, Cuda, Environment

Gpu = Mapping[str, Any]  # as Nvml.describe() has it


class Citation(toml.Spec):
    """Where facts of the table are from."""

    id: toml.Name
    title: str
    citation: str


class Toolkit(toml.Spec):
    """A release of CUDA: the driver it needs (Linux, x86-64), and the compute capabilities its compiler knows."""

    version: str
    min_driver: str
    # Of later releases with the same major version: drivers are compatible from there on, with features missing.
    min_driver_minor_compatible: str = ""
    capabilities: tuple[Capability, Capability]
    source: str


class Architecture(toml.Spec):
    """A generation of GPUs; the last driver branch and toolkit that support it are left out while support goes on."""

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


class CompatibilityTable(toml.Spec):
    """images/compatibility.toml."""

    sources: tuple[Citation, ...]
    cuda: tuple[Toolkit, ...]
    architectures: tuple[Architecture, ...]
    gpus: tuple[KnownGpu, ...] = ()

    @model_validator(mode="after")
    def _every_source_is_listed(self) -> "CompatibilityTable":
        known = {one.id for one in self.sources}
        entries: list[Toolkit | Architecture | KnownGpu] = [*self.cuda, *self.architectures, *self.gpus]
        for entry in entries:
            for source in entry.source.split(", "):
                if source not in known:
                    raise ValueError(
                        f"source '{source}' is not listed in [[sources]]; known: {', '.join(sorted(known))}"
                    )
        return self

    @cached_property
    def by_capability(self) -> dict[str, Architecture]:
        return {capability: one for one in self.architectures for capability in one.capabilities}


def read_table(images: Path) -> CompatibilityTable:
    """The table. Raises UserError for a file that is missing or wrong."""
    return toml.load(images / COMPATIBILITY, CompatibilityTable)


@dataclass(frozen=True)
class Misfit:
    """Why GPUs cannot run an environment. What is merely newer than its code may be tried (`--force`)."""

    reason: str
    remedy: str = ""
    may_be_forced: bool = False


def runs_natively(cuda: Cuda, capability: str) -> bool:
    """Whether a GPU of that compute capability runs the native code of an environment."""
    own, lowest, highest = (_parts(one) for one in (capability, *cuda.compute_capabilities))
    return lowest <= own and (own <= highest or own[0] == highest[0])


def misfit(
    environment: Environment, gpus: Sequence[Gpu], driver: str | None, table: CompatibilityTable
) -> Misfit | None:
    """What keeps these GPUs from running the environment: the GPU itself, or the driver; None where nothing does."""
    cuda = environment.cuda
    if cuda is None:
        return None
    unfit = [gpu for gpu in gpus if gpu["compute_capability"] and not runs_natively(cuda, gpu["compute_capability"])]
    if unfit:
        too_new = all(_parts(gpu["compute_capability"]) > _parts(cuda.compute_capabilities[1]) for gpu in unfit)
        described = dict.fromkeys(_described(gpu, table) for gpu in unfit)
        low, high = cuda.compute_capabilities
        why = f", and {cuda.beyond}" if too_new and cuda.beyond else ""
        held = f"{environment.name} holds code for {low} to {high}{why}"
        return Misfit(f"{'; '.join(described)}; {held}", may_be_forced=too_new)
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
    gpus: Sequence[Gpu],
    driver: str | None,
    table: CompatibilityTable,
    known: Iterable[Environment],
    force: bool = False,
) -> str:
    """Why these GPUs cannot run the environment and what to use instead, in one line; empty where they may."""
    found = misfit(environment, gpus, driver, table)
    if found is None or (force and found.may_be_forced):
        return ""
    instead = fitting(environment, gpus, driver, table, known)
    ways = [found.remedy] if found.remedy else []
    ways += [f"use {' or '.join(instead)}"] if instead else []
    if not ways:
        ways = ["no environment here is made for it: --accelerator cpu, or --engine host with a framework that is"]
    forced = "; --force runs a numerical self-check first" if found.may_be_forced else ""
    return f"{found.reason}: {', or '.join(ways)}{forced}"


def fitting(
    environment: Environment,
    gpus: Sequence[Gpu],
    driver: str | None,
    table: CompatibilityTable,
    known: Iterable[Environment],
) -> list[str]:
    """Names of the environments with the same framework that these GPUs run; what is known whole comes first."""
    fit = [
        one
        for one in known
        if one.cuda and one.framework == environment.framework and misfit(one, gpus, driver, table) is None
    ]
    return [one.name for one in sorted(fit, key=lambda one: (bool(one.open), one.name))]


def _described(gpu: Gpu, table: CompatibilityTable) -> str:
    capability = gpu["compute_capability"]
    architecture = table.by_capability.get(capability)
    return f"{gpu['name']} is compute capability {capability}{f' ({architecture.name})' if architecture else ''}"


def _last_branch(gpus: Sequence[Gpu], table: CompatibilityTable) -> tuple[str, int] | None:
    """The architecture among these GPUs whose drivers end first, and with which branch."""
    found = [table.by_capability.get(gpu["compute_capability"]) for gpu in gpus]
    ended = [(one.name, one.last_driver_branch) for one in found if one and one.last_driver_branch is not None]
    return min(ended, key=lambda one: one[1], default=None)


def _parts(capability: str) -> tuple[int, ...]:
    return tuple(int(part) for part in capability.split("."))
