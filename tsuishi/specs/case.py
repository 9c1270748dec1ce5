"""Cases. Results of the same case are compared across environments, machines, runs and published numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tsuishi.base import toml

if TYPE_CHECKING:
    from tsuishi.specs.axes import Axis

Value = str | int

# The axes that this library itself uses; workloads have the same names. suites/axes.toml describes every axis.
SUITE, PROTOCOL = "suite", "protocol"
# How many GPUs a trial gets, on how many nodes, and the images of a step.
DEVICES, NODES, BATCH_SIZE = "devices", "nodes", "batch_size"
# The network, and how its training is shared out among devices.
MODEL, STRATEGY = "model", "strategy"
CONTEXT_LENGTH = "context_length"
# Pixels of an image's side, where they are not the network's own.
IMAGE_SIZE = "image_size"
# The strategy of a training that is not shared out.
ALONE = "none"


@dataclass(frozen=True)
class Case:
    """A combination of values of a suite's axes. The environment is not part of a case.

    Vocabulary.case makes it, or the records of a run do. `given` are all axes that the suite gives with their values,
    in canonical order. `items` are those of them that identify the case: usual values are left out where ids leave them
    out. `of_process` are those that are settings of the process; the workload gets the others.
    """

    items: tuple[tuple[str, Value], ...]
    given: tuple[tuple[str, Value], ...] = field(default=(), compare=False)
    of_process: "tuple[Axis, ...]" = field(default=(), compare=False)

    @cached_property
    def axes(self) -> dict[str, Any]:
        """The axes that identify the case, in canonical order."""
        return dict(self.items)

    @cached_property
    def values(self) -> dict[str, Any]:
        """Every axis that the suite gives, usual values too, in canonical order."""
        return dict(self.given or self.items)

    @property
    def for_workload(self) -> dict[str, Any]:
        """The values that the workload reads."""
        others = {axis.name for axis in self.of_process}
        return {name: value for name, value in self.values.items() if name not in others}

    @property
    def process(self) -> dict[str, Any]:
        """The settings of the process, for suites/workloads/common/process.py; empty without such axes."""
        given = [(axis, value) for axis in self.of_process if (value := self.values[axis.name]) != axis.usual]
        variables = {variable: str(value) for axis, value in given for variable in axis.variables}
        cpus = next((value for axis, value in given if axis.is_cpus), None)
        read_by = {axis.name: list(axis.read_by) for axis, _ in given if axis.read_by}
        found = {"cpus": cpus, "variables": variables, "read_by": read_by}
        return {name: value for name, value in found.items() if value}

    @property
    def without_data(self) -> bool:
        """Whether the process gets no data set, also where it is at hand."""
        return any(axis.is_data and self.values[axis.name] != axis.usual for axis in self.of_process)

    @cached_property
    def id(self) -> str:
        """Hash of the canonical JSON: the same case has the same id everywhere."""
        return case_id(self.axes)

    @property
    def suite(self) -> str:
        return str(self.axes[SUITE])

    @property
    def protocol(self) -> str:
        return str(self.axes[PROTOCOL])

    @property
    def devices(self) -> int | None:
        """How many devices of all nodes compute; None where the suite does not say."""
        return _count(self.values.get(DEVICES))

    @property
    def nodes(self) -> int:
        """How many machines of a cluster its devices are on; 1 where the suite does not say."""
        return _count(self.values.get(NODES)) or 1

    @property
    def batch_size(self) -> int | None:
        """Images of a step on all devices and nodes together; None where the suite does not say."""
        return _count(self.values.get(BATCH_SIZE))


def case_id(axes: Mapping[str, Value]) -> str:
    """The id of the case with these axes. They have to be in canonical order."""
    return toml.digest(dict(axes))


def _count(value: Value | None) -> int | None:
    return value if isinstance(value, int) else None
