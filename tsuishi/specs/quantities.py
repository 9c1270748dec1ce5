"""Quantities: what is measured and compared, as suites/quantities.toml and the suites describe it."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from tsuishi.base import toml

# Phases in which the measured work is done; energy is counted over these.
MEASURED = ("measure", "compute", "epoch", "first_run", "later_runs")
# GPUs of one machine, of each of which load, power and memory have a quantity.
GPUS = range(8)
# A quantity's name ends with its unit.
_UNIT_SUFFIXES = {"_images_per_s": "images/s", "_percent": "%", "_mib": "MiB", "_j": "J", "_w": "W", "_s": "s"}

Take = Literal["median", "mean", "first", "last", "smallest", "largest"]


class Origin(toml.Spec):
    """What a quantity is made of: a phase's samples (seconds per step), or a metric's values; and what of them."""

    kind: Literal["phase", "metric"]
    name: str
    take: Take


class Quantity(toml.Spec):
    """Something measured, and all that is said of it anywhere."""

    model_config = ConfigDict(populate_by_name=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_{}]*$")]
    label: toml.Texts
    # 1: a pure number.
    unit: str = "1"
    # "phase:<name>": of the samples of that phase, seconds per step; "metric:<name>": of that metric's values. Without
    # it, it is reckoned in estimates/.
    origin: Annotated[str, Field(alias="from", pattern=r"^((phase|metric):[a-z][a-z0-9_]*)?$")] = ""
    # Of several samples or values; without it the median of samples, and the last value of a metric.
    take: Take | None = None
    # The axis that it is drawn over, and its chart's title: its own label, where it gives none. `fitted`: the lines are
    # those of the throughput model.
    over: str = ""
    chart: toml.Texts | None = None
    fitted: bool = False
    # Whether the length of a whole epoch belongs into the chart's title.
    of_epochs: bool = False
    # Whether charts without a published line are left out where others have one.
    published_first: bool = False
    # The quantity in whose chart it is drawn.
    drawn_with: str = ""
    # {gpu} in its name is the number of a GPU: there is one of each.
    of_one_gpu: bool = False

    @model_validator(mode="after")
    def _of_gpus(self) -> "Quantity":
        if self.of_one_gpu != ("{gpu}" in self.name):
            raise ValueError(f"quantity '{self.name}': {{gpu}} in a name and 'of_one_gpu' go together")
        return self

    @property
    def made_of(self) -> Origin | None:
        """What it is taken from; None where it is reckoned."""
        kind, _, name = self.origin.partition(":")
        if kind == "phase":
            return Origin(kind="phase", name=name, take=self.take or "median")
        return Origin(kind="metric", name=name, take=self.take or "last") if kind else None

    def each(self) -> "tuple[Quantity, ...]":
        """It, or one of each GPU."""
        if not self.of_one_gpu:
            return (self,)
        return tuple(
            self.model_copy(
                update={
                    "name": self.name.format(gpu=gpu),
                    "label": {language: text.format(gpu=gpu) for language, text in self.label.items()},
                }
            )
            for gpu in GPUS
        )


def unknown_quantity(name: str) -> Quantity:
    """A quantity that nothing here describes: it is called by its name, which ends with its unit.

    A run may come from anybody, so the name is any text.
    """
    unit = next((unit for suffix, unit in _UNIT_SUFFIXES.items() if name.endswith(suffix)), "1")
    label = name if unit == "1" else name.removesuffix("_" + unit.lower())
    return Quantity.model_construct(name=name, label={"en": label.replace("_", " ")}, unit=unit)


def imbalance(loads: Sequence[float]) -> float:
    """(largest - smallest) / mean of the GPUs' loads: 0 is even; 0 too where all of them are idle."""
    return (max(loads) - min(loads)) * len(loads) / sum(loads) if sum(loads) else 0.0
