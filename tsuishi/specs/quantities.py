"""Quantities: the measured values that are compared. suites/quantities.toml and the suites describe them."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from tsuishi.base import toml
from tsuishi.specs.numerals import SECONDS

# The phases of a trial with the measured work. GPUs' load, power and memory, and energy, are those of these phases.
MEASURED = ("measure", "compute", "epoch", "first_run", "later_runs", "step", "load")
# Where other programs took a larger share of the cores, in percent, times may be longer by as much as a drift that is
# said (estimates/drift.py): it is said of each trial. An idle system takes one percent or two.
MOST_OF_OTHERS = 5.0
# The numbers of GPUs that have quantities of their own: load, power and memory.
GPUS = range(8)
# A quantity's name ends with its unit.
_UNIT_SUFFIXES = {
    **{"_images_per_s": "images/s", "_tokens_per_s": "tokens/s"},
    **{"_percent": "%", "_mib": "MiB", "_j": "J", "_w": "W", "_s": "s"},
}

# What a label says of a number that a script printed, by language.
_AS_PRINTED = {"en": ", as printed by the script", "ja": "（スクリプトの出力による）"}

Take = Literal["median", "mean", "first", "last", "smallest", "largest"]


class Origin(toml.Spec):
    """The samples of a phase (seconds per step), or the values of a metric, from which a quantity takes its value."""

    kind: Literal["phase", "metric"]
    name: str
    take: Take


class Quantity(toml.Spec):
    """A measured quantity, and how texts and charts show it."""

    model_config = ConfigDict(populate_by_name=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_{}]*$")]
    label: toml.Texts
    # "1" is the unit of a pure number.
    unit: str = "1"
    # "phase:<name>": the samples of that phase, in seconds per step. "metric:<name>": the values of that metric. Empty:
    # estimates/ calculates the quantity.
    origin: Annotated[str, Field(alias="from", pattern=r"^((phase|metric):[a-z][a-z0-9_]*)?$")] = ""
    # Which of several samples or values counts; None: the mean of samples, the last value of a metric.
    take: Take | None = None
    # The axis that its chart has below; the title of the chart, where that is not its label; and whether the lines of
    # the chart are those of the throughput model.
    over: str = ""
    chart: toml.Texts | None = None
    fitted: bool = False
    # Whether the chart's title gives the length of a whole epoch.
    of_epochs: bool = False
    # Whether charts without a published line are left out where other charts have such a line.
    published_first: bool = False
    # The quantity in whose chart it is drawn.
    drawn_with: str = ""
    # Whether it stands for a quantity of each GPU: {gpu} in its name is the number of the GPU.
    of_one_gpu: bool = False
    # Of values that trials predict which end early: the root mean square of their relative errors, and the number of
    # predictions that showed it (docs/certainty.md).
    prediction_error: Annotated[float, Field(ge=0, le=1)] = 0.0
    predictions: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _of_gpus(self) -> "Quantity":
        if self.of_one_gpu != ("{gpu}" in self.name):
            raise ValueError(f"quantity '{self.name}': {{gpu}} in a name and 'of_one_gpu' go together")
        return self

    @property
    def made_of(self) -> Origin | None:
        """Where its value is taken from; None where estimates/ calculates it."""
        kind, _, name = self.origin.partition(":")
        if kind == "phase":
            return Origin(kind="phase", name=name, take=self.take or "mean")
        return Origin(kind="metric", name=name, take=self.take or "last") if kind else None

    def as_printed(self) -> "Quantity":
        """The quantity of a script's suite: the label of a metric says that the script printed its numbers."""
        if not self.origin.startswith("metric:"):
            return self
        marked = {language: text + _AS_PRINTED.get(language, "") for language, text in self.label.items()}
        return self.model_copy(update={"label": marked})

    def each(self) -> "tuple[Quantity, ...]":
        """The quantity itself; a quantity of each GPU where it stands for these."""
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
    """A quantity that no file of this checkout describes. Its name gives its label, and ends with its unit.

    The name may be any text, because a run may come from any author.
    """
    unit = next((unit for suffix, unit in _UNIT_SUFFIXES.items() if name.endswith(suffix)), "1")
    label = name if unit == "1" else name.removesuffix("_" + unit.lower())
    return Quantity.model_construct(name=name, label={"en": label.replace("_", " ")}, unit=unit)


def imbalance(loads: Sequence[float]) -> float:
    """(largest - smallest) / mean of the loads of GPUs; 0 where the loads are equal, or all GPUs are idle."""
    return (max(loads) - min(loads)) * len(loads) / sum(loads) if sum(loads) else 0.0


def is_unit_of_rate(unit: str) -> bool:
    """Whether more of a quantity is faster: its unit is something per time.

    >>> [is_unit_of_rate(unit) for unit in ("images/s", "ms", "s/image", "tokens/min")]
    [True, False, False, True]
    """
    counted, per, time = unit.rpartition("/")
    return bool(per) and time in SECONDS and counted not in SECONDS


def is_unit_of_pace(unit: str) -> bool:
    """Whether the unit is that of a time, a time per something, or a rate.

    >>> [is_unit_of_pace(unit) for unit in ("images/s", "ms/step", "MiB", "1")]
    [True, True, False, False]
    """
    return unit.partition("/")[0] in SECONDS or is_unit_of_rate(unit)
