"""Cases: what is matched across environments, machines, runs and published numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tsuishi.base import toml

Value = str | int

# The axes that the machinery itself acts on: what a case is of, how many GPUs a trial gets, how much a step does, what
# is shared out and how. Workloads know them by these names too. All that is said of axes is in suites/axes.toml.
SUITE, PROTOCOL = "suite", "protocol"
DEVICES, BATCH_SIZE = "devices", "batch_size"
MODEL, STRATEGY = "model", "strategy"
# The strategy of what is not shared out.
ALONE = "none"


@dataclass(frozen=True)
class Case:
    """One point of a suite's axes, without the environment: what is matched across environments and machines.

    Made by Vocabulary.case, or of what a run recorded. `items` are axes and values in canonical order; an axis that a
    suite does not use is not among them, nor is one at its usual value where that is left out of ids. `given` are all
    axes that the suite gives, in that order, for the workload.
    """

    items: tuple[tuple[str, Value], ...]
    given: tuple[tuple[str, Value], ...] = field(default=(), compare=False)

    @cached_property
    def axes(self) -> dict[str, Any]:
        """The axes that are the case's identity, in canonical order."""
        return dict(self.items)

    @cached_property
    def values(self) -> dict[str, Any]:
        """Every axis that the suite gives, usual values too, in canonical order."""
        return dict(self.given or self.items)

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
        """How many devices compute, over all nodes; None where the suite does not say."""
        return _count(self.values.get(DEVICES))

    @property
    def batch_size(self) -> int | None:
        """Images of a step, over all devices and nodes; None where the suite does not say."""
        return _count(self.values.get(BATCH_SIZE))


def case_id(axes: Mapping[str, Value]) -> str:
    """The id of the case of these axes, which are in canonical order."""
    return toml.digest(dict(axes))


def _count(value: Value | None) -> int | None:
    return value if isinstance(value, int) else None
